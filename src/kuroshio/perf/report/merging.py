"""Fewer rectangles than events: those too short to be seen apart are drawn as one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Row:
    """Rectangles in order of start. Times are int64 ns; `count` events lie in each."""

    start: np.ndarray
    end: np.ndarray
    name: np.ndarray  # of the longest event
    colour: np.ndarray
    count: np.ndarray

    def __len__(self) -> int:
        return len(self.start)


def row(start: np.ndarray, end: np.ndarray, name: np.ndarray, colour: np.ndarray) -> Row:
    """Of events in order of start, one rectangle each."""
    return Row(start, end, name, colour, np.ones(len(start), np.int64))


def merged(whole: Row, most: int) -> Row:
    """At most about so many rectangles, at the finest resolution at which that can be.

    Events shorter than the resolution that begin within one cell of it, one after the other, are
    merged; longer ones never are.
    """
    if len(whole) <= most:
        return whole
    length = whole.end - whole.start
    resolution = max(1, int(whole.end.max() - whole.start[0]) // most)
    while True:
        cell = (whole.start - whole.start[0]) // resolution
        small = length < resolution
        opens = np.ones(len(whole), bool)
        opens[1:] = ~(small[1:] & small[:-1] & (cell[1:] == cell[:-1]))
        if int(opens.sum()) <= most:
            return _grouped(whole, opens, length)
        resolution *= 2


def _grouped(whole: Row, opens: np.ndarray, length: np.ndarray) -> Row:
    first = np.flatnonzero(opens)
    group = np.cumsum(opens) - 1
    # The longest of each group: the last of it when sorted by group and length.
    order = np.lexsort((length, group))
    longest = order[np.append(first[1:], len(whole)) - 1]
    return Row(
        whole.start[first],
        np.maximum.reduceat(whole.end, first),
        whole.name[longest],
        whole.colour[longest],
        np.add.reduceat(whole.count, first),
    )
