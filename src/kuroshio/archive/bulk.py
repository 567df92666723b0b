"""Several maps read and inflated in one call without the interpreter lock.

Reading a small file takes Python a dozen turns of the interpreter lock. Two threads do not mind;
sixteen spend their time waiting for it (measured: a season of 3,060 files in 2.0 s, and in 1.4 so).
So compiled code calls the system and libdeflate itself: the library that the package `deflate`
brings along. Where its functions are not to be found, or on other systems than Linux, there is no
bulk reading, and `read` does the same file by file.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import sys
import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numba import njit

from ..c_calls import address_of, call, int32_at
from ..errors import Refusal
from .badfile import BadFile, unreadable
from .libdeflate import libdeflate
from .model import ByteRange, Spans
from .shuffled_keys import shuffled_int16_keys

_OPEN, _PREAD, _CLOSE, _ERRNO, _CLOCK, _INFLATE = range(6)
_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0)
_FINE, _UNREADABLE, _SHORT, _DAMAGED, _OTHER_SIZE = range(5)
_EINTR = errno.EINTR
STREAM_HEAD, STREAM_TAIL = 2, 4  # bytes of zlib's frame around a deflate stream
LOST, STRAY = 1, 2  # what keys can be: a code without one, a value on what was taken for land


@dataclass
class Maps:
    """Where the bytes of several maps go, in uint8 (map, byte), as they are stored.

    What could not be read is named in `problems` (number of the map -> why).
    """

    raw: np.ndarray
    problems: dict[int, BadFile]


@dataclass
class KeyRows:
    """Where 16-bit keys of shuffled codes go instead, and how they are made; see shuffled_keys.

    fills, nones  of each map: the code that is missing, or that there is none
    cells         of a map, first and last plus one, that the rows take
    runs          of them, kept (run, 3)
    keys, rows    uint16 (row, cell) and the row of each map, -1 for none; start, its first cell
    """

    fills: np.ndarray
    nones: np.ndarray
    cells: tuple[int, int]
    runs: np.ndarray
    keys: np.ndarray
    rows: np.ndarray
    start: int
    odd: int = 0  # LOST and STRAY


@functools.cache
def _functions() -> np.ndarray | None:
    """Addresses of the functions called, or None where one is missing."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        system = ctypes.CDLL(None)
        names = ("open", "pread", "close", "__errno_location", "clock_gettime")
        found = [address_of(system, name) for name in names]
        found.append(address_of(libdeflate(), "libdeflate_zlib_decompress"))
    except (ImportError, AttributeError, OSError):
        return None
    return np.array(found, np.int64)


def available() -> bool:
    return _functions() is not None


def make_ready() -> None:
    """Compile what reads shuffled maps, or take it from the cache: so threads need not wait."""
    functions = _functions()
    if functions is None:
        return
    nothing, edges = np.empty(0, np.uint8), np.zeros(1, np.int64)
    paths, places = np.frombuffer(b"", np.uint8), np.zeros((0, 2), np.int64)
    state, raw = np.zeros((0, 2), np.int64), np.empty((0, 0), np.uint8)
    address = _inflater().address
    _read(functions, address, paths, edges, places, True, nothing, raw, state, np.zeros(3))
    _read_streams(functions, paths, edges, places, edges, nothing, state, np.zeros(0, np.uint32))


class _Inflater:
    """A thread's decompressor and memory for compressed bytes."""

    def __init__(self) -> None:
        library = libdeflate()
        self.address = library.libdeflate_alloc_decompressor()
        if not self.address:
            raise MemoryError("a decompressor")
        weakref.finalize(self, library.libdeflate_free_decompressor, self.address)
        self.compressed = np.empty(0, np.uint8)


_thread = threading.local()


def _inflater() -> _Inflater:
    if not hasattr(_thread, "inflater"):
        _thread.inflater = _Inflater()
    return _thread.inflater


