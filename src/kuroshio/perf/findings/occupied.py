"""Kernels that leave most of the device empty: too few blocks, or too few waves."""

from __future__ import annotations

import numpy as np

from ...device.occupancy import ARCHITECTURES
from ..occupancy import Takes, is_amd, limits_of, row
from ..occupancy import short as short_name
from ..timeline.groups import computing
from ..timeline.kernels import Kernel
from ..traces.events import ABSENT, Kind
from . import figures
from .finding import Finding
from .seen import Seen

# Kernels that make up a fifth of all kernels' time: below, even twice as fast saves a tenth.
_HOT = 0.2
# Library kernels that are tuned run with a quarter of the waves a device holds, or with an eighth;
# fewer cannot hide the latency of memory.
_FEW_WAVES = 1 / 8


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
    saves = int((duration * (1 - blocks / processors)).sum())
    if not seen.worth(saves):
        return None
    total = np.zeros(len(events.names), np.int64)
    np.add.at(total, events.name[rows], duration)
    short = {each.name: each.short for each in kernels.kernels}
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
        names=tuple(short.get(each, each) for each in names),
        cannot_tell=("Whether a block could be split without more work in all",),
        figures={"kernels": len(rows), "median_blocks": int(np.median(blocks))},
    )


def few_waves(seen: Seen) -> Finding | None:
    """Hot kernels of which so few waves fit that memory's latency cannot be hidden."""
    kernels = seen.analysis.kernels
    if kernels is None or seen.analysis.work is None:
        return None
    for kernel in kernels.kernels:
        if kernel.share < _HOT:
            return None
        if not kernel.communication and (found := _waves(seen, kernel)):
            return found
    return None


def _waves(seen: Seen, kernel: Kernel) -> Finding | None:
    models = {each.architecture for each in seen.analysis.trace.devices.values()}
    model = short_name(models.pop() or "") if len(models) == 1 else ""
    if model not in ARCHITECTURES or kernel.registers is None or kernel.block is None:
        return None
    limits = limits_of(model)
    block = int(np.prod(kernel.block))
    takes = Takes(registers=kernel.registers, shared_bytes=max(0, kernel.shared or 0))
    got = row(limits, takes, block)
    most = limits.max_waves
    if got.got.waves >= _FEW_WAVES * most:
        return None
    unit = "waves" if is_amd(limits) else "warps"
    rows = seen.named(kernel)
    return Finding(
        key="few-waves",
        title="A hot kernel leaves the device few waves",
        summary=(
            f"{figures.named(kernel.short)}, {figures.share(kernel.share, 1)} of the kernels' "
            f"time, takes {kernel.registers} registers a thread in blocks of {block} threads: "
            f"{got.got.waves} of {most} {unit} fit on a multiprocessor ({got.why})."
        ),
        verify=(
            "Counters: whether it waits for memory, or arithmetic keeps it busy all the same",
            "kuroshio perf occupancy, for other block sizes",
        ),
        directions=(
            "Another tile or block size",
            "Fewer live values: split the kernel, bound its registers",
            "The library's kernel for this shape",
        ),
        saves=None,
        of=seen.span,
        how="not to be computed: what more waves would give, only a measurement tells",
        places=seen.runs(rows, [kernel.short] * len(rows)),
        places_in_all=len(rows),
        names=(kernel.short,),
        cannot_tell=("Whether more waves would make it faster",),
        figures={"waves": got.got.waves, "of": most, "registers": kernel.registers},
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
