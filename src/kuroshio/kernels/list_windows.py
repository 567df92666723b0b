"""The windows of a tile from sorted lists: which percentiles they serve, and the walk over words.

Words are joined to lists in blocks as long as a window. A window is the end of a block (its
*suffix*, joined backwards once a block) and the start of the next (its *prefix*, which grows word
by word). The lists of both blocks share their memory: when a window has been served, the suffix
that began it makes room for the word that enters.

It serves tiles whose every cell has either no value at all or one in each row that exists: the rank
is then the same for all cells. Others are left to the bit planes.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numba.extending import register_jitable

from .percentile_lists import UNEVEN, join_lists, kth_of_two, mean_of_sum, slide_sum, sort_word

LONGEST = 64  # values of a list; longer ones are slower than bit planes
HIGHEST, LOWEST, NEITHER = 0, 1, 2  # the end of the pool that a percentile is counted from


def sides_of(quantiles: np.ndarray, most: int) -> tuple[np.ndarray, int]:
    """For each quantile (0 to 1) HIGHEST, LOWEST or NEITHER, and the length that lists need, or 0.

    most  values of a full window; one with gaps needs no longer lists
    """
    sides, longest = [], 0
    for quantile in quantiles:
        rank = int((most - 1) * quantile)
        length, side = min((most - rank, HIGHEST), (rank + 2, LOWEST))
        if length > LONGEST:
            length, side = 0, NEITHER
        sides.append(side)
        longest = max(longest, length)
    return np.array(sides, np.int8), longest


@register_jitable
def scratch_vectors(words: int, longest: int, n_words: int) -> int:
    """Vectors of memory that `windows_of_tile` needs."""
    return (words + 2) * longest + 2 * (n_words + 1)


@njit(inline="always")
def windows_by_lists(
    lanes, years, words, longest, side, sides, quantiles, keys, tile, word_rows, word_valid, step,
    first_word, sizes, least, scratch, scale, offset, reference, results, result_rows, counts,
):  # fmt: skip
    """Means, counts and the percentiles of one `side` for all days of a batch; False if uneven.

    word_valid (word,), sizes (doy,)  rows that exist of each word, and of each day's window
    step     words that enter with a day
    scratch  address of `scratch_vectors`, the first `longest` of them zeros
    The rest as in percentile.compiled.
    """
    vector = 4 * lanes
    slot = vector * longest
    nothing, joint, slots = scratch, scratch + slot, scratch + 2 * slot
    total = slots + words * slot
    totals = total + 2 * vector
    cell = 2 * lanes * tile
    here, stride = keys.ctypes.data + 2 * cell, keys.strides[0]
    about = reference.ctypes.data + 4 * cell
    out = results.ctypes.data + tile * results.strides[0]
    expected = np.int64(UNEVEN)
    prefix, joined = nothing, 0  # the words of the block that have entered
    for d in range(first_word.size):
        first = first_word[d]
        goes_on = d > 0 and first == first_word[d - 1] + step
        if not goes_on:
            joined = 0
        for w in range(first + words - step if goes_on else first, first + words):
            to = slots + joined * slot
            summed = totals + w * 2 * vector
            rows = word_rows.ctypes.data + w * word_rows.strides[0]
            empty = sort_word(
                lanes, years, longest, side, here, stride, rows, word_valid[w], to, summed
            )
            if word_valid[w] > 0:
                if expected == UNEVEN:
                    expected = empty
                if empty == UNEVEN or empty != expected:
                    return False
            if goes_on:
                slide_sum(lanes, total, summed, summed - words * 2 * vector)
                if joined:
                    join_lists(lanes, years, longest, prefix, to, joint)
                    prefix = joint
                else:
                    prefix = to
            joined += 1
        if joined == words:
            for place in range(words - 2, -1, -1):
                to = slots + place * slot
                join_lists(lanes, years, longest, to + slot, to, to)
            prefix, joined = nothing, 0
        if not goes_on:
            slide_sum(lanes, total, nothing, total)
            for w in range(first, first + words):
                slide_sum(lanes, total, totals + w * 2 * vector, nothing)
        n = max(sizes[d], 1)
        nobody = np.int64(-1)
        empty = expected if sizes[d] else nobody
        missing = expected if sizes[d] >= max(least[d], 1) else nobody
        to = out + result_rows[d] * results.strides[2]
        mean_of_sum(
            lanes, side, total, n, empty, missing, scale, offset, about,
            to + quantiles.size * results.strides[1],
            counts.ctypes.data + d * counts.strides[0] + 4 * cell,
        )  # fmt: skip
        for q in range(quantiles.size):
            if sides[q] == side:
                position = (n - 1) * quantiles[q]
                rank = np.int64(position)
                kth_of_two(
                    lanes, side, slots + joined * slot, prefix, rank + 2 if side else n - rank,
                    position - rank, missing, scale, offset, about, to + q * results.strides[1],
                )  # fmt: skip
    return True
