"""The windows of a tile from bit planes: any percentile, any number of missing values.

1. `extremes`  smallest and largest key of each cell: keys are taken from the smallest, so that only
   the planes which differ are walked (about 10 of 16 for sea surface temperature);
2. `transpose` the 32 or fewer keys of each *word* (one a year) to planes, with a mask of the valid
   ones and their sum;
3. `mean` and `percentile` for each day of year from its window's words.

A tile without a single value (land) costs its extremes.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numba.extending import register_jitable

from .percentile_select import mean, percentile
from .percentile_vectors import MISSING_SEEN, extremes, transpose


@register_jitable
def scratch_vectors(bits: int, n_words: int) -> int:
    """Vectors of memory that `windows_of_tile` needs."""
    return n_words * (bits + 3) + 2


@njit(inline="always")
def windows_by_planes(
    lanes, kind, bits, years, words, wanted, quantiles, keys, tile, half, live, word_rows, gaps,
    first_word, least, scratch, scale, offset, reference, results, result_rows, counts,
):  # fmt: skip
    """Means, counts and the `wanted` percentiles of half a tile for all days of a batch.

    wanted  (q,) bool; scratch, the address of `scratch_vectors`; the rest as in percentile.compiled
    """
    vector = 4 * lanes
    n_words = word_rows.shape[0]
    base, valid = scratch, scratch + 2 * vector
    total = valid + n_words * vector
    planes = total + n_words * 2 * vector
    cell = (2 * tile + half) * lanes
    here, stride = keys.ctypes.data + cell * bits // 8, keys.strides[0]
    top = extremes(lanes, kind, here, stride, live.ctypes.data, live.size, base)
    if top < 0:
        for d in range(first_word.size):
            results[tile, : quantiles.size + 1, result_rows[d], half * lanes :][:, :lanes] = np.nan
            counts[d, cell : cell + lanes] = 0
    else:
        missing = gaps or top >= MISSING_SEEN
        top %= MISSING_SEEN
        for w in range(n_words):
            rows = word_rows.ctypes.data + w * word_rows.strides[0]
            to, there = planes + w * bits * vector, valid + w * vector
            summed = total + w * 2 * vector
            if missing:
                transpose(
                    lanes, kind, years, 1, here, stride, rows, base, to, there, summed, scale,
                    offset,
                )  # fmt: skip
            else:
                transpose(
                    lanes, kind, years, 0, here, stride, rows, base, to, there, summed, scale,
                    offset,
                )  # fmt: skip
        about = reference.ctypes.data + cell * 4
        out = results.ctypes.data + tile * results.strides[0] + half * vector
        for d in range(first_word.size):
            w = first_word[d]
            enough = np.int32(max(least[d], 1))
            there = valid + w * vector
            to = out + result_rows[d] * results.strides[2]
            n = counts.ctypes.data + d * counts.strides[0] + cell * 4
            mean(
                lanes, kind, words, there, total + w * 2 * vector, base, enough, scale, offset,
                about, to + quantiles.size * results.strides[1], n,
            )  # fmt: skip
            for q in range(quantiles.size):
                if wanted[q]:
                    percentile(
                        lanes, kind, words, planes + w * bits * vector, there, top, base,
                        quantiles[q], enough, scale, offset, about, n, to + q * results.strides[1],
                    )  # fmt: skip
