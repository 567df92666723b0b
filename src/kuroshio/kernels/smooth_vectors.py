"""The steps of a running mean as vector instructions, one Numba intrinsic each.

A *total* is the memory of three numbers a cell of a tile: a sum in float64, the largest that it has
been since it was made, and whether it is good. smooth.py says what the steps are for;
percentile_vectors.py what an intrinsic is here.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ..device.llvm import Emitter
from .vector_keys import literal_values

_OUTWEIGHS = 1e6  # a sum that was so much larger has lost digits
TOTAL_VECTORS = 6  # of as many float64 as a vector has lanes of 32 bits
_HALVES = 2  # of a tile: as many cells as a vector has lanes of 32 bits


@intrinsic(prefer_literal=True)
def sum_days(typingctx, lanes, days, stride, rows, count, total):
    """Make `total` the sum of `count` days, added in their order.

    days, stride  address of the tile's first day, float32, and bytes from one day to the next
    rows          address of the int64 numbers of the days
    """
    literals = literal_values(lanes)
    if literals is None:
        return None
    lanes_ = literals[0]

    def codegen(context, builder, signature, args):
        o = _Reals(builder, lanes_)
        days, stride, rows, count, total = args[1:]

        def add(i, summed):
            day = o.offset(days, o.load(o.offset(rows, i, 8), kind=ir.IntType(64)), stride)
            return None, [builder.fadd(x, o.single(day, half)) for half, x in enumerate(summed)]

        zeros = [o.reals(0.0)] * _HALVES
        _, summed = o.loop(o.index(0), lambda i: builder.icmp_signed("<", i, count), 1, zeros, add)
        for half, x in enumerate(summed):
            o.store(x, total, half * o.double_bytes)
            o.store(o.magnitude(x), total, (_HALVES + half) * o.double_bytes)
        return context.get_dummy_value()

    return types.void(lanes, days, stride, rows, count, total), codegen


@intrinsic(prefer_literal=True)
def slide_total(typingctx, lanes, total, enter, leave):
    """total += enter - leave, of days at these addresses; 0 if it is not good somewhere now.

    What a sum cannot forget: a value that is not finite, or outweighs by far what is left. Where
    the entering value is NaN, so is the sum whatever it was.
    """
    literals = literal_values(lanes)
    if literals is None:
        return None
    lanes_ = literals[0]

    def codegen(context, builder, signature, args):
        o = _Reals(builder, lanes_)
        total, enter, leave = args[1:]
        good = None
        for half in range(_HALVES):
            a, b = o.single(enter, half), o.single(leave, half)
            x = builder.fadd(o.double(total, half), builder.fsub(a, b))
            o.store(x, total, half * o.double_bytes)
            size = o.magnitude(b)
            largest = o.larger(o.larger(o.double(total, _HALVES + half), size), o.magnitude(x))
            o.store(largest, total, (_HALVES + half) * o.double_bytes)
            small = builder.fcmp_ordered(
                "<=", largest, builder.fmul(o.reals(_OUTWEIGHS), o.magnitude(x))
            )
            finite = builder.fcmp_ordered("<", size, o.reals(float("inf")))
            forgets = builder.or_(small, builder.and_(builder.fcmp_unordered("uno", x, x), finite))
            well = builder.or_(forgets, builder.fcmp_unordered("uno", a, a))
            o.store(builder.sext(well, o.masks), total, (2 * _HALVES + half) * o.double_bytes)
            good = well if good is None else builder.and_(good, well)
        bits = ir.IntType(lanes_)
        all_good = builder.icmp_unsigned("==", builder.bitcast(good, bits), bits(-1))
        return builder.zext(all_good, ir.IntType(64))

    return types.int64(lanes, total, enter, leave), codegen


@intrinsic(prefer_literal=True)
def mend_total(typingctx, lanes, total, other):
    """Replace what is not good of `total` by what the other total has of the same cells."""
    literals = literal_values(lanes)
    if literals is None:
        return None
    lanes_ = literals[0]

    def codegen(context, builder, signature, args):
        o = _Reals(builder, lanes_)
        total, other = args[1:]
        for half in range(_HALVES):
            mask = o.load(total, (2 * _HALVES + half) * o.double_bytes, o.masks)
            good = builder.icmp_signed("!=", mask, o.masks(None))
            for of in (half, _HALVES + half):
                x = builder.select(good, o.double(total, of), o.double(other, of))
                o.store(x, total, of * o.double_bytes)
        return context.get_dummy_value()

    return types.void(lanes, total, other), codegen


@intrinsic(prefer_literal=True)
def mean_of_total(typingctx, lanes, total, count, reference, out, ahead):
    """total / count + reference, rounded once: float32 at `out`. `count` is a float64.

    ahead  an address that is read soon, for as many float32 as a tile has cells
    """
    literals = literal_values(lanes)
    if literals is None:
        return None
    lanes_ = literals[0]

    def codegen(context, builder, signature, args):
        o = _Reals(builder, lanes_)
        total, count, reference, out, ahead = args[1:]
        for half in range(_HALVES):
            o.prefetch(ahead, half * o.single_bytes)
            mean = builder.fdiv(o.double(total, half), o.splat(count))
            value = builder.fadd(mean, o.single(reference, half))
            o.store(builder.fptrunc(value, o.floats), out, half * o.single_bytes)
        return context.get_dummy_value()

    return types.void(lanes, total, count, reference, out, ahead), codegen


class _Reals(Emitter):
    """Half a tile of float64, loaded as such or from float32."""

    def __init__(self, builder: ir.IRBuilder, lanes: int) -> None:
        super().__init__(builder, lanes)
        self.floats = ir.VectorType(ir.FloatType(), lanes)
        self.doubles = ir.VectorType(ir.DoubleType(), lanes)
        self.masks = ir.VectorType(ir.IntType(64), lanes)
        self.single_bytes, self.double_bytes = 4 * lanes, 8 * lanes

    def single(self, address: Any, half: int) -> Any:
        return self.b.fpext(self.load(address, half * self.single_bytes, self.floats), self.doubles)

    def double(self, address: Any, half: int) -> Any:
        return self.load(address, half * self.double_bytes, self.doubles)

    def larger(self, x: Any, y: Any) -> Any:
        """The larger; of a number and a NaN the number."""
        return self._call(f"llvm.maxnum.v{self.lanes}f64", x.type, x, y)

    def magnitude(self, x: Any) -> Any:
        return self._call(f"llvm.fabs.v{self.lanes}f64", x.type, x)
