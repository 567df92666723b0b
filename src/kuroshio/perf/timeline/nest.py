"""What a host's thread was at, at any moment: events within events."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..traces.events import Events
from .groups import alike, on_host

_DEEPEST = (
    1000  # events around one: a program's calls are not nested deeper, a hostile file's may be
)
_ROUNDS = 100  # in which the parents of what programs do are found


class Nest:
    """Of all host events, thread by thread. Rows are of the table; -1 stands for none.

    The parent of an event is the nearest before it on its thread that ends no earlier.
    """

    def __init__(self, events: Events) -> None:
        rows = np.flatnonzero(on_host(events))
        order = np.lexsort(
            (-events.end[rows], events.start[rows], events.thread[rows], events.process[rows])
        )
        rows = rows[order]
        self._thread = _numbered(events.process[rows], events.thread[rows])
        self._starts, ends = events.start[rows], events.end[rows]
        self._place = np.full(len(events) + 1, -1, np.int64)
        self._place[rows] = np.arange(len(rows))
        # The last element answers for -1, no place.
        self._rows = np.append(rows, -1)
        self._ends = np.append(ends, np.iinfo(np.int64).max)
        self._above = np.append(_parents(self._thread, ends), -1)

    def parents(self, rows: np.ndarray) -> np.ndarray:
        """Of host events, or of -1: what encloses each."""
        return self._rows[self._above[self._place[rows]]]

    def innermost(self, like: np.ndarray, moments: np.ndarray) -> np.ndarray:
        """What is under way at each moment on the thread of a host event, `like`, or -1."""
        places = self._place[like]
        at = np.full(len(like), -1, np.int64)
        asked = np.flatnonzero(places >= 0)
        for mine in alike(np.append(self._thread, -1)[places], asked):
            thread = self._thread[places[mine[0]]]
            first, last = np.searchsorted(self._thread, [thread, thread + 1])
            begun = np.searchsorted(self._starts[first:last], moments[mine], side="right")
            at[mine] = np.where(begun > 0, first + begun - 1, -1)
        for _ in range(_DEEPEST):
            asked = asked[self._ends[at[asked]] <= moments[asked]]
            if not len(asked):
                break
            at[asked] = self._above[at[asked]]
        at[self._ends[at] <= moments] = -1
        return self._rows[at]

    def upwards(self, rows: np.ndarray) -> Iterator[np.ndarray]:
        """These, then what encloses each, and so on until nothing encloses any."""
        for _ in range(_DEEPEST):
            if not (rows >= 0).any():
                return
            yield rows
            rows = self.parents(rows)

    def busiest(self) -> int:
        """A row of the thread with the most events; -1 without host events."""
        if not len(self._thread):
            return -1
        return int(self._rows[np.searchsorted(self._thread, np.bincount(self._thread).argmax())])


def _numbered(*columns: np.ndarray) -> np.ndarray:
    """Rows, which are in order of these columns, by number of their values, from 0."""
    if not len(columns[0]):
        return np.empty(0, np.int64)
    differs = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return np.concatenate([[0], np.cumsum(differs)])


def _parents(thread: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """The nearest before each that is of its thread and ends no earlier, or -1.

    All are sought at once: who did not find one at its candidate goes on to that one's own
    candidate, for what lies between ends before that one and so before the seeker, too. Where
    that takes many rounds, as of events nested very deep, one pass over all ends it.
    """
    above = np.arange(-1, len(ends) - 1)
    seeking = np.arange(len(ends))
    for _ in range(_ROUNDS):
        at = above[seeking]
        other = (at >= 0) & (thread[at] != thread[seeking])
        above[seeking[other]] = -1
        on = (at >= 0) & ~other & (ends[at] < ends[seeking])
        seeking, at = seeking[on], at[on]
        above[seeking] = above[at]
        if not len(seeking):
            return above
    return _parents_in_turn(thread, ends)


def _parents_in_turn(thread: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """The same, one event after the other: its time does not depend on how they are nested."""
    above: list[int] = []
    around: list[tuple[int, int]] = []  # those that may enclose what comes: end and number
    before = -1
    for number, (lane, end) in enumerate(zip(thread.tolist(), ends.tolist(), strict=True)):
        if lane != before:
            around, before = [], lane
        while around and around[-1][0] < end:
            around.pop()
        above.append(around[-1][1] if around else -1)
        around.append((end, number))
    return np.array(above, np.int64)
