"""The kernels of heap.h for the cells `first` to `last` - 1, cells innermost.

maps (slot, year, cell); heaps (day, place, cell), smallest on top; the rest (day, cell)
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True, error_model="numpy")
def push_heaps(first, last, maps, cells, years, days, window, heaps, counts, sums):
    """The values of a batch into the heap of each day."""
    for day in range(days):
        for cell in range(first, last):
            if counts[day, cell] == 0:
                heaps[day, :, cell] = -np.inf
        for slot in range(day, day + window):
            for year in range(years):
                for cell in range(first, last):
                    value = maps[slot, year, cell]
                    if np.isnan(value):
                        continue
                    counts[day, cell] += 1
                    sums[day, cell] += value
                    x = np.float32(value)
                    if x > heaps[day, 0, cell]:
                        _push(heaps[day], cell, x)


@njit(nogil=True, cache=True)
def _push(heap, cell, x):
    """In place of the smallest."""
    at, child = 0, 1
    while child < heap.shape[0]:
        if child + 1 < heap.shape[0] and heap[child + 1, cell] < heap[child, cell]:
            child += 1
        if heap[child, cell] >= x:
            break
        heap[at, cell] = heap[child, cell]
        at, child = child, 2 * child + 1
    heap[at, cell] = x


@njit(nogil=True, cache=True, error_model="numpy")
def from_heaps(first, last, cells, days, quantile, heaps, counts, sums, means, thresholds):
    """Percentiles as in ranks.h."""
    for day in range(days):
        for cell in range(first, last):
            n = counts[day, cell]
            means[day, cell] = sums[day, cell] / n if n else np.nan
            thresholds[day, cell] = np.nan
            position = (n - 1) * quantile
            below = int(position + 1e-9)
            from_top = n - below
            if n == 0 or from_top > heaps.shape[1]:
                continue
            rising = np.sort(heaps[day, :, cell])
            low = rising[rising.size - from_top]
            weight = position - below
            if weight > 0.0:
                high = rising[rising.size - from_top + 1]
                thresholds[day, cell] = low + weight * (np.float64(high) - low)
            else:
                thresholds[day, cell] = low
