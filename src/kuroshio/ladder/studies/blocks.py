"""Strategy 1: blocks of whole wavefronts."""

from __future__ import annotations

from statistics import median
from typing import Any

from ...device.occupancy import occupancy
from ..gpu_place import GpuPlace
from ..run import Ground
from ..rungs import sliding
from ..study import Study
from .common import batch_seconds, filled, first_pass, judged

KEY, TITLE = "blocks", "Block sizes"
CLAIM = "Blocks are multiples of 64 threads; 160 wastes half of a wavefront."
COLUMNS = ["block", "waves of 64", "lanes used", "warps of 32", "lanes used", "occupancy", "ms"]
BLOCKS = (64, 128, 160, 192, 256, 512)
ODD, EVEN = 160, (128, 256)
_NOISE = 0.05


def waves(block: int, width: int) -> tuple[int, float]:
    """How many waves a block takes, and the share of their lanes that have a thread."""
    number = -(-block // width)
    return number, block / (number * width)


def run(ground: Ground) -> Study:
    """Seconds of strategy D's kernel on a batch, for each block size."""
    place = ground.place
    width = place.gpu.limits.wave_size if isinstance(place, GpuPlace) else 64
    lanes = waves(ODD, width)[1]
    predicted = (
        f"With waves of {width} a block of {ODD} uses {lanes:.0%} of its lanes: it takes 1 to "
        f"{1 / lanes:.2f} times as long as one of {EVEN[0]} or {EVEN[1]}, give or take "
        f"{_NOISE:.0%}; nearer to 1 the more the kernel waits for memory."
    )
    rows: list[list[Any]] = []
    seconds: dict[int, float] = {}
    for block in BLOCKS:
        row = [block, *waves(block, 64), *waves(block, 32)]
        if isinstance(place, GpuPlace):
            taken, share = _measured(ground, place, block)
            seconds[block] = taken
            row += [share, 1e3 * taken]
        rows.append(row + [None] * (len(COLUMNS) - len(row)))
    if not seconds:
        return Study(
            KEY, TITLE, CLAIM, predicted, COLUMNS, rows,
            f"Of waves of 64 a block of {ODD} uses {waves(ODD, 64)[1]:.0%}, of warps of 32 all. "
            "A processor has no blocks to be timed.",
        )  # fmt: skip
    ratio = seconds[ODD] / median(seconds[block] for block in EVEN)
    best = min(seconds, key=lambda block: seconds[block])
    finding = (
        f"On {place.model}, with waves of {width}, a block of {ODD} takes {ratio:.3f} times as "
        f"long as {EVEN[0]} and {EVEN[1]}; the fastest is {best}."
    )
    verdict = judged((ratio, 1 - _NOISE, (1 + _NOISE) / lanes))
    return Study(KEY, TITLE, CLAIM, predicted, COLUMNS, rows, finding, verdict)


def _measured(ground: Ground, place: GpuPlace, block: int) -> tuple[float, float]:
    """Seconds of a batch, and the share of waves that are resident."""
    bounds = str(max(block, 256))
    passing = first_pass(ground)
    there = GpuPlace(place.gpu, block=block, bounds=bounds)
    worker = sliding.worker(there, ground.problem)
    worker.begin(len(passing.slots), len(passing.doys))
    seconds = batch_seconds(there, worker, filled(ground, passing, there, batches=1))
    resources = next(each.resources for each in worker.launches if each.resources)
    share = occupancy(
        place.gpu.limits, block=block, registers=resources.registers, shared_bytes=0
    ).share
    return seconds, share
