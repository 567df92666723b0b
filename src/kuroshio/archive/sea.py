"""Which cells to keep in memory: the runs of the grid that ever hold a value.

A third of a global grid of sea surface temperature is land. Where every piece is a whole map, rows
of keys and results leave the land out, in whole tiles, as a sample of days spread over the archive
shows it. A day that has a value on what was taken for land raises ValueOnLand: the run then starts
again and keeps everything.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .model import Archive

SAMPLE_DAYS = 12
SPARE_CELLS = 4  # kept on either side of cells with values: coasts of ice and sea move
LEAST_SAVING = 0.1  # of the cells, below which nothing is left out


class ValueOnLand(Exception):
    """A cell that no sampled day had a value for has one."""


@dataclass(frozen=True)
class Runs:
    """Stretches of cells kept, laid end to end in memory.

    table (run, 3) int64: first cell of the grid, length, first cell in memory
    """

    table: np.ndarray
    cells: int  # kept, a whole number of tiles but for the grid's end
    grid_cells: int

    @property
    def whole(self) -> bool:
        return self.cells == self.grid_cells

    def expand(self, values: np.ndarray, fill: float) -> np.ndarray:
        """(cells,) in memory to (grid_cells,), `fill` where nothing was kept."""
        if self.whole:
            return values[: self.cells]
        out = np.full(self.grid_cells, fill, values.dtype)
        for start, length, place in self.table:
            out[start : start + length] = values[place : place + length]
        return out


def all_cells(cells: int) -> Runs:
    return Runs(np.array([[0, cells, 0]], np.int64), cells, cells)


def whole_maps(archive: Archive) -> bool:
    """Whether every piece is one day of the whole grid."""
    box = tuple(slice(0, n) for n in archive.grid.shape)
    return all(len(p.steps) == 1 and p.box == box for p in archive.pieces)


def runs_of(valid: np.ndarray, tile: int) -> Runs:
    """The runs that hold all cells of `valid` (cell,) and some to spare, in whole tiles."""
    cells = valid.size
    tiles = np.zeros(-(-cells // tile) * tile, bool)
    tiles[:cells] = valid
    for way in (1, -1):
        for shift in range(1, SPARE_CELLS + 1):
            tiles[:cells] |= np.roll(valid, way * shift)
    kept = np.logical_or.reduce(tiles.reshape(-1, tile), axis=1)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], kept, [False]])))
    starts, stops = edges[::2] * tile, np.minimum(edges[1::2] * tile, cells)
    lengths = stops - starts
    total = int(lengths.sum())
    if total == 0 or total > (1 - LEAST_SAVING) * cells:
        return all_cells(cells)
    table = np.stack([starts, lengths, lengths.cumsum() - lengths], axis=1)
    return Runs(table.astype(np.int64), total, cells)
