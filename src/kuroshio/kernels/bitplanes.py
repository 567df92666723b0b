"""Operation lists of the exact percentile: selection on bit planes.

Up to 32 values of one cell (one a year) become one 32-bit word a bit of the value: its *planes*.
A window is a handful of such words a plane. Walking the planes from the top bit, the candidates
for the wanted rank are split into those whose bit is 0 and those whose bit is 1; counting the first
kind says which half holds the rank. Exact for any rank, any number of missing values, any
percentile; no sorting and no divergence (Knuth, vol. 3, 5.2.5: radix exchange; the counting is a
radix select).

Each function is a list of operations on an emitter `o` (see device.llvm.Emitter) and values it
made; nothing here knows a device, a year or a calendar.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_MASKS = {16: 0x0000FFFF, 8: 0x00FF00FF, 4: 0x0F0F0F0F, 2: 0x33333333, 1: 0x55555555}


def transpose(o: Any, rows: Sequence[Any], block: int) -> list[Any]:
    """Transpose bits: result j's bit i is row i's bit j (Hacker's Delight, 7-3).

    `block` 32: 32 rows of 32 bits. `block` 16: 16 rows, each two independent 16-bit halves, so
    that one pass turns 32 values of 16 bits (i in the low half, i + 16 in the high) into 16 planes.
    """
    rows = list(rows)
    half = block // 2
    while half:
        mask = o.const(_MASKS[half])
        for i in range(block):
            if not i & half:
                low, high = rows[i], rows[i + half]
                swap = o.and_(o.xor(o.shr(low, half), high), mask)
                rows[i + half] = o.xor(high, swap)
                rows[i] = o.xor(low, o.shl(swap, half))
        half //= 2
    return rows


def count(o: Any, words: Sequence[Any]) -> Any:
    """Bits set in all words together: full adders shrink the list before any popcount."""
    total, level, weight = None, list(words), 0
    while level:
        carries = []
        while len(level) >= 3:
            x, y, z = level.pop(0), level.pop(0), level.pop(0)
            level.append(o.xor(o.xor(x, y), z))
            carries.append(o.majority(x, y, z))
        for word in level:
            bits = o.shl(o.popcount(word), weight)
            total = bits if total is None else o.add(total, bits)
        level, weight = carries, weight + 1
    return total


def union(o: Any, words: Sequence[Any]) -> Any:
    """Bitwise or of all words."""
    result = words[0]
    for word in words[1:]:
        result = o.or_(result, word)
    return result


def split(o: Any, candidates: Sequence[Any], plane: Sequence[Any], rank: Any) -> tuple:
    """Which half of the candidates holds the one of 0-based ascending `rank`.

    Returns (ones, zeros, parting): `ones` is the mask of lanes that take the half with the bit set,
    `zeros` counts the other half, and `parting` is the mask of lanes where `rank` is the last of
    the zeros, so that rank + 1 lies in the other half.
    """
    zeros = count(o, [o.andnot(m, p) for m, p in zip(candidates, plane, strict=True)])
    ones = o.ge(rank, zeros)
    parting = o.eq(o.add(rank, o.const(1)), zeros)
    return ones, zeros, parting


def keep(o: Any, candidates: Sequence[Any], plane: Sequence[Any], ones: Any) -> list[Any]:
    """The candidates of the half that `ones` chose."""
    return [o.andnot(m, o.xor(p, ones)) for m, p in zip(candidates, plane, strict=True)]


def least(o: Any, above: Sequence[Any], plane: Sequence[Any]) -> tuple[Any, list[Any]]:
    """One step of the walk to the smallest member of `above`: (its bit as a mask, who is left)."""
    zeros = o.nonzero(union(o, [o.andnot(a, p) for a, p in zip(above, plane, strict=True)]))
    left = [o.andnot(a, o.and_(p, zeros)) for a, p in zip(above, plane, strict=True)]
    return o.xor(zeros, o.const(-1)), left
