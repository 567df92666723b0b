"""What an engine must be able to do: the parts that are the same for every device."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from ..archive.plan import Batch, Block, Plan
from ..device.cpu import Work
from .means import Means


class BlockDevice(Protocol):
    """A block of cells on a device; for each of its batches `start`, `launch`, `settle`.

    A device that computes on its own does so while the crew loads the next batch: the order is
    start 0, launch 0, start 1, settle 0, launch 1, start 2, settle 1, ... `release`. Where it can
    load `ahead`, into other rows than those that a batch is computed from, the crew need not even
    stop for the launch: start 0, start 1, launch 0, settle 0, start 2, launch 1, settle 1, ...

    ahead      batches loaded before an earlier one is launched, 0 or 1
    results    (tile, statistic, result row, cell of the tile) float32 departures from the
               reference, on the host; the cells of a tile side by side, other strides any
    reference  (cell,) float32, on the host, contiguous, of whole tiles
    """

    ahead: int
    results: np.ndarray
    reference: np.ndarray

    def start(self, batch: Batch, first: bool) -> list[Work]:
        """Begin to load the pieces of a batch, and first of all to compile; returns at once.

        The batch before has been launched, or will be, and is not done: what it reads must not be
        loaded over.
        """

    def launch(self, batch: Batch, first: bool) -> None:
        """Begin to fill gaps, find the first batch's reference values, compute all statistics.

        What `start` gave has been finished, and nobody reads the rows of `results` that are this
        batch's: those of the batch before are others, where it can load `ahead`. May return before
        any of it is done.
        """

    def settle(self, batch: Batch) -> None:
        """Wait until the batch's rows of `results`, and `reference`, are complete on the host.

        They are read from then on, until the next batch is launched; `ahead`, the one after it.
        """

    def release(self) -> None:
        """Give back the memory of all but results and reference, which are still being read."""


@dataclass(frozen=True)
class Report:
    """What an engine tells of a run, for its account.

    rings      of pinned memory between reader and device (see rings.py); None where there were none
    inflation  of maps that devices inflated (see division.py); None where they did not
    launches   each kernel of a device, with the block size chosen for it and why
    """

    rings: dict[str, Any] | None = None
    inflation: dict[str, Any] | None = None
    launches: dict[str, str] = field(default_factory=dict)


class Engine(Protocol):
    """A device for a run: what the plan must know of it, and the blocks carried out on it.

    `begin` and `close` enclose each attempt; with other keys a run begins again.
    """

    tile_cells: int  # that lie together in the results, and that are kept or left out together
    ahead: int  # as BlockDevice has it; the plan keeps rows of keys and results so much longer
    device_bytes: int | None  # of memory for keys, where that is not the host's

    def begin(self, plan: Plan, threads: int) -> None:
        """Begin what takes time and needs only the plan; what is slow to import comes after.

        threads  of the crew
        """

    def block(self, means: Means, block: Block) -> BlockDevice:
        """The next block of the plan, with its buffers."""

    def report(self) -> Report:
        """Once all blocks are done."""

    def doubt(self) -> None:
        """A device has failed, and the crew has stopped: BadFile if a file is to blame."""

    def close(self) -> None:
        """Give back what `begin` took; the threads of the crew have ended.

        Where a run ends early, what was launched may not be settled.
        """
