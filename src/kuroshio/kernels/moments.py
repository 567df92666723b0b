"""Standard deviation, skewness and excess kurtosis of the windows, from sums of powers.

Power sums of disjoint sets add: those of each word (one offset, up to 32 years) are made once a
batch and added over each window. They are taken about the cell's own mean over the batch in float64, so
that the fourth moment of a calm tropical cell survives (about zero it would need 14 digits).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ..keys import Keys

STATISTICS = ("std", "skewness", "kurtosis")


_CELLS = 256  # a stretch whose decoded values and sums stay in the second cache


def of_windows(
    keys: Keys,
    buffer: np.ndarray,
    word_rows: np.ndarray,
    first_word: np.ndarray,
    words: int,
    least: np.ndarray,
) -> np.ndarray:
    """(3, doy, cell) float32 standard deviation, skewness and excess kurtosis of each window.

    buffer (row, cell) keys; the tables as in archive.plan.Batch.
    """
    cells = buffer.shape[1]
    out = np.empty((len(STATISTICS), first_word.size, cells), np.float32)
    used, compact = np.unique(word_rows, return_inverse=True)
    compact = compact.reshape(word_rows.shape)
    sums = np.empty((word_rows.shape[0], 5, _CELLS))
    for start in range(0, cells, _CELLS):
        part = slice(start, start + _CELLS)
        values = keys.values(buffer[used, part])
        about = np.nansum(values, axis=0) / np.maximum((values == values).sum(axis=0), 1)
        _window_moments(
            values, about, compact, first_word, words, least, sums[:, :, : about.size],
            out[:, :, part],
        )  # fmt: skip
    return out


@njit(nogil=True, cache=True, error_model="numpy")
def _window_moments(  # type: ignore[no-untyped-def]
    values, about, word_rows, first_word, words, least, sums, out
):
    """Moments of each window for one stretch of cells.

    values (row, cell) float64 with NaN missing; about (cell,);
    word_rows (word, year); first_word, least (doy,); sums (word, 5, cell) float64 scratch;
    out (3, doy, cell) float32: standard deviation (divisor n), skewness, excess kurtosis. Fewer
    than `least` valid values, or for the last two a constant pool, give NaN.
    """
    n_cells = about.size
    for w in range(word_rows.shape[0]):
        sums[w] = 0.0
        for y in range(word_rows.shape[1]):
            row = values[word_rows[w, y]]
            for i in range(n_cells):
                valid = row[i] == row[i]
                x = row[i] - about[i] if valid else 0.0
                sums[w, 0, i] += 1.0 if valid else 0.0
                sums[w, 1, i] += x
                sums[w, 2, i] += x * x
                sums[w, 3, i] += x * x * x
                sums[w, 4, i] += x * x * x * x
    for d in range(first_word.size):
        for i in range(n_cells):
            n = s1 = s2 = s3 = s4 = 0.0
            for w in range(first_word[d], first_word[d] + words):
                n += sums[w, 0, i]
                s1 += sums[w, 1, i]
                s2 += sums[w, 2, i]
                s3 += sums[w, 3, i]
                s4 += sums[w, 4, i]
            if n < least[d]:
                out[0, d, i] = out[1, d, i] = out[2, d, i] = np.nan
                continue
            mean = s1 / n
            m2 = s2 / n - mean * mean
            m3 = s3 / n - 3.0 * mean * s2 / n + 2.0 * mean**3
            m4 = s4 / n - 4.0 * mean * s3 / n + 6.0 * mean**2 * s2 / n - 3.0 * mean**4
            # A constant pool leaves rounding, not a variance.
            constant = m2 <= 1e-12 * (s2 / n)
            out[0, d, i] = 0.0 if constant else np.sqrt(m2)
            out[1, d, i] = np.nan if constant else m3 / m2**1.5
            out[2, d, i] = np.nan if constant else m4 / (m2 * m2) - 3.0
