"""The steps of selection from sorted lists as vector instructions, one Numba intrinsic each.

For 16-bit keys: twice as many cells a vector as lanes of 32 bits. A *slot* is the memory of one
list of `longest` vectors, largest first. With `negate` 1 the keys are negated as they are read (0,
a missing one, stays 0 and last), so that lists hold the smallest values. list_windows.py says what
the steps are for; percentile_vectors.py what an intrinsic is here.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ..device.llvm import Emitter
from ..keys import AFFINE16
from . import toplists
from .vector_keys import decode, literal_values, store_departure

UNEVEN = -1  # what `sort_word` returns for a word that lists cannot serve
_RANGE = (1 << 16) - 1


@intrinsic(prefer_literal=True)
def sort_word(
    typingctx, lanes, years, longest, negate, keys, stride, rows, valid, slot, total
):  # fmt: skip
    """The sorted list of a word's `years` keys to `slot`, their sum (uint32) to `total`.

    `rows` is the address of their int32 row numbers, of which `valid` are not 0 (a missing row).
    Returns the bit mask of the lanes without any value, or UNEVEN if some lane lacks part of its
    values or spreads too far for the sum, which is taken from the smallest in 16 bits.
    """
    literals = literal_values(lanes, years, longest, negate)
    if literals is None:
        return None
    lanes_, years_, longest_, negate_ = literals

    def codegen(context, builder, signature, args):
        o = Emitter(builder, 2 * lanes_)
        keys, stride, rows, valid, slot, total = args[4:]
        i16, i32, i64 = ir.IntType(16), ir.IntType(32), ir.IntType(64)
        vector = 4 * lanes_
        zero = o.const(0, 16)
        values, summed = [], zero
        for year in range(years_):
            row = builder.zext(o.load(rows, 4 * year, i32), i64)
            here = o.offset(keys, row, stride)
            x = o.load(here, kind=o.vector(16))
            o.prefetch(here, 2 * vector)
            x = o.sub(zero, x) if negate_ else x
            summed = o.add(summed, x)
            values.append(x)
        ordered = toplists.sort(o, values)
        for i in range(longest_):
            o.store(ordered[i] if i < years_ else zero, slot, vector * i)

        some = builder.icmp_signed(">", valid, o.index(0))
        last = builder.select(some, builder.sub(valid, o.index(1)), o.index(0))
        smallest = o.load(o.offset(slot, last, vector), kind=o.vector(16))
        largest = ordered[0]
        counted = builder.select(some, valid, o.index(1))
        widest = builder.trunc(builder.udiv(o.index(_RANGE), counted), i16)
        spread = builder.icmp_unsigned(">", o.sub(largest, smallest), o.splat(widest))
        lacking = builder.icmp_unsigned("==", smallest, zero)
        empty = builder.icmp_unsigned("==", largest, zero)
        uneven = builder.or_(spread, builder.xor(lacking, empty))

        number = builder.trunc(valid, i32)
        above = o.sub(summed, builder.mul(o.splat(builder.trunc(valid, i16)), smallest))
        for half in range(2):
            part = builder.add(
                _half(o, above, half),
                builder.mul(_half(o, smallest, half), Emitter(builder, lanes_).splat(number)),
            )
            o.store(part, total, vector * half)
        bits = ir.IntType(2 * lanes_)
        bad = builder.icmp_unsigned("!=", builder.bitcast(uneven, bits), bits(0))
        mask = builder.bitcast(empty, bits)
        return builder.select(bad, o.index(UNEVEN), builder.zext(mask, i64))

    args = (lanes, years, longest, negate, keys, stride, rows, valid, slot, total)
    return types.int64(*args), codegen


@intrinsic(prefer_literal=True)
def join_lists(typingctx, lanes, years, longest, lists, word, out):
    """The `longest` largest of the list at `lists` and a word's (`years` long) to `out`."""
    literals = literal_values(lanes, years, longest)
    if literals is None:
        return None
    lanes_, years_, longest_ = literals

    def codegen(context, builder, signature, args):
        o = Emitter(builder, 2 * lanes_)
        lists, word, out = args[3:]
        vector = 4 * lanes_
        a = [o.load(lists, vector * i, o.vector(16)) for i in range(longest_)]
        b = [o.load(word, vector * i, o.vector(16)) for i in range(years_)]
        for i, x in enumerate(toplists.join(o, a, b)):
            o.store(x, out, vector * i)
        return context.get_dummy_value()

    return types.void(lanes, years, longest, lists, word, out), codegen


@intrinsic(prefer_literal=True)
def slide_sum(typingctx, lanes, total, enter, leave):
    """total += enter - leave, uint32 for all lanes of a tile; addresses."""
    literals = literal_values(lanes)
    if literals is None:
        return None
    lanes_ = literals[0]

    def codegen(context, builder, signature, args):
        o = Emitter(builder, 2 * lanes_)
        total, enter, leave = args[1:]
        change = o.sub(o.load(enter), o.load(leave))
        o.store(o.add(o.load(total), change), total)
        return context.get_dummy_value()

    return types.void(lanes, total, enter, leave), codegen


