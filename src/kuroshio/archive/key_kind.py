"""Which kind of key (see keys.py) fits an archive: by dtype and packings, floats by a sample."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..keys import AFFINE16, AFFINE32, FLOAT32, FLOAT64, Keys, NotCodes
from .badfile import BadFile
from .fetch import fetch
from .model import Archive, ArraySlice, ByteRange, FileSlice, Packing

_SAMPLE_STEPS = 8
# Scales and offsets that real archives store floats in, tried in this order.
_DECIMALS = ((0.01, 0.0), (0.01, 273.15), (0.001, 0.0), (0.001, 273.15), (0.1, 0.0), (0.1, 273.15))


def widest_keys(archive: Archive) -> Keys:
    """The kind that holds any value of the archive's dtype and packings."""
    dtype = archive.dtype.newbyteorder("=")  # NumPy's types are unequal where the order is
    scales = {(p.packing.scale, p.packing.offset) for p in archive.pieces}
    if dtype.kind in "iu" and dtype.itemsize <= 2 and len(scales) == 1:
        return Keys(AFFINE32, *next(iter(scales)))
    if dtype == np.float32 and not any(p.packing.packed for p in archive.pieces):
        return Keys(FLOAT32)
    return Keys(FLOAT64)


def choose_keys(archive: Archive, sample: list[np.ndarray], padded: bool) -> Keys:
    """The narrowest kind that fits: from dtype and packings, and for floats from a sample.

    `sample` holds stored values of a few pieces; `padded`: gaps will be filled, which makes values
    between the codes.
    """
    packings = {p.packing for p in archive.pieces}
    scales = {(p.scale, p.offset) for p in packings}
    dtype = archive.dtype.newbyteorder("=")
    if padded or min(s for s, _ in scales) <= 0:
        return Keys(FLOAT64)
    if dtype.kind in "iu":
        one = len(scales) == 1
        scale, offset = next(iter(scales))
        if one and dtype.itemsize <= 2 and dtype != np.uint16:
            return Keys(AFFINE16, scale, offset)
        if one and dtype.itemsize <= 4 and dtype != np.uint32:
            return Keys(AFFINE32, scale, offset)
        if dtype.itemsize <= 2:
            return _lattice(dtype, scales)
        return Keys(FLOAT64)
    if dtype.kind == "f" and len(packings) == 1 and not next(iter(packings)).packed:
        missing = next(iter(packings)).missing
        for scale, offset in _DECIMALS:
            keys = Keys(AFFINE16, scale, offset)
            try:
                if sum(_codes_of(s, missing, keys) for s in sample):
                    return keys
            except NotCodes:
                continue
    return widest_keys(archive)


def _codes_of(values: np.ndarray, missing: tuple[float, ...], keys: Keys) -> int:
    """Number of valid values, or NotCodes."""
    from .decode import to_keys  # compiled, and only wanted for floats

    out = np.empty(values.size, np.uint16)
    to_keys(values.reshape(-1), Packing(missing=missing), keys, out)
    return int((out > 0).sum())


def _lattice(dtype: np.dtype, scales: set[tuple[float, float]]) -> Keys:
    """One scale for all files: the codes of every file fall between its ends."""
    info = np.iinfo(dtype)
    low = min(o + s * info.min for s, o in scales)
    high = max(o + s * info.max for s, o in scales)
    step = (high - low) / (2**32 - 4)
    return Keys(AFFINE32, step, low + step * (2**31 - 1), lossless=False)


def sample_values(archive: Archive, count: int = 3) -> list[np.ndarray]:
    """Stored values of a few pieces spread over the archive, to choose a kind of key by."""
    picks = np.unique(np.linspace(0, len(archive.pieces) - 1, count).astype(int))
    sample = []
    for pick in picks:
        try:
            sample.append(fetch(_head(archive.pieces[pick].where)))
        except BadFile:  # the run itself will meet it and say so, or skip it
            continue
    return sample


def _head(where: ByteRange | FileSlice | ArraySlice) -> ByteRange | FileSlice | ArraySlice:
    """The first few time steps of a piece, where it can be had in parts."""
    if isinstance(where, ByteRange) or where.time_axis is None:
        return where
    # Dropped dimensions are integers and vanish; the time axis counts those that stay.
    kept = [i for i, part in enumerate(where.index) if isinstance(part, slice)]
    axis = kept[where.time_axis]
    times = where.index[axis]
    assert isinstance(times, slice)
    few = slice(times.start, min(times.stop, times.start + _SAMPLE_STEPS))
    return replace(where, index=(*where.index[:axis], few, *where.index[axis + 1 :]))
