"""One block carried out: its batches in turn, each loaded, computed, smoothed and handed over.

While a device computes a batch, the crew already loads the next one. Once the batch's results are
there, the crew smooths and puts them first: the next one's may take their place in memory. What
depends on the device is an engine's; this is the same on all of them.
"""

from __future__ import annotations

from itertools import pairwise, zip_longest
from threading import local
from time import perf_counter
from typing import Any, Protocol

import numpy as np

from .archive.plan import Batch, Block
from .archive.plan import Output as Finished
from .device.cpu import Work
from .engines.means import Means
from .engines.protocol import BlockDevice
from .kernels import smooth
from .request import statistics


class Output(Protocol):
    """Where results go: a file being written, or arrays.

    `put` takes consecutive days of year of a band of rows, from any thread. As many rows as
    `band_rows` are taken most easily, of many days.
    """

    band_rows: int

    def put(self, name: str, position: Any, values: np.ndarray, rows: slice) -> None: ...


class BlockRun:
    """A block under way: reading begins at once, `finish` does the rest."""

    def __init__(self, means: Means, block: Block, device: BlockDevice) -> None:
        self.block, self.device = block, device
        self.crew, self.spans = means.crew, means.spans
        self.statistics = statistics(means.needs.request)
        self.averaged = len(means.needs.request.percentiles) + 1  # of them, those smoothed
        self.cell_shape = means.needs.archive.grid.shape or (1,)
        self.no_reference = np.zeros(block.stride_cells, np.float32)
        self.scratch = local()  # a thread's memory for a band of means
        self.loading = device.start(block.batches[0], first=True)

    def finish(self, output: Output) -> None:
        """All batches: load, compute, smooth and put; the next one loads alongside."""
        batches = self.block.batches
        before, putting = list[Work](), list[Work]()
        for batch, following in zip_longest(batches, batches[1:]):
            loading = self.loading
            if self.device.ahead:  # it has room for both batches
                self._start(following)
            # What was being put may be overwritten now; with room for both, what was before it.
            self._wait(*loading, *(before if self.device.ahead else putting))
            self.device.launch(batch, first=batch is batches[0])
            if not self.device.ahead:  # what the batch alone needed may be overwritten now
                self._start(following)
            self.device.settle(batch)
            if batch.leap_day:
                self._leap_day(*batch.leap_day)
            before, putting = putting, [self._put(batch, output)]
        self.device.release()  # giving memory back takes time: not at the very end
        self._wait(*before, *putting)

    # -- the steps of a batch -------------------------------------------------------------------

    def _start(self, batch: Batch | None) -> None:
        self.loading = [] if batch is None else self.device.start(batch, first=False)

    def _leap_day(self, leap: int, before: int, after: int) -> None:
        """29 February from its neighbours: their mean, of counts the smaller."""
        for i, (name, _) in enumerate(self.statistics):
            rows = self.device.results[:, i]
            if name == "count":
                np.minimum(rows[:, before], rows[:, after], out=rows[:, leap])
            else:
                rows[:, leap] = (rows[:, before] + rows[:, after]) * np.float32(0.5)

    def _put(self, batch: Batch, output: Output) -> Work:
        """Begin to smooth and put the outputs that are complete, before any more is loaded."""
        start, stop = self.block.rows.start, self.block.rows.stop
        edges = [*range(start, stop, output.band_rows), stop] if batch.outputs else []
        bands = [(batch.outputs, slice(*edge), output) for edge in pairwise(edges)]
        return self.crew.start(self._put_band, bands, urgent=True)

    def _put_band(self, outputs: tuple[Finished, ...], rows: slice, output: Output) -> None:
        """All statistics of a band of the grid's rows, smoothed where they are averaged."""
        inner = self.block.runs.grid_cells // (self.block.rows.stop - self.block.rows.start)
        first, last = ((row - self.block.rows.start) * inner for row in (rows.start, rows.stop))
        days = np.array([finished.rows for finished in outputs], np.int64)
        middle = days[:, days.shape[1] // 2 :][:, :1]
        anew = np.array([finished.first for finished in outputs])
        means = self._scratch(len(outputs), last - first)
        shaped = means.reshape(len(outputs), rows.stop - rows.start, *self.cell_shape[1:])
        for i, (name, which) in enumerate(self.statistics):
            start = perf_counter()
            smoothed = i < self.averaged
            smooth.running_mean(
                self.device.results, i, days if smoothed else middle, anew,
                self.device.reference if smoothed else self.no_reference, self.block.runs.table,
                first, last, means,
            )  # fmt: skip
            if name == "count":
                np.nan_to_num(means, copy=False)
            self.spans("smooth", start, perf_counter(), means.size)
            for group in _consecutive(outputs):
                at = outputs[group.start].position
                place = at if which is None else (at, which)
                output.put(name, place, shaped[group], rows)

    # -- helpers --------------------------------------------------------------------------------

    def _wait(self, *works: Work) -> None:
        start = perf_counter()
        self.crew.finish(*works)
        self.spans("wait", start, perf_counter(), 0)

    def _scratch(self, days: int, cells: int) -> np.ndarray:
        """(day, cell) float32 of this thread's memory, used again and again."""
        memory = getattr(self.scratch, "memory", None)
        if memory is None or memory.size < days * cells:
            memory = self.scratch.memory = np.empty(days * cells, np.float32)
        return memory[: days * cells].reshape(days, cells)


def _consecutive(outputs: tuple[Finished, ...]) -> list[slice]:
    """Which outputs have consecutive positions."""
    at = np.array([finished.position for finished in outputs])
    breaks = np.flatnonzero(np.diff(at) != 1) + 1
    return [slice(int(a), int(b)) for a, b in pairwise([0, *breaks, len(outputs)])]
