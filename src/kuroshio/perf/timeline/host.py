"""What the host did, by name: time of its own, and with what it called."""

from __future__ import annotations

import re
from dataclasses import dataclass
from heapq import nsmallest

import numpy as np

from ..traces.events import Events, Kind
from .groups import on_host
from .nest import Nest
from .spread import Spread, spreads_of

_NUMBER = re.compile(r"(?<![A-Za-z])\d+(?![A-Za-z])")  # but not those of all2all
MOST_NAMES = 1000  # there may be as many as events, and nobody reads them all
_WORDS = {Kind.CALL: "call", Kind.OPERATOR: "operator", Kind.ANNOTATION: "range"}


@dataclass(frozen=True)
class Named:
    """All events of one name; ns. Ranges that differ in numbers only are one: step N.

    own    without what ran within them on their thread
    share  own over the busy time of all threads
    times  with that; one within another of its name counts twice in the total
    row    of the longest
    """

    name: str
    kind: str  # call, operator, range
    own: int
    share: float
    times: Spread
    row: int


@dataclass(frozen=True)
class Host:
    """names: the most own time first, at most MOST_NAMES; there are `count`.

    span     from the first event to the last, ns
    threads  that have events
    busy     time of theirs within any event, ns, summed over threads: the own times' sum
    """

    span: int
    threads: int
    busy: int
    names: tuple[Named, ...]
    count: int


def host_of(events: Events, nest: Nest) -> Host | None:
    """None where no call, operator or range was recorded; stages are a pipeline's."""
    rows = np.flatnonzero(on_host(events) & (events.kind != Kind.STAGE))
    if not len(rows):
        return None
    own = _own(events, nest, rows)
    name, names = _families(events, rows)
    length = events.duration[rows]
    order = np.lexsort((length, name))
    first = np.flatnonzero(np.append(True, np.diff(name[order]) != 0))
    last = np.append(first[1:], len(rows)) - 1
    sums = np.add.reduceat(own[order], first)
    busy = int(sums.sum())
    most = _most(sums, [names[code] for code in name[order][first].tolist()])
    found = [
        Named(names[code], _WORDS[Kind(kind)], mine, mine / busy if busy else 0.0, times, row)
        for code, kind, mine, times, row in zip(
            name[order][first[most]].tolist(),
            events.kind[rows[order[last[most]]]].tolist(),
            sums[most].tolist(),
            spreads_of(length[order], first, most),
            rows[order[last[most]]].tolist(),
            strict=True,
        )
    ]
    return Host(
        span=int(events.end[rows].max() - events.start[rows].min()),
        threads=int(_threads(events, rows).max()) + 1,
        busy=busy,
        names=tuple(found),
        count=len(first),
    )


def _most(sums: np.ndarray, names: list[str]) -> np.ndarray:
    """Places of the MOST_NAMES with the largest sums, in order; of equal ones by name."""
    least = np.partition(sums, -MOST_NAMES)[-MOST_NAMES] if len(sums) > MOST_NAMES else sums.min()
    among = np.flatnonzero(sums >= least).tolist()
    found = nsmallest(MOST_NAMES, among, key=lambda at: (-int(sums[at]), names[at]))
    return np.array(found, np.int64)


def _own(events: Events, nest: Nest, rows: np.ndarray) -> np.ndarray:
    """(row,) ns. Each moment of a thread is of what began last, and is under way."""
    place = np.full(len(events) + 1, -1, np.int64)  # the last answers for no row
    place[rows] = np.arange(len(rows))
    above = place[nest.parents(rows)]
    inner = above >= 0
    within = np.bincount(above[inner], events.duration[rows[inner]], len(rows)).astype(
        np.int64
    )  # exact: below 2^53 ns, a hundred days
    lane = _threads(events, rows)
    if not _overlap(events, rows, np.where(inner, above, -1 - lane)):
        return events.duration[rows] - within
    # Moment by moment, which takes longer.
    like, at = np.tile(rows, 2), np.append(events.start[rows], events.end[rows])
    order = np.lexsort((at, np.tile(lane, 2)))
    like, at, lane = like[order], at[order], np.tile(lane, 2)[order]
    same = np.flatnonzero((lane[1:] == lane[:-1]) & (at[1:] > at[:-1]))
    whose = place[nest.innermost(like[same], at[same])]
    told = whose >= 0
    lasts = (at[same + 1] - at[same])[told]
    return np.bincount(whose[told], lasts, len(rows)).astype(np.int64)


def _overlap(events: Events, rows: np.ndarray, around: np.ndarray) -> bool:
    """Whether any overlap of which neither is within the other; `around` (row,): what each is in.

    Then two neighbours do.
    """
    order = np.lexsort((events.start[rows], around))
    around, start, end = around[order], events.start[rows[order]], events.end[rows[order]]
    return bool(((around[1:] == around[:-1]) & (start[1:] < end[:-1])).any())


def _threads(events: Events, rows: np.ndarray) -> np.ndarray:
    """(row,) the number of each one's thread, from 0."""
    process, thread = (
        np.unique(column, return_inverse=True)[1].reshape(-1)
        for column in (events.process[rows], events.thread[rows])
    )
    return np.unique(process * len(rows) + thread, return_inverse=True)[1].reshape(-1)


def _families(events: Events, rows: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """(row,) the number of each one's name, or of the family that its range is of; and names."""
    ranges = events.kind[rows] == Kind.ANNOTATION
    codes = events.name[rows] * 2 + ranges
    used, at = np.unique(codes, return_inverse=True)
    numbers: dict[str, int] = {}
    told = [
        _NUMBER.sub("N", events.names[code // 2]) if code % 2 else events.names[code // 2]
        for code in used.tolist()
    ]
    mine = np.array([numbers.setdefault(name, len(numbers)) for name in told], np.int64)
    return mine[at.reshape(-1)], list(numbers)
