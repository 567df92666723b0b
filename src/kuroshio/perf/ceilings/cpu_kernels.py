"""Loops that a processor's ceilings are measured with, compiled by Numba.

Each works `passes` times through its arrays without the interpreter's lock, and returns or leaves
something that depends on all of it, so that no compiler can leave work out.
"""

from __future__ import annotations

from numba import njit, types
from numba.extending import intrinsic

CHAIN = 16  # operations on a value between its load and its store


@njit(nogil=True)
def read(source, passes):
    """Sum of 64-bit integers: 8 bytes an item. Integers, so that four sums go on at once."""
    total = 0
    for _ in range(passes):
        for i in range(source.size):
            total += source[i]
    return total


@njit(nogil=True)
def copy(source, target, passes):
    """16 bytes an item, without what a cache fetches before it writes. There and back."""
    for p in range(passes):
        if p % 2 == 0:
            for i in range(source.size):
                target[i] = source[i]
        else:
            for i in range(source.size):
                source[i] = target[i]


@njit(nogil=True, fastmath={"contract"})
def triad(first, second, target, passes):
    """24 bytes and 2 operations an item; one factor a pass."""
    for p in range(passes):
        factor = 1.0 + p
        for i in range(target.size):
            target[i] = first[i] + factor * second[i]


@njit(nogil=True, fastmath={"contract"})
def fma(values, factor, addend, passes):
    """y = y factor + addend, CHAIN times an item: 2 CHAIN operations."""
    for _ in range(passes):
        for i in range(values.size):
            y = values[i]
            y = y * factor + addend
            y = y * factor + addend
            y = y * factor + addend
            y = y * factor + addend
            y = y * factor + addend
            y = y * factor + addend
            y = y * factor + addend
            y = y * factor + addend
            y = y * factor + addend
            y = y * factor + addend
            y = y * factor + addend
            y = y * factor + addend
            y = y * factor + addend
            y = y * factor + addend
            y = y * factor + addend
            y = y * factor + addend
            values[i] = y


@njit(nogil=True)
def min_max(values, bounds, passes):
    """CHAIN minima and maxima an item, against CHAIN bounds that no compiler knows."""
    a, b, c, d = bounds[0], bounds[1], bounds[2], bounds[3]
    e, f, g, h = bounds[4], bounds[5], bounds[6], bounds[7]
    for _ in range(passes):
        for i in range(values.size):
            y = values[i]
            y = max(min(y, a), b)
            y = max(min(y, c), d)
            y = max(min(y, e), f)
            y = max(min(y, g), h)
            y = max(min(y, b), a)
            y = max(min(y, d), c)
            y = max(min(y, f), e)
            y = max(min(y, h), g)
            values[i] = y


@intrinsic
def ones(typingctx, word):
    """How many bits of an integer are set."""
    if not isinstance(word, types.Integer):
        return None

    def generate(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return word(word), generate


@njit(nogil=True)
def popcount(words, passes):
    """One count an item, with a load and an addition."""
    total = 0
    for _ in range(passes):
        for i in range(words.size):
            total += ones(words[i])
    return total
