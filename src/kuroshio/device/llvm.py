"""Operation lists to LLVM vectors: every value is one machine vector, a lane a grid cell.

Numba's loops over lanes do not vectorise dependably (shared/unknown aliasing, integers widened to
64 bits), so the inner operations are emitted as explicit vector instructions and LLVM lowers them
to whatever the processor has: AVX-512, AVX2 or NEON. A kernel's operation list calls the methods of
`Emitter` by their plain names (and_, xor, popcount, ...); another emitter with the same methods can
print the same list as text for another device.
"""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

from llvmlite import binding, ir

Value: TypeAlias = Any  # an llvmlite value; llvmlite publishes no types
_I64 = ir.IntType(64)


@functools.cache
def _features() -> frozenset[str]:
    """What Numba compiles for: the processor's features, unless its variables name others.

    LLVM ends the process at an instruction that is not among them.
    """
    named = os.environ.get("NUMBA_CPU_FEATURES")
    if named is None and os.environ.get("NUMBA_CPU_NAME") == "generic":
        named = ""
    if named is not None:
        return frozenset(part[1:] for part in named.split(",") if part.startswith("+"))
    try:
        found = binding.get_host_cpu_features()
    except RuntimeError:  # LLVM does not know this processor's
        return frozenset()
    left_out = "avx" if os.environ.get("NUMBA_ENABLE_AVX") == "0" else "-"
    return frozenset(f for f, there in found.items() if there and not f.startswith(left_out))


@functools.cache
def native_lanes() -> int:
    """Lanes of 32 bits in this processor's widest vector: 16, 8 or 4."""
    features = _features()
    if {"avx512bw", "avx512vl"} <= features:
        return 16
    return 8 if "avx2" in features else 4


def tile_cells() -> int:
    """Cells that the kernels take at once: the 16-bit lanes of a vector."""
    return 2 * native_lanes()


def _has_avx512() -> bool:
    return "avx512f" in _features()


@functools.cache
def source_stamp(modules: tuple[ModuleType, ...]) -> int:
    """A number that changes with the text of modules that are inlined into a kernel.

    As a compile-time constant of it, it makes Numba's cache on disk watch them.
    """
    text = b"".join(Path(str(module.__file__)).read_bytes() for module in modules)
    return int.from_bytes(hashlib.blake2b(text, digest_size=7).digest(), "big")


