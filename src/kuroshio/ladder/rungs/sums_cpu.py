"""What sums.h has, for the cells `first` to `last` - 1, cells innermost: loops that vectorise.

maps (slot, year, cell), sums (row, power, cell) of the type to compute in, counts (row, cell),
references (cell)
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def find_references(first, last, maps, cells, count, is_first, references):
    """The first valid value of each cell, NaN until there is one."""
    if is_first:
        references[first:last] = np.nan
    missing = 0
    for cell in range(first, last):
        missing += np.isnan(references[cell])
    for slot in range(maps.shape[0]):
        for year in range(maps.shape[1]):
            if missing == 0:
                return
            for cell in range(first, last):
                if np.isnan(references[cell]) and not np.isnan(maps[slot, year, cell]):
                    references[cell] = maps[slot, year, cell]
                    missing -= 1


@njit(nogil=True, cache=True)
def add_values(first, last, maps, years, rows, window, references, sums, counts):
    """The values of a batch to each row: row r has `window` slots from slot r on."""
    about = references[first:last]
    for row in range(rows):
        count = counts[row, first:last]
        x1, x2 = sums[row, 0, first:last], sums[row, 1, first:last]
        x3, x4 = sums[row, 2, first:last], sums[row, 3, first:last]
        for slot in range(row, row + window):
            for year in range(years):
                values = maps[slot, year, first:last]
                for i in range(last - first):
                    valid = values[i] == values[i]
                    x = sums.dtype.type(values[i] - about[i] if valid else 0.0)
                    square = x * x
                    count[i] += valid
                    x1[i] += x
                    x2[i] += square
                    x3[i] += square * x
                    x4[i] += square * square


@njit(nogil=True, cache=True, error_model="numpy")
def estimate(powers, count, most, about, formula):
    """Mean and percentile of a pool, from sums of four `powers`; `formula`: a kernel's factors."""
    if count == 0:
        return np.nan, np.nan
    fourth, flat, normal, by_skewness, by_kurtosis, by_skewness_squared = formula
    real = powers.dtype.type
    n = real(count)
    mu, e3 = powers[0] / n, powers[2] / n
    square = mu * mu
    variance = powers[1] / n - square
    if not variance > real(flat) * (most / n):
        return about + mu, about + mu
    third = e3 - real(3) * mu * variance - square * mu
    around = powers[3] / n - real(4) * mu * e3 + real(6) * square * variance
    around += real(fourth) * (square * square)
    sigma = np.sqrt(variance)
    skewness = third / (variance * sigma)
    kurtosis = around / (variance * variance) - real(3)
    in_sigmas = real(normal) + real(by_skewness) * skewness + real(by_kurtosis) * kurtosis
    in_sigmas += real(by_skewness_squared) * (skewness * skewness)
    return about + mu, about + (mu + sigma * in_sigmas)
