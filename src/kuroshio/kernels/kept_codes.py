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
    sums = np.empty((word_rows.shape[0], 5, _CELLS), np.int64)
    for first in range(0, size, _CELLS):
        last = min(first + _CELLS, size)
        word_sums(buffer, start + first, start + last, word_rows, sums)
        _change(
            buffer, start + first, sums, word_rows, first_word, signs,
            cells.start + first, cells.start + last, *kept,
        )  # fmt: skip


@njit(nogil=True, cache=True, error_model="numpy")
def _change(
    buffer, start, sums, word_rows, first_word, signs, at, stop,
    number, mean, sum1, sum2, sum3, sum4, high,
):  # fmt: skip
    total = np.empty((5, _CELLS), np.int64)
    work = np.zeros(12 * _CELLS, np.int64)
    old, new = work[: 6 * _CELLS].reshape(6, _CELLS), work[6 * _CELLS :].reshape(6, _CELLS)
    cells = stop - at
    for day in range(first_word.size):
        _slide(sums, first_word, day, signs, total)
        old[0, :cells], old[1, :cells] = number[day, at:stop], mean[day, at:stop]
        old[2, :cells], old[3, :cells] = sum1[day, at:stop], sum2[day, at:stop]
        old[4, :cells], old[5, :cells] = sum3[day, at:stop], sum4[day, at:stop]
        _add(work, total.reshape(-1))
        any_far = False
        for i in range(cells):
            any_far |= new[3, i] >= NEAR
        if any_far:
            first = first_word[day]
            rows = word_rows[first : first + signs.size]
            for i in range(cells):
                beyond = 0
                if new[3, i] >= NEAR:
                    fourth = old[5, i] + _BEYOND * high[day, at + i]
                    beyond = _beyond(
                        buffer[:, start + i], rows, signs, old[:, i], fourth, new[:, i]
                    )
                high[day, at + i] = beyond
        else:
            high[day, at:stop] = 0
        number[day, at:stop], sum1[day, at:stop] = new[0, :cells], new[2, :cells]
        for i in range(cells):
            mean[day, at + i] = new[1, i] if new[0, i] > 0 else NOTHING
        sum2[day, at:stop], sum3[day, at:stop] = new[3, :cells], new[4, :cells]
        sum4[day, at:stop] = new[5, :cells]


@njit(nogil=True, cache=True, error_model="numpy")
def _slide(sums, first_word, day, signs, total):
    """The sums of a day's window, from those of the day before where it goes on from there."""
    first, words = first_word[day], signs.size
    shift = first - first_word[day - 1] if day else words
    if shift == words:
        total[:] = 0
    for w in range(shift):  # signs are those of an offset, again and again
        enters = first + words - shift + w
        for j in range(5):
            to, come = total[j], sums[enters, j]
            for i in range(_CELLS):
                to[i] += signs[w] * come[i]
            if shift < words:
                gone = sums[first - shift + w, j]
                for i in range(_CELLS):
                    to[i] -= signs[w] * gone[i]


@njit(nogil=True, cache=True, error_model="numpy")
def _add(work, total):
    """Sums about rounded means (6, cell) to those with `total` (5, cell), behind the former.

    One flat array with steps known beforehand, so that the loop runs in vectors.
    """
    for i in range(_CELLS):
        n, m = work[i], work[_CELLS + i]
        c1, c2, c3 = work[2 * _CELLS + i], work[3 * _CELLS + i], work[4 * _CELLS + i]
        c4 = work[5 * _CELLS + i]
        m2 = m * m
        s1 = total[_CELLS + i] + c1 + n * m
        s2 = total[2 * _CELLS + i] + c2 + 2 * m * c1 + n * m2
        s3 = total[3 * _CELLS + i] + c3 + 3 * (m * c2 + m2 * c1) + n * m2 * m
        s4 = total[4 * _CELLS + i] + c4 + 4 * m * (c3 + m2 * c1) + 6 * m2 * c2 + n * m2 * m2
        n += total[i]
        m = np.int64(np.rint(s1 / np.float64(max(n, 1))))
        m2 = m * m
        work[6 * _CELLS + i] = n
        work[7 * _CELLS + i] = m
        work[8 * _CELLS + i] = s1 - n * m
        work[9 * _CELLS + i] = s2 - 2 * m * s1 + n * m2
        work[10 * _CELLS + i] = s3 - 3 * (m * s2 - m2 * s1) - n * m2 * m
        work[11 * _CELLS + i] = s4 - 4 * m * (s3 + m2 * s1) + 6 * m2 * s2 + n * m2 * m2


@njit(nogil=True, cache=True, error_model="numpy")
def _beyond(keys, rows, signs, old, fourth, new):
    """How often 2^64 a new sum of fourth powers lacks; `fourth` is the old one in full.

    keys (row,) of the cell; rows (word, year) that come or go
    """
    about = np.float64(new[1])
    rough = _moved(old[0], old[1] - about, old[2], old[3], old[4], fourth)
    for w in range(signs.size):
        for row in rows[w]:
            if keys[row] != 0:
                rough += signs[w] * (np.float64(keys[row]) - MIDDLE - about) ** 4
    return np.int64(np.rint((rough - new[5]) / _BEYOND))


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
