"""What the host did, by name: time of its own, and with what it called."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from ..traces.events import Events, Kind
from .groups import on_host
from .nest import Nest
from .spread import Spread, spreads_of

_NUMBER = re.compile(r"(?<![A-Za-z])\d+(?![A-Za-z])")  # but not those of all2all
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
    """names: the most own time first.

    span     from the first event to the last, ns
    threads  that have events
    busy     time of theirs within any event, ns, summed over threads: the own times' sum
    """

    span: int
    threads: int
    busy: int
    names: tuple[Named, ...]


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
    threads = np.stack([events.process[rows], events.thread[rows]])
    found = [
        Named(names[code], _WORDS[Kind(kind)], mine, mine / busy if busy else 0.0, times, row)
        for code, kind, mine, times, row in zip(
            name[order][first].tolist(),
            events.kind[rows[order[last]]].tolist(),
            sums.tolist(),
            spreads_of(length[order], first),
            rows[order[last]].tolist(),
            strict=True,
        )
    ]
    return Host(
        span=int(events.end[rows].max() - events.start[rows].min()),
        threads=np.unique(threads, axis=1).shape[1],
        busy=busy,
        names=tuple(sorted(found, key=lambda each: (-each.own, each.name))),
    )


def _own(events: Events, nest: Nest, rows: np.ndarray) -> np.ndarray:
    """(row,) ns. What is within an event lies one after the other, but in a damaged file."""
    place = np.full(len(events), -1, np.int64)
    place[rows] = np.arange(len(rows))
    parents = nest.parents(rows)
    inner = parents >= 0
    within = np.bincount(place[parents[inner]], events.duration[rows[inner]], len(rows)).astype(
        np.int64
    )  # exact: below 2^53 ns, a hundred days
    return np.maximum(events.duration[rows] - within, 0)


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
