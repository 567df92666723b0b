"""Microseconds as JSON writes them, to whole nanoseconds, exactly and many at a time.

A float64 of 1.7e15 us, which is today, has steps of 0.25 us, so numbers are taken from their text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Context, Decimal

import numpy as np

_MOST_DIGITS = 19  # ns; they overflow once at most, to a negative number
_LARGEST = 1 << 62  # ns; a sum or a difference of such cannot overflow
_EXACT = Context(prec=600, rounding=ROUND_HALF_UP)  # more than _NUMBER can have
_NUMBER = re.compile(r"-?[0-9]{1,40}(\.[0-9]{0,400})?([eE][-+]?[0-9]{1,3})?")
_COMMA, _POINT, _ZERO = b",.0"


def nanoseconds(texts: Sequence[object], per_unit: int = 1000) -> tuple[np.ndarray, np.ndarray]:
    """int64 ns, and which are known, of numbers as JSON's text (bytes, or msgspec.Raw).

    `per_unit` is 1000 of microseconds and 1 of nanoseconds. Strings are taken as the numbers they
    hold; a half is rounded up in size. What is no number, or 146 years or more, is not known: 0.
    """
    joined = b",".join(texts) + b"," if texts else b""  # type: ignore[arg-type]
    characters = np.frombuffer(joined.replace(b'"', b""), np.uint8)
    ends = np.flatnonzero(characters == _COMMA)
    values = np.zeros(len(texts), np.int64)
    known = np.zeros(len(texts), bool)
    if len(ends) != len(texts):  # one holds a comma, so it is no number
        plain = np.zeros(len(texts), bool)
    else:
        plain = _plain(characters, ends, values, 3 if per_unit == 1000 else 0)
    known |= plain
    for row in np.flatnonzero(~plain):
        value = _one(bytes(texts[row]), per_unit)  # type: ignore[call-overload]
        if value is not None:
            values[row], known[row] = value, True
    return values, known


def _plain(
    characters: np.ndarray, ends: np.ndarray, values: np.ndarray, decimals: int
) -> np.ndarray:
    """Fills in values of digits with or without a point; which are such."""
    starts = np.concatenate([[0], ends[:-1] + 1])
    points = np.flatnonzero(characters == _POINT)
    rows = np.searchsorted(ends, points)
    point = ends.copy()
    point[rows] = points
    # Digits, one point at most, and no more before it than fit.
    strange = (characters - _ZERO > 9) & (characters != _POINT) & (characters != _COMMA)
    plain = np.ones(len(ends), bool)
    plain[np.searchsorted(ends, np.flatnonzero(strange))] = False
    plain[rows[1:][rows[1:] == rows[:-1]]] = False
    whole = point - starts
    plain &= (whole > 0) & (whole <= _MOST_DIGITS - decimals)
    fewest, most = int(whole[plain].min(initial=99)), int(whole[plain].max(initial=0))
    digits = characters - _ZERO
    for place in range(most):
        at = point - 1 - place
        digit = digits[at].astype(np.int64)
        if place >= fewest:  # not all have one
            digit[at < starts] = 0
        digit *= 10 ** (place + decimals)
        values += digit
    if len(points):
        after = ends - point - 1  # digits
        for place in range(1, min(decimals, int(after.max())) + 1):
            at = np.minimum(point + place, len(characters) - 1)
            digit = digits[at].astype(np.int64)
            digit[after < place] = 0
            values += digit * 10 ** (decimals - place)
        # The next digit alone tells which way half and more are rounded.
        at = np.minimum(point + decimals + 1, len(characters) - 1)
        values += (after > decimals) & (digits[at] >= 5)
    plain &= (values >= 0) & (values < _LARGEST)
    values[~plain] = 0
    return plain


def _one(text: bytes, per_unit: int) -> int | None:
    """Of a number with a sign or an exponent, or in quotes."""
    found = _NUMBER.fullmatch(text.strip(b'" \t\r\n').decode("ascii", "replace"))
    if not found:
        return None
    exact = _EXACT.multiply(Decimal(found[0]), Decimal(per_unit))
    value = int(_EXACT.to_integral_value(exact))
    return value if abs(value) < _LARGEST else None
