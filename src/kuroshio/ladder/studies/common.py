"""What studies share: maps that lie on the place, and seconds that count."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

import numpy as np

from ...sizes import size_text
from ..files import BYTES
from ..gpu_place import GpuPlace
from ..place import Place, Worker
from ..problem import Pass
from ..rings import Reader
from ..run import Ground
from ..study import CONFIRMED, REFUTED

TIMES = 7  # of each measurement, of which the median counts
PROCESSOR = "Not measured on a processor: nothing is copied, maps are worked on where they lie."


def first_pass(ground: Ground) -> Pass:
    return next(ground.problem.passes())


def judged(*claims: tuple[float, float, float]) -> str:
    """Whether each value lies between the lowest and the highest that was predicted of it."""
    return CONFIRMED if all(low <= value <= high for value, low, high in claims) else REFUTED


def usual_s(place: Place, begin: Callable[[], Any]) -> float:
    """Median seconds of what `begin` begins; once before it counts."""
    place.seconds(begin)
    return median(place.seconds(begin) for _ in range(TIMES))


def bytes_of_pass(ground: Ground) -> int:
    return first_pass(ground).maps * ground.problem.map_bytes


def filled(ground: Ground, passing: Pass, place: Place, batches: int = 0) -> list[np.ndarray]:
    """The maps of a pass's first `batches` (0: all), (slot, year, cell) each, in host memory."""
    some = passing.batches[: batches or None]
    maps = len(passing.slots) * max(len(batch.years) for batch in some)
    rings = [place.host((maps, ground.problem.cells)) for _ in some]
    only = replace(passing, batches=some)
    with Reader(ground.files, rings, only, BYTES, ground.machine.threads) as reader:
        return [reader.next().maps for _ in some]


def no_file(passing: Pass, means: np.ndarray, thresholds: np.ndarray) -> None:
    """Results that are not written: what is studied comes before."""


def batch_seconds(place: Place, worker: Worker, maps: Sequence[np.ndarray]) -> float:
    """Median seconds of the kernels of a batch, its maps being there.

    maps  (slot, year, cell) of one batch, on the host
    """
    feed = place.feed(maps[0].shape[0] * maps[0].shape[1], maps[0].shape[2])
    for number in range(TIMES + 1):
        feed.send(worker, maps[0], number)()
    feed.finish(worker)
    _, computes = feed.spans()
    return median(stop - start for start, stop in computes[1:-1])


def load(place: GpuPlace, worker: Worker, maps: Sequence[np.ndarray], passing: Pass) -> None:
    """All batches to where a worker wants them that works on a whole pass."""
    worker.begin(len(passing.slots), len(passing.doys))
    feed = place.feed(maps[0].shape[0] * maps[0].shape[1], maps[0].shape[2])
    for number, batch in enumerate(maps):
        feed.send(worker, batch, number)()


def no_room(place: GpuPlace, need: int) -> str:
    """Why so many bytes do not fit on the device; empty if they do."""
    free = place.free_bytes()
    if need <= 0.9 * free:
        return ""
    return (
        f"Not measured: {size_text(need)} are needed on {place.name}, {size_text(free)} are free."
    )
