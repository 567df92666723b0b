"""Updates of moments: floats, blocks, gaps, files that changed, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import kuroshio as ks
import strategies
from engine import archive_of
from kept import arrays, change, climatology, daily, facts, new, part_of
from kuroshio import calendar as cal
from kuroshio.archive.model import Field, Grid
from kuroshio.errors import Refusal
from kuroshio.moments.job import Means, make, update
from kuroshio.request import Request

FIRST = 10957  # 1 January 2000


def sample_of(values: np.ndarray, first: int = FIRST) -> strategies.Sample:
    """Codes of 0.01 if `values` (day, cell) are int16, else floats."""
    days = first + np.arange(len(values))
    if values.dtype != np.int16:
        return strategies.Sample(np.float64(values), days, "standard", values, ())
    real = np.where(values == -999, np.nan, values * 0.01)
    return strategies.Sample(real, days, "standard", values, (), 0.01, 0.0, -999)


def codes(days: int = 365 * 4 + 1, cells: int = 40) -> np.ndarray:
    rng = np.random.default_rng()
    cycle = 1500 + 800 * np.cos(2 * np.pi * np.arange(days) / 365.25)
    values = np.rint(cycle[:, None] + 90 * rng.standard_normal((days, cells))).astype(np.int16)
    values[:, 3:7] = -999
    return values


@settings(max_examples=8, deadline=None, phases=(Phase.explicit, Phase.generate))
@given(st.data())
def test_floats_agree_to_rounding(tmp_path_factory, data):
    """A year that came and went leaves 1e-9 of the spread, and a constant pool its one value."""
    options = {"max_years": 4, "cell_shapes": ((3,),), "storages": ("float32", "float64")}
    sample = data.draw(strategies.archives(**options))
    place = tmp_path_factory.mktemp("floats")
    first, last = sample.years
    path = new(place / "s.nc", daily(sample), first, last)
    before = arrays(path)
    year = data.draw(st.integers(first, last))
    if first < last:
        change(path, daily(sample), remove=[year])
        change(path, daily(sample), add=[year])
    after = arrays(path)
    np.testing.assert_array_equal(after["count"], before["count"])
    n = np.maximum(before["count"], 1)
    std = np.sqrt(before["sum2"] / n)
    spread = std + 1e-6 * np.nan_to_num(np.abs(before["mean"])) + 1e-9
    assert np.nanmax(np.abs(after["mean"] - before["mean"]) / spread, initial=0) < 1e-7
    for power in (2, 3, 4):
        error = np.abs(after[f"sum{power}"] - before[f"sum{power}"]) / (n * spread**power)
        assert np.nanmax(error, initial=0) < 1e-6, power
    request = Request(extras=("std",), smooth_width=1, feb29="pool")
    ice = [kind == "constant" for kind in sample.kinds]
    found = climatology(path, request)
    equal = before["sum2"] == 0
    np.testing.assert_array_equal(found["std"][equal & (before["count"] > 0)], 0.0)
    same = found["thresh"][0][:, ice] == found["seas"][:, ice]
    assert (same | np.isnan(found["seas"][:, ice])).all()


def test_a_constant_pool_from_one_that_was_not(tmp_path):
    """Of floats: a year of other values has gone, and what is left of its spread is no spread."""
    values = np.full((365 * 3 + 1, 2), -1.8)
    values[:366, 1] = 271.35 + np.random.default_rng().normal(0, 3, 366)
    sample = sample_of(values)
    whole = daily(sample)
    path = new(tmp_path / "s.nc", whole, 2000, 2002)
    change(path, whole, remove=[2000])
    found = climatology(path, Request(extras=("std",), smooth_width=1, feb29="mean"))
    inside = slice(9, 360)  # windows that do not reach into 2000
    np.testing.assert_array_equal(found["std"][inside][:, 1], 0.0)
    np.testing.assert_allclose(found["thresh"][0][inside][:, 1], -1.8, rtol=1e-6)


def test_what_little_spread_a_year_leaves_is_no_rounding(tmp_path):
    """A ten thousandth of what the year that has gone had: a hundred millionth of its squares."""
    rng = np.random.default_rng(5)
    values = 3.0 + rng.normal(0, 3e-4, (365 * 3 + 1, 2))
    values[:366] = 3.0 + rng.normal(0, 3, (366, 2))
    whole = daily(sample_of(values))
    path = new(tmp_path / "s.nc", whole, 2000, 2002)
    change(path, whole, remove=[2000])
    at_once = new(tmp_path / "at_once.nc", whole, 2001, 2002)
    request = Request(extras=("std",), smooth_width=1, feb29="mean")
    found, wanted = (climatology(each, request)["std"] for each in (path, at_once))
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


@pytest.mark.parametrize("together", [True, False])
def test_a_constant_pool_that_grows_again(tmp_path, together):
    """Equal floats that come to equal ones are no spread, though the mean of these was rounded."""
    values = np.tile([0.0, 271.3512345, -1.8123456], (365 * 4 + 1, 1))
    values[100:400] = np.random.default_rng(3).gamma(2.0, 3.0, (300, 3))  # rain in a desert
    whole = daily(sample_of(values))
    path = new(tmp_path / "s.nc", whole, 2000, 2002)
    if together:
        change(path, whole, add=[2003], remove=[2000, 2001])
    else:
        change(path, whole, remove=[2000, 2001])
        change(path, whole, add=[2003])
    at_once = new(tmp_path / "at_once.nc", whole, 2002, 2003)
    request = Request(extras=("std", "skewness", "kurtosis"), smooth_width=1, feb29="mean")
    found, wanted = (climatology(each, request) for each in (path, at_once))
    for name in ("std", "skewness", "kurtosis"):
        np.testing.assert_array_equal(found[name], wanted[name], name)
    np.testing.assert_array_equal(found["seas"][:, 0], 0.0)


def test_blocks_and_batches_do_not_matter(tmp_path):
    """So little memory that the grid is cut, and pieces that hold several days and few rows."""
    values = codes().reshape(-1, 10, 4)
    archive = archive_of(sample_of(values), (100, 366, 500, 731, 1000), rows=3)
    one = new(tmp_path / "one.nc", archive, 2000, 2002)
    make(archive, (2000, 2002), 5, tmp_path / "two.nc", Means(memory_bytes=150_000, threads=2))
    for each in (one, tmp_path / "two.nc"):
        done = update(each, archive, [2003], [2001], Means(memory_bytes=150_000, threads=1))
    assert done.plan.blocks > 1
    other = arrays(tmp_path / "two.nc")
    for name, kept in arrays(one).items():
        np.testing.assert_array_equal(kept, other[name], name)


def test_a_value_where_land_was(tmp_path):
    """Days on which a bay opens are none of those by which land is told."""
    values = codes(cells=600)
    values[:, 200:400] = -999
    values[400:403, 250] = 300
    archive = daily(sample_of(values))
    path = new(tmp_path / "s.nc", archive, 2000, 2002)
    assert arrays(path)["count"][:, 250].max() == 3
    change(path, archive, add=[2003], remove=[2001])
    assert arrays(path)["count"][:, 250].max() == 0


def test_missing_days_are_counted_and_stay_missing(tmp_path):
    sample = sample_of(codes())
    lost = sample.days != FIRST + 400  # in 2001
    path = tmp_path / "s.nc"
    done = make(daily(part_of(sample, lost)), (2000, 2002), 5, path, Means(threads=1))
    assert any("2001 1" in note for note in done.notes)
    whole = daily(sample)
    change(path, whole, add=[2003])
    assert FIRST + 400 not in facts(path).series.days
    change(path, whole, remove=[2001])  # without the day that has come since
    as_before = new(tmp_path / "other.nc", daily(part_of(sample, lost)), 2000, 2003)
    change(as_before, daily(part_of(sample, lost)), remove=[2001])
    for name, kept in arrays(as_before).items():
        np.testing.assert_array_equal(arrays(path)[name], kept, name)
    change(path, whole, add=[2001])  # and now it is taken, where no year has it settled
    assert FIRST + 400 in facts(path).series.days


def test_a_year_needs_the_days_about_it(tmp_path):
    sample = sample_of(codes())
    path = new(tmp_path / "s.nc", daily(part_of(sample, sample.days < FIRST + 366)), 2000, 2000)
    only = sample.days >= FIRST + 366
    with pytest.raises(Refusal, match=r"reach to 5 days .* first 2000-12-27"):
        change(path, daily(part_of(sample, only)), add=[2001])
    with pytest.raises(Refusal, match="2000 reach to 366 days"):
        change(path, daily(part_of(sample, sample.days >= FIRST + 731)), [2002], [2000])
    near = sample.days >= FIRST + 366 - 10
    change(path, daily(part_of(sample, near)), add=[2001, 2002, 2003])
    at_once = arrays(new(tmp_path / "other.nc", daily(sample), 2000, 2003))
    for name, kept in arrays(path).items():
        np.testing.assert_array_equal(kept, at_once[name], name)


@pytest.mark.parametrize("end", [366 + 365 + 190, 366 + 365 + 362, 366 + 365 * 2 + 3])
def test_a_series_that_ended_within_a_year_goes_on(tmp_path, end):
    """Days of year that it had not reached get whole windows, with what lay before its end."""
    sample = sample_of(codes())
    cut = daily(part_of(sample, sample.days < FIRST + end))
    whole = daily(sample)
    for gone in ([], [2002]):  # of the last year, what it had before the series went on
        path = new(tmp_path / f"{gone}.nc", cut, 2000, 2002)
        change(path, whole, add=[2003], remove=gone)
        at_once = new(tmp_path / f"other {gone}.nc", whole, 2000, 2003)
        if gone:
            change(at_once, whole, remove=gone)
        for name, kept in arrays(path).items():
            np.testing.assert_array_equal(kept, arrays(at_once)[name], name)


def test_a_day_that_was_lost_before_any_year_took_it(tmp_path):
    sample = sample_of(codes())
    path = new(tmp_path / "s.nc", daily(sample), 2000, 2001)
    less = daily(part_of(sample, sample.days != FIRST + 1200))  # in 2003
    change(path, less, add=[2002, 2003])
    at_once = arrays(new(tmp_path / "other.nc", less, 2000, 2003))
    for name, kept in arrays(path).items():
        np.testing.assert_array_equal(kept, at_once[name], name)


@pytest.mark.parametrize("kind", ["codes", "floats"])
def test_files_that_changed_are_noticed(tmp_path, kind):
    values = codes() if kind == "codes" else np.float64(codes()) + 0.123456
    sample = sample_of(values)
    path = new(tmp_path / "s.nc", daily(sample), 2000, 2003)
    before = arrays(path)
    other = values.copy()
    other[500, 0] += 1
    with pytest.raises(Refusal, match="2001 are not what they were"):
        change(path, daily(sample_of(other)), remove=[2001])
    for name, kept in arrays(path).items():
        np.testing.assert_array_equal(kept, before[name], name)
    change(path, daily(sample_of(other)), remove=[2003])


def test_a_value_between_the_codes(tmp_path):
    """Floats that were multiples of 0.01 when the moments were made."""
    values = np.float32(np.rint(codes()) * np.float32(0.01))
    sample = sample_of(values)
    path = new(tmp_path / "s.nc", daily(part_of(sample, sample.days < FIRST + 1096)), 2000, 2001)
    assert facts(path).keys is not None
    values[1200] += np.float32(0.003)
    with pytest.raises(Refusal, match=r"not 0 and 0\.01 times a whole number"):
        change(path, daily(sample_of(values)), add=[2003])


def test_what_is_refused(tmp_path):
    sample = sample_of(codes())
    archive = daily(sample)
    archive = replace(archive, attrs={"units": "K"},
                      grid=Grid(("x",), (40,), {"x": Field(("x",), np.arange(40.0))}))  # fmt: skip
    path = new(tmp_path / "s.nc", archive, 2000, 2001)
    packing = archive.pieces[0].packing
    other_scale, other_offset = (
        tuple(piece._replace(packing=replace(packing, **other)) for piece in archive.pieces)
        for other in ({"scale": 0.02}, {"offset": 273.0})
    )
    moved = Grid(("x",), (40,), {"x": Field(("x",), np.arange(40.0) + 7)})
    cases = (
        (archive, [2001], [], "2001 is there already"),
        (archive, [], [2002], "2002 cannot be removed"),
        (archive, [2002], [2002], "added and removed"),
        (archive, [], [], "Nothing is to be done"),
        (archive, [], [2000, 2001], "No year would be left"),
        (archive, [2010], [], "cover the years 2000 to 2003"),
        (replace(archive, attrs={"units": "Celsius"}), [2002], [], "units are K against Celsius"),
        (replace(archive, calendar="noleap"), [2002], [], "standard against noleap"),
        (replace(archive, grid=moved), [2002], [], "0 against 7"),
        (replace(archive, dtype=np.dtype("f4")), [2002], [], "int16 against float32"),
        (replace(archive, pieces=other_scale), [2002], [], r"scale_factor 0.01 .* have 0.02"),
        (replace(archive, pieces=other_offset), [2002], [], r"add_offset 0, .* 0.01 and 273"),
    )
    before = arrays(path)
    for given_, add, remove, words in cases:
        with pytest.raises(Refusal, match=words):
            change(path, given_, add, remove)
    with pytest.raises(Refusal, match="baseline 1990-1995 is not in the data"):
        make(archive, (1990, 1995), 5, tmp_path / "t.nc", Means())
    with pytest.raises(Refusal, match="not enough memory"):
        make(archive, (2000, 2001), 5, tmp_path / "t.nc", Means(memory_bytes=1000))
    single = replace(archive, grid=Grid((), ()))
    with pytest.raises(Refusal, match="single series"):
        make(single, (2000, 2001), 5, tmp_path / "t.nc", Means())
    named = replace(archive, grid=Grid(("mean",), (40,)))
    with pytest.raises(Refusal, match="called 'mean'"):
        make(named, (2000, 2001), 5, tmp_path / "t.nc", Means())
    for name, kept in arrays(path).items():
        np.testing.assert_array_equal(kept, before[name], name)
    assert [each.name for each in tmp_path.iterdir()] == ["s.nc"]


def test_years_with_a_gap_are_said(tmp_path):
    archive = daily(sample_of(codes()))
    path = new(tmp_path / "s.nc", archive, 2000, 2003)
    change(path, archive, remove=[2001])
    with pytest.warns(UserWarning, match="2000, 2002-2003"):
        found = ks.moments.climatology(path)
    assert found.attrs["baseline_years"] == "2000, 2002-2003"
    assert int(cal.template_length("standard")) == found.sizes["dayofyear"]


def test_a_year_without_any_day_in_reach(tmp_path):
    """It is in the series, so it may come and go, and brings nothing."""
    sample = sample_of(codes())
    year = (sample.days > FIRST + 350) & (sample.days < FIRST + 740)
    archive = daily(part_of(sample, ~year))
    path = new(tmp_path / "s.nc", archive, 2000, 2000)
    before = arrays(path)
    done = update(path, archive, [2001], [], Means())
    assert any("2001 365" in note for note in done.notes)
    for name, kept in arrays(path).items():
        np.testing.assert_array_equal(kept, before[name], name)
    change(path, archive, remove=[2001])
    assert facts(path).years == (2000,)
