"""One block carried out: its buffers, and the steps of its batches on the crew's threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Timer
from time import perf_counter
from typing import Any, Protocol

import numpy as np

from .archive.model import Spans
from .archive.needs import Needs
from .archive.plan import Batch, Block
from .archive.plan import Output as Finished
from .archive.read import Reader
from .device.cpu import Crew
from .kernels import fill, moments, percentile, smooth
from .keys import Keys
from .request import Request

Progress = Callable[[str, int, int], None]  # (stage, done, total)

OUTPUTS_AT_A_TIME = 16  # days of year smoothed together
_COMPILING_S = 0.5  # longer than taking a kernel from the cache: the user should know
_LOADS_PER_TASK = 4  # small files: fewer, larger tasks
_TASKS_PER_THREAD = 16  # of a batch's computation: land is quick, so shares must be small


class Output(Protocol):
    """Where results go: a file being written, or arrays."""

    def put(self, name: str, position: Any, values: np.ndarray, rows: slice) -> None: ...


def statistics(request: Request) -> list[tuple[str, int | None]]:
    """What is kept for every day of year: (output variable, which percentile of it)."""
    several = len(request.percentiles) > 1
    thresh = [("thresh", i if several else None) for i in range(len(request.percentiles))]
    return [*thresh, ("seas", None), *((name, None) for name in request.extras)]


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

    keys, results, counts and smoothed are the buffers, (row, cell), (statistic, row, cell), (day of
    year of a batch, cell) and (statistic, output, grid cell).
    """

    def __init__(self, means: Means, block: Block) -> None:
        self.means, self.block = means, block
        self.crew, self.spans = means.crew, means.spans
        self.request = means.needs.request
        self.statistics = statistics(self.request)
        self.averaged = len(self.request.percentiles) + 1  # of the statistics, those smoothed
        self.words, years = means.needs.windows.steps.shape[1:]
        self.kernel = percentile.compiled_for(means.keys.kind, self.words, years)
        self.cell_shape = means.needs.archive.grid.shape or (1,)

        cells = block.stride_cells
        self.keys = _zeros((block.key_rows, cells), means.keys.dtype)
        rows = (len(self.statistics), block.result_rows, cells)
        self.results = _zeros(rows, np.dtype(np.float32))
        self.counts = np.empty((max(b.doys.size for b in block.batches), cells), np.int32)
        outputs = (self.averaged, OUTPUTS_AT_A_TIME, block.runs.grid_cells)
        self.smoothed = np.empty(outputs, np.float32)
        self.reference = np.zeros(cells, np.float32)
        self.loading = [
            *self.crew.start(self._compile, [()]),
            *self._start_loads(block.batches[0]),
        ]

    def finish(self, output: Output) -> None:
        """All batches: load, compute, then smooth and put while the next one loads."""
        batches = self.block.batches
        for i, batch in enumerate(batches):
            start = perf_counter()
            self.crew.finish(self.loading)
            self.spans("wait", start, perf_counter(), 0)
            if batch.fills:
                self._fill(batch)
            if i == 0:
                rows = batch.word_rows[batch.first_word[0] :][: self.words].reshape(-1)
                self.reference = smooth.reference_values(self.means.keys, self.keys, rows[rows > 0])
            self._compute(batch)
            if batch.leap_day:
                self._leap_day(*batch.leap_day)
            self._hand_over(batch, batches[i + 1] if i + 1 < len(batches) else None, output)

    # -- the steps of a batch -------------------------------------------------------------------

    def _start_loads(self, batch: Batch) -> list:
        for row in batch.clear:
            self.keys[row] = 0
        groups = [
            (batch.loads[k : k + _LOADS_PER_TASK],)
            for k in range(0, len(batch.loads), _LOADS_PER_TASK)
        ]
        return self.crew.start(self._load, groups)

    def _load(self, loads: tuple) -> None:
        for load in loads:
            self.means.reader.load(load, self.block, self.keys)
        self.means.pieces_read += len(loads)
        self.means.progress("read", self.means.pieces_read, self.means.pieces)

    def _fill(self, batch: Batch) -> None:
        tables = fill.tables(batch.fills)

        def stretch(first: int, last: int) -> None:
            start = perf_counter()
            fill.fill_gaps(first, last, self.keys, *tables)
            self.spans("fill", start, perf_counter(), 0)

        self.crew.run(stretch, self._stretches())

    def _compute(self, batch: Batch) -> None:
        quantiles = np.array(self.request.percentiles) / 100.0
        tile, keys = percentile.tile_cells(), self.means.keys

        def stretch(first: int, last: int) -> None:
            start = perf_counter()
            self.kernel(
                self.keys, first // tile, last // tile, batch.live, batch.word_rows,
                batch.first_word, batch.gaps, quantiles, batch.least, keys.scale, keys.offset,
                self.reference, self.results, batch.result_rows, self.counts,
            )  # fmt: skip
            if self.request.extras:
                self._extras(batch, first, last)
            self.spans("compute", start, perf_counter(), (last - first) * batch.doys.size)

        self.crew.run(stretch, self._stretches())

    def _extras(self, batch: Batch, first: int, last: int) -> None:
        extras = self.request.extras
        if set(extras) & set(moments.STATISTICS):
            found = moments.of_windows(
                self.means.keys, self.keys[:, first:last], batch.word_rows, batch.first_word,
                self.words, batch.least,
            )  # fmt: skip
        for i, name in enumerate(extras, self.averaged):
            if name == "count":
                value = self.counts[: batch.doys.size, first:last]
            else:
                value = found[moments.STATISTICS.index(name)]
            self.results[i, batch.result_rows, first:last] = value

    def _leap_day(self, leap: int, before: int, after: int) -> None:
        """29 February from its neighbours: their mean, of counts the smaller."""
        for (name, _), rows in zip(self.statistics, self.results, strict=True):
            if name == "count":
                np.minimum(rows[before], rows[after], out=rows[leap])
            else:
                rows[leap] = (rows[before] + rows[after]) * np.float32(0.5)

    def _hand_over(self, batch: Batch, following: Batch | None, output: Output) -> None:
        """Smooth and put the outputs that are complete; the next batch's reading goes alongside."""
        self.loading = []
        groups = [
            batch.outputs[k : k + OUTPUTS_AT_A_TIME]
            for k in range(0, len(batch.outputs), OUTPUTS_AT_A_TIME)
        ] or [()]
        for number, group in enumerate(groups):
            futures = self._smooth(group)
            if number == 0 and following is not None:
                self.loading = self._start_loads(following)
            self.crew.finish(futures)
            self.crew.run(output.put, self._puts(group))

    def _smooth(self, group: tuple[Finished, ...]) -> list:
        if not group:
            return []
        rows = np.array([finished.rows for finished in group], np.int64)

        def stretch(first: int, last: int) -> None:
            start = perf_counter()
            last = min(last, self.block.cells)
            for i in range(self.averaged):
                smooth.running_mean(
                    self.results[i], rows, self.reference, self.block.runs.table, first, last,
                    self.smoothed[i],
                )  # fmt: skip
            self.spans("smooth", start, perf_counter(), (last - first) * len(group))

        return self.crew.start(stretch, self._stretches())

    def _puts(self, group: tuple[Finished, ...]) -> list:
        """Arguments of `Output.put` for every field of every finished day."""
        puts = []
        for k, finished in enumerate(group):
            middle = finished.rows[len(finished.rows) // 2]
            for i, (name, which) in enumerate(self.statistics):
                if i < self.averaged:
                    values = self.smoothed[i, k]
                else:
                    nothing = 0.0 if name == "count" else np.nan
                    values = self.block.runs.expand(self.results[i, middle], nothing)
                place = finished.position if which is None else (finished.position, which)
                shaped = values.reshape(-1, *self.cell_shape[1:])
                puts.append((name, place, shaped, self.block.rows))
        return puts

    # -- helpers --------------------------------------------------------------------------------

    def _stretches(self) -> list[tuple[int, int]]:
        """Cells first to last, whole tiles, a share for each task."""
        tile = percentile.tile_cells()
        tiles = -(-self.block.cells // tile)
        share = max(-(-tiles // (self.crew.threads * _TASKS_PER_THREAD)), 1) * tile
        return [(s, min(s + share, tiles * tile)) for s in range(0, tiles * tile, share)]

    def _compile(self) -> None:
        """Compile the kernel, or take it from Numba's cache, while the first pieces are read."""
        start = perf_counter()
        said = Timer(_COMPILING_S, self.means.progress, ("compile", 0, 1))
        said.start()
        none, keys = np.zeros(0, np.int32), self.means.keys
        try:
            self.kernel(
                self.keys, 0, 0, none, np.zeros((1, 1), np.int32), np.zeros(0, np.int64), False,
                np.zeros(1), none, keys.scale, keys.offset, self.reference, self.results, none,
                self.counts,
            )  # fmt: skip
        finally:
            said.cancel()
        stop = perf_counter()
        if stop - start > _COMPILING_S:
            self.means.progress("compile", 1, 1)
        self.spans("compile", start, stop, 0)


def _zeros(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Zeros whose rows start on cache lines when their length is a whole number of them."""
    size = int(np.prod(shape)) * dtype.itemsize
    raw = np.zeros(size + 64, np.uint8)
    skip = -raw.ctypes.data % 64
    return raw[skip : skip + size].view(dtype).reshape(shape)