@intrinsic(prefer_literal=True)
def kth_of_two(
    typingctx, lanes, negate, suffix, prefix, k, weight, missing, scale, offset, reference, out
):  # fmt: skip
    """A percentile to float32 lanes at `out`, from the lists that together hold a window.

    It lies `weight` above the lower of two neighbouring order statistics, which are the k-th and
    the (k-1)-th largest of all (where the keys are negated, so is their order). `missing` is the
    bit mask of lanes that give NaN.
    """
    literals = literal_values(lanes, negate)
    if literals is None:
        return None
    lanes_, negate_ = literals

    def codegen(context, builder, signature, args):
        o = Emitter(builder, 2 * lanes_)
        suffix, prefix, k, weight, missing, scale, offset, reference, out = args[2:]
        vector, keys = 4 * lanes_, o.vector(16)

        def at(lists, i):
            return o.load(o.offset(lists, i, vector), kind=keys)

        last = builder.sub(k, o.index(1))

        def pair(i, carried):
            """The (i+1)-th of one list with as many of the other as make k, or k - 1, in all."""
            kth, before, previous = carried
            s = at(suffix, i)
            p = at(prefix, builder.sub(builder.sub(last, i), o.index(1)))
            kth = o.max_(kth, o.min_(s, p))
            before = o.max_(before, o.min_(previous, p))
            return None, (kth, before, s)

        start = (o.max_(at(suffix, last), at(prefix, last)), o.const(0, 16), o.const(-1, 16))
        _, (kth, before, previous) = o.loop(
            o.index(0), lambda i: builder.icmp_signed("<", i, last), 1, start, pair
        )
        before = o.max_(before, previous)
        lower, upper = kth, before
        if negate_:
            lower, upper = o.sub(o.const(0, 16), before), o.sub(o.const(0, 16), kth)

        half_o = Emitter(builder, lanes_)
        scale, offset, weight_ = (half_o.splat(x) for x in (scale, offset, weight))
        exact = builder.fcmp_ordered("==", weight, ir.Constant(ir.DoubleType(), 0.0))
        for half in range(2):
            low = decode(half_o, _half(o, lower, half), AFFINE16, scale, offset)
            high = decode(half_o, _half(o, upper, half), AFFINE16, scale, offset)
            between = builder.fadd(low, builder.fmul(weight_, builder.fsub(high, low)))
            result = builder.select(exact, low, between)
            here = half * vector
            about = builder.add(reference, o.index(here))
            to = builder.add(out, o.index(here))
            store_departure(half_o, _present(half_o, missing, half), result, about, to)
        return context.get_dummy_value()

    args = (lanes, negate, suffix, prefix, k, weight, missing, scale, offset, reference, out)
    return types.void(*args), codegen


@intrinsic(prefer_literal=True)
def mean_of_sum(
    typingctx, lanes, negate, total, n, empty, missing, scale, offset, reference, out, counts
):  # fmt: skip
    """Mean of `n` values, from their keys' sum at `total`, to float32 lanes at `out`.

    `missing` is the bit mask of lanes that give NaN, `empty` that of lanes without any value. The
    number of values goes to int32 lanes at `counts`.
    """
    literals = literal_values(lanes, negate)
    if literals is None:
        return None
    lanes_, negate_ = literals

    def codegen(context, builder, signature, args):
        o = Emitter(builder, lanes_)
        total, n, empty, missing, scale, offset, reference, out, counts = args[2:]
        scale, offset = o.splat(scale), o.splat(offset)
        reals = ir.VectorType(ir.DoubleType(), lanes_)
        number = o.splat(builder.trunc(n, ir.IntType(32)))
        real_n = builder.uitofp(number, reals)
        for half in range(2):
            here = o.index(4 * lanes_ * half)
            summed = o.load(builder.add(total, here))
            if negate_:
                summed = o.sub(o.shl(number, 16), summed)
            mean = decode(
                o, builder.fdiv(builder.uitofp(summed, reals), real_n), AFFINE16, scale, offset
            )
            about, to = builder.add(reference, here), builder.add(out, here)
            store_departure(o, _present(o, missing, half), mean, about, to)
            counted = builder.select(_present(o, empty, half), number, o.const(0))
            o.store(counted, builder.add(counts, here))
        return context.get_dummy_value()

    args = (lanes, negate, total, n, empty, missing, scale, offset, reference, out, counts)
    return types.void(*args), codegen


def _half(o: Emitter, x: Any, half: int) -> Any:
    """The lower or upper half of the lanes of 16-bit `x`, widened to 32."""
    b, lanes = o.b, o.lanes // 2
    picks = ir.Constant(
        ir.VectorType(ir.IntType(32), lanes), list(range(half * lanes, (half + 1) * lanes))
    )
    part = b.shuffle_vector(x, ir.Constant(x.type, ir.Undefined), picks)
    return b.zext(part, ir.VectorType(ir.IntType(32), lanes))


def _present(o: Emitter, missing: Any, half: int) -> Any:
    """One-bit lanes of half a tile: is the bit of the 64-bit mask `missing` clear?"""
    b = o.b
    bits = b.trunc(b.lshr(missing, o.index(half * o.lanes)), ir.IntType(o.lanes))
    return b.not_(b.bitcast(bits, ir.VectorType(ir.IntType(1), o.lanes)))
