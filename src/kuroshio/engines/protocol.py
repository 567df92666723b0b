"""What an engine must be able to do: the parts that are the same for every device."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ..archive.plan import Batch, Block, Plan
from ..device.cpu import Work
from .means import Means


class BlockDevice(Protocol):
    """A block of cells on a device; for each of its batches first `start`, then `compute`.

    results    (tile, statistic, result row, cell of the tile) float32 departures from the
               reference, on the host; the cells of a tile side by side, other strides any
    reference  (cell,) float32, on the host, contiguous, of whole tiles
    """

    results: np.ndarray
    reference: np.ndarray

    def start(self, batch: Batch, first: bool) -> list[Work]:
        """Begin to load the pieces of a batch, and first of all to compile; returns at once.

        The batch before is computed, and its results are being read.
        """

    def compute(self, batch: Batch, first: bool) -> None:
        """Fill gaps, find the first batch's reference values, compute all statistics.

        What `start` gave has been finished. On return the batch's rows of `results` are complete.
        """

    def release(self) -> None:
        """Give back the memory of all but results and reference, which are still being read."""


class Engine(Protocol):
    """A device for a run: what the plan must know of it, and the blocks carried out on it.

    `begin` and `close` enclose each attempt; with other keys a run begins again.
    """

    tile_cells: int  # that lie together in the results, and that are kept or left out together

    def begin(self, plan: Plan) -> None:
        """Begin what takes time and needs only the plan; what is slow to import comes after."""

    def block(self, means: Means, block: Block) -> BlockDevice:
        """The next block of the plan, with its buffers."""

    def close(self) -> None:
        """Give back what `begin` took; the threads of the crew have ended."""
