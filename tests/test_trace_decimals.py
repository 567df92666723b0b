"""Microseconds from their text to whole nanoseconds, exactly."""

from __future__ import annotations

import json
from decimal import ROUND_HALF_UP, Context, Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuroshio.perf.traces.decimals import nanoseconds

EXACT = Context(prec=1000)
SMALL = 1 << 62  # ns

DIGITS = st.text("0123456789", min_size=1, max_size=22)
NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(json.dumps),
    st.integers(-(10**19), 10**19).map(str),
    st.builds(lambda whole, decimals: f"{whole}.{decimals}", DIGITS, DIGITS),
    st.builds(lambda sign, digits, power: f"{sign}{digits}e{power}", st.sampled_from(["", "-"]),
              DIGITS, st.integers(-30, 30)),
)  # fmt: skip
TEXTS = NUMBERS | NUMBERS.map(json.dumps)


def expected(text: str, per_unit: int) -> int | None:
    exact = EXACT.multiply(Decimal(text.strip('"')), Decimal(per_unit))
    value = int(exact.to_integral_value(ROUND_HALF_UP, EXACT))
    return value if abs(value) < SMALL and len(text.strip('"')) < 40 else None


@given(st.lists(TEXTS, max_size=20), st.sampled_from([1, 1000]))
def test_as_decimal_arithmetic_has_them(texts, per_unit):
    values, known = nanoseconds([text.encode() for text in texts], per_unit)
    found = [int(value) if there else None for value, there in zip(values, known, strict=True)]
    assert found == [expected(text, per_unit) for text in texts]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1712195495505583.001", 1712195495505583001),  # of a float64 the last is lost
        ("1712195495505583.25", 1712195495505583250),
        ("0.0005", 1),
        ("0.00049999999999", 0),
        ("5.2830000000000004", 5283),
        ("7.", 7000),
        ('"23"', 23000),
        ('" 23 "', 23000),
        ("-1.5", -1500),
        ("1.5E3", 1500000),
    ],
)
def test_by_hand(text, value):
    values, known = nanoseconds([text.encode()])
    assert known.all()
    assert values.dtype == np.int64
    assert values[0] == value


@pytest.mark.parametrize(
    "text",
    ["", '""', "null", "true", "[1,2]", '"a,b"', '"1.2.3"', '"."', '".5"', '"1e"', '"\\u0031"',
     "9223372036854775807", "9999999999999999", "1e300", '"0x10"', '"nan"', "{}"],
)  # fmt: skip
def test_what_is_no_number_is_not_known_and_spoils_no_other(text):
    values, known = nanoseconds([b"1", text.encode(), b"2.5"])
    assert known.tolist() == [True, False, True]
    assert values.tolist() == [1000, 0, 2500]


def test_nothing():
    values, known = nanoseconds([])
    assert len(values) == len(known) == 0
