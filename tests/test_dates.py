"""The days of an archive: from time coordinates, in order, once each, and daily."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import cftime
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive_files import FILL, codes, read_all, write_oisst, write_series
from kuroshio import calendar as cal
from kuroshio.archive.catalog import open_archive
from kuroshio.archive.timeaxis import DAY_S, seconds
from kuroshio.errors import Refusal


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("KUROSHIO_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))


def day_number(text: str) -> int:
    return (date.fromisoformat(text) - date(1970, 1, 1)).days


@pytest.fixture
def week(tmp_path) -> Path:
    """Seven OISST days from 1 March 2000, whose names say nothing of their order."""
    for i, day in enumerate(range(8095, 8102)):
        write_oisst(tmp_path / f"{(i * 5) % 7}.nc", day)
    return tmp_path


# -- dates ---------------------------------------------------------------------------------------


UNITS = ("days", "hours", "minutes", "seconds", "day", "h", "sec")


@given(
    calendar=st.sampled_from(
        [
            "standard",
            "gregorian",
            "proleptic_gregorian",
            "noleap",
            "365_day",
            "all_leap",
            "360_day",
            "NoLeap",
            None,
        ]
    ),
    unit=st.sampled_from(UNITS),
    year=st.integers(1600, 2200),
    month=st.integers(1, 12),
    dom=st.integers(1, 28),
    clock=st.sampled_from(["", " 12:00:00", " 06:30", "T00:00:00Z", " 18:59:59", " 00:00:0.0"]),
    days=st.lists(st.integers(0, 200_000), min_size=1, max_size=4),
    whole=st.booleans(),
)
def test_dates_are_those_of_cftime(calendar, unit, year, month, dom, clock, days, whole):
    units = f"{unit} since {year}-{month}-{dom}{clock}"
    per_day = {"d": 1, "h": 24, "m": 1440, "s": 86400}[unit[0]]
    values = np.array(days, "i8" if whole else "f8") * per_day
    found = seconds(values, units, calendar, "a test")
    name = (calendar or "standard").lower()
    dates = cftime.num2date(values, units, name)
    ours = cal.CALENDARS[name]
    year_of, doy = cal.year_and_dayofyear(ours, found // DAY_S)
    months, doms = cal.month_day(ours, doy)
    of_day = found % DAY_S
    for i, expected in enumerate(np.atleast_1d(dates)):
        assert (year_of[i], months[i], doms[i]) == (expected.year, expected.month, expected.day)
        assert of_day[i] == expected.hour * 3600 + expected.minute * 60 + expected.second


@pytest.mark.parametrize(
    ("units", "calendar", "value", "expected"),
    [
        ("days since 1-1-1 00:00:0.0", None, 726834, "1991-01-01"),  # mixed Julian and Gregorian
        ("hours since 0001-01-01", "gregorian", 726834 * 24.0, "1991-01-01"),
        ("days since 1-1-1", "proleptic_gregorian", 726832, "1991-01-01"),
        ("hours since 1991-01-01 02:00:00 +03:00", "standard", 0, "1990-12-31"),
        ("days since 1990-12-31 23:59:59.7", "standard", 1e-5, "1991-01-01"),
        ("milliseconds since 1970-01-01", "standard", 662688000000, "1991-01-01"),
    ],
)
def test_unusual_units(units, calendar, value, expected):
    found = seconds(np.array([value]), units, calendar, "a test")[0] // DAY_S
    assert found == day_number(expected)


@pytest.mark.parametrize(
    ("units", "calendar", "value", "words"),
    [
        ("days since 2000-01-01", "julian", 0.0, "calendar of .*'julian'.*360_day"),
        ("months since 2000-01-01", None, 0.0, "counts in 'months'"),
        ("days since the flood", None, 0.0, "could not be understood"),
        ("days since 2000-13-01", None, 0.0, "could not be understood"),
        ("days since 2000-01-01", None, np.nan, "missing values"),
        ("days since 2000-01-01", None, 9.97e36, "no date"),
    ],
)
def test_times_refused(units, calendar, value, words):
    with pytest.raises(Refusal, match=words):
        seconds(np.array([value]), units, calendar, "a file")


@pytest.mark.parametrize("calendar", ["noleap", "360_day", "all_leap", "standard"])
def test_calendars_of_files(tmp_path, calendar):
    write_series(
        tmp_path / "a.nc",
        codes((70, 2, 2)),
        units="days since 2003-12-31 12:00:00",
        calendar=calendar,
        fill_value=FILL,
    )
    archive = open_archive(tmp_path / "a.nc")
    assert archive.calendar == calendar
    first = {"360_day": "2004-01-01"}.get(calendar, "2003-12-31")
    assert cal.iso_date(calendar, archive.days[0]) == first
    last = {
        "noleap": "2004-03-10",
        "360_day": "2004-03-10",
        "all_leap": "2004-03-09",
        "standard": "2004-03-09",
    }[calendar]
    assert cal.iso_date(calendar, archive.days[-1]) == last


def test_calendars_that_differ(tmp_path):
    write_series(tmp_path / "a.nc", codes((3, 2, 2)), calendar="noleap")
    write_series(tmp_path / "b.nc", codes((3, 2, 2)), 3, calendar="standard")
    with pytest.raises(Refusal, match=r"a\.nc and .*b\.nc .*calendars are noleap against standard"):
        open_archive(tmp_path)


def test_missing_days_are_counted_and_unsorted_steps_sorted(tmp_path):
    values = codes((6, 2, 2))
    write_series(tmp_path / "a.nc", values, times=[4, 0, 9, 1, 3, 8], fill_value=FILL)
    archive = open_archive(tmp_path / "a.nc")
    start = day_number("2001-01-01")
    assert (archive.days - start).tolist() == [0, 1, 3, 4, 8, 9]
    assert archive.notes == (
        "4 of the 10 days from 2001-01-01 to 2001-01-10 are absent and count as missing.",
    )
    expected = np.where(values == FILL, np.nan, values * 0.01 + 5.0)[[1, 3, 4, 0, 5, 2]]
    np.testing.assert_allclose(read_all(archive), expected)


# -- not daily -----------------------------------------------------------------------------------


def test_sub_daily_in_one_file(tmp_path):
    write_series(
        tmp_path / "a.nc", codes((8, 2, 2)), units="hours since 2001-01-01", times=6 * np.arange(8)
    )
    for duplicates in ("error", "last"):
        with pytest.raises(Refusal, match=r"sub-daily.*2001-01-01 at 00:00 and 06:00.*resample"):
            open_archive(tmp_path / "a.nc", duplicates=duplicates)


def test_sub_daily_over_files(tmp_path):
    for i in range(8):
        write_series(
            tmp_path / f"{i}.nc", codes((1, 2, 2)), units="hours since 2001-01-01", times=[12 * i]
        )
    for duplicates in ("error", "first"):
        with pytest.raises(Refusal, match=r"sub-daily.*cdo daymean"):
            open_archive(tmp_path, duplicates=duplicates)


@pytest.mark.parametrize(
    ("times", "word"),
    [
        (30.4 * np.arange(12), "monthly"),
        (8 * np.arange(20), "8-daily"),
        (365 * np.arange(5), "yearly"),
        (5 * np.arange(9), "5-daily"),
    ],
)
def test_rarer_than_daily(tmp_path, times, word):
    write_series(tmp_path / "a.nc", codes((times.size, 2, 2)), times=times)
    with pytest.raises(Refusal, match=f"are {word} and not daily"):
        open_archive(tmp_path / "a.nc")


def test_seasons_alone_are_daily(tmp_path):
    times = np.concatenate([365 * year + np.arange(92) for year in range(3)])
    write_series(tmp_path / "a.nc", codes((times.size, 2, 2)), times=times)
    archive = open_archive(tmp_path / "a.nc")
    assert archive.days.size == 276
    assert "546 of the 822 days" in archive.notes[0]


# -- duplicates ----------------------------------------------------------------------------------


def overlapping(folder: Path, names: tuple[str, str]) -> tuple[np.ndarray, np.ndarray]:
    """Two files of which the second repeats the last two of the first's five days."""
    values = codes((5, 2, 2), 1), codes((5, 2, 2), 2)
    for name, data, first in zip(names, values, (0, 3), strict=True):
        write_series(folder / name, data, first, fill_value=FILL, zlib=True, chunksizes=(2, 2, 2))
    return tuple(np.where(v == FILL, np.nan, v * 0.01 + 5.0) for v in values)


