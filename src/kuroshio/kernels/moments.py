"""Standard deviation, skewness and excess kurtosis of the windows, from moments that merge.

Each word (one offset, up to 32 years) gets its count, mean and central moments once a batch; a
window merges those of its words. Sums of powers about a common value would be simpler, but a pool
of nearly constant values (sea ice) far from that value would lose its fourth moment to rounding.
Merging after Pebay (2008), Formulas for robust, one-pass parallel computation of covariances and
arbitrary-order statistical moments, SAND2008-6212.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ..keys import Keys

STATISTICS = ("std", "skewness", "kurtosis")
_CELLS = 256  # a stretch whose decoded values and moments stay in the second cache


def of_windows(
    keys: Keys,
    buffer: np.ndarray,
    word_rows: np.ndarray,
    first_word: np.ndarray,
    words: int,
    least: np.ndarray,
) -> np.ndarray:
    """(3, doy, cell) float32 standard deviation, skewness and excess kurtosis of each window.

    buffer (row, cell) keys; the tables as in archive.plan.Batch. Divisor n. Fewer than `least`
    valid values give NaN, and so do skewness and kurtosis of a constant pool.
    """
    cells = buffer.shape[1]
    out = np.empty((len(STATISTICS), first_word.size, cells), np.float32)
    used, compact = np.unique(word_rows, return_inverse=True)
    compact = compact.reshape(word_rows.shape)
    parts = np.empty((5, word_rows.shape[0], _CELLS))
    for start in range(0, cells, _CELLS):
        stretch = slice(start, start + _CELLS)
        values = keys.values(buffer[used, stretch])
        part = parts[:, :, : values.shape[1]]
        _word_moments(values, compact, part)
        _window_moments(part, first_word, words, least, out[:, :, stretch])
    return out


@njit(nogil=True, cache=True, error_model="numpy")
def _word_moments(values, word_rows, parts):
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
def _window_moments(parts, first_word, words, least, out):
    for d in range(first_word.size):
        for i in range(parts.shape[2]):
            n, mean, m2, m3, m4 = 0.0, 0.0, 0.0, 0.0, 0.0
            for w in range(first_word[d], first_word[d] + words):
                k = parts[0, w, i]
                if k == 0:
                    continue
                p2, p3, p4 = parts[2, w, i], parts[3, w, i], parts[4, w, i]
                both = n + k
                delta = parts[1, w, i] - mean if n else 0.0
                share = delta / both
                m4 += (
                    p4
                    + delta * share**3 * n * k * (n * n - n * k + k * k)
                    + 6.0 * share**2 * (n * n * p2 + k * k * m2)
                    + 4.0 * share * (n * p3 - k * m3)
                )
                m3 += p3 + delta * share**2 * n * k * (n - k) + 3.0 * share * (n * p2 - k * m2)
                m2 += p2 + delta * share * n * k
                mean = mean + share * k if n else parts[1, w, i]
                n = both
            if n < least[d]:
                out[0, d, i] = out[1, d, i] = out[2, d, i] = np.nan
                continue
            out[0, d, i] = np.sqrt(m2 / n)
            out[1, d, i] = np.sqrt(n) * m3 / m2**1.5 if m2 > 0 else np.nan
            out[2, d, i] = n * m4 / (m2 * m2) - 3.0 if m2 > 0 else np.nan
