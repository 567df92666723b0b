"""Running means over days of year, and a cell's reference value: what follows the percentile.

Results arrive as float32 departures from the cell's reference, a tile's days together. Outputs are
averaged in one pass: the first of a chunk by a sum over its window, each next by the day that
enters less the day that leaves, in float64. Chunks begin at the same days of year however the work
is cut, and what one cell needs is done to it alone, so that the last bit is the same, too.

Measured, ns a value of a 31-day and a 1-day mean: loops over cells 2.4 and 2.4, vectors
(smooth_vectors) 1.2 and 1.1, the entering day of the next tile fetched ahead 1.1 and 0.8; sums made
anew for 8 outputs instead of 24: a tenth more.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numba import njit

from ..device import llvm
from ..device.llvm import source_stamp
from . import smooth_vectors, vector_keys
from .smooth_vectors import TOTAL_VECTORS, mean_of_total, mend_total, slide_total, sum_days

SOURCES = (llvm, smooth_vectors, vector_keys)
_TRIED = 17  # days in which a cell's reference is looked for


def running_mean(results, statistic, rows, anew, reference, runs, first, last, out):
    """Mean over result rows `rows` (output, day) plus the reference, for grid cells first to last.

    anew (output,) says whose sum is to be made of all its days in any case.

    results (tile, statistic, row, cell of the tile) and reference (cell,) are float32; `runs`
    (run, 3) says which cells of the grid they are (see archive.sea.Runs). out (output, grid cell
    from first on) float32, NaN at cells that are in no run.

    NaN in any day of a window makes its mean NaN. A sum that has come down from something not
    finite, or a million times as large, is made anew, too: it has not forgotten that.
    """
    kernel = _compiled(results.shape[3] // 2, source_stamp(SOURCES))
    kernel(results, statistic, rows, anew, reference, runs, first, last, out)


def make_ready(results: np.ndarray, runs: np.ndarray) -> None:
    """Compile it for results that lie so in memory, or take it from Numba's cache."""
    running_mean(
        results, 0, np.zeros((0, 1), np.int64), np.zeros(0, bool), np.zeros(1, np.float32), runs,
        0, 0, np.zeros((0, 0), np.float32),
    )  # fmt: skip


@functools.cache
def _compiled(lanes: int, stamp: int) -> Any:
    """The kernel for vectors of so many lanes; see percentile.compiled."""

    @njit(nogil=True, cache=True, error_model="numpy")
    def run(results, statistic, rows, anew, reference, runs, first, last, out):
        _ = stamp
        width = rows.shape[1]
        tile = results.shape[3]
        slides = np.zeros(rows.shape[0], np.bool_)
        for o in range(1, rows.shape[0]):
            slides[o] = width > 1 and not anew[o]
            for k in range(width - 1):
                slides[o] &= rows[o, k] == rows[o - 1, k + 1]
        space = np.empty(2 * TOTAL_VECTORS * lanes, np.float64)
        edge = np.empty(tile, np.float32)  # a tile of which only a part is wanted
        total, part, stride = space.ctypes.data, np.int64(edge.ctypes.data), results.strides[2]
        other = total + TOTAL_VECTORS * lanes * space.itemsize
        done = first
        for r in range(runs.shape[0]):
            start, shift = runs[r, 0], runs[r, 0] - runs[r, 2]
            begin, end = max(first, start), min(last, start + runs[r, 1])
            if begin >= end:
                continue
            out[:, done - first : begin - first] = np.nan
            done = end
            for t in range((begin - shift) // tile, -(-(end - shift) // tile)):
                at = t * tile + shift  # the tile's first cell on the grid
                low, high = max(begin - at, 0), min(end - at, tile)
                whole = high - low == tile
                days = results.ctypes.data + t * results.strides[0] + statistic * results.strides[1]
                about = reference.ctypes.data + t * tile * reference.itemsize
                for o in range(rows.shape[0]):
                    entering = days + rows[o, width - 1] * stride
                    window = rows.ctypes.data + o * rows.strides[0]
                    leaving = days + rows[o - 1, 0] * stride
                    if not slides[o]:
                        sum_days(lanes, days, stride, window, width, total)
                    elif not slide_total(lanes, total, entering, leaving):
                        sum_days(lanes, days, stride, window, width, other)
                        mend_total(lanes, total, other)
                    to = out.ctypes.data + o * out.strides[0] + (at - first) * out.itemsize
                    mean_of_total(
                        lanes, total, np.float64(width), about, to if whole else part,
                        entering + results.strides[0],
                    )  # fmt: skip
                    if not whole:
                        out[o, at + low - first : at + high - first] = edge[low:high]
        out[:, done - first :] = np.nan
        space[0] = 0.0  # named, so that they live until here: an address does not keep them
        edge[0] = 0.0

    return run


def reference_rows(word_rows: np.ndarray, first_word: np.ndarray, words: int) -> np.ndarray:
    """The key rows that references are looked for in: the first days of the walk's first window.

    word_rows and first_word as in archive.plan.Batch, of the first batch
    """
    rows = word_rows[first_word[0] :][:words].reshape(-1)
    return rows[rows > 0][:_TRIED]


def reference_values(keys: Any, buffer: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """A value near each cell's results, finite float32: of the first days of `rows`, else 0.

    It is the first valid one; of floats, which may differ by many powers of ten, the smallest: a
    result is no more precise than its reference. `buffer` (row, cell) keys. Results depend in their
    last bit on the reference, so `rows` (reference_rows) must be the same however the work is cut.
    """
    found = np.zeros(buffer.shape[1], buffer.dtype)
    near = np.full(buffer.shape[1], np.nan)
    for row in rows:  # what is then still missing is land or ice and does not matter
        if keys.affine:
            if found.all():
                break
            np.copyto(found, buffer[row], where=found == 0)
        else:
            value = keys.values(buffer[row])
            near = np.where(np.isnan(near) | (np.abs(value) < np.abs(near)), value, near)
    near = keys.values(found) if keys.affine else near
    largest = np.finfo(np.float32).max
    near = np.nan_to_num(near, nan=0.0, posinf=0.0, neginf=0.0)
    return np.clip(near, -largest, largest).astype(np.float32)
