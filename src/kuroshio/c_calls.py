"""Calls of C functions from compiled code, without the interpreter lock."""

from __future__ import annotations

import ctypes
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


@intrinsic
def call(typingctx, address, a, b, c, d, e, f):
    """Call the C function at an address with integers and pointers; those it lacks are ignored.

    What it returns is 64 bits wide: of a narrower result the rest is anything.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        i64 = ir.IntType(64)
        kind = ir.FunctionType(i64, [i64] * 6)
        return builder.call(builder.inttoptr(args[0], kind.as_pointer()), args[1:])

    return types.int64(address, a, b, c, d, e, f), codegen


@intrinsic
def int32_at(typingctx, address):
    """The 32-bit integer at an address."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(builder.inttoptr(args[0], ir.IntType(32).as_pointer()))

    return types.int32(address), codegen


def address_of(library: ctypes.CDLL, name: str) -> int:
    """Where a function of a library is; AttributeError where it is not."""
    found = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    assert found is not None
    return found
