"""Operation lists to C text: the same lists that `llvm.Emitter` turns into vector instructions.

A value is the name of a 32-bit word of one thread (a cell, or two cells of 16 bits side by side);
every operation is one line of text for any C compiler, of CUDA, HIP or a plain processor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

Value = str


class TextEmitter:
    """Collects lines; its methods are those of `llvm.Emitter` that operation lists call.

    `packed` says that words are two cells of 16 bits: minima and maxima are then taken of each.
    """

    def __init__(self, packed: bool = False) -> None:
        self.lines: list[str] = []
        self._packed = packed

    def const(self, value: int) -> Value:
        return f"0x{value & 0xFFFFFFFF:x}u"

    def and_(self, x: Value, y: Value) -> Value:
        return self._word(f"{x} & {y}")

    def or_(self, x: Value, y: Value) -> Value:
        return self._word(f"{x} | {y}")

    def xor(self, x: Value, y: Value) -> Value:
        return self._word(f"{x} ^ {y}")

    def andnot(self, x: Value, y: Value) -> Value:
        """x & ~y."""
        return self._word(f"{x} & ~{y}")

    def majority(self, x: Value, y: Value, z: Value) -> Value:
        return self._word(f"({x} & {y}) | ({z} & ({x} | {y}))")

    def shl(self, x: Value, count: int) -> Value:
        return self._word(f"{x} << {count}") if count else x

    def shr(self, x: Value, count: int) -> Value:
        return self._word(f"{x} >> {count}") if count else x

    def add(self, x: Value, y: Value) -> Value:
        return self._word(f"{x} + {y}")

    def sub(self, x: Value, y: Value) -> Value:
        return self._word(f"{x} - {y}")

    def popcount(self, x: Value) -> Value:
        return self._word(f"popcount({x})")

    def min_(self, x: Value, y: Value) -> Value:
        return self._word(f"min2({x}, {y})" if self._packed else f"min({x}, {y})")

    def max_(self, x: Value, y: Value) -> Value:
        return self._word(f"max2({x}, {y})" if self._packed else f"max({x}, {y})")

    def ge(self, x: Value, y: Value) -> Value:
        """Mask where x >= y, signed."""
        return self._word(f"mask((int){x} >= (int){y})")

    def eq(self, x: Value, y: Value) -> Value:
        return self._word(f"mask({x} == {y})")

    def nonzero(self, x: Value) -> Value:
        return self._word(f"mask({x} != 0u)")

    def _word(self, expression: str) -> Value:
        name = f"t{len(self.lines)}"
        self.lines.append(f"const u32 {name} = {expression};")
        return name


def block(
    operations: Callable[[TextEmitter], Iterable[tuple[str, Value]]], packed: bool = False
) -> str:
    """A block of C text: the operations, and then what is assigned to which name."""
    o = TextEmitter(packed)
    ends = [f"{name} = {value};" for name, value in operations(o)]
    return "{\n" + "\n".join([*o.lines, *ends]) + "\n}"
