"""Strategy 5: copies and kernels on one stream, and on two."""

from __future__ import annotations

from typing import Any

from ...intervals import Intervals
from ..gpu_place import GpuPlace
from ..run import Ground
from ..rungs import direct, heap
from ..study import CONFIRMED, REFUTED, Study
from .common import PROCESSOR, filled, first_pass

KEY, TITLE = "streams", "One stream and two"
CLAIM = "With two streams a batch is copied while the kernel works on the one before."
COLUMNS = ["kernel", "streams", "copy s", "kernel s", "overlap s", "predicted s", "measured s"]
_BATCHES = 12
_NEAR = 0.15  # of what was predicted
KERNELS = {"heap": heap.worker, "moments": direct.worker}


def run(ground: Ground) -> Study:
    """Seconds from the first copy to the last kernel, of batches that are in rings already."""
    predicted = (
        "From seconds of a copy and of a kernel alone: on one stream their sum, at every batch; on "
        f"two the longer of them, and once the shorter. Measured within {_NEAR:.0%}."
    )
    if not isinstance(ground.place, GpuPlace):
        return Study(KEY, TITLE, CLAIM, predicted, finding=PROCESSOR)
    rows: list[list[Any]] = []
    near = True
    for name, make in KERNELS.items():
        copy = kernel = 0.0
        for streams in (1, 2):
            copies, computes = _fed(ground, GpuPlace(ground.place.gpu, streams), make)
            if streams == 1:  # they take turns, so each has the device alone
                copy, kernel = (each.seconds / _BATCHES for each in (copies, computes))
            expected = _BATCHES * (copy + kernel)
            if streams == 2:
                expected = _BATCHES * max(copy, kernel) + min(copy, kernel)
            spans = [*copies, *computes]
            took = max(stop for _, stop in spans) - min(start for start, _ in spans)
            near = near and abs(took - expected) <= _NEAR * expected
            rows.append(
                [name, streams, copies.seconds, computes.seconds, copies.overlap_s(computes),
                 expected, took]
            )  # fmt: skip
    gains = [one[-1] / two[-1] for one, two in zip(rows[::2], rows[1::2], strict=True)]
    finding = "Two streams are " + " and ".join(
        f"{gain:.2f} times as fast with the {name} kernel"
        for gain, name in zip(gains, KERNELS, strict=True)
    ) + ": the nearer a kernel's time is to a copy's, the more there is to hide."  # fmt: skip
    verdict = CONFIRMED if near else REFUTED
    return Study(KEY, TITLE, CLAIM, predicted, COLUMNS, rows, finding, verdict)


def _fed(ground: Ground, place: GpuPlace, make) -> tuple[Intervals, Intervals]:  # type: ignore[no-untyped-def]
    """When was copied and when kernels ran, of the same batch over and over."""
    passing = first_pass(ground)
    maps = filled(ground, passing, place, batches=1)[0]
    worker = make(place, ground.problem)
    worker.begin(len(passing.slots), len(passing.doys))
    feed = place.feed(maps.shape[0] * maps.shape[1], maps.shape[2])
    feed.send(worker, maps, 0)()
    feed.finish(worker)
    feed.spans()
    for number in range(_BATCHES):
        feed.send(worker, maps, number)
    feed.finish(worker)
    copies, computes = feed.spans()
    return Intervals(copies), Intervals(computes[:-1])
