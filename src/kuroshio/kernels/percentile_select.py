"""The statistics of one window as vector instructions, one Numba intrinsic each.

They read the planes, masks and sums that percentile_vectors.py makes, which also says what an
intrinsic is here.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ..device.llvm import Emitter
from ..keys import AFFINE16, KEY_BITS
from . import bitplanes
from .vector_keys import decode, literal_values, store_departure


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
    counts,
    out,
):
    """The `quantile` (0 to 1) of one window to float32 lanes at `out`; Hyndman and Fan type 7.

    `planes` and `valid` are the addresses of its first word. Lanes with fewer than `least` valid
    values, of which `mean` has put the number at `counts`, give NaN. `top` is the number of planes
    to walk.
    """
    literals = literal_values(lanes, kind, words)
    if literals is None:
        return None
    lanes_, kind_, words_ = literals
    bits = KEY_BITS[kind_]
    wide = max(bits, 32)  # the value under construction

    def codegen(context, builder, signature, args):
        o = Emitter(builder, lanes_)
        planes, valid, top, base, quantile, least, scale, offset, reference, counts, out = args[3:]
        scale, offset = o.splat(scale), o.splat(offset)
        vector = 4 * lanes_
        candidates = [o.load(valid, vector * w) for w in range(words_)]

        n = o.load(counts)
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
            builder.sub(top, o.index(1)), more, -1, [rank, o.const(0, wide), *candidates], together
        )

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
        low = decode(o, o.add(lower, lowest), kind_, scale, offset)
        high = decode(o, o.add(upper, lowest), kind_, scale, offset)
        between = builder.fadd(low, builder.fmul(weight, builder.fsub(high, low)))
        exact = builder.fcmp_ordered("==", weight, o.reals(0.0))  # rank + 1 may not exist
        result = builder.select(exact, low, between)
        enough = builder.icmp_signed(">=", n, o.splat(least))
        store_departure(o, enough, result, reference, out)
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
        counts,
        out,
    )
    return types.void(*args), codegen


@intrinsic(prefer_literal=True)
def mean(
    typingctx, lanes, kind, words, valid, total, base, least, scale, offset, reference, out, counts
):
    """Mean of one window to float32 lanes at `out`, number of valid values to int32 at `counts`."""
    literals = literal_values(lanes, kind, words)
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
            lowest = o.widen(o.load(base, kind=o.vector(bits)), 32)
            summed = builder.mul(n, lowest)
            for w in range(words_):
                summed = o.add(summed, o.load(total, 8 * lanes_ * w))
            key = builder.fdiv(builder.uitofp(summed, reals), real_n)
            mean = decode(o, key, kind_, o.splat(scale), o.splat(offset))
        else:
            real_sum = o.reals(0.0)
            for w in range(words_):
                part = o.load(total, 8 * lanes_ * w, reals)
                real_sum = builder.fadd(real_sum, part)
            mean = builder.fdiv(real_sum, real_n)
        store_departure(o, builder.icmp_signed(">=", n, o.splat(least)), mean, reference, out)
        return context.get_dummy_value()

    args = (lanes, kind, words, valid, total, base, least, scale, offset, reference, out, counts)
    return types.void(*args), codegen
