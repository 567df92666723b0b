"""Rows of a buffer handed out by lifetime: the memory of a plan, decided before it runs."""

from __future__ import annotations

import heapq

import numpy as np


def peak(first: np.ndarray, last: np.ndarray) -> int:
    """Most items alive at once; item i lives from time first[i] to last[i], both included."""
    if first.size == 0:
        return 0
    change = np.zeros(int(last.max()) + 2, np.int64)
    np.add.at(change, first, 1)
    np.add.at(change, last + 1, -1)
    return int(change.cumsum().max())


def assign(first: np.ndarray, last: np.ndarray, start: int = 0) -> np.ndarray:
    """A row for each item such that no two alive at the same time share one; rows from `start`.

    Uses as few rows as `peak` counts. Items are served in order of `first`.
    """
    rows = np.empty(first.size, np.int32)
    free: list[int] = []
    ending: list[tuple[int, int]] = []  # (last, row)
    fresh = start
    for item in np.argsort(first, kind="stable"):
        while ending and ending[0][0] < first[item]:
            heapq.heappush(free, heapq.heappop(ending)[1])
        if free:
            row = heapq.heappop(free)
        else:
            row, fresh = fresh, fresh + 1
        rows[item] = row
        heapq.heappush(ending, (int(last[item]), row))
    return rows
