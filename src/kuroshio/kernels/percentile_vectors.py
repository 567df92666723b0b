"""The steps of the percentile kernel as vector instructions, one Numba intrinsic each.

An intrinsic is straight-line code for `lanes` cells that reads and writes memory by address, with
its loops over bit planes held in registers. Literal integers (lanes, kind of key, words, years) are
fixed when it is compiled. percentile.py says what the steps are for.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ..device.llvm import Emitter
from ..keys import AFFINE16, AFFINE32, KEY_BITS
from . import bitplanes

YEARS_PER_WORD = 32
MISSING_SEEN = 256  # flag that `extremes` adds to the number of planes


def _decode(o: Emitter, key: Any, kind: int, scale: Any, offset: Any) -> Any:
    """Keys (or real numbers counted in keys) to values, float64."""
    b = o.b
    if kind in (AFFINE16, AFFINE32):
        reals = ir.VectorType(ir.DoubleType(), o.lanes)
        number = key if key.type == reals else b.uitofp(key, reals)
        code = b.fsub(number, o.reals(float(1 << (KEY_BITS[kind] - 1))))
        return b.fadd(b.fmul(code, scale), offset)
    bits = KEY_BITS[kind]
    sign = o.const(1 << (bits - 1), bits)
    positive = o.nonzero(o.and_(key, sign))
    raw = o.select(positive, o.xor(key, sign), o.xor(key, o.const(-1, bits)))
    real = ir.FloatType() if bits == 32 else ir.DoubleType()
    number = b.bitcast(raw, ir.VectorType(real, o.lanes))
    return number if bits == 64 else b.fpext(number, ir.VectorType(ir.DoubleType(), o.lanes))


def _literal(*kinds: Any) -> tuple[int, ...] | None:
    """The values of literal integer types, or None while Numba still offers plain ones."""
    if all(isinstance(k, types.IntegerLiteral) for k in kinds):
        return tuple(k.literal_value for k in kinds)
    return None


@intrinsic(prefer_literal=True)
def extremes(typingctx, lanes, kind, keys, stride, rows, n_rows, base):
    """Store each lane's smallest valid key at `base`.

    Returns the planes that the widest lane needs, plus MISSING_SEEN if any key was missing, or -1
    if all were. `rows` is the address of int32 row numbers, `keys` that of row 0 at this tile.
    """
    literals = _literal(lanes, kind)
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


@intrinsic
def prefetch(typingctx, keys, stride, rows, first, last):
    """Ask for the cache lines at `keys` of the rows numbered by rows[first] to rows[last].

    The rows are too many for the processor to foresee. Asked for between other work, and into the
    second cache, they come without waiting.
    """

    def codegen(context, builder, signature, args):
        o = Emitter(builder, 1)
        keys, stride, rows, first, last = args

        def body(i, carried):
            row = o.load(o.offset(rows, i, 4), kind=ir.IntType(32))
            o.prefetch(o.offset(keys, builder.zext(row, ir.IntType(64)), stride))
            return None, carried

        o.loop(first, lambda i: builder.icmp_signed("<", i, last), 1, (), body)
        return context.get_dummy_value()

    return types.void(keys, stride, rows, first, last), codegen


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
    literals = _literal(lanes, kind, years, gaps)
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
                value = _decode(o, key, kind_, scale, offset)
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


@intrinsic(prefer_literal=True)
def percentile(
    typingctx,
    lanes,
    kind,
    words,
    planes,
    valid,
    top,
    base,
    quantile,
    least,
    scale,
    offset,
    reference,
    out,
):
    """The `quantile` (0 to 1) of one window to float32 lanes at `out`; Hyndman and Fan type 7.

    `planes` and `valid` are the addresses of its first word. Lanes with fewer than `least` valid
    values give NaN. `top` is the number of planes to walk.
    """
    literals = _literal(lanes, kind, words)
    if literals is None:
        return None
    lanes_, kind_, words_ = literals
    bits = KEY_BITS[kind_]
    wide = max(bits, 32)  # the value under construction

    def codegen(context, builder, signature, args):
        o = Emitter(builder, lanes_)
        planes, valid, top, base, quantile, least, scale, offset, reference, out = args[3:]
        scale, offset = o.splat(scale), o.splat(offset)
        vector = 4 * lanes_
        candidates = [o.load(valid, vector * w) for w in range(words_)]

        n = bitplanes.count(o, candidates)
        reals = ir.VectorType(ir.DoubleType(), lanes_)
        position = builder.fmul(builder.sitofp(o.sub(n, o.const(1)), reals), o.splat(quantile))
        rank = builder.fptosi(position, o.vector())
        weight = builder.fsub(position, builder.sitofp(rank, reals))

        def plane(b):
            here = o.offset(planes, b, vector)
            return [o.load(here, vector * bits * w) for w in range(words_)]

        def more(b):
            return builder.icmp_signed(">=", b, o.index(0))

        def together(b, carried):
            """Both order statistics in one set of candidates, until some lane's part."""
            rank, value, *m = carried
            p = plane(b)
            ones, zeros, parting = bitplanes.split(o, m, p, rank)
            rank = o.sub(rank, o.and_(zeros, ones))
            value = o.sub(o.shl(value, 1), o.widen_mask(ones, wide))
            return o.any(parting), [rank, value, *bitplanes.keep(o, m, p, ones)]

        b, carried = o.loop(
            builder.sub(top, o.index(1)),
            more, -1, [rank, o.const(0, wide), *candidates], together,
        )  # fmt: skip

        def apart(b, carried):
            """Where a lane's two part, the half that the upper one went to is set aside."""
            rank, value, parted, *sets = carried
            m, above = sets[:words_], sets[words_:]
            p = plane(b)
            ones, zeros, parting = bitplanes.split(o, m, p, rank)
            fresh = o.andnot(parting, parted)
            above = [
                o.or_(a, o.and_(o.and_(x, y), fresh)) for a, x, y in zip(above, m, p, strict=True)
            ]
            rank = o.sub(rank, o.and_(zeros, ones))
            value = o.sub(o.shl(value, 1), o.widen_mask(ones, wide))
            kept = bitplanes.keep(o, m, p, ones)
            return None, [rank, value, o.or_(parted, fresh), *kept, *above]

        def smallest(b, carried):
            """The upper one is the least of what was set aside."""
            upper, *above = carried
            bit, left = bitplanes.least(o, above, plane(b))
            return None, [o.sub(o.shl(upper, 1), o.widen_mask(bit, wide)), *left]

        rank, shared, *m = carried
        nothing = [o.const(0)] * words_
        _, carried = o.loop(b, more, -1, [rank, shared, o.const(0), *m, *nothing], apart)
        _, lower, parted, *sets = carried
        _, carried = o.loop(b, more, -1, [shared, *sets[words_:]], smallest)
        upper = o.select(o.widen_mask(parted, wide), carried[0], lower)

        lowest = o.widen(o.load(base, kind=o.vector(bits)), wide)
        low = _decode(o, o.add(lower, lowest), kind_, scale, offset)
        high = _decode(o, o.add(upper, lowest), kind_, scale, offset)
        between = builder.fadd(low, builder.fmul(weight, builder.fsub(high, low)))
        exact = builder.fcmp_ordered("==", weight, o.reals(0.0))  # rank + 1 may not exist
        result = builder.select(exact, low, between)
        enough = builder.icmp_signed(">=", n, o.splat(least))
        _store(o, enough, result, reference, out)
        return context.get_dummy_value()

    args = (
        lanes,
        kind,
        words,
        planes,
        valid,
        top,
        base,
        quantile,
        least,
        scale,
        offset,
        reference,
        out,
    )
    return types.void(*args), codegen


