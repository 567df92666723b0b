"""All rules, and the order of what they find: what could save the most comes first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ..timeline.analysis import Analysis
from ..timeline.ranks import Ranks
from . import figures
from .communication import exposed_communication, imbalance
from .copies import exposed_copies
from .finding import Finding, longest
from .hot import hot_kernel
from .idle import communication_holes, data_loading, host_late, other_holes
from .jitter import jitter
from .nothing import no_device_work
from .occupied import beyond_registers, few_blocks
from .pipeline import bottleneck
from .seen import Seen
from .small_messages import small_messages
from .tiny import tiny_kernels
from .waits import allocations, blocking_copies, read_backs, synchronisations

Rule = Callable[[Seen], Finding | None]
RULES: tuple[Rule, ...] = (
    no_device_work, data_loading, host_late, communication_holes, other_holes, synchronisations,
    read_backs, blocking_copies, allocations, tiny_kernels, exposed_copies, exposed_communication,
    hot_kernel, few_blocks, beyond_registers, jitter,
)  # fmt: skip
# A pipeline says itself what each of its stages is for: nothing is to be guessed from holes.
OF_PIPELINES: tuple[Rule, ...] = (no_device_work, bottleneck)
OF_RANKS = (imbalance, small_messages)


def find(seen: Sequence[Seen], ranks: Ranks | None = None) -> tuple[Finding, ...]:
    """What holds of these traces, a finding a rule; none of a healthy one.

    ranks  how several of one job compare; None of one trace
    """
    by_key: dict[str, list[tuple[Seen, Finding]]] = {}
    for each in seen:
        for rule in OF_PIPELINES if each.analysis.pipeline else RULES:
            if finding := rule(each):
                by_key.setdefault(finding.key, []).append((each, finding))
    found = [_of_all(each, len(seen)) for each in by_key.values()]
    if ranks:
        found += [finding for rule in OF_RANKS if (finding := rule(seen, ranks))]
    return tuple(sorted(found, key=_rank))


def _rank(finding: Finding) -> tuple[bool, int]:
    """First that there is nothing to judge, then what could save the most, then the unbounded."""
    return finding.key != "no-device-work", -(finding.saves or 0)


def _of_all(found: Sequence[tuple[Seen, Finding]], traces: int) -> Finding:
    """One of those that several traces show: of the trace where it could save the most."""
    if traces == 1:
        return found[0][1]
    ordered = sorted(found, key=lambda each: _rank(each[1]))
    seen, worst = ordered[0]
    others = [_name(each) for each, _ in ordered[1:]]
    also = f" Also in {figures.listed(others)}." if others else ""
    return replace(
        worst,
        summary=f"{_name(seen).capitalize()}: {worst.summary}{also}",
        places=longest([place for _, each in ordered for place in each.places]),
        places_in_all=sum(each.places_in_all for _, each in ordered),
        names=tuple(dict.fromkeys(name for _, each in ordered for name in each.names)),
    )


def trace_name(analysis: Analysis, number: int) -> str:
    """Of one of several traces, from 0: its rank, or else its place."""
    rank = analysis.trace.rank
    return f"trace {number + 1}" if rank is None else f"rank {rank}"


def _name(seen: Seen) -> str:
    return trace_name(seen.analysis, seen.trace)
