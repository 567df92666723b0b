"""What kernels take of a device: too few blocks to fill it, more memory than registers."""

from __future__ import annotations

import numpy as np

from ...device.occupancy import ARCHITECTURES
from ..occupancy import Takes, is_amd, limits_of, row
from ..occupancy import short as short_name
from ..timeline.groups import computing
from ..timeline.kernels import Kernel, short
from ..traces.events import ABSENT, Kind
from . import figures
from .finding import Finding
from .seen import Seen

# Kernels that make up a fifth of all kernels' time: below, even twice as fast saves a tenth.
_HOT = 0.2


def few_blocks(seen: Seen) -> Finding | None:
    """Kernels that run alone with fewer blocks than the device has multiprocessors."""
    kernels, events = seen.analysis.kernels, seen.analysis.trace.events
    if kernels is None or not events.tell("grid"):
        return None
    rows = _alone(seen, kernels.tiny_below)
    most = {n: each.multiprocessors for n, each in seen.analysis.trace.devices.items()}
    processors = np.array([most.get(n) or 0 for n in events.device[rows].tolist()], np.int64)
    told = (events.grid[rows] != ABSENT).all(axis=1) & (processors > 0)
    rows, processors = rows[told], processors[told]
    blocks = events.grid[rows].prod(axis=1)
    few = blocks < processors
    rows, blocks, processors = rows[few], blocks[few], processors[few]
    duration = events.duration[rows]
    saves = seen.saved(rows, duration * (1 - blocks / processors))
    if not seen.worth(saves):
        return None
    total = np.zeros(len(events.names), np.int64)
    np.add.at(total, events.name[rows], duration)
    names = [events.names[at] for at in np.argsort(-total, kind="stable")[:5].tolist() if total[at]]
    said = [figures.count(number, "block") for number in blocks.tolist()]
    return Finding(
        key="few-blocks",
        title="Kernels are too small to fill the device",
        summary=(
            f"{figures.count(len(rows), 'kernel')} that run alone, "
            f"{figures.time(int(duration.sum()))} in all, have fewer blocks than the "
            f"device's {int(processors.max())} multiprocessors: "
            f"{int(np.median(blocks))} by the median."
        ),
        verify=(
            "Whether the problem is so small, or its split into blocks is",
            "Whether other work could run beside them, on other streams",
        ),
        directions=(
            "Larger batches",
            "Split the work over more blocks (split-k, smaller tiles)",
            "Run independent kernels at the same time",
        ),
        saves=saves,
        of=seen.span,
        how="the kernels' time times the share of multiprocessors that have no block",
        places=seen.runs(rows, said),
        places_in_all=len(rows),
        names=tuple(map(short, names)),
        cannot_tell=("Whether a block could be split without more work in all",),
        figures={"kernels": len(rows), "median_blocks": int(np.median(blocks))},
    )


def beyond_registers(seen: Seen) -> Finding | None:
    """Hot kernels whose threads have memory beyond registers: spilled ones, as a rule."""
    kernels, events = seen.analysis.kernels, seen.analysis.trace.events
    if kernels is None or not events.tell("scratch"):
        return None
    for kernel in kernels.kernels:
        if kernel.share < _HOT:
            return None
        rows = seen.named(kernel)
        scratch = int(events.scratch[rows].min())
        if scratch > 0 and not kernel.communication:
            return _spilling(seen, kernel, rows, scratch)
    return None


def _spilling(seen: Seen, kernel: Kernel, rows: np.ndarray, scratch: int) -> Finding:
    return Finding(
        key="beyond-registers",
        title="A hot kernel needs memory beyond its registers",
        summary=(
            f"{figures.named(kernel.short)}, {figures.share(kernel.share, 1)} of the kernels' "
            f"time, takes {scratch:,} bytes of memory a thread{waves(seen, kernel)}."
        ),
        verify=(
            "Whether registers are spilled, or it has arrays of its own: kuroshio perf occupancy "
            "on the compiled file",
            "Counters: how many bytes of that memory it moves",
        ),
        directions=(
            "Fewer live values: a smaller tile, or two kernels",
            "Other launch bounds, so that the compiler may take more registers",
            "Indices known to the compiler, so that arrays live in registers",
        ),
        saves=None,
        of=seen.span,
        how="not to be computed: what that memory costs, only counters tell",
        places=seen.runs(rows, [kernel.short] * len(rows)),
        places_in_all=len(rows),
        names=(kernel.short,),
        cannot_tell=("Whether it is moved often, and stays in a cache",),
        figures={"bytes_a_thread": scratch, "registers": kernel.registers},
    )


def waves(seen: Seen, kernel: Kernel) -> str:
    """How many of a kernel's waves fit on a multiprocessor, to be added to a sentence.

    Nothing where the trace does not tell what a launch takes, or the rules are not known.
    """
    models = {each.architecture for each in seen.analysis.trace.devices.values()}
    model = short_name(models.pop() or "") if len(models) == 1 else ""
    if model not in ARCHITECTURES or kernel.registers is None or kernel.block is None:
        return ""
    limits = limits_of(model)
    takes = Takes(registers=kernel.registers, shared_bytes=max(0, kernel.shared or 0))
    block = int(np.prod(kernel.block))
    if not 0 < block <= limits.max_threads_per_block:
        return ""
    got = row(limits, takes, block)
    unit = "waves" if is_amd(limits) else "warps"
    return (
        f"; with {kernel.registers} registers a thread and blocks of {block} threads "
        f"{got.got.waves} of {limits.max_waves} {unit} fit on a multiprocessor"
    )


def _alone(seen: Seen, tiny_below: int) -> np.ndarray:
    """Kernels, neither tiny nor communication, during which no other of their device runs."""
    events = seen.analysis.trace.events
    rows = np.flatnonzero(events.kind == Kind.KERNEL)
    rows = rows[np.lexsort((events.start[rows], events.device[rows]))]
    if not len(rows):
        return rows
    start, end, device = events.start[rows], events.end[rows], events.device[rows]
    # The latest end of those before, within the device: ends rise by device where shifted.
    shift = (device - device.min()).astype(np.int64) * (end.max() - start.min() + 1)
    before = np.maximum.accumulate(end + shift)
    alone = np.ones(len(rows), bool)
    alone[1:] &= (start + shift)[1:] >= before[:-1]
    alone[:-1] &= (end + shift)[:-1] <= (start + shift)[1:]
    return rows[alone & computing(events)[rows] & (end - start >= tiny_below)]
