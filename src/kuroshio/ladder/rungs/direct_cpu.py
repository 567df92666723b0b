"""The kernels of direct.h for the cells `first` to `last` - 1; the arrays as in sums_cpu.py."""

from __future__ import annotations

from numba import njit

from .sums_cpu import add_values, estimate, find_references

__all__ = ["find_references", "from_sums", "window_sums"]


@njit(nogil=True, cache=True)
def window_sums(first, last, maps, cells, years, days, window, references, sums, counts):
    add_values(first, last, maps, years, days, window, references, sums, counts)


@njit(nogil=True, cache=True)
def from_sums(
    first, last, cells, days, fourth, flat, normal, by_skewness, by_kurtosis, by_skewness_squared,
    sums, counts, references, means, thresholds,
):  # fmt: skip
    formula = fourth, flat, normal, by_skewness, by_kurtosis, by_skewness_squared
    for day in range(days):
        for cell in range(first, last):
            powers = sums[day, :, cell]
            means[day, cell], thresholds[day, cell] = estimate(
                powers, counts[day, cell], powers[1], references[cell], formula
            )
