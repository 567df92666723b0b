"""The exact mean and percentiles of sliding windows, a tile of cells at a time, on the processor.

Ladder of versions (30 years, 11-day window, int16 codes, thousand cells/s a core for a 92-day
season; the first attempts that led here): NumPy partition of gathered windows about 4; plain Numba
loops 40; explicit vectors, all 15 planes, the second statistic by a second walk of all planes 310.
This one takes keys from each cell's own minimum and walks only planes that differ, and finds the
next order statistic in a walk that begins where it parts from the first; benchmarks/compute.py
measures it.

A *tile* is as many cells as a vector has 32-bit lanes. For a batch of days of year:

1. `extremes`  smallest and largest key of each cell: keys are taken from the smallest, so that only
   the planes which differ are walked (about 10 of 16 for sea surface temperature);
2. `transpose` the 32 or fewer keys of each *word* (one a year) to planes, with a mask of the valid
   ones and their sum;
3. `percentile` and `mean` for each day of year from its window's words.

A tile without a single value (land) costs its extremes. Keys are unsigned, 0 meaning missing, and
sort like the values: see keys.py. Results are float32 departures from a `reference` value of the
cell, so that what is averaged later was not rounded at 300 K.
"""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

from ..device import llvm
from ..device.llvm import native_lanes
from ..keys import KEY_BITS
from . import bitplanes, percentile_select, percentile_vectors, vector_keys
from .percentile_select import mean, percentile
from .percentile_vectors import MISSING_SEEN, extremes, transpose

SOURCES = (bitplanes, llvm, percentile_select, percentile_vectors, vector_keys)


def tile_cells() -> int:
    """Cells of a tile; rows of keys and results are padded to whole tiles."""
    return native_lanes()


def compiled_for(kind: int, words: int, years: int) -> Any:
    """The kernel for a kind of key, `words` a window and `years` a word (see `compiled`)."""
    return compiled(kind, words, years, _source_stamp())


@functools.cache
def _source_stamp() -> int:
    """A number that changes with the text of the operation lists and their emitter."""
    text = b"".join(Path(str(module.__file__)).read_bytes() for module in SOURCES)
    return int.from_bytes(hashlib.blake2b(text, digest_size=7).digest(), "big")


@functools.cache
def compiled(kind: int, words: int, years: int, stamp: int) -> Any:
    """The kernel for one kind of key, words a window and years a word.

    The integers are compile-time constants. Numba hashes them into its cache on disk; `stamp`
    stands there for the sources of the emitters, which Numba does not watch.
    """
    lanes = native_lanes()
    bits = KEY_BITS[kind]

    @njit(nogil=True, cache=True, error_model="numpy", boundscheck=False)
    def run(
        keys, first, last, live, word_rows, first_word, gaps, quantiles, least, scale, offset,
        reference, results, result_rows, counts,
    ):  # fmt: skip
        """Tiles `first` to `last` of a batch.

        keys (row, cell); live (row numbers,), word_rows (word, year), first_word (doy,), least
        (doy,), result_rows (doy,): as in archive.plan.Batch; quantiles (q,) from 0 to 1; reference
        (cell,); results (q + 1, row, cell): the percentiles and then the mean; counts (doy, cell).
        """
        _ = stamp
        n_words = word_rows.shape[0]
        vector = 4 * lanes
        scratch = np.empty(vector * (n_words * (bits + 3) + 4) + 64, np.uint8)
        base = (scratch.ctypes.data + 63) // 64 * 64
        valid = base + 2 * vector
        total = valid + n_words * vector
        planes = total + n_words * 2 * vector
        stride = keys.strides[0]
        key0, live0, rows0 = keys.ctypes.data, live.ctypes.data, word_rows.ctypes.data
        results0, counts0, reference0 = (
            results.ctypes.data,
            counts.ctypes.data,
            reference.ctypes.data,
        )
        for tile in range(first, last):
            cell = tile * lanes
            here = key0 + cell * bits // 8
            about = reference0 + cell * 4
            top = extremes(lanes, kind, here, stride, live0, live.size, base)
            if top < 0:
                for d in range(first_word.size):
                    results[: quantiles.size + 1, result_rows[d], cell : cell + lanes] = np.nan
                    counts[d, cell : cell + lanes] = 0
                continue
            missing = gaps or top >= MISSING_SEEN
            top %= MISSING_SEEN
            for w in range(n_words):
                rows = rows0 + w * word_rows.strides[0]
                to, there, summed = (
                    planes + w * bits * vector,
                    valid + w * vector,
                    total + w * 2 * vector,
                )
                if missing:
                    transpose(
                        lanes, kind, years, 1, here, stride, rows, base, to, there, summed,
                        scale, offset,
                    )  # fmt: skip
                else:
                    transpose(
                        lanes, kind, years, 0, here, stride, rows, base, to, there, summed,
                        scale, offset,
                    )  # fmt: skip
            for d in range(first_word.size):
                w = first_word[d]
                enough = np.int32(max(least[d], 1))
                start, there = planes + w * bits * vector, valid + w * vector
                out = results0 + result_rows[d] * results.strides[1] + cell * 4
                n = counts0 + d * counts.strides[0] + cell * 4
                mean(
                    lanes, kind, words, there, total + w * 2 * vector, base, enough, scale, offset,
                    about, out + quantiles.size * results.strides[0], n,
                )  # fmt: skip
                for q in range(quantiles.size):
                    percentile(
                        lanes, kind, words, start, there, top, base, quantiles[q], enough,
                        scale, offset, about, n, out + q * results.strides[0],
                    )  # fmt: skip

    return run
