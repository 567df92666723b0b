"""The exact mean and percentiles of sliding windows, a tile of cells at a time, on the processor.

Two ways, equal to the last bit: sorted lists (list_windows), quick where the percentile is near an
end of the pool and a tile has no gaps of its own, and bit planes (plane_windows) for all else.

Ladder of versions (30 years, 11-day window, int16 codes, thousand cells/s a core for a 92-day
season; the first attempts that led here): NumPy partition of gathered windows about 4; plain Numba
loops 40; explicit vectors, all 15 planes, the second statistic by a second walk of all planes 310.
benchmarks/compute.py measures what is here.

Keys are unsigned, 0 meaning missing, and sort like the values: see keys.py. Results are float32
departures from a `reference` value of the cell, so that what is averaged later was not rounded at
300 K.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numba import njit

from ..device import llvm
from ..device.llvm import native_lanes, source_stamp
from ..keys import AFFINE16, KEY_BITS
from . import (
    bitplanes,
    list_windows,
    percentile_lists,
    percentile_select,
    percentile_vectors,
    plane_windows,
    toplists,
    vector_keys,
)
from .list_windows import HIGHEST, LOWEST, NEITHER, windows_by_lists
from .plane_windows import windows_by_planes

SOURCES = (
    bitplanes, list_windows, llvm, percentile_lists, percentile_select, percentile_vectors,
    plane_windows, toplists, vector_keys,
)  # fmt: skip


def compiled_for(kind: int, words: int, years: int, quantiles: np.ndarray) -> tuple[Any, Any]:
    """The kernel for a kind of key, `words` a window and `years` a word (see `compiled`).

    Returns it and the `sides` to call it with.
    """
    sides, longest = list_windows.sides_of(quantiles, words * years)
    if kind != AFFINE16:
        sides[:], longest = NEITHER, 0
    # Two at least, for a list of zeros serves as the sums of a word, too: 32 bits a cell.
    longest = max(longest, years, 2) if longest else 0
    highest, lowest = (longest if (sides == side).any() else 0 for side in (HIGHEST, LOWEST))
    return compiled(kind, words, years, highest, lowest, source_stamp(SOURCES)), sides


@functools.cache
def compiled(kind: int, words: int, years: int, highest: int, lowest: int, stamp: int) -> Any:
    """The kernel for one kind of key, words a window and years a word.

    highest, lowest  length of the lists of the largest and smallest values, 0 for none

    The integers are compile-time constants. Numba hashes them into its cache on disk; `stamp`
    stands there for the sources of what is inlined, which Numba does not watch.
    """
    lanes = native_lanes()
    bits = KEY_BITS[kind]

    @njit(nogil=True, cache=True, error_model="numpy", boundscheck=False)
    def run(
        keys, first, last, live, word_rows, first_word, step, gaps, quantiles, sides, least, scale,
        offset, reference, results, result_rows, counts,
    ):  # fmt: skip
        """Tiles `first` to `last` of a batch.

        keys (row, cell); live (row numbers,), word_rows (word, year), first_word (doy,), gaps,
        least (doy,), result_rows (doy,): as in archive.plan.Batch; step, the words by which a
        window moves; quantiles (q,) from 0 to 1, sides (q,) of list_windows; reference (cell,);
        results (tile, q + 1, row, cell of the tile): the percentiles and then the mean; counts
        (doy, cell).
        """
        _ = stamp
        n_words = word_rows.shape[0]
        vectors = plane_windows.scratch_vectors(bits, n_words)
        word_valid = np.zeros(n_words, np.int64)
        sizes = np.zeros(first_word.size, np.int64)
        if highest or lowest:
            longest = max(highest, lowest)
            vectors = max(vectors, list_windows.scratch_vectors(words, longest, n_words))
            for w in range(n_words):
                word_valid[w] = np.count_nonzero(word_rows[w])
            for d in range(first_word.size):
                sizes[d] = word_valid[first_word[d] : first_word[d] + words].sum()
        space = np.empty(4 * lanes * vectors + 64, np.uint8)
        scratch = (space.ctypes.data + 63) // 64 * 64
        skip = scratch - space.ctypes.data
        wanted = np.empty(quantiles.size, np.bool_)
        for tile in range(first, last):
            even = True
            wanted[:] = True
            if highest:
                space[skip : skip + 4 * lanes * highest] = 0
                even = windows_by_lists(
                    lanes, years, words, highest, HIGHEST, sides, quantiles, keys, tile, word_rows,
                    word_valid, step, first_word, sizes, least, scratch, scale, offset, reference,
                    results, result_rows, counts,
                )  # fmt: skip
            if lowest and even:
                space[skip : skip + 4 * lanes * lowest] = 0
                even = windows_by_lists(
                    lanes, years, words, lowest, LOWEST, sides, quantiles, keys, tile, word_rows,
                    word_valid, step, first_word, sizes, least, scratch, scale, offset, reference,
                    results, result_rows, counts,
                )  # fmt: skip
            if even and (highest or lowest):
                wanted = sides == NEITHER
            if not wanted.any():
                continue
            for half in range(2):
                windows_by_planes(
                    lanes, kind, bits, years, words, wanted, quantiles, keys, tile, half, live,
                    word_rows, gaps, first_word, least, scratch, scale, offset, reference, results,
                    result_rows, counts,
                )  # fmt: skip
        space[:1] = 0  # named, so that it lives until here: an address does not keep it

    return run
