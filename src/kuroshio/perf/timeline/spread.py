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
    count = len(durations)
    if not count:
        return None
    ordered = np.sort(durations)
    return Spread(
        count,
        int(ordered.sum()),
        int(ordered[0]),
        int(ordered[(count - 1) // 2]),
        int(ordered[-(-9 * count // 10) - 1]),
        int(ordered[-1]),
    )
