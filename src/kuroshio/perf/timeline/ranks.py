"""Several ranks of one job side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...errors import Refusal
from .collectives import Straggler, collectives_of, matched, stragglers_of
from .messages import Message, messages_of
from .plain import plain

if TYPE_CHECKING:
    from ..ceilings.ceiling import Ceiling
    from .analysis import Analysis

_MOST = 200  # stragglers that a document lists


@dataclass(frozen=True)
class Rank:
    """total = compute + communication + waiting - overlapped, ns.

    total     span of the rank's device work
    waiting   neither compute nor communication; copies and sets are among it
    covered   overlapped over communication; None without communication
    """

    rank: int
    path: str
    total: int
    compute: int
    communication: int
    waiting: int
    overlapped: int
    communication_share: float
    exposed: int  # communication that no compute covers
    covered: float | None


@dataclass(frozen=True)
class Imbalance:
    """Of the ranks' compute: ranks with the least and the most, (most - least) / most.

    lost  ns: the most less the mean, what balance could save at most
    """

    fastest: int
    slowest: int
    spread: float
    lost: int


@dataclass(frozen=True)
class Ranks:
    """analyses and ranks: in order of rank, of those that had device work.

    stragglers  the most waited for first; `last` in them and durations are places in `ranks`
    last        how often each of `ranks` came clearly last; None where nothing could be matched
    """

    analyses: tuple[Analysis, ...]
    ranks: tuple[Rank, ...]
    imbalance: Imbalance | None
    messages: tuple[Message, ...]
    stragglers: tuple[Straggler, ...]
    last: tuple[int, ...] | None
    limits: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Without the analyses, which have documents of their own."""
        return {
            "ranks": plain(self.ranks), "imbalance": plain(self.imbalance),
            "messages": plain(self.messages), "collectives": len(self.stragglers),
            "stragglers": plain(self.stragglers[:_MOST]), "last": plain(self.last),
            "limits": list(self.limits),
        }  # fmt: skip


def compare(analyses: Sequence[Analysis], ceilings: Sequence[Ceiling] = ()) -> Ranks:
    """Of one trace too: its decomposition and its messages. Refusal of one rank given twice."""
    ordered = _in_order(analyses)
    working = [(number, each) for number, each in ordered if each.work is not None]
    ranks = tuple(_rank(number, each) for number, each in working)
    sent = [collectives_of(each.trace.events) for _, each in working]
    together, differ = matched(sent)
    stragglers = tuple(stragglers_of(together)) if len(sent) > 1 else ()
    came = Counter(each.last for each in stragglers if each.apart)
    return Ranks(
        analyses=tuple(each for _, each in ordered),
        ranks=ranks,
        imbalance=_imbalance(ranks),
        messages=tuple(messages_of(together, ceilings)),
        stragglers=stragglers,
        last=tuple(came[at] for at in range(len(ranks))) if stragglers else None,
        limits=tuple(_limits(ordered, working, differ)),
    )


def _in_order(analyses: Sequence[Analysis]) -> list[tuple[int, Analysis]]:
    """With their ranks; where one does not tell its rank, all are numbered as they were given."""
    told = [each.trace.rank for each in analyses]
    numbers = (
        list(range(len(told))) if None in told else [rank for rank in told if rank is not None]
    )
    twice = [rank for rank, count in Counter(numbers).items() if count > 1]
    if twice:
        paths = [
            str(each.trace.path) for each, n in zip(analyses, numbers, strict=True) if n == twice[0]
        ]
        raise Refusal(
            f"Rank {twice[0]} was given {len(paths)} times: {', '.join(paths)}. Give one trace of "
            "each rank, of one and the same run."
        )
    return sorted(zip(numbers, analyses, strict=True), key=lambda each: each[0])


def _rank(number: int, analysis: Analysis) -> Rank:
    work = analysis.work
    assert work is not None
    either = work.compute + work.communication - work.communication_covered
    return Rank(
        rank=number,
        path=str(analysis.trace.path),
        total=work.span,
        compute=work.compute,
        communication=work.communication,
        waiting=work.span - either,
        overlapped=work.communication_covered,
        communication_share=work.communication / work.span if work.span else 0.0,
        exposed=work.communication - work.communication_covered,
        covered=work.communication_covered / work.communication if work.communication else None,
    )


def _imbalance(ranks: Sequence[Rank]) -> Imbalance | None:
    if len(ranks) < 2:
        return None
    fastest, slowest = (choose(ranks, key=lambda rank: rank.compute) for choose in (min, max))
    most = slowest.compute
    mean = sum(rank.compute for rank in ranks) // len(ranks)
    spread = (most - fastest.compute) / most if most else 0.0
    return Imbalance(fastest.rank, slowest.rank, spread, most - mean)


def _limits(
    ordered: Sequence[tuple[int, Analysis]], working: Sequence[tuple[int, Analysis]],
    differ: set[str],
) -> Iterator[str]:  # fmt: skip
    if idle := [str(number) for number, each in ordered if each.work is None]:
        yield f"Of rank {', '.join(idle)} no device work was recorded; it is left out"
    of = {each.trace.ranks for _, each in ordered if each.trace.ranks}
    if of and len(ordered) < max(of):
        yield (
            f"{len(ordered)} of {max(of)} ranks were given: others may have been slower or faster"
        )
    if len(ordered) > 1 and any(each.trace.rank is None for _, each in ordered):
        yield "A trace does not tell its rank: ranks are numbered as their files were given"
    if len(working) > 1:
        yield (
            "Clocks of ranks are not compared: a rank that came last is known by its collective, "
            "which was shorter than that of those who waited"
        )
    if differ:
        yield (
            f"Of {len(differ)} kinds of collectives ranks recorded different numbers or sizes: who "
            "came last to them is not known"
        )
