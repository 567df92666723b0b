"""Many tiny kernels: a device that mostly waits for the next launch."""

from __future__ import annotations

import numpy as np

from ..timeline.causes import gaps_of
from ..timeline.holes import Cause
from ..timeline.kernels import Kernels
from . import figures
from .finding import Finding
from .seen import Seen

# Half of all runs: then launching, not computing, is what most launches are for.
_MANY = 0.5
# Fewer in all are not many, whatever their share: what each of them does is looked at instead.
_FEWEST = 10
# A hole of a launch, not of something else: launches take 5 to 10 us on the host, and one that is
# asked for through a framework's Python several times that.
_LAUNCH_HOLE = 50_000  # ns
# Of the most frequent names, to tell a few: of a template there may be as many as runs.
_ASKED = 100


def _are_many(kernels: Kernels) -> bool:
    return kernels.tiny_runs >= max(_FEWEST, _MANY * kernels.runs)


def between_tiny(seen: Seen) -> np.ndarray:
    """Numbers of the holes that are told of tiny kernels; none where that is no finding."""
    holes = _before_tiny(seen)
    return holes if len(holes) and seen.worth(_lost(seen, holes)) else holes[:0]


def _lost(seen: Seen, holes: np.ndarray) -> int:
    """ns in these holes, and in those too short to ask for a cause."""
    table = seen.analysis.holes
    assert table is not None
    gaps = gaps_of(seen.analysis.trace.events)
    counted = gaps.end - gaps.start <= table.threshold
    counted[np.flatnonzero(~counted)[holes]] = True
    return seen.idle_in(gaps[counted])


def _before_tiny(seen: Seen) -> np.ndarray:
    """Numbers of the holes that a launch explains, before a tiny kernel where many are tiny."""
    kernels, table = seen.analysis.kernels, seen.analysis.holes
    candidates = seen.caused(Cause.HOST, Cause.UNKNOWN)
    if kernels is None or table is None or not _are_many(kernels):
        return candidates[:0]
    events = seen.analysis.trace.events
    length = (table.gaps.end - table.gaps.start)[candidates]
    short = events.duration[table.gaps.after[candidates]] < kernels.tiny_below
    return candidates[(length <= _LAUNCH_HOLE) & short]


def tiny_kernels(seen: Seen) -> Finding | None:
    """Launches cost more than what they launch."""
    kernels, table = seen.analysis.kernels, seen.analysis.holes
    if kernels is None or table is None or not _are_many(kernels):
        return None
    holes = _before_tiny(seen)
    lost = _lost(seen, holes)
    if not seen.worth(lost):
        return None
    below = figures.time(kernels.tiny_below)
    tiny = sorted(
        (each for each in kernels.kernels if each.times.median < kernels.tiny_below),
        key=lambda each: -each.times.count,
    )
    return Finding(
        key="tiny-kernels",
        title="Many tiny kernels",
        summary=(
            f"{kernels.tiny_runs:,} of {figures.count(kernels.runs, 'kernel')} take less than "
            f"{below} and make up {figures.share(kernels.tiny_time, kernels.total)} of the "
            f"kernels' time; between them the device idles for {figures.time(lost)}, "
            f"{figures.share(lost, seen.span)} of {figures.time(seen.span)}."
        ),
        verify=(
            "Launches a step, and which of them belong together",
            "Whether a larger batch makes the kernels longer or more",
        ),
        directions=(
            "Fuse neighbours (a compiler of the framework, or by hand)",
            "Batch: one launch for many small problems",
            "Capture the step as a graph and launch that",
        ),
        saves=lost,
        at_most=seen.room(),
        of=seen.span,
        how=(
            f"the holes before tiny kernels of {figures.time(_LAUNCH_HOLE)} or less, and those "
            f"too short to ask for a cause ({figures.time(table.threshold)} or less)"
        ),
        places=seen.places(holes),
        places_in_all=len(holes),
        names=tuple(dict.fromkeys(each.short for each in tiny[:_ASKED]))[:5],
        figures={
            "tiny_runs": kernels.tiny_runs,
            "runs": kernels.runs,
            "idle_ns": lost,
            "tiny_below_ns": kernels.tiny_below,
        },
    )
