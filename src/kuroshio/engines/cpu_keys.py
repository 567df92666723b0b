"""A block's keys on the processor: loaded by the crew a batch at a time, gaps filled."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

from ..archive.plan import Batch, Block, Load
from ..device.cpu import Work
from ..device.llvm import tile_cells
from ..device.memory import ReadyMemory
from ..kernels import fill
from .means import TOGETHER, Means, together

_FEW_THREADS = 4
_TASKS_PER_THREAD = 16  # of a batch's computation: land is quick, so shares must be small


class CpuKeys:
    """keys (row, cell), of rows and cells as the block has them, and how they come there."""

    def __init__(self, means: Means, block: Block, memory: ReadyMemory) -> None:
        self.means, self.block = means, block
        self.crew, self.spans = means.crew, means.spans
        # Many threads wait for the interpreter's lock; few for whoever is last with his share. Two
        # threads, a season: shares of 1, 2 and 4 maps 5.13, 5.01 and 5.20 s.
        self.share = TOGETHER if means.crew.threads > _FEW_THREADS else 2
        self.keys = memory.take((block.key_rows, block.stride_cells), means.keys.dtype)

    def load(self, batch: Batch) -> Work:
        """Begin to load the pieces of a batch."""
        for row in batch.clear:
            self.keys[row] = 0
        return self.crew.start(self._load, [(some,) for some in together(batch.loads, self.share)])

    def fill(self, batch: Batch) -> None:
        """Fill gaps in time, if the batch has any to fill."""
        if not batch.fills:
            return
        tables, tile = fill.tables(batch.fills), tile_cells()

        def stretch(first: int, last: int) -> None:
            start = perf_counter()
            fill.fill_gaps(first * tile, last * tile, self.keys, *tables)
            self.spans("fill", start, perf_counter(), 0)

        self.crew.run(stretch, self.stretches())

    def stretches(self) -> list[tuple[int, int]]:
        """Tiles first to last, a share for each task."""
        tiles = self.block.tiles
        share = max(-(-tiles // (self.crew.threads * _TASKS_PER_THREAD)), 1)
        return [(t, min(t + share, tiles)) for t in range(0, tiles, share)]

    def release(self) -> None:
        """Give the memory back."""
        self.keys = self.keys[:0].copy()

    def _load(self, loads: Sequence[Load]) -> None:
        self.means.reader.load_together(loads, self.block, self.keys)
        self.means.have_read(len(loads))
