"""One pass: batches from the rings to the place, results to a file, and where the seconds went."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter

import numpy as np

from ..intervals import Intervals
from .files import LIBRARY, Files
from .place import Feed, Place, Span, Worker
from .problem import Pass
from .results import PassTimes
from .rings import Reader

Write = Callable[[Pass, np.ndarray, np.ndarray], None]  # means and thresholds (day, cell)


class Pipeline:
    """A rung's rings and its way to a place, for pass after pass.

    how, threads  of reading; see `rings.Reader`
    """

    def __init__(
        self, place: Place, files: Files, passing: Pass, rings: int, how: str = LIBRARY,
        threads: int = 1,
    ) -> None:  # fmt: skip
        cells = files.archive.grid.cells
        maps = max(len(passing.slots) * len(batch.years) for batch in passing.batches)
        self._files, self._how, self._threads = files, how, threads
        self._rings = [place.host((maps, cells)) for _ in range(rings)]
        self._feed: Feed = place.feed(maps, cells)

    def warm(self, worker: Worker, passing: Pass) -> None:
        """All kernels once, on what is in the rings: compiled, loaded, and memory is there."""
        slots = len(passing.slots)
        worker.begin(slots, len(passing.doys))
        for batch in passing.batches:
            maps = self._rings[0][: slots * len(batch.years)].reshape(slots, len(batch.years), -1)
            self._feed.send(worker, maps, batch.number)()
        self._feed.finish(worker)
        self._feed.spans()

    def run(self, worker: Worker, passing: Pass, write: Write) -> PassTimes:
        """Work a pass off, from the first file opened to the results written."""
        start = perf_counter()
        reads: list[Span] = []
        with Reader(self._files, self._rings, passing, self._how, self._threads) as reader:
            worker.begin(len(passing.slots), len(passing.doys))
            for _ in passing.batches:
                full = reader.next()
                reads.append((full.start_s, full.stop_s))
                reader.give_back(full.ring, self._feed.send(worker, full.maps, full.batch.number))
            means, thresholds = self._feed.finish(worker)
        here = perf_counter()
        write(passing, means, thresholds)
        stop = perf_counter()
        copies, computes = self._feed.spans()
        return pass_times((start, here, stop), reads, copies, computes, passing)


def pass_times(
    marks: tuple[float, float, float], reads: Sequence[Span], copies: Sequence[Span],
    computes: Sequence[Span], passing: Pass,
) -> PassTimes:  # fmt: skip
    """Disjoint parts of a pass, from when what was done.

    marks  when it began, when the results were here, when they were written
    A moment at which a kernel runs is computing, one at which only a copy is under way is copying;
    what is neither, before the last kernel's end, was spent waiting for the reader: until the
    first batch was read, and after that.
    """
    start, here, stop = marks
    computing, copying = Intervals(computes), Intervals(copies)
    busy = Intervals([*copies, *computes])
    compute, copy = computing.seconds, busy.seconds - computing.seconds
    first = reads[0][1] - start
    last = computes[-1][1]  # the work ends with a kernel
    return PassTimes(
        parts={
            "first read": first,
            "hidden wait": max(last - start - first - busy.seconds, 0.0),
            "copy": copy,
            "compute": compute,
            "final": here - last,
            "write": stop - here,
        },
        io_s=float(np.median([b - a for a, b in reads])),
        gpu_s=float(np.median([b - a for a, b in computes[:-1]])),
        copy_s=copying.seconds,
        overlap_s=copying.overlap_s(computing),
        maps=passing.maps,
        days=len(passing.doys),
    )
