"""Stretches of time, merged as they come: when anything of a kind was going on."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator


class Intervals:
    """Disjoint stretches in order; what touches or overlaps becomes one."""

    def __init__(self, given: Iterable[tuple[float, float]] = ()) -> None:
        self._starts: list[float] = []
        self._stops: list[float] = []
        for start, stop in given:
            self.add(start, stop)

    def __iter__(self) -> Iterator[tuple[float, float]]:
        return zip(self._starts, self._stops, strict=True)

    def __len__(self) -> int:
        return len(self._starts)

    @property
    def seconds(self) -> float:
        return sum(stop - start for start, stop in self)

    def add(self, start: float, stop: float) -> None:
        """One more; as a rule it is near the end, and quickly placed."""
        if stop <= start:
            return
        first = bisect_left(self._stops, start)  # those from `first` to `last` become part of it
        last = bisect_right(self._starts, stop)
        if first < last:
            start = min(start, self._starts[first])
            stop = max(stop, self._stops[last - 1])
        self._starts[first:last] = [start]
        self._stops[first:last] = [stop]

    def overlap_s(self, other: Intervals) -> float:
        """Seconds that are in both."""
        ours, theirs = list(self), list(other)
        i = j = 0
        total = 0.0
        while i < len(ours) and j < len(theirs):
            total += max(min(ours[i][1], theirs[j][1]) - max(ours[i][0], theirs[j][0]), 0.0)
            if ours[i][1] < theirs[j][1]:
                i += 1
            else:
                j += 1
        return total
