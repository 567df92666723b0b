"""A hot kernel, held to the roofs of its device; without counters or ceilings nothing is said."""

from __future__ import annotations

from ..roofline import BANDWIDTH_BOUND, COMPUTE_BOUND, Judgement
from ..timeline.kernels import Kernel
from . import figures
from .finding import Finding
from .occupied import waves
from .seen import Seen

# Nearly a third of all kernels' time: work on one kernel is long, and twice as fast saves a sixth.
_HOT = 0.3

_WAYS = {
    BANDWIDTH_BOUND: (
        "hot-traffic",
        "A hot kernel moves many bytes",
        (
            "Bytes counted against bytes needed: re-reads, and access that is not coalesced",
            "Whether neighbours read what it has just written",
        ),
        (
            "Fuse it with its neighbours (watch registers)",
            "Another layout, reuse on chip",
            "Smaller types, with accuracy verified again",
        ),
    ),
    COMPUTE_BOUND: (
        "hot-compute",
        "A hot kernel keeps arithmetic busy",
        (
            "Which instructions it runs: matrix units, or plain ones",
            "Tile and occupancy (kuroshio perf occupancy)",
        ),
        (
            "The library's call for this shape",
            "Matrix instructions, lower precision, with accuracy verified again",
            "Parameters by shape; work that is done twice",
        ),
    ),
}
_NEITHER = (
    "hot-neither",
    "A hot kernel reaches no roof",
    (
        "Waves that are there to hide latency (kuroshio perf occupancy)",
        "Divergence, atomics, and how long one block takes",
    ),
    ("More blocks or waves", "More independent work a thread", "Another algorithm"),
)


def hot_kernel(seen: Seen) -> Finding | None:
    """The kernel with most time, if what is known of it says what it is bound by."""
    kernels = seen.analysis.kernels
    if kernels is None:
        return None
    for kernel in kernels.kernels:
        if kernel.share < _HOT:
            return None
        judged = seen.judged.get(kernel.name) or seen.judged.get(kernel.short)
        if judged and judged.of_roof is not None and (found := _finding(seen, kernel, judged)):
            return found
    return None


def _finding(seen: Seen, kernel: Kernel, judged: Judgement) -> Finding | None:
    assert judged.of_roof is not None
    needed = min(1.0, judged.of_roof) / max(1.0, judged.ratio or 1.0)
    rows = seen.named(kernel)
    saves = seen.saved(rows, seen.analysis.trace.events.duration[rows] * (1 - needed))
    if not seen.worth(saves):
        return None
    key, title, verify, directions = _WAYS.get(judged.kind, _NEITHER)
    moved = f", and moves {judged.ratio:.2f} times the bytes that it needs" if judged.ratio else ""
    return Finding(
        key=key,
        title=title,
        summary=(
            f"{figures.named(kernel.short)} takes {figures.share(kernel.share, 1)} of the kernels' "
            f"time; it is {judged.kind}, at {100 * judged.of_roof:.0f}% of {judged.roof}{moved}"
            f"{waves(seen, kernel)}."
        ),
        verify=verify,
        directions=directions,
        saves=saves,
        of=seen.span,
        how="its time less what the bytes it needs would take at the roof",
        places=seen.runs(rows, [kernel.short] * len(rows)),
        places_in_all=len(rows),
        names=(kernel.short,),
        cannot_tell=() if judged.ratio else ("How many bytes it needs: none were declared",),
        figures={"of_roof": judged.of_roof, "counted_to_declared": judged.ratio},
    )
