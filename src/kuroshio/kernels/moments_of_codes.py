"""Moments of windows of 16-bit keys from sums of integers, exactly.

The sums of d to d^4, d being a key less the middle one, are kept modulo 2^64: they overflow, and
need not be right until they are moved to the mean of a window, where they are small again. So they
may be added and taken away without ever losing anything, and pools that hardly vary (sea ice) keep
their higher moments, which sums of floats about a common value do not.

A window is near its mean if the sum of squares about it is below 2^31.5, for that of fourth powers
is no more than its square: with 330 values a standard deviation of 3,000 keys, 30 degrees in steps
of 0.01. Where it is not, powers are summed as floats about the mean.
"""

from __future__ import annotations

import numpy as np
from numba import njit

MIDDLE = 1 << 15
NEAR = np.sqrt(2.0**63)  # of a sum of squares


@njit(nogil=True, cache=True, error_model="numpy")
def word_sums(keys, first, last, word_rows, sums):
    """sums (word, 5, cell) int64: values, and sums of d to d^4, of each word; cells first to last.

    keys (row, all cells) uint16, 0 missing; word_rows (word, year)
    """
    sums[:] = 0
    years = word_rows.shape[1]
    for w in range(word_rows.shape[0]):
        to = sums[w, 0], sums[w, 1], sums[w, 2], sums[w, 3], sums[w, 4]
        for y in range(0, years, 2):  # two at a time: half the loads and stores of sums
            one = keys[word_rows[w, y]][first:last]
            other = keys[word_rows[w, y + 1] if y + 1 < years else 0][first:last]  # row 0: missing
            _add(one, other, *to)


@njit(nogil=True, cache=True, error_model="numpy")
def _add(one, other, n, s1, s2, s3, s4):
    for i in range(one.size):
        d = np.int64(one[i]) - MIDDLE if one[i] != 0 else np.int64(0)
        e = np.int64(other[i]) - MIDDLE if other[i] != 0 else np.int64(0)
        d2, e2 = d * d, e * e
        n[i] += np.int64(one[i] != 0) + np.int64(other[i] != 0)
        s1[i] += d + e
        s2[i] += d2 + e2
        s3[i] += d2 * d + e2 * e
        s4[i] += d2 * d2 + e2 * e2


@njit(nogil=True, cache=True, error_model="numpy")
def central(sums, out, far):
    """out (5, cell) float64: values, mean, and sums of 2nd to 4th powers about it, of one window.

    sums (word, 5, cell) of its words. In keys, the mean less the middle one. far (cell,): whether
    the sums of powers are not right. Returns whether any are.
    """
    any_far = False
    total = sums[0].copy()
    for w in range(1, sums.shape[0]):
        total += sums[w]
    for i in range(total.shape[1]):
        n, s1, s2, s3, s4 = total[0, i], total[1, i], total[2, i], total[3, i], total[4, i]
        values = np.float64(max(n, 1))
        m = np.int64(np.rint(s1 / values))
        m2 = m * m
        c1 = s1 - n * m
        c2 = s2 - 2 * m * s1 + n * m2
        c3 = s3 - 3 * m * s2 + 3 * m2 * s1 - n * m2 * m
        c4 = s4 - 4 * m * s3 + 6 * m2 * s2 - 4 * m2 * m * s1 + n * m2 * m2
        rest = c1 / values  # half a key at most
        out[0, i], out[1, i] = n, m + rest
        out[2, i], out[3, i], out[4, i] = about_mean(values, rest, c2, c3, c4)
        far[i] = c2 >= NEAR
        any_far |= far[i]
    return any_far


@njit(nogil=True, cache=True, error_model="numpy")
def about_mean(values, rest, c2, c3, c4):
    """Sums of 2nd to 4th powers about the mean, from those about the mean less `rest`."""
    square = rest * rest
    return (
        c2 - values * square,
        c3 - 3.0 * rest * c2 + 2.0 * values * square * rest,
        c4 - 4.0 * rest * c3 + 6.0 * square * c2 - 3.0 * values * square * square,
    )


@njit(nogil=True, cache=True, error_model="numpy")
def mend(keys, first, rows, far, out):
    """Sums of powers about the mean in out[1], of the cells from `first` that are far.

    keys (row, all cells); rows (word, year) of the window
    """
    for i in range(far.size):
        if far[i]:
            out[2, i] = out[3, i] = out[4, i] = 0.0
            for row in rows.flat:
                if keys[row, first + i] != 0:
                    d = np.float64(keys[row, first + i]) - MIDDLE - out[1, i]
                    out[2, i] += d * d
                    out[3, i] += d * d * d
                    out[4, i] += d * d * d * d
