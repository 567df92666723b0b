"""MessagePack, of the kinds of values that compilers write."""

from __future__ import annotations

from typing import Any

_DEEPEST = 32


def unpack(data: bytes) -> Any:
    """The first value. ValueError if it is cut off, or of another kind."""
    return _value(data, 0, 0)[0]


def _value(data: bytes, at: int, depth: int) -> tuple[Any, int]:
    """The value at `at`, and where it ends."""
    kind = _number(data, at, 1)
    at += 1
    if kind < 0x80:
        return kind, at
    if kind in (0xC2, 0xC3):
        return kind == 0xC3, at
    if 0xCC <= kind <= 0xCF:
        size = 1 << (kind - 0xCC)
        return _number(data, at, size), at + size
    if 0xA0 <= kind < 0xC0 or 0xD9 <= kind <= 0xDB:
        size = 0 if kind < 0xC0 else 1 << (kind - 0xD9)
        begin = at + size
        end = begin + (_number(data, at, size) if size else kind & 0x1F)
        if end > len(data):
            raise ValueError("a text is cut off")
        return data[begin:end].decode(errors="replace"), end
    if kind < 0xA0 or 0xDC <= kind <= 0xDF:
        size = 0 if kind < 0xA0 else 2 << (kind & 1)
        count = _number(data, at, size) if size else kind & 0x0F
        mapping = kind < 0x90 or kind >= 0xDE
        items = 2 * count if mapping else count
        if depth > _DEEPEST or items > len(data):
            raise ValueError("its parts do not fit into it")
        values, at = [], at + size
        for _ in range(items):
            value, at = _value(data, at, depth + 1)
            values.append(value)
        if not mapping:
            return values, at
        return {str(key): value for key, value in zip(values[::2], values[1::2], strict=True)}, at
    raise ValueError(f"a value is of a kind ({kind:#x}) that no compiler is known to write")


def _number(data: bytes, at: int, size: int) -> int:
    if at + size > len(data):
        raise ValueError("a value is cut off")
    return int.from_bytes(data[at : at + size], "big")
