"""The plan: what is read when, where it lies in memory, what is computed and written after it.

From an Archive, a Request and a memory budget to tables of integers; pure. Days of year are walked
in order, a *batch* at a time; a batch reads the days that its windows need and that are not yet in
memory, computes, and frees what no later window needs. So each piece is read once, and memory is
bounded by the window (plus, for a whole year, the days around the start that the end needs again).
Where even that is too much the grid is cut into *blocks* along its first dimension.

These are the records; needs.py says which days belong to which batch, cut.py chooses batches and
blocks, schedule.py makes the tables of a block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .sea import Runs


@dataclass(frozen=True)
class Layout:
    """What kernels and output need: bytes a key, statistics kept, cells a tile, years a word."""

    key_bytes: int
    statistics: int  # float32 results kept a cell and day of year
    output_days: int  # days of year of an output's chunk
    tile_cells: int
    years_per_word: int
    ahead: int = 0  # batches that are read and computed before an earlier one has been put
    device_bytes: int | None = None  # memory of a device that holds the keys; None: the host does


class Load(NamedTuple):
    """Read a piece; its time index i goes to row rows[i] of the key buffer (-1: not needed)."""

    piece: int
    rows: tuple[int, ...]


@dataclass(frozen=True)
class Fill:
    """Interpolate gaps of one day's row from the rows of the days around it, nearest first."""

    row: int
    before: tuple[int, ...]
    after: tuple[int, ...]


@dataclass(frozen=True)
class Output:
    """A day of year that can be written: its place in the output and the rows to average."""

    position: int
    rows: tuple[int, ...]
    first: bool  # of a chunk


@dataclass(frozen=True)
class Batch:
    """Loads, then fills, then the kernel on these tables, then means and outputs."""

    loads: tuple[Load, ...]
    clear: tuple[int, ...]  # rows of days that no piece holds
    fills: tuple[Fill, ...]
    doys: np.ndarray  # int64 (doy,)
    first_word: np.ndarray  # int64 (doy,): where its window starts among the words
    word_rows: np.ndarray  # int32 (word, year): key row, 0 for none
    live: np.ndarray  # int32: distinct key rows of word_rows, 0 left out
    gaps: bool  # whether word_rows has a 0
    least: np.ndarray  # int32 (doy,): valid values a result needs
    result_rows: np.ndarray  # int32 (doy,)
    leap_day: tuple[int, int, int] | None  # result rows of 29 February, 28 February, 1 March
    outputs: tuple[Output, ...]


@dataclass(frozen=True)
class Block:
    """All batches for a range of the first cell dimension."""

    rows: slice
    runs: Runs  # which of the block's cells the buffers hold
    stride_cells: int  # a row of the key buffer, padded
    tiles: int
    key_rows: int  # row 0 stays missing
    result_rows: int
    batches: tuple[Batch, ...]

    @property
    def cells(self) -> int:
        """Cells in memory."""
        return self.runs.cells


@dataclass(frozen=True)
class Plan:
    """Everything that will happen, and what it will cost."""

    doys: tuple[int, ...]  # of the output
    walk: tuple[int, ...]  # days of year in the order in which they are computed
    block_rows: int  # of the first cell dimension, a block (the last may have fewer)
    batch: int  # days of year computed at a time, at most
    blocks: int
    memory_bytes: int
    key_bytes: int  # of them, those of the key buffer
    row_bytes: int  # of it, those of a row: a day of all cells of a block
    batch_bytes: int  # more on a device that holds the keys: a batch's results
    read_bytes: int  # decoded, all blocks together
    amplification: float  # decoded bytes over bytes needed once
    pieces: int
    loads: int  # of pieces, all blocks together
    days_read: int
    days_missing: int  # days within the windows that the archive lacks
    warnings: tuple[str, ...]

    @property
    def computed(self) -> int:
        """Days of year computed: those written, and what smoothing needs around them."""
        return len(self.walk)
