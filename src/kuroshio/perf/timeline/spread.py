"""How durations spread: int ns, of any number of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Spread:
    """Of `count` durations, ns. The 90th percentile is the least that 90 % do not exceed."""

    count: int
    total: int
    least: int
    median: int
    p90: int
    most: int


def spread(durations: np.ndarray) -> Spread | None:
    """None of none."""
    if not len(durations):
        return None
    return spreads_of(np.sort(durations), np.zeros(1, np.int64))[0]


def spreads_of(
    ordered: np.ndarray, first: np.ndarray, which: np.ndarray | slice = slice(None)
) -> list[Spread]:
    """Of groups, which begin at `first`, or of some; within each, durations are in order."""
    counts = np.diff(np.append(first, len(ordered)))[which]
    totals, first = np.add.reduceat(ordered, first)[which], first[which]
    columns = (
        counts,
        totals,
        ordered[first],
        ordered[first + (counts - 1) // 2],
        ordered[first - (-9 * counts // 10) - 1],
        ordered[first + counts - 1],
    )
    return [Spread(*each) for each in zip(*(column.tolist() for column in columns), strict=True)]
