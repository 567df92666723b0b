"""Count, mean, standard deviation, skewness and excess kurtosis of the windows, from moments that
merge, and percentiles estimated from them.

Of 16-bit keys these are exact sums of integers (moments_of_codes.py). Of others each word (one
offset, up to 32 years) gets its count, mean and central moments once a batch; a window merges those
of its words. Sums of powers about a common value would be simpler, but a pool of nearly constant
values (sea ice) far from that value would lose its fourth moment to rounding. Merging after Pebay
(2008), Formulas for robust, one-pass parallel computation of covariances and arbitrary-order
statistical moments, SAND2008-6212.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import njit

from ..keys import AFFINE16, Keys
from .moments_of_codes import central, mend, word_sums

STATISTICS = ("seas", "count", "std", "skewness", "kurtosis")
_CELLS = 256  # a stretch whose decoded values and moments stay in the second cache


def places(wanted: Sequence[tuple[str, int | None]], estimates: int) -> list[tuple[int, int]]:
    """Where moments give what is `wanted` (request.statistics): (its place, row of `of_windows`).

    Without estimates, mean and count are left to whoever finds the percentiles.
    """
    given = STATISTICS if estimates else STATISTICS[2:]
    return [
        (at, which or 0 if name == "thresh" else estimates + STATISTICS.index(name))
        for at, (name, which) in enumerate(wanted)
        if name in given or (name == "thresh" and estimates)
    ]


def of_windows(
    keys: Keys,
    buffer: np.ndarray,
    cells: slice,
    word_rows: np.ndarray,
    first_word: np.ndarray,
    words: int,
    least: np.ndarray,
    reference: np.ndarray,
    estimate: np.ndarray,
) -> np.ndarray:
    """(percentile + 5, doy, cell) float32 estimated percentiles and STATISTICS of each window.

    buffer (row, cell) keys, of which `cells` are taken; the tables as in archive.plan.Batch;
    estimate (percentile, 4) as of cornish_fisher.coefficients, may be empty. Percentiles and means
    are departures from `reference` (cell,). Divisor n. Fewer than `least` valid values give NaN
    (but of the count), and so do skewness and kurtosis of a constant pool, whose percentiles are
    its value.
    """
    shape = len(estimate) + len(STATISTICS), first_word.size, cells.stop - cells.start
    out = np.empty(shape, np.float32)
    moments_of = _of_codes if keys.kind == AFFINE16 else _of_values
    scaling = (keys.scale, keys.offset) if keys.kind == AFFINE16 else (1.0, 0.0)
    for start in range(cells.start, cells.stop, _CELLS):
        stop = min(start + _CELLS, cells.stop)
        found = moments_of(keys, buffer, start, stop, word_rows, first_word, words)
        to = out[:, :, start - cells.start : stop - cells.start]
        statistics(found, *scaling, least, reference[start:stop], estimate, to)
    return out


def _of_codes(
    keys: Keys, buffer: np.ndarray, start: int, stop: int, word_rows: np.ndarray,
    first_word: np.ndarray, words: int,
) -> np.ndarray:  # fmt: skip
    """(doy, 5, cell) as `statistics` takes them, in keys."""
    sums = np.empty((word_rows.shape[0], 5, stop - start), np.int64)
    found = np.empty((first_word.size, 5, stop - start))
    far = np.empty(stop - start, np.bool_)
    word_sums(buffer, start, stop, word_rows, sums)
    for day, first in enumerate(first_word):
        if central(sums[first : first + words], found[day], far):
            mend(buffer, start, word_rows[first : first + words], far, found[day])
    return found


def _of_values(
    keys: Keys, buffer: np.ndarray, start: int, stop: int, word_rows: np.ndarray,
    first_word: np.ndarray, words: int,
) -> np.ndarray:  # fmt: skip
    """(doy, 5, cell) as `statistics` takes them."""
    used, compact = np.unique(word_rows, return_inverse=True)
    parts = np.empty((5, word_rows.shape[0], stop - start))
    found = np.empty((first_word.size, 5, stop - start))
    word_moments(keys.values(buffer[used, start:stop]), compact.reshape(word_rows.shape), parts)
    _window_moments(parts, first_word, words, found)
    return found


@njit(nogil=True, cache=True, error_model="numpy")
def statistics(found, scale, offset, least, reference, estimate, out):
    """From moments to `out` (percentile + 5, doy, cell), see `of_windows`.

    found (doy, 5, cell): values, mean, and sums of 2nd to 4th powers of departures from it, in
    steps of `scale`; estimate (percentile, 4)
    """
    own = estimate.shape[0]
    for day in range(found.shape[0]):
        for i in range(found.shape[2]):
            n, m2 = found[day, 0, i], found[day, 2, i]
            enough, spread = n >= least[day], m2 > 0.0
            mean = found[day, 1, i] * scale + offset - reference[i]
            std = np.sqrt(m2 / n)
            skewness = np.sqrt(n) * found[day, 3, i] / (m2 * np.sqrt(m2))
            kurtosis = n * found[day, 4, i] / (m2 * m2) - 3.0
            out[own, day, i] = mean if enough else np.nan
            out[own + 1, day, i] = n
            out[own + 2, day, i] = std * scale if enough else np.nan
            out[own + 3, day, i] = skewness if enough and spread else np.nan
            out[own + 4, day, i] = kurtosis if enough and spread else np.nan
            for p in range(own):
                in_stds = (
                    estimate[p, 0]
                    + estimate[p, 1] * skewness
                    + estimate[p, 2] * kurtosis
                    + estimate[p, 3] * (skewness * skewness)
                )
                above = std * scale * in_stds if spread else 0.0
                out[p, day, i] = mean + above if enough else np.nan


@njit(nogil=True, cache=True, error_model="numpy")
def word_moments(values, word_rows, parts):
    """parts (5, word, cell): count, mean and sums of 2nd to 4th powers of departures from it.

    values (row, cell) with NaN missing. Taken about a value of the word itself, so that equal
    values have a second moment of exactly 0.
    """
    for w in range(word_rows.shape[0]):
        for i in range(values.shape[1]):
            n, about, total = 0, 0.0, 0.0
            for y in range(word_rows.shape[1]):
                x = values[word_rows[w, y], i]
                if not np.isnan(x):
                    if n == 0:
                        about = x
                    n += 1
                    total += x - about
            shift = total / max(n, 1)
            m2 = m3 = m4 = 0.0
            for y in range(word_rows.shape[1]):
                x = values[word_rows[w, y], i]
                if not np.isnan(x):
                    d = (x - about) - shift
                    m2 += d * d
                    m3 += d * d * d
                    m4 += d * d * d * d
            parts[0, w, i], parts[1, w, i] = n, about + shift
            parts[2, w, i], parts[3, w, i], parts[4, w, i] = m2, m3, m4


@njit(nogil=True, cache=True, error_model="numpy")
def merged(n, mean, m2, m3, m4, k, mean_k, p2, p3, p4):
    """Count, mean and central sums of n and k > 0 values together, from those of each."""
    both = n + k
    delta = mean_k - mean if n else 0.0
    share = delta / both
    m4 += (
        p4
        + delta * share**3 * n * k * (n * n - n * k + k * k)
        + 6.0 * share**2 * (n * n * p2 + k * k * m2)
        + 4.0 * share * (n * p3 - k * m3)
    )
    m3 += p3 + delta * share**2 * n * k * (n - k) + 3.0 * share * (n * p2 - k * m2)
    m2 += p2 + delta * share * n * k
    mean = mean + share * k if n else mean_k
    return both, mean, m2, m3, m4


@njit(nogil=True, cache=True, error_model="numpy")
def _window_moments(parts, first_word, words, found):
    for d in range(first_word.size):
        for i in range(parts.shape[2]):
            n, mean, m2, m3, m4 = 0.0, 0.0, 0.0, 0.0, 0.0
            for w in range(first_word[d], first_word[d] + words):
                k = parts[0, w, i]
                if k == 0:
                    continue
                n, mean, m2, m3, m4 = merged(
                    n, mean, m2, m3, m4,
                    k, parts[1, w, i], parts[2, w, i], parts[3, w, i], parts[4, w, i],
                )  # fmt: skip
            found[d, 0, i], found[d, 1, i] = n, mean
            found[d, 2, i], found[d, 3, i], found[d, 4, i] = m2, m3, m4
