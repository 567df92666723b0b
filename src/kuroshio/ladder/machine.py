"""What this machine can do, measured before any rung runs: predictions are made from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from ..perf.ceilings import cpu as processor
from ..perf.ceilings.ceiling import Ceiling, Missing
from ..perf.ceilings.measure import gpu_ceilings
from .files import BYTES, LIBRARY, Files
from .place import Place
from .problem import Pass, Problem
from .rings import Reader
from .write import write_pass

OPERATIONS = ("float32 fma", "float64 fma", "int32 min/max")
_MEMORY, _LINK = "memory read", "host to device, pinned"
_TIMES = 3  # of each measurement, of which the median counts; the first fills the page cache


@dataclass(frozen=True)
class Machine:
    """Measured rates of the place and the files.

    memory_gb, link_gb  GB/s; the link's is 0 where maps are worked on where they are
    giga_operations     10^9 a second, by name
    library_gb          of reading a batch, through the library in one thread
    bytes_gb            of reading its bytes with all threads
    write_s             seconds to write a pass's results
    """

    memory_gb: float
    link_gb: float
    giga_operations: dict[str, float]
    library_gb: float
    bytes_gb: float
    write_s: float
    threads: int

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def measured(problem: Problem, files: Files, place: Place, threads: int, folder: Path) -> Machine:
    """Measure; files are read, and results of a pass are written to `folder` and removed."""
    passing = next(problem.passes())
    roofs = {each.name: each.value for each in _roofs(place.name, threads)}
    ring = place.host((len(passing.slots) * problem.batch_years, problem.cells))
    return Machine(
        memory_gb=roofs[_MEMORY],
        link_gb=roofs.get(_LINK, 0.0),
        giga_operations={name: roofs[name] for name in OPERATIONS},
        library_gb=_read_gb(files, ring, passing, LIBRARY, 1),
        bytes_gb=_read_gb(files, ring, passing, BYTES, threads),
        write_s=_write_s(files, passing, folder),
        threads=threads,
    )


def _roofs(device: str, threads: int) -> list[Ceiling]:
    """Of reading memory, not caches; of arithmetic and the link."""
    found: Iterator[Ceiling | Missing]
    if device == "cpu":
        found = chain(
            processor.memory(threads, processor.QUICK, ("memory",), (_MEMORY,)),
            processor.compute(threads, processor.QUICK, OPERATIONS),
        )
    else:
        _, found = gpu_ceilings(device, True, (_MEMORY, *OPERATIONS, _LINK), lambda _: None)
    levels = (None, "memory", "link")
    return [each for each in found if isinstance(each, Ceiling) and each.level in levels]


def _read_gb(files: Files, ring: np.ndarray, passing: Pass, how: str, threads: int) -> float:
    """Of the first batch, over and over; GB/s."""
    batch = passing.batches[0]
    again = Pass(passing.doys, passing.slots, (batch,) * (1 + _TIMES))
    rates = []
    with Reader(files, [ring], again, how, threads) as reader:
        for _ in again.batches:
            full = reader.next()
            rates.append(1e-9 * full.maps.nbytes / (full.stop_s - full.start_s))
            reader.give_back(full.ring, lambda: None)
    return median(rates[1:])


def _write_s(files: Files, passing: Pass, folder: Path) -> float:
    maps = np.zeros((len(passing.doys), files.archive.grid.cells), np.float32)
    path = folder / "measuring.nc"
    seconds = []
    try:
        for _ in range(_TIMES):
            start = perf_counter()
            write_pass(path, files.archive, passing, maps, maps)
            seconds.append(perf_counter() - start)
    finally:
        path.unlink(missing_ok=True)
    return median(seconds)
