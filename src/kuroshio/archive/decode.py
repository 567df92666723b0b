"""Stored values to keys (see keys.py).

Every conversion is one pass without branches, so that it keeps up with the inflated bytes.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ..keys import AFFINE16, AFFINE32, Keys, NotCodes
from .model import Packing
from .sea import ValueOnLand
from .shuffled_keys import shuffled_int16_keys


def to_keys(values: np.ndarray, packing: Packing, keys: Keys, out: np.ndarray) -> None:
    """Fill `out` (keys.dtype) from as many stored values (1-D, native byte order).

    Raises NotCodes if a value has no key of this kind.
    """
    if values.size != out.size:  # compiled loops would write past the end
        raise ValueError(f"{values.size} values for {out.size} keys")
    missing = np.array(packing.missing, np.float64)
    same = (packing.scale, packing.offset) == (keys.scale, keys.offset)
    if keys.kind in (AFFINE16, AFFINE32) and values.dtype.kind in "iu" and same:
        codes = missing[np.isfinite(missing)].astype(np.int64)
        signed = values.dtype.kind == "i"
        if keys.kind == AFFINE16 and signed and values.dtype.itemsize == 2 and codes.size <= 1:
            # A code no int16 equals stands for "none".
            code = np.uint16(int(codes[0]) & 0xFFFF) if codes.size else np.uint16(0x8000)
            bad = _int16_keys(values.view(np.uint16), code, codes.size == 0, out)
        else:
            bad = _integer_keys(values, codes, keys.half, out)
    else:
        fill = missing[0] if missing.size else np.nan  # equals nothing
        if keys.kind in (AFFINE16, AFFINE32):
            limit = 0.0 if values.dtype.kind in "iu" or not keys.lossless else 1.0
            ulp = np.finfo(values.dtype).eps if values.dtype.kind == "f" else 0.0
            bad = _affine_keys(
                values, fill, packing.scale, packing.offset, keys.scale, keys.offset,
                float(keys.half), limit * ulp, out,
            )  # fmt: skip
        elif packing.packed:
            real = values * np.float64(packing.scale) + np.float64(packing.offset)
            real[values == fill] = np.nan
            bad = _float_keys(real.view(np.uint64), real, np.nan, out)
        else:
            real = values.astype(f"f{keys.bits // 8}", copy=False)
            bad = _float_keys(real.view(keys.dtype), real, real.dtype.type(fill), out)
        for other in missing[1:]:
            out[values == other] = 0
    if bad:
        raise NotCodes


def shuffled_int16_to_keys(
    planes: np.ndarray, packing: Packing, runs: np.ndarray, out: np.ndarray
) -> None:
    """As `to_keys` for AFFINE16 and int16 of that packing, from HDF5-shuffled bytes (2, n).

    Only the `runs` (see sea.Runs) are kept; raises ValueOnLand if there is a value elsewhere.
    """
    lost, stray = shuffled_int16_keys(planes[0], planes[1], *fill_code(packing), runs, out)
    if stray:
        raise ValueOnLand
    if lost:
        raise NotCodes


def fill_code(packing: Packing) -> tuple[np.uint16, bool]:
    """The one code of an int16 that is missing, as it is stored; or any, and that there is none."""
    codes = [int(m) for m in packing.missing if np.isfinite(m)]
    return (np.uint16(codes[0] & 0xFFFF), False) if codes else (np.uint16(0x8000), True)


def fill_bits(packing: Packing, dtype: np.dtype) -> tuple[int, bool]:
    """The bits of the one float that is missing, or any, and that none is but NaN."""
    fills = [m for m in packing.missing if not np.isnan(m)]
    fill = np.array(fills[0] if fills else 0, dtype)
    return int(fill.view(f"u{dtype.itemsize}")), not fills


def keep_runs(keys: np.ndarray, runs: np.ndarray, out: np.ndarray) -> None:
    """The runs of a whole map of keys; raises ValueOnLand if there is a key elsewhere."""
    if _keep_runs(keys, runs, out):
        raise ValueOnLand


def unshuffle(planes: np.ndarray, out: np.ndarray) -> None:
    """HDF5's byte shuffle undone: (itemsize, n) bytes to n values of 2, 4 or 8 bytes."""
    size = planes.shape[0]
    words = out.view(f"u{size}")
    if size == 2:
        _unshuffle2(planes[0], planes[1], words)
    elif size == 4:
        _unshuffle4(planes, words)
    else:
        _unshuffle8(planes, words)


