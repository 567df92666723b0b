"""One block carried out: its buffers, and the steps of its batches on the crew's threads."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from threading import Timer, local
from time import perf_counter
from typing import Any, Protocol

import numpy as np

from .archive.model import Progress, Spans
from .archive.needs import Needs
from .archive.plan import Batch, Block, Load
from .archive.plan import Output as Finished
from .archive.read import Reader
from .device.cpu import Crew, Work
from .device.llvm import tile_cells
from .device.memory import ReadyMemory, aligned_zeros
from .kernels import fill, moments, percentile, smooth
from .keys import Keys
from .request import statistics

_COMPILING_S = 0.5  # longer than taking a kernel from the cache: the user should know
_TASKS_PER_THREAD = 16  # of a batch's computation: land is quick, so shares must be small


class Output(Protocol):
    """Where results go: a file being written, or arrays.

    `put` takes consecutive days of year of a band of rows, from any thread. Days that `days` counts
    together, of as many rows as `band_rows`, are taken most easily.
    """

    days: int
    band_rows: int

    def put(self, name: str, position: Any, values: np.ndarray, rows: slice) -> None: ...


@dataclass
class Means:
    """What all blocks of a run share."""

    needs: Needs
    keys: Keys
    reader: Reader
    crew: Crew
    spans: Spans
    progress: Progress
    pieces: int  # to read in all
    pieces_read: int = 0


class BlockRun:
    """A block under way: reading begins at once, `finish` does the rest.

    keys, results and counts are the buffers: (row, cell), (tile, statistic, row, cell of the tile)
    and (day of year of a batch, cell).
    """

    def __init__(self, means: Means, block: Block, memory: ReadyMemory) -> None:
        self.means, self.block = means, block
        self.crew, self.spans = means.crew, means.spans
        self.request = means.needs.request
        self.statistics = statistics(self.request)
        self.averaged = len(self.request.percentiles) + 1  # of the statistics, those smoothed
        self.words, years = means.needs.windows.steps.shape[1:]
        self.quantiles = np.array(self.request.percentiles) / 100.0
        self.kernel, self.sides = percentile.compiled_for(
            means.keys.kind, self.words, years, self.quantiles
        )
        self.cell_shape = means.needs.archive.grid.shape or (1,)

        cells, tile = block.stride_cells, tile_cells()
        self.keys = memory.take((block.key_rows, cells), means.keys.dtype)
        shape = (block.tiles, len(self.statistics), block.result_rows, tile)
        self.results = aligned_zeros(shape, np.dtype(np.float32))
        days = max(batch.doys.size for batch in block.batches)
        # Where nobody asks for them, counts are the kernel's own: one row for all days.
        counts = np.empty((days if "count" in self.request.extras else 1, cells), np.int32)
        steps = (counts.strides[0] if len(counts) > 1 else 0, counts.itemsize)
        self.counts = np.lib.stride_tricks.as_strided(counts, (days, cells), steps)
        self.reference = np.zeros(cells, np.float32)
        self.no_reference = np.zeros(cells, np.float32)
        self.scratch = local()  # a thread's memory for a band of means
        self.loading = [
            self.crew.start(self._compile, [()]),
            self._start_loads(block.batches[0]),
        ]

    def finish(self, output: Output) -> None:
        """All batches: load, compute, smooth and put; the next one loads alongside."""
        batches = self.block.batches
        for i, batch in enumerate(batches):
            start = perf_counter()
            self.crew.finish(*self.loading)
            self.spans("wait", start, perf_counter(), 0)
            if batch.fills:
                self._fill(batch)
            if i == 0:
                rows = batch.word_rows[batch.first_word[0] :][: self.words].reshape(-1)
                self._refer(rows[rows > 0])
            self._compute(batch)
            if batch.leap_day:
                self._leap_day(*batch.leap_day)
            following = batches[i + 1] if i + 1 < len(batches) else None
            self._hand_over(batch, following, output)

    # -- the steps of a batch -------------------------------------------------------------------

    def _start_loads(self, batch: Batch) -> Work:
        for row in batch.clear:
            self.keys[row] = 0
        return self.crew.start(self._load, [(load,) for load in batch.loads])

    def _load(self, load: Load) -> None:
        self.means.reader.load(load, self.block, self.keys)
        self.means.pieces_read += 1
        self.means.progress("read", self.means.pieces_read, self.means.pieces)

    def _fill(self, batch: Batch) -> None:
        tables = fill.tables(batch.fills)

        tile = tile_cells()

        def stretch(first: int, last: int) -> None:
            start = perf_counter()
            fill.fill_gaps(first * tile, last * tile, self.keys, *tables)
            self.spans("fill", start, perf_counter(), 0)

        self.crew.run(stretch, self._stretches())

    def _refer(self, rows: np.ndarray) -> None:
        """Each cell's reference value from the first rows of the walk."""
        tile = tile_cells()

        def stretch(first: int, last: int) -> None:
            cells = slice(first * tile, last * tile)
            self.reference[cells] = smooth.reference_values(
                self.means.keys, self.keys[:, cells], rows
            )

        self.crew.run(stretch, self._stretches())

    def _compute(self, batch: Batch) -> None:
        tile, keys = tile_cells(), self.means.keys
        step = self.means.needs.windows.words_per_offset

        def stretch(first: int, last: int) -> None:
            start = perf_counter()
            self.kernel(
                self.keys, first, last, batch.live, batch.word_rows, batch.first_word, step,
                batch.gaps, self.quantiles, self.sides, batch.least, keys.scale, keys.offset,
                self.reference, self.results, batch.result_rows, self.counts,
            )  # fmt: skip
            if self.request.extras:
                self._extras(batch, first, last)
            self.spans("compute", start, perf_counter(), (last - first) * tile * batch.doys.size)

        self.crew.run(stretch, self._stretches())

    def _extras(self, batch: Batch, first: int, last: int) -> None:
        extras = self.request.extras
        tile = tile_cells()
        cells = slice(first * tile, last * tile)
        if set(extras) & set(moments.STATISTICS):
            found = moments.of_windows(
                self.means.keys, self.keys[:, cells], batch.word_rows, batch.first_word, self.words,
                batch.least,
            )  # fmt: skip
        for i, name in enumerate(extras, self.averaged):
            if name == "count":
                value = self.counts[: batch.doys.size, cells]
            else:
                value = found[moments.STATISTICS.index(name)]
            tiled = value.reshape(batch.doys.size, last - first, tile).swapaxes(0, 1)
            self.results[first:last, i][:, batch.result_rows] = tiled

    def _leap_day(self, leap: int, before: int, after: int) -> None:
        """29 February from its neighbours: their mean, of counts the smaller."""
        for i, (name, _) in enumerate(self.statistics):
            rows = self.results[:, i]
            if name == "count":
                np.minimum(rows[:, before], rows[:, after], out=rows[:, leap])
            else:
                rows[:, leap] = (rows[:, before] + rows[:, after]) * np.float32(0.5)

    def _hand_over(self, batch: Batch, following: Batch | None, output: Output) -> None:
        """Smooth and put the outputs that are complete; the next batch's reading goes alongside."""
        start, stop = self.block.rows.start, self.block.rows.stop
        edges = [*range(start, stop, output.band_rows), stop] if batch.outputs else []
        bands = [(batch.outputs, slice(*edge), output) for edge in pairwise(edges)]
        putting = self.crew.start(self._put_band, bands)
        if following is not None:
            self.loading = [self._start_loads(following)]
        else:
            self.loading = []
            self.keys = self.keys[:0].copy()  # giving memory back takes time: not at the very end
        self.crew.finish(putting)

    def _put_band(self, outputs: tuple[Finished, ...], rows: slice, output: Output) -> None:
        """All statistics of a band of the grid's rows, smoothed where they are averaged."""
        inner = self.block.runs.grid_cells // (self.block.rows.stop - self.block.rows.start)
        first, last = ((row - self.block.rows.start) * inner for row in (rows.start, rows.stop))
        days = np.array([finished.rows for finished in outputs], np.int64)
        middle = days[:, days.shape[1] // 2 :][:, :1]
        means = self._scratch(len(outputs), last - first)
        shaped = means.reshape(len(outputs), rows.stop - rows.start, *self.cell_shape[1:])
        for i, (name, which) in enumerate(self.statistics):
            start = perf_counter()
            smoothed = i < self.averaged
            smooth.running_mean(
                self.results, i, days if smoothed else middle,
                self.reference if smoothed else self.no_reference, self.block.runs.table, first,
                last, means,
            )  # fmt: skip
            if name == "count":
                np.nan_to_num(means, copy=False)
            self.spans("smooth", start, perf_counter(), means.size)
            for group in _together(outputs, output.days):
                at = outputs[group.start].position
                place = at if which is None else (at, which)
                output.put(name, place, shaped[group], rows)

    # -- helpers --------------------------------------------------------------------------------

    def _stretches(self) -> list[tuple[int, int]]:
        """Tiles first to last, a share for each task."""
        tiles = self.block.tiles
        share = max(-(-tiles // (self.crew.threads * _TASKS_PER_THREAD)), 1)
        return [(t, min(t + share, tiles)) for t in range(0, tiles, share)]

    def _scratch(self, days: int, cells: int) -> np.ndarray:
        """(day, cell) float32 of this thread's memory, used again and again."""
        memory = getattr(self.scratch, "memory", None)
        if memory is None or memory.size < days * cells:
            memory = self.scratch.memory = np.empty(days * cells, np.float32)
        return memory[: days * cells].reshape(days, cells)

    def _compile(self) -> None:
        """Compile the kernel, or take it from Numba's cache, while the first pieces are read."""
        start = perf_counter()
        said = Timer(_COMPILING_S, self.means.progress, ("compile", 0, 1))
        said.start()
        none, keys = np.zeros(0, np.int32), self.means.keys
        try:
            self.kernel(
                self.keys, 0, 0, none, np.zeros((1, 1), np.int32), np.zeros(0, np.int64), 1, False,
                self.quantiles, self.sides, none, keys.scale, keys.offset, self.reference,
                self.results, none, self.counts,
            )  # fmt: skip
        finally:
            said.cancel()
        stop = perf_counter()
        if stop - start > _COMPILING_S:
            self.means.progress("compile", 1, 1)
        self.spans("compile", start, stop, 0)


def _together(outputs: tuple[Finished, ...], days: int) -> list[slice]:
    """Which outputs have consecutive positions, not across a multiple of `days`."""
    at = np.array([finished.position for finished in outputs])
    breaks = np.flatnonzero((np.diff(at) != 1) | (at[1:] % days == 0)) + 1
    return [slice(int(a), int(b)) for a, b in pairwise([0, *breaks, len(outputs)])]
