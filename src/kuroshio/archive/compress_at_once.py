"""Chunks of float32 compressed in one call without the interpreter lock, as `compress` says.

Called step by step, a chunk takes and gives the lock a dozen times, of which isal's compress, whose
output grows by doubling, half. Two threads do not mind; of sixteen most wait: 3.3 instead of 0.7 ms
a chunk, and 8 beside threads that inflate. So several chunks are compressed in a call where they
are there.

ISA-L is in the package `isal`; its functions are called at their addresses, with a stream laid out
as in its igzip_lib.h. Where they are not found, or what they lay out is not that, `available` says
no.
"""

from __future__ import annotations

import ctypes
import functools
import threading
import zlib
from itertools import pairwise
from typing import Any

import numpy as np
from numba import njit

from ..c_calls import address_of, call
from .libdeflate import libdeflate
from .low_bytes import CODES, blocks_capacity, write_all_blocks
from .shuffle import word_shuffle

_INIT, _DEFLATE, _ADLER = range(3)
# Where igzip_lib.h's isal_zstream has what is set here, in its own units of bytes.
_NEXT_IN, _AVAIL_IN, _NEXT_OUT, _AVAIL_OUT, _TOTAL_OUT = 0, 8, 16, 24, 28
_TABLES, _LEVEL, _LEVEL_SIZE, _LEVEL_MEMORY, _END = 32, 40, 44, 48, 56
_STREAM_BYTES = 1 << 18  # it needs some 85 thousand
_LEVEL_BYTES = 1 << 19
_HEADER, _TAIL = 2, 4  # bytes of zlib's frame
_SAMPLE = 4096  # values of the first chunk, which is read again


@functools.cache
def _functions() -> np.ndarray | None:
    """Addresses of the functions called, or None where they are not there or not as expected."""
    try:
        from isal import isal_zlib

        library = ctypes.CDLL(isal_zlib.__file__)
        names = ("isal_deflate_stateless_init", "isal_deflate_stateless")
        addresses = [address_of(library, name) for name in names]
        found = np.array([*addresses, address_of(libdeflate(), "libdeflate_adler32")], np.int64)
    except (ImportError, AttributeError, OSError):
        return None
    stream = np.full(_STREAM_BYTES, 0xEE, np.uint8)
    library.isal_deflate_stateless_init(ctypes.c_void_p(stream.ctypes.data))
    words = stream.view(np.uint32)
    cleared = (_TOTAL_OUT, _LEVEL, _LEVEL_SIZE, _LEVEL_MEMORY, _END)
    kept = (_NEXT_IN, _AVAIL_IN, _NEXT_OUT, _AVAIL_OUT)
    as_expected = (
        all(words[at // 4] == 0 for at in cleared)
        and all(words[at // 4] == 0xEEEEEEEE for at in kept)
        and stream.view(np.uint64)[_TABLES // 8] not in (0, 0xEEEEEEEEEEEEEEEE)
        and (stream[_STREAM_BYTES // 2 :] == 0xEE).all()
    )
    return found if as_expected else None


@functools.cache
def available() -> bool:
    """Whether it can be called; the first time a chunk is compressed and read again."""
    if _functions() is None:
        return False
    values = np.linspace(-1.8, 30.0, _SAMPLE, dtype=np.float32)
    planes = values.view(np.uint8).reshape(-1, 4).T.tobytes()
    (stored,) = compress_at_once(values[None], np.empty(room(_SAMPLE), np.uint8))
    return zlib.decompress(stored) == planes


class _Own(threading.local):
    """A thread's memory, used for chunk after chunk."""

    def __init__(self) -> None:
        self.stream = np.zeros(_STREAM_BYTES, np.uint8)
        self.level = np.zeros(_LEVEL_BYTES, np.uint8)
        self.planes = np.empty((4, 0), np.uint8)


_own = _Own()


def room(count: int) -> int:
    """Bytes that a chunk of so many values takes at most."""
    # ISA-L falls back to copies: no more than a header for every 64 KB.
    return _HEADER + 2 * blocks_capacity(2 * count) + _TAIL + 4096


def compress_at_once(chunks: np.ndarray, out: np.ndarray) -> list[memoryview]:
    """The stored form of contiguous little-endian float32 chunks (chunk, *any), in `out`.

    chunks  of a multiple of 8 values each
    out     uint8, `room` for all of them
    """
    functions = _functions()
    assert functions is not None
    count = chunks[0].size
    if _own.planes.shape[1] != count:
        _own.planes = np.empty((4, count), np.uint8)
    stops = np.empty(len(chunks), np.int64)
    result = _compress_all(
        functions, chunks.reshape(len(chunks), -1).view(np.uint64), _own.planes.view(np.uint64),
        _own.planes, _own.stream, _own.level, out, stops, *CODES,
    )  # fmt: skip
    if result < 0:
        raise RuntimeError(f"ISA-L could not compress a chunk of {count} values ({result})")
    edges = [0, *stops.tolist()]
    return [out.data[start:stop] for start, stop in pairwise(edges)]


_jit = njit(nogil=True, cache=True)
_shuffle4: Any = word_shuffle(4)
_ZERO = np.int64(0)


@_jit
def _compress_all(functions, words, plane_words, planes, stream, level, out, stops, codes, widths):
    at = 0
    for chunk in range(words.shape[0]):
        size = _compress(
            functions, words[chunk], plane_words, planes, stream, level, out[at:], codes, widths
        )
        if size < 0:
            return size
        at += size
        stops[chunk] = at
    return at


@_jit
def _compress(functions, words, plane_words, planes, stream, level, out, codes, widths):
    _shuffle4(words, plane_words)
    out[0], out[1] = 0x78, 0x01  # zlib, 32 KiB window, fastest
    half = 2 * planes.shape[1]
    flat = planes.reshape(-1)
    low = flat[:half]
    at = 2 + write_all_blocks(low.view(np.uint64), low, out[2:], codes, widths)

    fields = stream.view(np.uint64)
    halves = stream.view(np.uint32)
    address = np.int64(stream.ctypes.data)
    call(functions[_INIT], address, _ZERO, _ZERO, _ZERO, _ZERO, _ZERO)
    fields[_NEXT_IN // 8] = np.uint64(flat.ctypes.data + half)
    halves[_AVAIL_IN // 4] = np.uint32(flat.size - half)
    fields[_NEXT_OUT // 8] = np.uint64(out.ctypes.data + at)
    halves[_AVAIL_OUT // 4] = np.uint32(out.size - at - 4)
    halves[_LEVEL // 4] = np.uint32(1)
    halves[_LEVEL_SIZE // 4] = np.uint32(level.size)
    fields[_LEVEL_MEMORY // 8] = np.uint64(level.ctypes.data)
    halves[_END // 4] = np.uint32(1)  # end of the stream, no flush
    result = np.int32(call(functions[_DEFLATE], address, _ZERO, _ZERO, _ZERO, _ZERO, _ZERO))
    if result != 0:
        return -1 + result
    at += halves[_TOTAL_OUT // 4]
    adler = np.uint32(
        call(
            functions[_ADLER],
            np.int64(1),
            np.int64(flat.ctypes.data),
            np.int64(flat.size),
            _ZERO,
            _ZERO,
            _ZERO,
        )
    )
    for i in range(4):
        out[at + i] = np.uint8((adler >> np.uint32(24 - 8 * i)) & np.uint32(0xFF))
    return at + 4
