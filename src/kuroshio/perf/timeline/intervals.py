"""Sets of moments, as sorted intervals that do not touch: int64 starts and ends, in ns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Intervals:
    """Half-open intervals [start, end), apart from each other, in order."""

    starts: np.ndarray
    ends: np.ndarray

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def total(self) -> int:
        """ns in all."""
        return int((self.ends - self.starts).sum())

    @property
    def span(self) -> int:
        """From the first start to the last end; 0 of none."""
        return int(self.ends[-1] - self.starts[0]) if len(self) else 0

    def __and__(self, other: Intervals) -> Intervals:
        """Moments that are in both."""
        if not len(self) or not len(other):
            return NONE
        # Those of `other` that meet each of mine are in a row.
        first = np.searchsorted(other.ends, self.starts, side="right")
        last = np.searchsorted(other.starts, self.ends, side="left")
        counts = np.maximum(last - first, 0)
        mine = np.repeat(np.arange(len(self)), counts)
        theirs = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        theirs += np.repeat(first, counts)
        return Intervals(
            np.maximum(self.starts[mine], other.starts[theirs]),
            np.minimum(self.ends[mine], other.ends[theirs]),
        )

    def __or__(self, other: Intervals) -> Intervals:
        """Moments that are in one or both."""
        return union(
            np.concatenate([self.starts, other.starts]), np.concatenate([self.ends, other.ends])
        )

    def __sub__(self, other: Intervals) -> Intervals:
        """Moments of mine that are not in the other."""
        return self & other.outside()

    def outside(self) -> Intervals:
        """All moments that are not in these."""
        edge = np.iinfo(np.int64)
        starts = np.concatenate([[edge.min], self.ends])
        ends = np.concatenate([self.starts, [edge.max]])
        return Intervals(starts, ends)

    def before(self, moments: np.ndarray) -> np.ndarray:
        """How much of them lies before each moment, ns."""
        if not len(self):
            return np.zeros(len(moments), np.int64)
        lengths = np.concatenate([[0], np.cumsum(self.ends - self.starts)])
        begun = np.searchsorted(self.starts, moments, side="right")
        last = np.maximum(begun - 1, 0)
        beyond = np.maximum(self.ends[last] - moments, 0)
        return lengths[begun] - np.where(begun > 0, beyond, 0)

    def within(self, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """How much of them lies in each of these intervals, ns."""
        return self.before(ends) - self.before(starts)

    def holes(self) -> Intervals:
        """What lies between them."""
        return Intervals(self.ends[:-1], self.starts[1:])


NONE = Intervals(np.empty(0, np.int64), np.empty(0, np.int64))


def union(starts: np.ndarray, ends: np.ndarray) -> Intervals:
    """Of any intervals, in any order; empty ones vanish."""
    there = ends > starts
    starts, ends = starts[there], ends[there]
    if not len(starts):
        return NONE
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], np.maximum.accumulate(ends[order])
    opens = np.concatenate([[True], starts[1:] > ends[:-1]])
    closes = np.concatenate([opens[1:], [True]])
    return Intervals(starts[opens], ends[closes])
