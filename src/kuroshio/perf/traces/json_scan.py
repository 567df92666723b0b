"""Where values of JSON end, from quotes, escapes and brackets alone, counted with NumPy."""

from __future__ import annotations

import re

import numpy as np

_QUOTE, _BACKSLASH = b'"\\'
_OPENING = 0x7B  # { and, with this bit set, [
_CLOSING = 0x7D
_CASE = 0x20
_END_OF_PLAIN = re.compile(rb"[ \t\r\n,\]}:]")


def ends_of_elements(text: bytes) -> tuple[np.ndarray, int | None]:
    """Of a text that begins within an array: the ends of its objects and arrays, and its own.

    Ends are the positions after the last byte. The array's own is that of its bracket, and None
    where the text does not reach it; elements after that are not told.
    """
    positions, depth = _brackets(text)
    closed = np.flatnonzero(depth < 0)
    if len(closed):
        positions, depth = positions[: closed[0] + 1], depth[: closed[0] + 1]
        return positions[depth == 0] + 1, int(positions[-1])
    return positions[depth == 0] + 1, None


def end_of_value(text: bytes) -> int:
    """The position after the value that the text begins with; 0 where the text may end before."""
    if text[:1] in (b"{", b"["):
        positions, depth = _brackets(text)
        ends = np.flatnonzero(depth == 0)
        return int(positions[ends[0]]) + 1 if len(ends) else 0
    if text[:1] == b'"':
        quotes = _quotes(np.frombuffer(text, np.uint8))
        return int(quotes[1]) + 1 if len(quotes) > 1 else 0
    found = _END_OF_PLAIN.search(text)
    return found.start() if found else 0


def _brackets(text: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Where those outside of strings are, and the depth after each, from 0."""
    characters = np.frombuffer(text, np.uint8)
    folded = characters | _CASE
    found = np.flatnonzero((folded == _OPENING) | (folded == _CLOSING))
    outside = np.searchsorted(_quotes(characters), found) % 2 == 0
    found = found[outside]
    return found, np.cumsum(np.where(folded[found] == _OPENING, 1, -1))


def _quotes(characters: np.ndarray) -> np.ndarray:
    """Where strings begin and end: at quotes that are not escaped."""
    quotes = np.flatnonzero(characters == _QUOTE)
    slashes = np.flatnonzero(characters == _BACKSLASH)
    if not len(slashes):
        return quotes
    # Of backslashes in a row every second is itself escaped; an odd number escape what follows.
    first = np.concatenate([[True], np.diff(slashes) > 1])
    last = np.concatenate([first[1:], [True]])
    odd = (slashes[last] - slashes[first]) % 2 == 0
    return quotes[~np.isin(quotes, slashes[last][odd] + 1, assume_unique=True)]
