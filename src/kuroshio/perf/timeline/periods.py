"""Steps of programs that name none: sequences of kernels that repeat."""

from __future__ import annotations

import numpy as np

from ..traces.events import Events, Kind

_FEWEST = 3  # repeats; twice the same is no rule
_ALIKE = 0.9  # of the kernels are the same a period later: a step may skip or add a few
_CANDIDATES = 64  # names that are asked for a period, those that occur least often first


def period_starts(events: Events) -> np.ndarray | None:
    """Rows of the kernels that open each repeat; None where nothing repeats.

    A kernel that occurs once a period marks it; of several, the one that waits longest for its
    turn, since a step begins where one before it has ended.
    """
    rows = np.flatnonzero(events.kind == Kind.KERNEL)
    names = events.name[rows]
    found = [each for each in _regular(names) if each[0] > 1]
    best: tuple[float, int] | None = None
    for period in dict.fromkeys(period for period, _ in found):
        alike = float((names[period:] == names[:-period]).mean())
        if alike >= _ALIKE and (best is None or (alike, -period) > best):
            best = alike, -period
    if best is None:
        return None
    ends = np.maximum.accumulate(events.end[rows])
    pause = np.append(0, events.start[rows][1:] - ends[:-1])
    marks = [at for period, at in found if period == -best[1]]
    return rows[max(marks, key=lambda at: float(np.median(pause[at])))]


def _regular(names: np.ndarray) -> list[tuple[int, np.ndarray]]:
    """Of names that come back at equal distances: the distance in kernels, and where they are."""
    order = np.argsort(names, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(names[order])) + 1)
    groups = sorted((at for at in groups if len(at) >= _FEWEST), key=len)
    found = []
    for at in groups[:_CANDIDATES]:
        steps, counts = np.unique(np.diff(at), return_counts=True)
        most = counts.argmax()
        if counts[most] >= _ALIKE * (len(at) - 1):
            found.append((int(steps[most]), at))
    return found
