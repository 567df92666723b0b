"""Steps of programs that name none: sequences of kernels that repeat."""

from __future__ import annotations

import numpy as np

from ..traces.events import Events, Kind

_FEWEST = 3  # repeats; twice the same is no rule
_ALIKE = 0.9  # of the kernels are the same a period later: a step may skip or add a few
_CANDIDATES = 64  # names that are asked for a period, those that occur least often first


def period_starts(events: Events) -> np.ndarray | None:
    """Rows of the kernels that open each repeat; None where nothing repeats.

    A kernel that occurs once a period tells where periods are. They begin where the device waits
    longest, since a step begins when the one before it has ended.
    """
    rows = np.flatnonzero(events.kind == Kind.KERNEL)
    names = events.name[rows]
    alike, period, marks = 0.0, 0, rows
    for distance, at in _regular(names):
        if distance > 1 and distance != period:
            same = float((names[distance:] == names[:-distance]).mean())
            if same > alike:
                alike, period, marks = same, distance, at
    if alike < _ALIKE:
        return None
    ends = np.maximum.accumulate(events.end[rows])
    pause = np.append(0, events.start[rows][1:] - ends[:-1])
    whole = marks[marks + period <= len(rows)]
    within = pause[whole[:, np.newaxis] + np.arange(period)]
    opens = marks + np.median(within, axis=0).argmax()
    opens = np.append(opens[0] - period, opens)
    return rows[opens[(opens >= 0) & (opens < len(rows))]]


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