def read_maps(
    wheres: Sequence[ByteRange], to: Maps, spans: Spans, keys: KeyRows | None = None
) -> None:
    """The bytes of equally large chunks to `to.raw`; with `keys` they pass through its first map.

    All have the same storage but for path and place. Raises nothing for a bad file: see Maps; but
    Refusal where the lack is not the file's.
    """
    functions = _functions()
    assert functions is not None
    mine, count = _inflater(), len(wheres)
    paths, edges, places = _places(wheres)
    longest = int(places[:, 1].max())
    if mine.compressed.size < longest:
        mine.compressed = np.empty(longest + longest // 4, np.uint8)
    state = np.zeros((count, 2), np.int64)
    seconds = np.zeros(3)
    start = perf_counter()
    stored = (paths, edges, places, wheres[0].deflate)
    if keys is None:
        _read(functions, mine.address, *stored, mine.compressed, to.raw, state, seconds)
    else:
        odd = _read_keys(
            functions, mine.address, *stored, mine.compressed, to.raw, state, seconds, keys.fills,
            keys.nones, *keys.cells, keys.runs, keys.keys, keys.rows, keys.start,
        )  # fmt: skip
        keys.odd |= int(odd)
    for name, took, nbytes in zip(
        ("read", "inflate", "decode"), seconds.tolist(),
        (int(places[:, 1].sum()), count * to.raw.shape[1], count * to.raw.shape[1]), strict=True,
    ):  # fmt: skip
        if took:
            spans(name, start, start + took, nbytes)
            start += took
    for i in np.flatnonzero(state[:, 0]).tolist():
        what, detail = state[i].tolist()
        problem = _problem(wheres[i].path, what, detail, to.raw.shape[1])
        if not isinstance(problem, BadFile):
            raise problem
        to.problems[i] = problem


def read_streams(
    wheres: Sequence[ByteRange], out: np.ndarray, starts: np.ndarray, spans: Spans
) -> np.ndarray:
    """Chunks as they are compressed to uint8 `out`, each from its start; returns their checksums.

    A raw deflate stream lies between the STREAM_HEAD and STREAM_TAIL bytes of each. Raises BadFile
    for what cannot be read or is no zlib stream; Refusal where the lack is not the file's.
    """
    functions = _functions()
    assert functions is not None
    paths, edges, places = _places(wheres)
    state = np.zeros((len(wheres), 2), np.int64)
    checksums = np.zeros(len(wheres), np.uint32)
    start = perf_counter()
    _read_streams(functions, paths, edges, places, starts, out, state, checksums)
    spans("read", start, perf_counter(), int(places[:, 1].sum()))
    for i in np.flatnonzero(state[:, 0])[:1].tolist():
        what, detail = state[i].tolist()
        raise _problem(wheres[i].path, what, detail, 0)
    return checksums


def _places(wheres: Sequence[ByteRange]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Paths one after the other, each with a 0, and where they begin; offsets and sizes."""
    paths = [os.fsencode(where.path) + b"\0" for where in wheres]
    edges = np.zeros(len(wheres) + 1, np.int64)
    np.cumsum([len(path) for path in paths], out=edges[1:])
    places = np.array([(where.offset, where.nbytes) for where in wheres], np.int64)
    return np.frombuffer(b"".join(paths), np.uint8), edges, places


def _problem(path: str, what: int, detail: int, size: int) -> Refusal:
    if what == _UNREADABLE:
        return unreadable(path, detail)
    if what == _SHORT:
        return BadFile(path, "it ends before its data does")
    if what == _OTHER_SIZE:
        return BadFile(path, f"a chunk holds {detail} bytes instead of {size}")
    return BadFile(path, "its compressed data is damaged")


_jit = njit(nogil=True, cache=True, error_model="numpy")
_ZERO = np.int64(0)


@_jit
def _now(functions, clock):
    call(functions[_CLOCK], np.int64(1), np.int64(clock.ctypes.data), _ZERO, _ZERO, _ZERO, _ZERO)
    return clock[0] + clock[1] * 1e-9


@_jit
def _pread(functions, path, offset, out, nbytes, state):
    """Part of a file to the start of `out`; False and a reason in `state` if that fails."""
    file = np.int32(call(functions[_OPEN], path, np.int64(_FLAGS), _ZERO, _ZERO, _ZERO, _ZERO))
    done = np.int64(0)
    to = np.int64(out.ctypes.data)
    while file >= 0 and done < nbytes:
        got = call(
            functions[_PREAD], np.int64(file), to + done, nbytes - done, offset + done, _ZERO, _ZERO
        )
        if got < 0:
            where = call(functions[_ERRNO], _ZERO, _ZERO, _ZERO, _ZERO, _ZERO, _ZERO)
            if int32_at(where) == _EINTR:
                continue
            state[0], state[1] = _UNREADABLE, int32_at(where)
            break
        if got == 0:
            state[0] = _SHORT
            break
        done += got
    if file < 0:
        where = call(functions[_ERRNO], _ZERO, _ZERO, _ZERO, _ZERO, _ZERO, _ZERO)
        state[0], state[1] = _UNREADABLE, int32_at(where)
    else:
        call(functions[_CLOSE], np.int64(file), _ZERO, _ZERO, _ZERO, _ZERO, _ZERO)
    return state[0] == _FINE


@_jit
def _read_one(
    functions,
    decompressor,
    paths,
    edges,
    places,
    deflated,
    compressed,
    raw,
    state,
    seconds,
    clock,
    i,
):
    """Map i to `raw` (byte,); whether it is there."""
    path = np.int64(paths.ctypes.data) + edges[i]
    offset, nbytes = places[i, 0], places[i, 1]
    begin = _now(functions, clock)
    if not deflated:
        if nbytes != raw.size:
            state[i, 0], state[i, 1] = _OTHER_SIZE, nbytes
            return False
        fine = _pread(functions, path, offset, raw, nbytes, state[i])
        seconds[0] += _now(functions, clock) - begin
        return fine
    fine = _pread(functions, path, offset, compressed, nbytes, state[i])
    middle = _now(functions, clock)
    seconds[0] += middle - begin
    if not fine:
        return False
    got = np.zeros(1, np.int64)
    result = np.int32(
        call(
            functions[_INFLATE],
            decompressor,
            np.int64(compressed.ctypes.data),
            nbytes,
            np.int64(raw.ctypes.data),
            np.int64(raw.size),
            np.int64(got.ctypes.data),
        )
    )
    seconds[1] += _now(functions, clock) - middle
    if result == 0 and got[0] == raw.size:
        return True
    if result == 0:
        state[i, 0], state[i, 1] = _OTHER_SIZE, got[0]
    else:  # or more comes out of it than there is room for
        state[i, 0] = _DAMAGED
    return False


@_jit
def _read(
    functions, decompressor, paths, edges, places, deflated, compressed, raw, state, seconds
):  # fmt: skip
    clock = np.zeros(2, np.int64)
    for i in range(places.shape[0]):
        _read_one(
            functions, decompressor, paths, edges, places, deflated, compressed, raw[i], state,
            seconds, clock, i,
        )  # fmt: skip


@_jit
def _read_keys(
    functions, decompressor, paths, edges, places, deflated, compressed, raw, state, seconds, fills,
    nones, first, last, runs, keys, rows, start,
):  # fmt: skip
    """As _read, each map through raw[0] to its row of keys. Returns LOST and STRAY."""
    clock = np.zeros(2, np.int64)
    odd = 0
    half = raw.shape[1] // 2
    for i in range(places.shape[0]):
        fine = _read_one(
            functions, decompressor, paths, edges, places, deflated, compressed, raw[0], state,
            seconds, clock, i,
        )  # fmt: skip
        if not fine or rows[i] < 0:
            continue
        begin = _now(functions, clock)
        lost, stray = shuffled_int16_keys(
            raw[0, first:last], raw[0, half + first : half + last], fills[i], nones[i], runs,
            keys[rows[i], start:],
        )  # fmt: skip
        odd |= (LOST if lost else 0) | (STRAY if stray else 0)
        seconds[2] += _now(functions, clock) - begin
    return odd


@_jit
def _read_streams(functions, paths, edges, places, starts, out, state, checksums):
    for i in range(places.shape[0]):
        nbytes = places[i, 1]
        chunk = out[starts[i] : starts[i] + nbytes]
        path = np.int64(paths.ctypes.data) + edges[i]
        if not _pread(functions, path, places[i, 0], chunk, nbytes, state[i]):
            continue
        if nbytes <= STREAM_HEAD + STREAM_TAIL:
            state[i, 0] = _DAMAGED
            continue
        # RFC 1950: deflate, no preset dictionary, and the two bytes a multiple of 31.
        head = np.int64(chunk[0]) * 256 + np.int64(chunk[1])
        if head % 31 or chunk[0] & 0x0F != 8 or chunk[1] & 0x20:
            state[i, 0] = _DAMAGED
            continue
        for byte in chunk[nbytes - STREAM_TAIL :]:
            checksums[i] = checksums[i] << np.uint32(8) | np.uint32(byte)
