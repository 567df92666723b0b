"""What the vector instructions share: keys to values, and integers fixed when they are compiled."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from ..device.llvm import Emitter
from ..keys import AFFINE16, AFFINE32, KEY_BITS


def decode(o: Emitter, key: Any, kind: int, scale: Any, offset: Any) -> Any:
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


def store_departure(o: Emitter, where: Any, result: Any, reference: Any, out: Any) -> None:
    """Store `result` less the float32 reference, NaN where the one-bit lanes `where` are clear."""
    floats = ir.VectorType(ir.FloatType(), o.lanes)
    about = o.b.fpext(o.load(reference, kind=floats), result.type)
    single = o.b.fptrunc(o.b.fsub(result, about), floats)
    o.store(o.b.select(where, single, ir.Constant(floats, [float("nan")] * o.lanes)), out)


def literal_values(*kinds: Any) -> tuple[int, ...] | None:
    """The values of literal integer types, or None while Numba still offers plain ones."""
    if all(isinstance(k, types.IntegerLiteral) for k in kinds):
        return tuple(k.literal_value for k in kinds)
    return None