def test_duplicates_are_refused_and_both_named(tmp_path):
    overlapping(tmp_path, ("a.nc", "b.nc"))
    with pytest.raises(
        Refusal,
        match=r"2 dates appear more than once.*2001-01-04, in .*a\.nc and "
        r"in .*b\.nc.*--duplicates last.*_preliminary",
    ):
        open_archive(tmp_path)


@pytest.mark.parametrize(
    ("names", "rule", "winner"),
    [
        (("a.nc", "b.nc"), "last", 1),
        (("a.nc", "b.nc"), "first", 0),
        (("b.nc", "a.nc"), "last", 0),
        (("x.20010101.nc", "x.20010101_preliminary.nc"), "last", 0),
        (("x.20010101.nc", "x.20010101_preliminary.nc"), "first", 0),
        (("a_preliminary.nc", "b.nc"), "first", 1),
    ],
)
def test_duplicates_by_rule(tmp_path, names, rule, winner):
    one, two = overlapping(tmp_path, names)
    archive = open_archive(tmp_path, duplicates=rule)
    middle = (one[3:], two[:2])[winner]
    np.testing.assert_allclose(read_all(archive), np.concatenate([one[:3], middle, two[2:]]))
    assert f"the {rule} file by name" in archive.notes[0]
    assert "2 steps with duplicate dates were dropped" in archive.notes[0]
    assert all(max(p.steps) >= 0 for p in archive.pieces)
    assert (len(archive.pieces), sum(-1 in p.steps for p in archive.pieces)) == (
        (5, 1) if winner == 1 else (5, 0)
    )


def test_duplicate_within_a_file(tmp_path):
    write_series(tmp_path / "a.nc", codes((4, 2, 2)), times=[0, 1, 1, 2])
    with pytest.raises(Refusal, match="1 date appears more than once"):
        open_archive(tmp_path)
    assert open_archive(tmp_path, duplicates="last").days.size == 3


def test_unknown_rule(week):
    with pytest.raises(Refusal, match="duplicates is 'newest'; it must be one of error, last"):
        open_archive(week, duplicates="newest")
