"""Running means over days of year, and a cell's reference value: what follows the percentile.

Results arrive as float32 departures from the cell's reference, a tile's days together. Outputs are
averaged in one pass: the first by a sum over its window, each next by the day that enters less the
day that leaves, in float64, so that nothing accumulates from batch to batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

_OUTWEIGHS = 1e6  # a value that leaves a sum so much smaller than itself took digits along
_TRIED = 17  # days in which a cell's reference is looked for


@njit(nogil=True, cache=True, error_model="numpy")
def running_mean(results, statistic, rows, reference, runs, first, last, out):
    """Mean over result rows `rows` (output, day) plus the reference, for grid cells first to last.

    results (tile, statistic, row, cell of the tile) and reference (cell,) are float32; `runs`
    (run, 3) says which cells of the grid they are (see archive.sea.Runs). out (output, grid cell
    from first on) float32, NaN at cells that are in no run.

    NaN in any day of a window makes its mean NaN. What a sum cannot forget, because it is not
    finite or so large, is no more in the sum once it has left: that is made anew.
    """
    width = rows.shape[1]
    tile = results.shape[3]
    slides = np.zeros(rows.shape[0], np.bool_)
    for o in range(1, rows.shape[0]):
        slides[o] = width > 1
        for k in range(width - 1):
            slides[o] &= rows[o, k] == rows[o - 1, k + 1]
    total = np.empty(tile, np.float64)
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
            for o in range(rows.shape[0]):
                days = results[t, statistic]
                if not slides[o] or not _slide(
                    total, days[rows[o, width - 1]], days[rows[o - 1, 0]]
                ):
                    _sum(total, days, rows[o])
                about = reference[t * tile + low : t * tile + high]
                _finish(total[low:high], width, about, out[o, at + low - first :])
    out[:, done - first :] = np.nan


@njit(nogil=True, cache=True, error_model="numpy")
def _slide(total, enter, leave):
    """total += enter - leave; False if that is not good enough for some cell."""
    bad = 0
    for i in range(total.size):
        a, b = np.float64(enter[i]), np.float64(leave[i])
        t = total[i] + (a - b)
        total[i] = t
        forgets = (abs(b) <= _OUTWEIGHS * abs(t)) | ((t != t) & (abs(b) < np.inf))
        bad += not (forgets | (a != a))
    return bad == 0


@njit(nogil=True, cache=True, error_model="numpy")
def _sum(total, results, rows):
    total[:] = 0.0
    for k in range(rows.size):
        day = results[rows[k]]
        for i in range(total.size):
            total[i] += np.float64(day[i])


@njit(nogil=True, cache=True, error_model="numpy")
def _finish(total, width, reference, out):
    for i in range(total.size):
        out[i] = np.float32(total[i] / width + np.float64(reference[i]))


def reference_values(keys: Any, buffer: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """A value near each cell's results, finite float32: of the first days of `rows`, else 0.

    It is the first valid one; of floats, which may differ by many powers of ten, the smallest: a
    result is no more precise than its reference. `buffer` (row, cell) keys. Results depend in their
    last bit on the reference, so `rows` must be of the same days however the work is cut.
    """
    found = np.zeros(buffer.shape[1], buffer.dtype)
    near = np.full(buffer.shape[1], np.nan)
    for row in rows[:_TRIED]:  # what is then still missing is land or ice and does not matter
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
