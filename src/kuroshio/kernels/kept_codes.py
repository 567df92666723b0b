"""Moments of 16-bit keys that are kept: pools in a form in which days come and go exactly.

Of a pool the number n of values, the mean m rounded to a code (a key less the middle one), and the
sums of d to d^4 of departures d from m are kept, all of them integers: m follows from the values
alone, so whatever came and went in whichever order, the same values leave the same bits. They are
small, and compress well, where sums about a common value are not. The sum of fourth powers is kept
modulo 2^64; what is beyond, of pools that vary by a large part of all 16 bits, is `high` times
2^64.

A change moves the sums to the middle key, where those of the days that come and go are, and back,
modulo 2^64 (see moments_of_codes). `high` follows from a rough sum in floats: it need only be
right to half of 2^64.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from ..keys import Keys
from .moments_of_codes import MIDDLE, NEAR, about_mean, word_sums

NOTHING = -MIDDLE  # for the mean of an empty pool
_BEYOND = 2.0**64
_CELLS = 256


class Kept(NamedTuple):
    """Arrays (doy, cell); see above."""

    number: np.ndarray  # int32, of values
    mean: np.ndarray  # int16
    sum1: np.ndarray  # int32
    sum2: np.ndarray  # int64
    sum3: np.ndarray  # int64
    sum4: np.ndarray  # int64
    high: np.ndarray  # int32


def change(
    keys: Keys, buffer: np.ndarray, start: int, word_rows: np.ndarray, first_word: np.ndarray,
    signs: np.ndarray, kept: Kept, cells: slice,
) -> None:  # fmt: skip
    """Add the windows of some days, or take them away.

    buffer (row, cell) keys, of which those from `start` on are `cells` of `kept`; the tables as in
    archive.plan.Batch; signs (word,) of a window's words: 1 to add, -1 to take away.
    """
    size = cells.stop - cells.start
    sums = np.empty((word_rows.shape[0], 5, min(_CELLS, size)), np.int64)
    for first in range(0, size, _CELLS):
        last = min(first + _CELLS, size)
        part = sums[:, :, : last - first]
        word_sums(buffer, start + first, start + last, word_rows, part)
        _change(
            buffer, start + first, part, word_rows, first_word, signs, cells.start + first, *kept
        )


@njit(nogil=True, cache=True, error_model="numpy")
def _change(
    buffer, start, sums, word_rows, first_word, signs, at,
    number, mean, sum1, sum2, sum3, sum4, high,
):  # fmt: skip
    cells = sums.shape[2]
    new = np.empty((6, cells), np.int64)
    far = np.empty(cells, np.bool_)
    for day in range(first_word.size):
        first = first_word[day]
        total = sums[first] * signs[0]
        for w in range(1, signs.size):
            total += sums[first + w] * signs[w]
        any_far = False
        for i in range(cells):
            c = at + i
            n, m = np.int64(number[day, c]), np.int64(mean[day, c])
            c1, c2, c3, c4 = np.int64(sum1[day, c]), sum2[day, c], sum3[day, c], sum4[day, c]
            m2 = m * m
            s1 = total[1, i] + c1 + n * m
            s2 = total[2, i] + c2 + 2 * m * c1 + n * m2
            s3 = total[3, i] + c3 + 3 * m * c2 + 3 * m2 * c1 + n * m2 * m
            s4 = total[4, i] + c4 + 4 * m * c3 + 6 * m2 * c2 + 4 * m2 * m * c1 + n * m2 * m2
            n += total[0, i]
            m = np.int64(np.rint(s1 / np.float64(max(n, 1))))
            m2 = m * m
            new[0, i] = n
            new[1, i] = m if n > 0 else NOTHING
            new[2, i] = s1 - n * m
            new[3, i] = s2 - 2 * m * s1 + n * m2
            new[4, i] = s3 - 3 * m * s2 + 3 * m2 * s1 - n * m2 * m
            new[5, i] = s4 - 4 * m * s3 + 6 * m2 * s2 - 4 * m2 * m * s1 + n * m2 * m2
            far[i] = new[3, i] >= NEAR
            any_far |= far[i]
        for i in range(cells):
            c = at + i
            beyond = 0
            if any_far and far[i]:
                about = np.float64(new[1, i])
                rough = _moved(
                    number[day, c], mean[day, c] - about, sum1[day, c], sum2[day, c], sum3[day, c],
                    sum4[day, c] + _BEYOND * high[day, c],
                )  # fmt: skip
                for w in range(signs.size):
                    for row in word_rows[first + w]:
                        key = buffer[row, start + i]
                        if key != 0:
                            rough += signs[w] * (np.float64(key) - MIDDLE - about) ** 4
                beyond = np.int64(np.rint((rough - new[5, i]) / _BEYOND))
            number[day, c], mean[day, c], sum1[day, c] = new[0, i], new[1, i], new[2, i]
            sum2[day, c], sum3[day, c], sum4[day, c] = new[3, i], new[4, i], new[5, i]
            high[day, c] = beyond


@njit(nogil=True, cache=True, error_model="numpy")
def _moved(n, by, c1, c2, c3, c4):
    """A sum of fourth powers about what is `by` less than before, in floats."""
    square = by * by
    return c4 + 4.0 * by * c3 + 6.0 * square * c2 + 4.0 * square * by * c1 + n * square * square


@njit(nogil=True, cache=True, error_model="numpy")
def central(at, number, mean, sum1, sum2, sum3, sum4, high, found):
    """found (doy, 5, cell) float64, as kernels.moments.statistics takes it, in keys.

    Cells from `at` on.
    """
    for day in range(found.shape[0]):
        for i in range(found.shape[2]):
            c = at + i
            n = np.float64(max(number[day, c], 1))
            rest = sum1[day, c] / n
            found[day, 0, i] = number[day, c]
            found[day, 1, i] = mean[day, c] + rest
            fourth = sum4[day, c] + _BEYOND * high[day, c]
            found[day, 2, i], found[day, 3, i], found[day, 4, i] = about_mean(
                n, rest, sum2[day, c], sum3[day, c], fourth
            )


@njit(nogil=True, cache=True, error_model="numpy")
def row_totals(buffer, rows, counts, totals):
    """counts and totals (int64, one a row) of the valid codes of some rows of keys."""
    for r in range(rows.size):
        row = buffer[rows[r]]
        n, total = np.int64(0), np.int64(0)
        for i in range(row.size):
            n += np.int64(row[i] != 0)
            total += np.int64(row[i])
        counts[r], totals[r] = n, total - n * MIDDLE
