"""Strategy 7: host memory that is pageable, pinned, or pinned past the caches; the device's own."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import median
from time import perf_counter

import numpy as np

from ...device.gpu import DeviceArray
from ..gpu_place import GpuPlace
from ..place import empty_host
from ..run import Ground
from ..study import Study
from .common import PROCESSOR, TIMES, judged, no_room, usual_s

KEY, TITLE = "memory", "Pageable, pinned, write-combined memory"
CLAIM = "Rings in pinned memory are copied to the device faster, and beside kernels."
COLUMNS = ["memory", "written GB/s", "read GB/s", "to device GB/s", "from device GB/s"]
_BYTES = 256 << 20
_AT_LEAST = 1.5  # times as fast as pageable
_ALIKE = 1.25  # times as fast as pinned or as slow, write-combined


def run(ground: Ground) -> Study:
    """GB/s of copies, and of the processor's own writing and reading by one thread."""
    predicted = (
        f"Pinned memory is copied at least {_AT_LEAST:g} times as fast as pageable memory, which "
        "the driver copies into pinned memory first. Write-combined memory is copied as fast as "
        f"pinned, give or take a factor of {_ALIKE:g}."
    )
    place = ground.place
    if not isinstance(place, GpuPlace):
        return Study(KEY, TITLE, CLAIM, predicted, finding=PROCESSOR)
    predicted += f" Pinned: {ground.machine.link_gb:.3g} GB/s, as measured before."
    if why := no_room(place, _BYTES):
        return Study(KEY, TITLE, CLAIM, predicted, finding=why)
    gpu, shape = place.gpu, (_BYTES,)
    there, source = gpu.zeros(shape, np.uint8), empty_host(shape, np.uint8)
    pageable = _rates(place, empty_host(shape, np.uint8), there, source)
    pinned = _rates(place, gpu.pinned(shape, np.uint8), there, source)
    combined = _rates(place, gpu.write_combined(shape, np.uint8), there, source)
    rows = [["pageable", *pageable], ["pinned", *pinned], ["write-combined", *combined]]
    finding = (
        f"To the device pinned memory is {pinned[2] / pageable[2]:.2g} times as fast as pageable, "
        f"write-combined {combined[2] / pinned[2]:.2g} times as fast as pinned; the processor "
        f"reads it at {combined[1]:.2g} GB/s instead of {pinned[1]:.2g}. A kernel reads what lies "
        f"on the device at {ground.machine.memory_gb:,.0f} GB/s."
    )
    verdict = judged(
        (pinned[2] / pageable[2], _AT_LEAST, math.inf),
        (combined[2] / pinned[2], 1 / _ALIKE, _ALIKE),
    )
    return Study(KEY, TITLE, CLAIM, predicted, COLUMNS, rows, finding, verdict)


def _rates(
    place: GpuPlace, here: np.ndarray, there: DeviceArray, source: np.ndarray
) -> tuple[float, float, float, float]:
    """GB/s: written and read by the processor, copied to the device and from it."""
    gpu, stream = place.gpu, place.stream
    return (
        _host_gb(lambda: np.copyto(here, source)),
        _host_gb(lambda: np.copyto(source, here)),
        1e-9 * _BYTES / usual_s(place, lambda: gpu.upload(there, here, stream)),
        1e-9 * _BYTES / usual_s(place, lambda: gpu.download(here, there, stream)),
    )


def _host_gb(work: Callable[[], None]) -> float:
    seconds = []
    for _ in range(TIMES):
        start = perf_counter()
        work()
        seconds.append(perf_counter() - start)
    return 1e-9 * _BYTES / median(seconds)
