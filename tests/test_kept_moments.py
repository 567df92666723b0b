"""Moments that are kept: what they give, and years that come and go, held to the definition."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import strategies
from engine import archive_of, compute
from kept import arrays, change, climatology, daily, facts, new, part_of
from kuroshio import calendar as cal
from kuroshio.errors import Refusal
from kuroshio.request import Request
from test_engine import compare

SHAPES = ((1,), (3,), (2, 2))
PERCENTILES = st.lists(st.integers(1, 99).map(float), min_size=1, max_size=2, unique=True)
once = settings(deadline=None, phases=(Phase.explicit, Phase.generate))


@contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def drawn(data, **options) -> strategies.Sample:
    options = {"max_years": 5, "cell_shapes": SHAPES, **options}
    return data.draw(strategies.archives(**options))


def wanted(data, years: tuple[int, int], half_width: int) -> Request:
    return Request(
        baseline=years,
        percentiles=tuple(data.draw(PERCENTILES)),
        half_width=half_width,
        doys=data.draw(st.sampled_from((None, (1, 59, 60, 61, 200), tuple(range(300, 361))))),
        smooth_width=data.draw(st.sampled_from((1, 31))),
        feb29=data.draw(st.sampled_from(("mean", "pool"))),
        min_valid=data.draw(st.sampled_from((0.0, 0.5, 0.9, 1.0))),
        extras=("count", "std", "skewness", "kurtosis"),
        method="moments",
    )


@settings(once, max_examples=25)
@given(st.data())
def test_what_is_kept_gives_the_climatology(data):
    """Leap days, year ends, gaps, land, one value, constant cells; every calendar and key."""
    sample = drawn(data)
    first, last = sample.years
    begin = data.draw(st.integers(first, last))
    years = begin, data.draw(st.integers(begin, last))
    half_width = data.draw(st.sampled_from((0, 1, 5, 20)))
    rows = data.draw(st.integers(1, 3))
    archive = archive_of(sample, (len(sample.days) // 2,) if len(sample.days) > 1 else (), rows)
    request = wanted(data, years, half_width)
    expected = strategies.oracle(sample, request)
    with folder() as place:
        try:
            path = new(place / data.draw(st.sampled_from(("s.nc", "s.zarr"))), archive, *years,
                       half_width)  # fmt: skip
        except Refusal:
            assert (expected["count"] == 0).all()
            return
        found = climatology(path, request)
    compare(found, expected, sample, request)


@settings(once, max_examples=10)
@given(st.data())
def test_as_the_engine_has_it(data):
    """What `--method moments` makes of the files differs by a rounding to float32 at most."""
    sample = drawn(data, storages=("int16",), kinds=("ordinary", "land", "constant", "ice"))
    years = sample.years
    archive = archive_of(sample)
    request = replace(wanted(data, years, 5), doys=None)
    with folder() as place:
        found = climatology(new(place / "s.nc", archive, *years), request)
    made = compute(archive, request)
    rounding = 1e-6 + 3e-7 * np.nanmax(np.abs(sample.values), initial=1.0)  # of a departure
    for name in ("seas", "thresh", "count", "std"):
        np.testing.assert_allclose(found[name], made[name], 3e-7, rounding, err_msg=name)


@settings(once, max_examples=10)
@given(st.data())
def test_codes_in_any_order_leave_the_same_bits(data):
    """Years added and removed, the series growing meanwhile: as if made at once."""
    sample = drawn(data, storages=("int16", "int16_full"), max_years=6)
    if sample.fill != -32768:  # which as a value is no code
        sample = replace(sample, stored=np.maximum(sample.stored, -32767))
    first, last = sample.years
    whole = daily(sample)
    in_the_end = data.draw(st.sets(st.integers(first, last), min_size=1))
    begin = data.draw(st.sampled_from(years_of(sample)))
    extra = data.draw(st.sets(st.integers(first, last)))
    with folder() as place:
        # Of the days that there were when the first year was over.
        until = int(cal.day_number(sample.calendar, begin + 1, 1))
        path = new(place / "s.nc", daily(part_of(sample, sample.days < until)), begin, begin)
        for year in data.draw(st.permutations(sorted({first, last, *extra, *in_the_end}))):
            if year != begin:
                change(path, whole, add=[year])
        for year in data.draw(st.permutations(sorted({*facts(path).years} - in_the_end))):
            change(path, whole, remove=[year]) if len(facts(path).years) > 1 else None
        years = facts(path).years
        other = new(place / "all.zarr", whole, first, last)
        gone = sorted({*range(first, last + 1)} - {*years})
        if gone:
            change(other, whole, remove=gone)
        assert facts(path).totals == facts(other).totals
        same(arrays(path), arrays(other))
        if facts(path).contiguous:
            same(arrays(path), arrays(new(place / "once.nc", whole, years[0], years[-1])))


def years_of(sample: strategies.Sample) -> list[int]:
    """Those with days."""
    return np.unique(cal.year_and_dayofyear(sample.calendar, sample.days)[0]).tolist()


def same(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> None:
    for name, values in other.items():
        np.testing.assert_array_equal(one[name], values, name)
