"""The same run of the same kernel takes longer in some steps than in others."""

from __future__ import annotations

import numpy as np

from ..timeline.kernels import Kernel
from ..timeline.steps import Source
from ..traces.events import ABSENT
from . import figures
from .finding import Finding
from .seen import Seen

# Fewer steps than that, and one slow one (the first is slower as a rule) is a tenth of them.
_FEWEST_STEPS = 10
# A device alone repeats itself within a few percent; clocks that change move it by a tenth or two.
_JITTERY = 1.25
# Kernels below this share of the kernels' time cannot matter.
_SHARE = 0.01


def jitter(seen: Seen) -> Finding | None:
    """Compares a run with the same run of other steps, so that other work is not called jitter."""
    steps, kernels = seen.analysis.steps, seen.analysis.kernels
    if steps is None or kernels is None or steps.source == Source.WHOLE:
        return None
    if len(steps.steps) < _FEWEST_STEPS:
        return None
    worst = 0.0
    names: list[str] = []
    slow: list[np.ndarray] = []
    above: list[tuple[np.ndarray, np.ndarray]] = []
    said: list[str] = []
    for kernel in kernels.kernels:
        if kernel.share < _SHARE or kernel.communication:
            continue
        found = _excess(seen, kernel, len(steps.steps))
        if found is not None:
            excess, p90, rows = found
            above.append(excess)
            names.append(kernel.short)
            worst = max(worst, p90)
            slow.append(rows)
            said += [f"slow run of {kernel.short}"] * len(rows)
    if not above:
        return None
    saves = seen.saved(*map(np.concatenate, zip(*above, strict=True)))
    if not seen.worth(saves):
        return None
    return Finding(
        key="jitter",
        title="The same work takes longer in some steps",
        summary=(
            f"The same runs of {figures.count(len(names), 'kernel')} "
            f"({figures.listed([figures.named(each) for each in names], 2)}) take up to "
            f"{worst:.2f} times their median over {len(steps.steps)} steps (p90); what they take "
            f"above it is {figures.time(saves)}, {figures.share(saves, seen.span)} of "
            f"{figures.time(seen.span)}."
        ),
        verify=(
            "Clocks and temperature of the device over the recording",
            "Other processes on the device, and other streams at those moments",
            "Whether shapes or values change from step to step",
        ),
        directions=(
            "Isolate the device, fix its clocks",
            "Pad or bucket inputs of changing length",
            "Pin the process to cores near the device",
        ),
        saves=saves,
        of=seen.span,
        how="what runs take above the median of the same run in all steps",
        places=seen.runs(np.concatenate(slow), said),
        places_in_all=len(said),
        names=tuple(names[:5]),
        figures={"p90_to_median": worst, "steps": len(steps.steps)},
    )


def _excess(
    seen: Seen, kernel: Kernel, steps: int
) -> tuple[tuple[np.ndarray, np.ndarray], float, np.ndarray] | None:
    """Runs with their ns above the medians, p90 of the ratio to them, and runs that are far above.

    None where the runs cannot be told to be the same in every step, or do not jitter.
    """
    events = seen.analysis.trace.events
    rows = seen.named(kernel)
    if not len(rows) or len(rows) % steps:
        return None
    table = rows.reshape(steps, -1)
    grid = events.grid[table]
    if (grid == ABSENT).any() or (grid != grid[:1]).any():
        return None
    times = events.duration[table].astype(float)
    median = np.maximum(np.median(times, axis=0), 1.0)
    ratio = times / median
    p90 = float(np.percentile(ratio, 90, method="higher"))
    if p90 < _JITTERY:
        return None
    excess = np.maximum(times - median, 0.0)
    return (table.ravel(), excess.ravel()), p90, table[ratio >= _JITTERY]
