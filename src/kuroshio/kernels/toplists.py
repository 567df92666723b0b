"""Operation lists of the exact percentile: selection from sorted lists of the largest values.

Lists cannot be taken from one another, but they can be joined: a window is the end of one block of
words and the start of the next, so two joins a word serve every window (van Herk 1992; Gil and
Werman 1993). The k-th largest of two sorted lists needs no join at all. Straight minima and maxima
of whole vectors; good for a rank near either end of the pool.

Each function is a list of operations on an emitter `o` (see device.llvm.Emitter) and values it
made; nothing here knows a device, a year or a calendar.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any


def sort(o: Any, values: Sequence[Any]) -> list[Any]:
    """The values of each lane, largest first."""
    result = list(values)
    for i, j in sorting_network(len(result)):
        result[i], result[j] = o.max_(result[i], result[j]), o.min_(result[i], result[j])
    return result


def join(o: Any, a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
    """The len(a) largest of two lists, largest first; `b` is not longer than `a`.

    The i-th of one against the i-th from the end of the other: the larger of each pair are the
    largest of all, and fall and then rise.
    """
    size = len(a)
    opposite = [None] * (size - len(b)) + list(reversed(b))
    result = [x if y is None else o.max_(x, y) for x, y in zip(a, opposite, strict=True)]
    exchanges, order = bitonic_network(size)
    for i, j in exchanges:
        result[i], result[j] = o.max_(result[i], result[j]), o.min_(result[i], result[j])
    return [result[i] for i in order]


def sorting_network(size: int) -> Iterator[tuple[int, int]]:
    """Exchanges (i, j), larger to i, that sort any sequence (Knuth, vol. 3, 5.2.2, algorithm M)."""
    top = 1 << max(size - 1, 1).bit_length() - 1
    p = top
    while p:
        q, r, d = top, 0, p
        while True:
            for i in range(size - d):
                if i & p == r:
                    yield i, i + d
            if q == p:
                break
            d, q, r = q - p, q // 2, p
        p //= 2


def bitonic_network(size: int) -> tuple[list[tuple[int, int]], list[int]]:
    """What sorts a sequence that falls and then rises: exchanges, and where each rank then is.

    The network for the next power of two, whose spare places hold what is larger than any value:
    their exchanges are known beforehand and cost nothing.
    """
    full = 1 << (size - 1).bit_length()
    slots: list[int | None] = [*range(size), *[None] * (full - size)]
    exchanges = []
    half = full // 2
    while half:
        for start in range(0, full, 2 * half):
            for at in range(start, start + half):
                i, j = slots[at], slots[at + half]
                if j is None:
                    slots[at], slots[at + half] = j, i
                elif i is not None:
                    exchanges.append((i, j))
        half //= 2
    return exchanges, [i for i in slots if i is not None]
