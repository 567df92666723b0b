"""Moments of any other keys that are kept: count, mean and central sums of pools, in floats.

Pools merge after Pebay (2008), see moments.py; a part is taken out again by the same formulas
solved for the rest. That loses what the pool had before in rounding: a second moment that is no
more than that is none, and the rest's values are taken for equal. Equal values that come to such a
rest, no further from it than rounding, leave a pool of equal ones.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from ..keys import Keys
from .moments import merged, word_moments

_CELLS = 256
_OF_SPREAD, _OF_MEAN = 1e-12, 1e-14  # what rounding leaves of a second moment that has gone


class Kept(NamedTuple):
    """Arrays (doy, cell): number of values, their mean, sums of 2nd to 4th powers about it."""

    number: np.ndarray  # int32
    mean: np.ndarray  # float64, as are all others
    sum2: np.ndarray
    sum3: np.ndarray
    sum4: np.ndarray


def change(
    keys: Keys, buffer: np.ndarray, start: int, word_rows: np.ndarray, first_word: np.ndarray,
    signs: np.ndarray, kept: Kept, cells: slice,
) -> None:  # fmt: skip
    """Take the windows of some days away and then add others; as kept_codes.change."""
    size = cells.stop - cells.start
    used, compact = np.unique(word_rows, return_inverse=True)
    compact = compact.reshape(word_rows.shape)
    for first in range(0, size, _CELLS):
        last = min(first + _CELLS, size)
        values = keys.values(buffer[used, start + first : start + last])
        parts = np.empty((5, word_rows.shape[0], last - first))
        word_moments(values, compact, parts)
        _change(parts, first_word, signs, cells.start + first, *kept)


@njit(nogil=True, cache=True, error_model="numpy")
def _change(parts, first_word, signs, at, number, mean, sum2, sum3, sum4):
    for day in range(first_word.size):
        for i in range(parts.shape[2]):
            c = at + i
            pool = (
                np.float64(number[day, c]), mean[day, c], sum2[day, c], sum3[day, c], sum4[day, c]
            )  # fmt: skip
            gone = _of_words(parts, first_word[day], signs, -1, i)
            come = _of_words(parts, first_word[day], signs, 1, i)
            near = _OF_MEAN * abs(come[1])
            if gone[0] > 0:
                near += _rounding(pool[0], pool[1], gone[0], gone[1])
                pool = _without(*pool, *gone)
            if come[0] > 0:
                if pool[2] == 0 and come[2] == 0 and abs(pool[1] - come[1]) <= near:
                    pool = (pool[0], come[1], 0.0, 0.0, 0.0)  # what comes has no rounding
                pool = merged(*pool, *come)
            number[day, c] = np.int32(pool[0])
            mean[day, c] = pool[1] if pool[0] > 0 else np.nan
            sum2[day, c], sum3[day, c], sum4[day, c] = pool[2], pool[3], pool[4]


@njit(nogil=True, cache=True, error_model="numpy")
def _of_words(parts, first, signs, sign, i):
    """The pool of those words of a window that have a sign."""
    pool = (0.0, 0.0, 0.0, 0.0, 0.0)
    for w in range(signs.size):
        if signs[w] == sign and parts[0, first + w, i] > 0:
            at = first + w
            pool = merged(
                *pool,
                parts[0, at, i], parts[1, at, i], parts[2, at, i], parts[3, at, i], parts[4, at, i],
            )  # fmt: skip
    return pool


@njit(nogil=True, cache=True, error_model="numpy")
def _rounding(n, mean, k, mean_k):
    """What the mean of n values without k of them may be off."""
    return _OF_MEAN * (abs(mean) + abs(mean_k)) * n / max(n - k, 1.0)


@njit(nogil=True, cache=True, error_model="numpy")
def _without(n, mean, m2, m3, m4, k, mean_k, p2, p3, p4):
    """What is left of a pool of n values without k of them."""
    rest = n - k
    if rest <= 0:
        return (rest, 0.0, 0.0, 0.0, 0.0)
    mean_rest = mean + (mean - mean_k) * (k / rest)
    delta = mean_k - mean_rest
    share = delta / n
    r2 = m2 - p2 - delta * share * rest * k
    if r2 <= _OF_SPREAD * m2 + _OF_MEAN * abs(mean) * abs(delta) * n:
        none = abs(mean_rest) <= _rounding(n, mean, k, mean_k)
        return (rest, 0.0 if none else mean_rest, 0.0, 0.0, 0.0)
    r3 = m3 - p3 - delta * share**2 * rest * k * (rest - k) - 3.0 * share * (rest * p2 - k * r2)
    r4 = (
        m4 - p4
        - delta * share**3 * rest * k * (rest * rest - rest * k + k * k)
        - 6.0 * share**2 * (rest * rest * p2 + k * k * r2)
        - 4.0 * share * (rest * p3 - k * r3)
    )  # fmt: skip
    return (rest, mean_rest, r2, r3, r4)


@njit(nogil=True, cache=True, error_model="numpy")
def central(at, number, mean, sum2, sum3, sum4, found):
    """found (doy, 5, cell) float64, as kernels.moments.statistics takes it; cells from `at` on."""
    last = at + found.shape[2]
    found[:, 0], found[:, 1] = number[:, at:last], mean[:, at:last]
    found[:, 2], found[:, 3] = sum2[:, at:last], sum3[:, at:last]
    found[:, 4] = sum4[:, at:last]
