"""The steps that prepare windows as vector instructions, one Numba intrinsic each.

An intrinsic is straight-line code for `lanes` cells that reads and writes memory by address, with
its loops over bit planes held in registers. Literal integers (lanes, kind of key, words, years) are
fixed when it is compiled. percentile.py says what the steps are for; percentile_select.py has those
that follow.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ..device.llvm import Emitter
from ..keys import AFFINE16, KEY_BITS, YEARS_PER_WORD
from . import bitplanes
from .vector_keys import decode, literal_values

_PREFETCH_BYTES = 128  # ahead of the tile: rows are too many for the processor to foresee
MISSING_SEEN = 256  # flag that `extremes` adds to the number of planes


@intrinsic(prefer_literal=True)
def extremes(typingctx, lanes, kind, keys, stride, rows, n_rows, base):
    """Store each lane's smallest valid key at `base`.

    Returns the planes that the widest lane needs, plus MISSING_SEEN if any key was missing, or -1
    if all were. `rows` is the address of int32 row numbers, `keys` that of row 0 at this tile.
    """
    literals = literal_values(lanes, kind)
    if literals is None:
        return None
    bits = KEY_BITS[literals[1]]

    def codegen(context, builder, signature, args):
        o = Emitter(builder, literals[0])
        _, _, keys, stride, rows, n_rows, base = args
        i32, i64 = ir.IntType(32), ir.IntType(64)

        def body(i, carried):
            smallest, largest, least = carried
            row = builder.zext(o.load(o.offset(rows, i, 4), kind=i32), i64)
            here = o.offset(keys, row, stride)
            o.prefetch(here, _PREFETCH_BYTES)
            x = o.load(here, kind=o.vector(bits))
            return None, (
                o.min_(smallest, o.sub(x, o.const(1, bits))),  # a missing key wraps to the top
                o.max_(largest, x),
                o.min_(least, x),
            )

        top, zero = o.const(-1, bits), o.const(0, bits)
        start = (top, zero, top)
        _, (smallest, largest, least) = o.loop(
            o.index(0), lambda i: builder.icmp_signed("<", i, n_rows), 1, start, body
        )
        smallest = o.add(smallest, o.const(1, bits))
        o.store(smallest, base)
        span = o.highest(o.sub(largest, smallest))
        clear = builder.ctlz(span, ir.IntType(1)(0))
        planes = builder.sub(ir.Constant(clear.type, bits), clear)
        planes = builder.zext(planes, i64) if bits < 64 else planes
        seen = builder.select(o.any(o.eq(least, zero)), o.index(MISSING_SEEN), o.index(0))
        found = o.any(o.nonzero(largest))
        return builder.select(found, builder.add(planes, seen), o.index(-1))

    return types.int64(lanes, kind, keys, stride, rows, n_rows, base), codegen


@intrinsic(prefer_literal=True)
def transpose(
    typingctx,
    lanes,
    kind,
    years,
    gaps,
    keys,
    stride,
    rows,
    base,
    planes,
    valid,
    total,
    scale,
    offset,
):
    """Planes, valid mask and sum of the `years` keys of one word.

    `rows` is the address of their int32 row numbers. `gaps` 0 promises that none is missing. Sums
    are of key - base (int32) for 16-bit keys, of values (float64) for all others.
    """
    literals = literal_values(lanes, kind, years, gaps)
    if literals is None:
        return None
    lanes_, kind_, years_, gaps_ = literals
    bits = KEY_BITS[kind_]

    def codegen(context, builder, signature, args):
        o = Emitter(builder, lanes_)
        keys, stride, rows, base, planes, valid, total, scale, offset = args[4:]
        scale, offset = o.splat(scale), o.splat(offset)
        lowest = o.load(base, kind=o.vector(bits))
        mask = o.const(0 if gaps_ else (1 << years_) - 1)
        summed = o.const(0) if kind_ == AFFINE16 else o.reals(0.0)
        values = []
        for year in range(years_):
            row = builder.zext(o.load(rows, 4 * year, ir.IntType(32)), ir.IntType(64))
            key = o.load(o.offset(keys, row, stride), kind=o.vector(bits))
            present = o.nonzero(key)
            x = o.sub(key, lowest)
            if gaps_:
                bit = o.const(1 << year)
                mask = o.or_(mask, o.and_(o.widen_mask(present, 32), bit))
                x = o.and_(x, present)
            if kind_ == AFFINE16:
                summed = o.add(summed, o.widen(x, 32))
            else:
                value = decode(o, key, kind_, scale, offset)
                if gaps_:
                    there = builder.icmp_unsigned("!=", key, o.const(0, bits))
                    value = builder.select(there, value, o.reals(0.0))
                summed = builder.fadd(summed, value)
            values.append(x)
        for plane, word in enumerate(_planes(o, values, bits)):
            o.store(word, planes, 4 * lanes_ * plane)
        o.store(mask, valid)
        o.store(summed, total)
        return context.get_dummy_value()

    args = (lanes, kind, years, gaps, keys, stride, rows, base, planes, valid, total, scale, offset)
    return types.void(*args), codegen


def _planes(o: Emitter, values: list[Any], bits: int) -> list[Any]:
    """The bit planes, lowest first, of up to 32 vectors of `bits`-bit keys."""
    values = values + [o.const(0, bits)] * (YEARS_PER_WORD - len(values))
    if bits == 16:
        pairs = [
            o.or_(o.widen(low, 32), o.shl(o.widen(high, 32), 16))
            for low, high in zip(values[:16], values[16:], strict=True)
        ]
        return bitplanes.transpose(o, pairs, 16)
    planes = []
    for part in range(bits // 32):
        halves = [o.widen(o.shr(x, 32 * part), 32) for x in values]
        planes += bitplanes.transpose(o, halves, 32)
    return planes
