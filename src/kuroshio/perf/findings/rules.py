"""All rules, and the order of what they find: what could save the most comes first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ..timeline.ranks import Ranks
from . import figures
from .finding import Finding, longest
from .seen import Seen

Rule = Callable[[Seen], Finding | None]
RULES: tuple[Rule, ...] = ()


def find(seen: Sequence[Seen], ranks: Ranks | None = None) -> tuple[Finding, ...]:
    """What holds of these traces, a finding a rule; none of a healthy one.

    ranks  how several of one job compare; None of one trace
    """
    by_key: dict[str, list[tuple[Seen, Finding]]] = {}
    for each in seen:
        for rule in RULES:
            if finding := rule(each):
                by_key.setdefault(finding.key, []).append((each, finding))
    found = [_of_all(each, len(seen)) for each in by_key.values()]
    return tuple(sorted(found, key=_rank))


def _rank(finding: Finding) -> tuple[bool, int]:
    """First what bounds nothing because there is nothing, then what could save the most."""
    return finding.saves is not None, -(finding.saves or 0)


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


def _name(seen: Seen) -> str:
    rank = seen.analysis.trace.rank
    return f"trace {seen.trace + 1}" if rank is None else f"rank {rank}"
