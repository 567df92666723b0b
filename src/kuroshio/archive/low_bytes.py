"""The deflate blocks of bytes that are noise but for runs of zeros: noise as it is, runs as runs.

So are the two low bytes of float32 means: noise over the sea, zeros over land (the low bytes of
NaN). A general compressor spends most of its time on finding that the noise has no pattern.

Deflate (RFC 1951) allows *stored* blocks, which are copies, and *fixed* blocks, in which a run is
one literal and a few matches at distance 1. Pairs of them, a run and then a copy, end on a byte.
"""

from __future__ import annotations

import numba
import numpy as np

LEAST_RUN = 3  # words of 8 zero bytes; a shorter run is copied
LONGEST_COPY = 65528  # bytes in a stored block, a multiple of 8


def _length_codes() -> tuple[np.ndarray, np.ndarray]:
    """Bits and their number that say "repeat the last byte so many times", for 3 to 258 times."""
    bits, widths = np.zeros(259, np.uint64), np.zeros(259, np.int64)
    symbol, length = 257, 3
    for extra, symbols in ((0, 8), (1, 4), (2, 4), (3, 4), (4, 4), (5, 4)):
        for _ in range(symbols):
            for rest in range(1 << extra):
                if length < 258:
                    code, width = (symbol - 256, 7) if symbol < 280 else (symbol - 280 + 0xC0, 8)
                    bits[length] = _reversed(code, width) | rest << width
                    widths[length] = width + extra + 5  # and five zeros: distance 1
                length += 1
            symbol += 1
    bits[258], widths[258] = _reversed(285 - 280 + 0xC0, 8), 8 + 5
    return bits, widths


def _reversed(code: int, width: int) -> int:
    """Huffman codes are packed from their high end, everything else from the low."""
    return int(f"{code:0{width}b}"[::-1], 2)


CODES = _length_codes()


def blocks_capacity(nbytes: int) -> int:
    """Room that `write_blocks` needs for so many bytes."""
    return nbytes + 5 * (nbytes // LONGEST_COPY + 2) + 64


def write_blocks(low: np.ndarray, out: np.ndarray) -> int:
    """Write non-final deflate blocks for uint8 `low` (a multiple of 8) to `out`; bytes written."""
    return int(write_all_blocks(low.view(np.uint64), low, out, *CODES))


@numba.njit(nogil=True, cache=True)
def write_all_blocks(
    words: np.ndarray, low: np.ndarray, out: np.ndarray, codes: np.ndarray, widths: np.ndarray
) -> int:
    at, start, count = 0, 0, words.size
    while start < count:
        after = start
        while after < count and words[after] == 0:
            after += 1
        if after - start < LEAST_RUN:
            after = start
            out[at] = 0  # header of a stored block
            at += 1
        else:
            at = _write_run(8 * (after - start), out, at, codes, widths)
        stop, zeros = after, 0
        while stop < count and 8 * (stop - after) < LONGEST_COPY:
            zeros = zeros + 1 if words[stop] == 0 else 0
            stop += 1
            if zeros == LEAST_RUN:
                stop -= LEAST_RUN
                break
        size = 8 * (stop - after)
        out[at], out[at + 1] = size & 0xFF, size >> 8
        out[at + 2], out[at + 3] = ~size & 0xFF, (~size >> 8) & 0xFF
        at += 4
        source, target = low[8 * after : 8 * stop], out[at : at + size]
        for i in range(size):
            target[i] = source[i]
        at += size
        start = stop
    return at


@numba.njit(nogil=True, cache=True)
def _write_run(length: int, out: np.ndarray, at: int, codes: np.ndarray, widths: np.ndarray) -> int:
    """A fixed block of zero bytes, and the header of the stored block that follows it."""
    held = np.uint64(2 | 0x0C << 3)  # not final, fixed; the literal 0
    width = 3 + 8
    left = length - 1
    while left > 0:
        step = min(left, 258)
        if 0 < left - step < 3:
            step = left - 3  # never leave what no match can say
        held |= codes[step] << np.uint64(width)
        width += widths[step]
        left -= step
        while width >= 8:
            out[at] = np.uint8(held & np.uint64(0xFF))
            at += 1
            held >>= np.uint64(8)
            width -= 8
    # The end of the block is seven zeros, the next header three; then up to the byte's end.
    width += 7 + 3
    while width > 0:
        out[at] = np.uint8(held & np.uint64(0xFF))
        at += 1
        held >>= np.uint64(8)
        width -= 8
    return at
