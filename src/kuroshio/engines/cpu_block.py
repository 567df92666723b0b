"""A block on the processor: keys, counts and results in memory, tiles shared among the crew."""

from __future__ import annotations

from time import perf_counter

import numpy as np

from ..archive.plan import Batch, Block
from ..cornish_fisher import coefficients
from ..device.cpu import Work
from ..device.llvm import tile_cells
from ..device.memory import ReadyMemory, aligned_zeros
from ..kernels import moments, percentile, smooth
from ..request import statistics
from .cpu_keys import CpuKeys
from .means import Means


class CpuBlock(CpuKeys):
    """A block's buffers, and the steps of a batch on the crew's threads.

    Beside the keys, results (tile, statistic, row, cell of the tile), counts (day of year of a
    batch, cell) and reference (cell,).
    """

    ahead = 0

    def __init__(self, means: Means, block: Block, memory: ReadyMemory) -> None:
        super().__init__(means, block, memory)
        self.words, years = means.needs.windows.steps.shape[1:]
        request = means.needs.request
        self.by_moments = request.method == "moments"
        self.count_at = None
        if "count" in request.extras and not self.by_moments:
            self.count_at = len(request.percentiles) + 1 + request.extras.index("count")
        self.quantiles = np.array(request.percentiles) / 100.0
        self.estimate = coefficients(self.quantiles.tolist() if self.by_moments else ())
        self.given = moments.places(statistics(request), len(self.estimate))
        self.kernel, self.sides = percentile.compiled_for(
            means.keys.kind, self.words, years, self.quantiles
        )

        cells, tile = block.stride_cells, tile_cells()
        shape = (block.tiles, len(statistics(means.needs.request)), block.result_rows, tile)
        self.results = aligned_zeros(shape, np.dtype(np.float32))
        days = max(batch.doys.size for batch in block.batches)
        # Where nobody asks for them, counts are the kernel's own: one row for all days.
        counts = np.empty((1 if self.count_at is None else days, cells), np.int32)
        steps = (counts.strides[0] if len(counts) > 1 else 0, counts.itemsize)
        self.counts = np.lib.stride_tricks.as_strided(counts, (days, cells), steps)
        self.reference = np.zeros(cells, np.float32)

    def start(self, batch: Batch, first: bool) -> list[Work]:
        compiling = [self.crew.start(self._compile, [()])] if first else []
        return [*compiling, self.load(batch)]

    def launch(self, batch: Batch, first: bool) -> None:
        self.fill(batch)
        if first:
            self._refer(batch)
        self._select(batch)

    def settle(self, batch: Batch) -> None:
        """All was done when `launch` returned."""

    # -- the steps of a batch -------------------------------------------------------------------

    def _refer(self, batch: Batch) -> None:
        """Each cell's reference value from the rows of the first window of the walk."""
        rows = smooth.reference_rows(batch.word_rows, batch.first_word, self.words)
        tile = tile_cells()

        def stretch(first: int, last: int) -> None:
            cells = slice(first * tile, last * tile)
            self.reference[cells] = smooth.reference_values(
                self.means.keys, self.keys[:, cells], rows
            )

        self.crew.run(stretch, self.stretches())

    def _select(self, batch: Batch) -> None:
        """The windows' percentiles and means, and what else is asked for of them."""
        tile, keys = tile_cells(), self.means.keys
        step = self.means.needs.windows.words_per_offset

        def stretch(first: int, last: int) -> None:
            start = perf_counter()
            if not self.by_moments:
                self.kernel(
                    self.keys, first, last, batch.live, batch.word_rows, batch.first_word, step,
                    batch.gaps, self.quantiles, self.sides, batch.least, keys.scale, keys.offset,
                    self.reference, self.results, batch.result_rows, self.counts,
                )  # fmt: skip
            cells = slice(first * tile, last * tile)
            if self.count_at is not None:
                self._keep(self.count_at, self.counts[: batch.doys.size, cells], batch, first, last)
            if self.given:
                found = self._moments(batch.word_rows, batch.first_word, batch.least, cells)
                for at, row in self.given:
                    self._keep(at, found[row], batch, first, last)
            self.spans("compute", start, perf_counter(), (last - first) * tile * batch.doys.size)

        self.crew.run(stretch, self.stretches())

    def _moments(
        self, word_rows: np.ndarray, first_word: np.ndarray, least: np.ndarray, cells: slice
    ) -> np.ndarray:
        return moments.of_windows(
            self.means.keys, self.keys, cells, word_rows, first_word, self.words, least,
            self.reference, self.estimate,
        )  # fmt: skip

    def _keep(self, at: int, values: np.ndarray, batch: Batch, first: int, last: int) -> None:
        """A statistic (doy, cell) of some tiles to where results are kept."""
        tiled = values.reshape(batch.doys.size, last - first, tile_cells()).swapaxes(0, 1)
        self.results[first:last, at][:, batch.result_rows] = tiled

    # -- helpers --------------------------------------------------------------------------------

    def _compile(self) -> None:
        """What reads, the windows' kernel and the smoothing's, or take them from Numba's cache."""
        none, keys = np.zeros(0, np.int32), self.means.keys
        with self.means.compiling():
            self.means.reader.make_ready()
            if self.by_moments:
                rows = np.zeros((self.words, 1), np.int32)
                few = slice(0, tile_cells())
                self._moments(rows, np.zeros(1, np.int64), np.ones(1, np.int32), few)
            else:
                self.kernel(
                    self.keys, 0, 0, none, np.zeros((1, 1), np.int32), np.zeros(0, np.int64), 1,
                    False, self.quantiles, self.sides, none, keys.scale, keys.offset,
                    self.reference, self.results, none, self.counts,
                )  # fmt: skip
            smooth.make_ready(self.results, self.block.runs.table)