@intrinsic(prefer_literal=True)
def mean(
    typingctx, lanes, kind, words, valid, total, base, least, scale, offset, reference, out, counts
):
    """Mean of one window to float32 lanes at `out`, number of valid values to int32 at `counts`."""
    literals = _literal(lanes, kind, words)
    if literals is None:
        return None
    lanes_, kind_, words_ = literals
    bits = KEY_BITS[kind_]

    def codegen(context, builder, signature, args):
        o = Emitter(builder, lanes_)
        valid, total, base, least, scale, offset, reference, out, counts = args[3:]
        reals = ir.VectorType(ir.DoubleType(), lanes_)
        n = bitplanes.count(o, [o.load(valid, 4 * lanes_ * w) for w in range(words_)])
        o.store(n, counts)
        real_n = builder.sitofp(n, reals)
        if kind_ == AFFINE16:
            summed = o.const(0)
            for w in range(words_):
                summed = o.add(summed, o.load(total, 8 * lanes_ * w))
            mean = builder.fdiv(builder.uitofp(summed, reals), real_n)
            lowest = builder.uitofp(o.load(base, kind=o.vector(bits)), reals)
            key = builder.fadd(mean, lowest)
            mean = _decode(o, key, kind_, o.splat(scale), o.splat(offset))
        else:
            real_sum = o.reals(0.0)
            for w in range(words_):
                part = o.load(total, 8 * lanes_ * w, reals)
                real_sum = builder.fadd(real_sum, part)
            mean = builder.fdiv(real_sum, real_n)
        _store(o, builder.icmp_signed(">=", n, o.splat(least)), mean, reference, out)
        return context.get_dummy_value()

    args = (lanes, kind, words, valid, total, base, least, scale, offset, reference, out, counts)
    return types.void(*args), codegen


def _store(o: Emitter, where: Any, result: Any, reference: Any, out: Any) -> None:
    """Store `result` less the float32 reference, NaN where the one-bit lanes `where` are clear."""
    floats = ir.VectorType(ir.FloatType(), o.lanes)
    about = o.b.fpext(o.load(reference, kind=floats), result.type)
    single = o.b.fptrunc(o.b.fsub(result, about), floats)
    o.store(o.b.select(where, single, ir.Constant(floats, [float("nan")] * o.lanes)), out)
