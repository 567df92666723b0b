"""Running means over days of year, and a cell's reference value: what follows the percentile.

Results arrive as float32 departures from the cell's reference. A batch of outputs is averaged in
one pass: the first by a sum over its window, each next by the day that enters less the day that
leaves, in float64, so that nothing accumulates from batch to batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

_CELLS = 512  # a stretch whose running sums stay in the first cache
_OUTWEIGHS = 1e6  # a value that leaves a sum so much smaller than itself took digits along
_TRIED = 17  # days in which a cell's reference is looked for


@njit(nogil=True, cache=True, error_model="numpy")
def running_mean(results, rows, reference, runs, first, last, out):
    """Mean over result rows `rows` (output, day) plus the reference, for cells first to last.

    results (row, cell) float32, reference (cell,) float32; out (output, grid cell) float32, written
    at the places that `runs` (run, 3) gives the cells (see archive.sea.Runs) and NaN between them.
    NaN in any day of a window makes its mean NaN. What is so large (or infinite) that a sum cannot
    forget it is no more in the sum once it has left: that is made anew.
    """
    width = rows.shape[1]
    slides = np.zeros(rows.shape[0], np.bool_)
    for o in range(1, rows.shape[0]):
        slides[o] = True
        for k in range(width - 1):
            slides[o] &= rows[o, k] == rows[o - 1, k + 1]
    total = np.empty(_CELLS, np.float64)
    holes = np.empty(_CELLS, np.int32)
    for r in range(runs.shape[0]):
        begin = max(first, runs[r, 2])
        end = min(last, runs[r, 2] + runs[r, 1])
        shift = runs[r, 0] - runs[r, 2]
        if begin == runs[r, 2] and begin < end:  # what lies between the runs is missing
            out[:, runs[r - 1, 0] + runs[r - 1, 1] if r else 0 : runs[r, 0]] = np.nan
        if end == runs[r, 2] + runs[r, 1] and begin < end and r == runs.shape[0] - 1:
            out[:, runs[r, 0] + runs[r, 1] :] = np.nan
        for start in range(begin, end, _CELLS):
            n = min(_CELLS, end - start)
            for o in range(rows.shape[0]):
                if slides[o]:
                    enter = results[rows[o, width - 1], start : start + n]
                    leave = results[rows[o - 1, 0], start : start + n]
                    exact = True
                    for i in range(n):
                        a, b = enter[i], leave[i]
                        gone = np.float64(b if b == b else 0.0)
                        total[i] += np.float64(a if a == a else 0.0) - gone
                        holes[i] += np.int32(a != a) - np.int32(b != b)
                        exact &= abs(gone) <= _OUTWEIGHS * abs(total[i])
                    if not exact:
                        for i in range(n):
                            b = leave[i]
                            gone = np.float64(b if b == b else 0.0)
                            if not abs(gone) <= _OUTWEIGHS * abs(total[i]):
                                total[i] = 0.0
                                for k in range(width):
                                    a = results[rows[o, k], start + i]
                                    total[i] += np.float64(a if a == a else 0.0)
                else:
                    total[:n] = 0.0
                    holes[:n] = 0
                    for k in range(width):
                        enter = results[rows[o, k], start : start + n]
                        for i in range(n):
                            a = enter[i]
                            total[i] += np.float64(a if a == a else 0.0)
                            holes[i] += np.int32(a != a)
                about = reference[start : start + n]
                to = out[o, start + shift : start + shift + n]
                for i in range(n):
                    mean = total[i] / width + np.float64(about[i])
                    to[i] = np.float32(mean if holes[i] == 0 else np.nan)


def reference_values(keys: Any, buffer: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """A value near each cell's results, finite float32: its first valid key's in `rows`, else 0.

    `buffer` (row, cell) keys. Results depend in their last bit on the reference, so `rows` must be
    of the same days however the work is cut.
    """
    found = np.zeros(buffer.shape[1], buffer.dtype)
    for row in rows[:_TRIED]:  # what is then still missing is land or ice and does not matter
        if found.all():
            break
        np.copyto(found, buffer[row], where=found == 0)
    largest = np.finfo(np.float32).max
    near = np.nan_to_num(keys.values(found), posinf=0.0, neginf=0.0)
    return np.clip(near, -largest, largest).astype(np.float32)
