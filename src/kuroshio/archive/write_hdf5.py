"""Chunks handed to HDF5, many in one call without the interpreter lock.

h5py's `write_direct_chunk` gives and takes the lock for every chunk. Beside fifteen threads that
want it, it comes back after a millisecond, in which nobody else may store anything: six times as
long as the chunk takes. So compiled code calls HDF5's own function, under h5py's lock. Where it is
not found, and for whatever it refuses, h5py is asked.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import h5py
import numpy as np
from numba import njit

from ..c_calls import address_of, call

try:
    from h5py._objects import phil  # documented as what calls of HDF5 are to hold
except ImportError:
    phil = None

_call: Any = call
_DEFAULT = np.int64(0)  # of transfer properties; and no filter is left out


class StoredChunk(NamedTuple):
    """A chunk as it is to stand in the file, at the place of its first value."""

    dataset: Any  # h5py's DatasetID
    offset: tuple[int, ...]
    data: bytes | memoryview
    memory: np.ndarray | None  # free once this chunk is stored


def store_chunks(chunks: Sequence[StoredChunk]) -> None:
    """Store chunks of one file; raises what h5py raises."""
    function = _function() if chunks else None
    stored = 0
    while stored < len(chunks):
        if function is not None:
            stored += _by_address(function, chunks[stored:])
        if stored < len(chunks):  # h5py says why not
            dataset, offset, data, _ = chunks[stored]
            dataset.write_direct_chunk(offset, data)
            stored += 1


def make_ready() -> None:
    """Compile what stores chunks, or fetch it from Numba's cache: later many threads would wait."""
    if _function() is not None:
        nothing = np.empty(0, np.int64)
        _write_all(np.int64(0), nothing, np.empty((0, 1), np.uint64), nothing, nothing)


@functools.cache
def _function() -> np.int64 | None:
    """Where HDF5's H5Dwrite_chunk is, of the HDF5 that h5py uses; None where it is not found."""
    if phil is None:
        return None
    try:
        return np.int64(address_of(ctypes.CDLL(h5py.h5d.__file__), "H5Dwrite_chunk"))
    except (AttributeError, OSError):
        return None


def _by_address(function: np.int64, chunks: Sequence[StoredChunk]) -> int:
    """Store chunks up to the first that HDF5 refuses; how many."""
    offsets = np.zeros((len(chunks), max(len(chunk.offset) for chunk in chunks)), np.uint64)
    for i, chunk in enumerate(chunks):
        offsets[i, : len(chunk.offset)] = chunk.offset
    datas = [np.frombuffer(chunk.data, np.uint8) for chunk in chunks]
    ids = np.array([chunk.dataset.id for chunk in chunks], np.int64)
    sizes = np.array([data.size for data in datas], np.int64)
    addresses = np.array([data.ctypes.data for data in datas], np.int64)
    with phil:
        _ = chunks[0].dataset.rank  # any call of h5py's: HDF5 prints no errors in this thread then
        return int(_write_all(function, ids, offsets, sizes, addresses))


@njit(nogil=True, cache=True)
def _write_all(function: Any, datasets: Any, offsets: Any, sizes: Any, addresses: Any) -> Any:
    for i in range(datasets.size):
        offset = np.int64(offsets.ctypes.data) + i * offsets.strides[0]
        done = _call(function, datasets[i], _DEFAULT, _DEFAULT, offset, sizes[i], addresses[i])
        if np.int32(done) < 0:
            return i
    return datasets.size
