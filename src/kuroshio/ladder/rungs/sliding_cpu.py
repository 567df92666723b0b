"""The kernels of sliding.h for the cells `first` to `last` - 1; the arrays as in sums_cpu.py."""

from __future__ import annotations

import numpy as np
from numba import njit

from .sums_cpu import add_values, estimate, find_references

__all__ = ["find_references", "slide", "slot_sums"]


@njit(nogil=True, cache=True)
def slot_sums(first, last, maps, cells, years, slots, references, sums, counts):
    add_values(first, last, maps, years, slots, 1, references, sums, counts)


@njit(nogil=True, cache=True)
def slide(
    first, last, cells, days, window, fourth, flat, normal, by_skewness, by_kurtosis,
    by_skewness_squared, sums, counts, references, means, thresholds,
):  # fmt: skip
    formula = fourth, flat, normal, by_skewness, by_kurtosis, by_skewness_squared
    powers = np.empty(4, sums.dtype)
    for cell in range(first, last):
        powers[:] = 0
        count, most = 0, powers[1]
        for slot in range(window + days - 1):
            for power in range(4):
                powers[power] += sums[slot, power, cell]
            count += counts[slot, cell]
            most = max(most, powers[1])
            day = slot - window + 1
            if day > 0:
                for power in range(4):
                    powers[power] -= sums[day - 1, power, cell]
                count -= counts[day - 1, cell]
            if day >= 0:
                means[day, cell], thresholds[day, cell] = estimate(
                    powers, count, most, references[cell], formula
                )
