"""Several devices: communication that nothing covers, and ranks that wait for each other."""

from __future__ import annotations

from collections.abc import Sequence

from ..timeline.groups import communicating
from ..timeline.ranks import Ranks
from . import figures
from .finding import Finding, Place
from .seen import WORTH, Seen

# Profilers' own advisers call a share of 10 % of the time in communication high. Here only what no
# computation covers counts, which is less.
_HEAVY = 0.10
# Ranks of one job differ by a few percent by their clocks and their data; a tenth is a cause.
_IMBALANCE = 0.10


def exposed_communication(seen: Seen) -> Finding | None:
    """Communication that no computation covers."""
    events = seen.analysis.trace.events
    found = seen.exposed(communicating(events))
    if found is None:
        return None
    whole, exposed = found.when.total, found.bare.total
    if exposed <= _HEAVY * seen.span:
        return None
    kernels = seen.analysis.kernels
    names = [each for each in kernels.kernels if each.communication] if kernels else []
    return Finding(
        key="communication",
        title="Communication is not hidden behind computation",
        summary=(
            f"{found.whose}Communication takes {figures.time(whole)}, "
            f"{figures.share(whole, seen.span)} of {figures.time(seen.span)}; "
            f"computation covers {figures.share(found.covered, whole)} "
            f"of it, and {figures.time(exposed)} are exposed."
        ),
        verify=(
            "Whether it waits for slower ranks or moves bytes: record all ranks",
            "Bytes a message against the communication roof (kuroshio perf ceilings)",
        ),
        directions=(
            "Begin it as soon as its data is there, on a stream of its own",
            "Fewer and larger messages; smaller types",
            "Another split of the model or the data, so that less is exchanged",
        ),
        saves=exposed,
        at_most=found.most(seen.span),
        of=seen.span,
        how=(
            "all of it that is exposed; computation that covers none yet could hide "
            f"{figures.time(found.room)} of it"
        ),
        places=seen.stretches(found.bare, "communication alone"),
        places_in_all=len(found.bare),
        names=tuple(dict.fromkeys(each.short for each in names))[:5],
        cannot_tell=(
            "How much of it is waiting for other ranks: a communication kernel runs while it waits",
        ),
        figures={
            "communication_ns": whole,
            "covered_ns": found.covered,
            "exposed_ns": exposed,
        },
    )


def imbalance(seen: Sequence[Seen], ranks: Ranks) -> Finding | None:
    """One rank computes longer than the others, which wait for it."""
    found = ranks.imbalance
    if found is None or found.spread <= _IMBALANCE:
        return None
    of = max(each.total for each in ranks.ranks)
    by_rank = {each.rank: each for each in ranks.ranks}
    slow, fast = by_rank[found.slowest], by_rank[found.fastest]
    place = [each.rank for each in ranks.ranks].index(found.slowest)
    working = [each for each in ranks.analyses if each.work is not None]
    at = next(n for n, each in enumerate(seen) if each.analysis is working[place])
    bounds = seen[at].analysis.work
    if bounds is None or found.lost <= WORTH * of:
        return None
    waited = ranks.stragglers[:1]
    worst = (
        f" The longest wait of one collective, {figures.named(waited[0].name)}, is "
        f"{figures.time(waited[0].waited)}."
        if waited
        else ""
    )
    return Finding(
        key="imbalance",
        title="Ranks have unequal work",
        summary=(
            f"Rank {slow.rank} computes for {figures.time(slow.compute)}, rank {fast.rank} for "
            f"{figures.time(fast.compute)}: {100 * found.spread:.0f}% less.{worst}"
        ),
        verify=(
            "Whether it is always the same rank: its share of the data, its clocks, its neighbours",
            "Whether all ranks were recorded over the same steps",
        ),
        directions=(
            "Split the work by cost, not by count",
            "Sort or bucket inputs of unequal length",
        ),
        saves=found.lost,
        of=of,
        how="the slowest rank's computation less the ranks' mean",
        places=(Place(bounds.start, bounds.end, f"rank {slow.rank}, the slowest", None, at),),
        places_in_all=1,
        cannot_tell=("What ranks that were not recorded do",),
        figures={
            "slowest": slow.rank,
            "fastest": fast.rank,
            "spread": found.spread,
            "lost_ns": found.lost,
        },
    )