class Emitter:
    """Appends vector instructions at an LLVM builder's position.

    Vectors have `lanes` lanes of `bits` bits (32 unless said otherwise); addresses are 64-bit
    integers, offsets bytes. Comparisons give all-ones or all-zeros masks of the operands' width.
    """

    def __init__(self, builder: ir.IRBuilder, lanes: int) -> None:
        self.b = builder
        self.lanes = lanes

    # -- constants and memory -------------------------------------------------------------------

    def vector(self, bits: int = 32) -> ir.VectorType:
        return ir.VectorType(ir.IntType(bits), self.lanes)

    def const(self, value: int, bits: int = 32) -> Value:
        return ir.Constant(self.vector(bits), [value & ((1 << bits) - 1)] * self.lanes)

    def reals(self, value: float) -> Value:
        return ir.Constant(ir.VectorType(ir.DoubleType(), self.lanes), [value] * self.lanes)

    def index(self, value: int) -> Value:
        """A 64-bit scalar."""
        return ir.Constant(_I64, value)

    def offset(self, address: Value, row: Value | int, stride: Value | int) -> Value:
        """address + row * stride, all 64-bit."""
        row = self.index(row) if isinstance(row, int) else row
        stride = self.index(stride) if isinstance(stride, int) else stride
        return self.b.add(address, self.b.mul(row, stride))

    def load(self, address: Value, offset: int = 0, kind: ir.Type | None = None) -> Value:
        """A vector (or any LLVM type `kind`) at address + offset, unaligned."""
        kind = kind or self.vector()
        where = self.b.add(address, self.index(offset)) if offset else address
        return self.b.load(self.b.inttoptr(where, kind.as_pointer()), align=1, typ=kind)

    def store(self, value: Value, address: Value, offset: int = 0) -> None:
        where = self.b.add(address, self.index(offset)) if offset else address
        self.b.store(value, self.b.inttoptr(where, value.type.as_pointer()), align=1)

    def prefetch(self, address: Value, offset: int = 0) -> None:
        """Ask for the cache line at address + offset, which need not be readable."""
        pointer = self.b.inttoptr(
            self.b.add(address, self.index(offset)), ir.PointerType(ir.IntType(8))
        )
        i32 = ir.IntType(32)
        name = "llvm.prefetch.p0"
        function = self.b.module.globals.get(name)
        if function is None:
            kind = ir.FunctionType(ir.VoidType(), [pointer.type, i32, i32, i32])
            function = ir.Function(self.b.module, kind, name)
        self.b.call(function, [pointer, i32(0), i32(2), i32(1)])  # read, second cache, data

    # -- the operations of the lists ------------------------------------------------------------

    def and_(self, x: Value, y: Value) -> Value:
        return self.b.and_(x, y)

    def or_(self, x: Value, y: Value) -> Value:
        return self.b.or_(x, y)

    def xor(self, x: Value, y: Value) -> Value:
        return self.b.xor(x, y)

    def andnot(self, x: Value, y: Value) -> Value:
        """x & ~y."""
        return self.b.and_(x, self.b.not_(y))

    def majority(self, x: Value, y: Value, z: Value) -> Value:
        """Bits set in at least two of three: a full adder's carry."""
        if self.lanes == 16 and x.type.element.width == 32 and _has_avx512():
            imm = ir.IntType(32)(0xE8)  # LLVM would spend two instructions on it
            return self._call("llvm.x86.avx512.pternlog.d.512", x.type, x, y, z, imm)
        return self.b.or_(self.b.and_(x, y), self.b.and_(z, self.b.or_(x, y)))

    def shl(self, x: Value, count: int) -> Value:
        return self.b.shl(x, ir.Constant(x.type, [count] * self.lanes)) if count else x

    def shr(self, x: Value, count: int) -> Value:
        return self.b.lshr(x, ir.Constant(x.type, [count] * self.lanes)) if count else x

    def add(self, x: Value, y: Value) -> Value:
        return self.b.add(x, y)

    def sub(self, x: Value, y: Value) -> Value:
        return self.b.sub(x, y)

    def popcount(self, x: Value) -> Value:
        return self._call(f"llvm.ctpop.{self._suffix(x)}", x.type, x)

    def min_(self, x: Value, y: Value) -> Value:
        return self._call(f"llvm.umin.{self._suffix(x)}", x.type, x, y)

    def max_(self, x: Value, y: Value) -> Value:
        return self._call(f"llvm.umax.{self._suffix(x)}", x.type, x, y)

    def ge(self, x: Value, y: Value) -> Value:
        """Mask of lanes where x >= y, signed."""
        return self.b.sext(self.b.icmp_signed(">=", x, y), x.type)

    def eq(self, x: Value, y: Value) -> Value:
        return self.b.sext(self.b.icmp_unsigned("==", x, y), x.type)

    def nonzero(self, x: Value) -> Value:
        return self.b.sext(self.b.icmp_unsigned("!=", x, ir.Constant(x.type, None)), x.type)

    def select(self, mask: Value, x: Value, y: Value) -> Value:
        """x where the mask is set, else y (bit by bit)."""
        return self.b.or_(self.b.and_(mask, x), self.b.and_(self.b.not_(mask), y))

    def widen(self, x: Value, bits: int) -> Value:
        """Lanes extended with zeros, or cut, to `bits`."""
        target = self.vector(bits)
        if x.type.element.width == bits:
            return x
        return self.b.zext(x, target) if x.type.element.width < bits else self.b.trunc(x, target)

    def widen_mask(self, mask: Value, bits: int) -> Value:
        target = self.vector(bits)
        if mask.type.element.width == bits:
            return mask
        return (
            self.b.sext(mask, target)
            if mask.type.element.width < bits
            else self.b.trunc(mask, target)
        )

    # -- lanes to scalars, and loops ------------------------------------------------------------

    def any(self, mask: Value) -> Value:
        """One bit: is any lane's mask set?"""
        bits = self.b.icmp_unsigned("!=", mask, ir.Constant(mask.type, None))
        packed = self.b.bitcast(bits, ir.IntType(self.lanes))
        return self.b.icmp_unsigned("!=", packed, ir.Constant(packed.type, 0))

    def highest(self, x: Value) -> Value:
        """The largest lane, unsigned."""
        element = x.type.element
        return self._call(f"llvm.vector.reduce.umax.{self._suffix(x)}", element, x)

    def splat(self, scalar: Value) -> Value:
        """A scalar in every lane."""
        kind = ir.VectorType(scalar.type, self.lanes)
        one = self.b.insert_element(ir.Constant(kind, ir.Undefined), scalar, ir.IntType(32)(0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), self.lanes), None)
        return self.b.shuffle_vector(one, ir.Constant(kind, ir.Undefined), zeros)

    def loop(
        self,
        start: Value,
        more: Callable[[Value], Value],
        step: int,
        carried: Sequence[Value],
        body: Callable[[Value, list[Value]], tuple[Value | None, Sequence[Value]]],
    ) -> tuple[Value, list[Value]]:
        """for i = start; more(i); i += step, with values carried in registers.

        `body` returns (stop, next values): when the one-bit `stop` is set the loop ends at once and
        leaves i and the values as they were on entering this round.
        """
        b = self.b
        before = b.block
        head, inside, after = (b.append_basic_block(n) for n in ("head", "inside", "after"))
        b.branch(head)
        b.position_at_end(head)
        i = b.phi(start.type)
        values = [b.phi(v.type) for v in carried]
        i.add_incoming(start, before)
        for phi, v in zip(values, carried, strict=True):
            phi.add_incoming(v, before)
        b.cbranch(more(i), inside, after)
        b.position_at_end(inside)
        stop, following = body(i, list(values))
        if stop is not None:
            on = b.append_basic_block("on")
            b.cbranch(stop, after, on)
            b.position_at_end(on)
        i.add_incoming(b.add(i, ir.Constant(i.type, step)), b.block)
        for phi, v in zip(values, following, strict=True):
            phi.add_incoming(v, b.block)
        b.branch(head)
        b.position_at_end(after)
        return i, list(values)

    # -- helpers --------------------------------------------------------------------------------

    @staticmethod
    def _suffix(x: Value) -> str:
        return f"v{x.type.count}i{x.type.element.width}"

    def _call(self, name: str, result: ir.Type, *args: Value) -> Value:
        module = self.b.module
        function = module.globals.get(name)
        if function is None:
            kind = ir.FunctionType(result, [a.type for a in args])
            function = ir.Function(module, kind, name)
        return self.b.call(function, args)