_jit = njit(nogil=True, cache=True, error_model="numpy")


@_jit
def _int16_keys(codes, fill, none, out):
    """Code + 2^15, the fill code to 0. True if the valid code -32768 was met, which has no key."""
    top = np.uint16(0x8000)
    lost = np.uint16(0)
    for i in range(codes.size):
        c = codes[i]
        valid = np.uint16(c != fill) | np.uint16(none)
        key = np.uint16(c ^ top)
        lost |= np.uint16(key == 0) & valid
        out[i] = key * valid
    return lost != 0


@_jit
def _keep_runs(keys, runs, out):
    stray = False
    end = 0
    for r in range(runs.shape[0]):
        start = runs[r, 0]
        for i in range(end, start):
            stray |= keys[i] != 0
        end = start + runs[r, 1]
        out[runs[r, 2] : runs[r, 2] + runs[r, 1]] = keys[start:end]
    for i in range(end, keys.size):
        stray |= keys[i] != 0
    return stray


@_jit
def _integer_keys(values, missing, half, out):
    lost = False
    for i in range(values.size):
        c = np.int64(values[i])
        gone = False
        for m in missing:
            gone |= c == m
        key = c + half
        lost |= (key <= 0) & (not gone)
        out[i] = 0 if gone else key
    return lost


@_jit
def _affine_keys(values, fill, scale, offset, to_scale, to_offset, half, ulp, out):
    """Any stored value to the nearest code; with `ulp`, True if one is farther than that from it.

    Branch-free, so that it runs in vector registers.
    """
    lost = 0
    per_step = 1.0 / to_scale
    for i in range(values.size):
        stored = np.float64(values[i])
        valid = (stored == stored) & (stored != fill)
        value = stored * scale + offset
        code = np.floor((value - to_offset) * per_step + 0.5)
        near = (ulp == 0.0) | (abs(code * to_scale + to_offset - value) <= ulp * abs(value))
        fits = (code > -half) & (code < half) & near
        lost += valid & (not fits)
        out[i] = np.int64(code) + np.int64(half) if valid & fits else 0
    return lost > 0


@_jit
def _float_keys(bits, values, fill, out):
    """A float's bits, so folded that they sort like it; NaN and `fill` to 0. Nothing is lost."""
    word = out.dtype.type
    size = 8 * out.itemsize - 1
    top = word(word(1) << word(size))
    for i in range(bits.size):
        u = bits[i]
        gone = (values[i] != values[i]) | (values[i] == fill)
        negative = word(word(0) - word(u >> word(size)))  # all bits, or none
        key = word(u ^ word(top | negative))
        out[i] = word(0) if gone else key
    return False


@_jit
def _unshuffle2(low, high, out):
    for i in range(out.size):
        out[i] = np.uint16(np.uint16(low[i]) | np.uint16(np.uint16(high[i]) << np.uint16(8)))


@_jit
def _unshuffle4(planes, out):
    a, b, c, d = planes[0], planes[1], planes[2], planes[3]
    for i in range(out.size):
        low = np.uint32(a[i]) | np.uint32(np.uint32(b[i]) << np.uint32(8))
        high = np.uint32(c[i]) | np.uint32(np.uint32(d[i]) << np.uint32(8))
        out[i] = np.uint32(low | np.uint32(high << np.uint32(16)))


@_jit
def _unshuffle8(planes, out):
    for i in range(out.size):
        word = np.uint64(0)
        for k in range(8):
            word |= np.uint64(planes[k, i]) << np.uint64(8 * k)
        out[i] = word
