"""The oracle itself: against published numbers, and against cases small enough to do by hand."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from kuroshio import calendar as cal
from kuroshio import reference

EPOCH = dt.date(1970, 1, 1)


def day(text: str) -> int:
    """Day number of a date of the standard calendar."""
    return (dt.date.fromisoformat(text) - EPOCH).days


def span(first: str, last: str) -> np.ndarray:
    return np.arange(day(first), day(last) + 1)


def members(doy: int, first: str, last: str, baseline: tuple[int, int], h: int) -> list[str]:
    """Dates of a pool, standard calendar."""
    days = span(first, last)
    pool = reference.pool_of(doy, int(days[0]), len(days), "standard", baseline, h)
    return [(EPOCH + dt.timedelta(int(days[i]))).isoformat() for i in pool]


# --- real series, results of marineHeatWaves -----------------------------------------------------

SERIES = {"WA": "sst_WA.csv", "NWAtl": "sst_NW_Atl.csv"}
SETTINGS = {
    "": {},
    "_nosmooth": {"smooth_width": 1},
    "_1983_2012": {"baseline": (1983, 2012)},
    "_cold": {"percentiles": (10.0,)},  # made from the negated series: P90 of -x is -P10 of x
}
SHIPPED = [("WA", ""), ("WA", "_nosmooth"), ("WA", "_1983_2012"), ("WA", "_cold"), ("NWAtl", "")]
SHIPPED += [("NWAtl", "_1983_2012")]


@pytest.mark.parametrize(("site", "setting"), SHIPPED)
def test_real_series(shared: Path, site: str, setting: str) -> None:
    rows = np.loadtxt(shared / "sst" / SERIES[site], str, delimiter=",", skiprows=1)
    days = rows[:, 0].astype("datetime64[D]").astype(np.int64)
    sst = rows[:, 1].astype(np.float64)[:, None]
    path = shared / "sst" / f"expected_{site}{setting}_clim.csv"
    doy, seas, thresh = np.loadtxt(path, delimiter=",", skiprows=1).T
    options = {"baseline": (1982, 2011), **SETTINGS[setting]}

    got = reference.climatology(sst, days, "standard", **options)

    assert doy.tolist() == list(range(1, 367))
    np.testing.assert_allclose(got["seas"][:, 0], seas, rtol=0, atol=1e-9)
    np.testing.assert_allclose(got["thresh"][0, :, 0], thresh, rtol=0, atol=1e-9)


@pytest.mark.parametrize(("suffix", "width"), [("", 31), ("_nosmooth", 1)])
def test_two_cells_of_a_grid(shared: Path, suffix: str, width: int) -> None:
    with xr.open_dataset(shared / "sst" / "oisst_2003_2004.nc") as grid:
        days = grid.time.values.astype("datetime64[D]").astype(np.int64)
        sst = grid.sst.values.astype(np.float64)
        cells = [
            (int(abs(grid.lat.values - lat).argmin()), int(abs(grid.lon.values - lon).argmin()))
            for lat, lon in [(-42.625, 148.125), (-41.625, 148.375)]
        ]
    pair = np.stack([sst[:, i, j] for i, j in cells], axis=1)

    got = reference.climatology(pair, days, "standard", baseline=(2003, 2004), smooth_width=width)

    with xr.open_dataset(shared / "sst" / f"test_clim_oisst{suffix}.nc") as expected:
        for k in (0, 1):
            # That file's means were summed in float32; its percentiles were not.
            seas, thresh = expected[f"seas{k + 1}"].values, expected[f"thresh{k + 1}"].values
            np.testing.assert_allclose(got["seas"][:, k], seas, rtol=0, atol=1e-5)
            np.testing.assert_allclose(got["thresh"][0, :, k], thresh, rtol=0, atol=1e-9)


# --- who belongs to a pool -----------------------------------------------------------------------


def test_window_crosses_the_year_end_in_real_time() -> None:
    pool = members(1, "2000-01-01", "2003-12-31", (2001, 2002), 2)
    assert pool == [
        *["2000-12-30", "2000-12-31", "2001-01-01", "2001-01-02", "2001-01-03"],
        *["2001-12-30", "2001-12-31", "2002-01-01", "2002-01-02", "2002-01-03"],
    ]


def test_window_is_clipped_only_at_the_ends_of_the_series() -> None:
    first, last = "2001-01-01", "2002-12-30"
    assert members(1, first, last, (2001, 2001), 1) == ["2001-01-01", "2001-01-02"]
    # 31 December 2002 is not in the series: no centre, so not even its neighbour is pooled.
    assert members(366, first, last, (2002, 2002), 1) == []
    # Reaches out of the baseline 2001 where there are days.
    inside = ["2001-12-30", "2001-12-31", "2002-01-01"]
    assert members(366, first, last, (2001, 2001), 1) == inside


def test_leap_day_is_in_its_neighbours_windows() -> None:
    pool = members(61, "2003-01-01", "2004-12-31", (2003, 2004), 1)
    assert pool == [
        *["2003-02-28", "2003-03-01", "2003-03-02"],
        *["2004-02-29", "2004-03-01", "2004-03-02"],
    ]
    assert members(60, "2003-01-01", "2004-12-31", (2003, 2004), 1) == [
        *["2004-02-28", "2004-02-29", "2004-03-01"]
    ]


@given(
    doy=st.integers(1, 366),
    start=st.dates(dt.date(1895, 1, 1), dt.date(1905, 1, 1)),
    length=st.integers(1, 3000),
    first_year=st.integers(1893, 1910),
    years=st.integers(1, 8),
    h=st.integers(0, 20),
)
def test_pool_by_dates(
    doy: int, start: dt.date, length: int, first_year: int, years: int, h: int
) -> None:
    """The same pools from the standard library's dates; 1900 had no 29 February."""
    date_2000 = dt.date(2000, 1, 1) + dt.timedelta(doy - 1)  # a leap year: the template
    end = start + dt.timedelta(length - 1)
    expected = []
    for year in range(first_year, first_year + years):
        try:
            centre = date_2000.replace(year=year)
        except ValueError:
            continue
        if start <= centre <= end:
            near = [centre + dt.timedelta(k) for k in range(-h, h + 1)]
            expected += [d.isoformat() for d in near if start <= d <= end]
    baseline = (first_year, first_year + years - 1)
    assert members(doy, start.isoformat(), end.isoformat(), baseline, h) == expected


@pytest.mark.parametrize(("calendar", "length"), [("noleap", 365), ("360_day", 360)])
def test_calendars_without_leap_years(calendar: str, length: int) -> None:
    days = cal.day_number(calendar, 2000, 1) + np.arange(3 * length)
    values = np.tile(np.arange(1.0, length + 1), 3)[:, None]  # each day holds its day of year
    got = reference.climatology(
        values, days, calendar, baseline=(2000, 2002), half_width=1, smooth_width=1
    )
    seas = got["seas"][:, 0]
    assert seas.shape == (length,)
    np.testing.assert_array_equal(seas[1:-1], np.arange(2, length))
    assert got["count"][0, 0] == 8  # the first window of the series lacks its first day
    assert seas[0] == (3 * (1 + 2) + 2 * length) / 8


def test_all_leap_has_an_ordinary_29_february() -> None:
    days = cal.day_number("all_leap", 2001, 1) + np.arange(366)
    values = np.where(np.arange(366) == 59, 7.0, 0.0)[:, None]
    got = reference.climatology(
        values, days, "all_leap", baseline=(2001, 2001), half_width=0, smooth_width=1
    )
    np.testing.assert_array_equal(got["seas"], values)


# --- 29 February of the standard calendar --------------------------------------------------------


@pytest.fixture
def february() -> tuple[np.ndarray, np.ndarray]:
    """2003 and 2004, zero but for 28 February (2, 4), 29 February 2004 (100), 1 March (6, 10)."""
    days = span("2003-01-01", "2004-12-31")
    values = np.zeros((len(days), 1))
    dates = {"2003-02-28": 2, "2004-02-28": 4, "2004-02-29": 100, "2003-03-01": 6}
    for date, value in (dates | {"2004-03-01": 10}).items():
        values[days == day(date)] = value
    return values, days


def test_leap_day_is_the_mean_of_its_neighbours(
    february: tuple[np.ndarray, np.ndarray],
) -> None:
    options = {"baseline": (2003, 2004), "half_width": 0, "percentiles": (0, 100)}
    got = reference.climatology(*february, "standard", smooth_width=1, **options)
    assert got["seas"][58:61, 0].tolist() == [3, 5.5, 8]
    assert got["thresh"][:, 58:61, 0].tolist() == [[2, 4, 6], [4, 7, 10]]
    assert got["std"][58:61, 0].tolist() == [1, 1.5, 2]
    assert got["count"][58:61, 0].tolist() == [2, 2, 2]
    smooth = reference.climatology(*february, "standard", smooth_width=3, **options)
    assert smooth["seas"][59, 0] == pytest.approx((3 + 5.5 + 8) / 3)
    assert smooth["std"][59, 0] == 1.5  # moments are not smoothed


def test_leap_day_counts_the_smaller_neighbour(
    february: tuple[np.ndarray, np.ndarray],
) -> None:
    values, days = february
    values[days == day("2003-02-28")] = np.nan
    options = {"baseline": (2003, 2004), "smooth_width": 1, "half_width": 0}
    got = reference.climatology(values, days, "standard", **options)
    assert got["count"][58:61, 0].tolist() == [1, 1, 2]
    assert got["seas"][58:61, 0].tolist() == [4, 6, 8]
    half = reference.climatology(values, days, "standard", min_valid=0.6, **options)
    assert np.isnan(half["seas"][58:61, 0]).tolist() == [True, True, False]
    assert half["count"][58:61, 0].tolist() == [1, 1, 2]


def test_leap_day_of_its_own_pool(february: tuple[np.ndarray, np.ndarray]) -> None:
    options = {"baseline": (2003, 2004), "smooth_width": 1, "feb29": "pool"}
    got = reference.climatology(*february, "standard", half_width=0, **options)
    assert got["seas"][58:61, 0].tolist() == [3, 100, 8]
    assert got["count"][58:61, 0].tolist() == [2, 1, 2]
    wide = reference.climatology(*february, "standard", half_width=1, **options)
    assert wide["seas"][59, 0] == pytest.approx((4 + 100 + 10) / 3)


def test_leap_day_without_a_leap_year() -> None:
    days = span("2001-01-01", "2003-12-31")
    values = np.ones((len(days), 1))
    got = {
        feb29: reference.climatology(
            values, days, "standard", baseline=(2001, 2003), smooth_width=3, feb29=feb29
        )
        for feb29 in ("mean", "pool")
    }
    assert not np.isnan(got["mean"]["seas"]).any()
    assert np.flatnonzero(np.isnan(got["pool"]["seas"][:, 0])).tolist() == [58, 59, 60]


# --- missing values ------------------------------------------------------------------------------


def test_absent_days_are_missing_values() -> None:
    days = span("2001-01-01", "2003-12-31")
    rng = np.random.default_rng(1)
    values = rng.normal(size=(len(days), 2))
    absent = rng.random(len(days)) < 0.3
    absent[[0, -1]] = False
    with_nan = np.where(absent[:, None], np.nan, values)
    options = {"baseline": (2001, 2003), "min_valid": 0.7, "max_pad": 2}
    a = reference.climatology(with_nan, days, "standard", **options)
    b = reference.climatology(values[~absent], days[~absent], "standard", **options)
    assert np.isnan(a["seas"]).any()
    for name in a:
        np.testing.assert_array_equal(a[name], b[name])


def test_least_valid_share_is_allowed_and_less_is_not() -> None:
    nan = np.nan
    at_least = reference.statistics_of(np.array([1, 2, 4, nan]), (50,), 0.75)
    assert at_least["thresh"] == [2]
    assert at_least["count"] == 3
    below = reference.statistics_of(np.array([1, 2, 4, nan]), (50,), 0.76)
    assert np.isnan([below["seas"], below["std"], *below["thresh"]]).all()
    assert below["count"] == 3


def test_pool_without_a_value() -> None:
    for pool in (np.array([]), np.array([np.nan, np.nan])):
        got = reference.statistics_of(pool, (0, 90), 0.0)
        assert got.pop("count") == 0
        assert all(np.isnan(value).all() for value in got.values())


def test_gaps_are_filled_up_to_max_pad_and_never_at_the_ends() -> None:
    nan = np.nan
    series = np.array([nan, 1, nan, nan, 4, nan, nan, nan, 8, nan])[:, None]
    assert np.array_equal(reference.fill_gaps(series, 0), series, equal_nan=True)
    assert np.array_equal(reference.fill_gaps(series, 1), series, equal_nan=True)
    two = np.array([nan, 1, 2, 3, 4, nan, nan, nan, 8, nan])[:, None]
    assert np.array_equal(reference.fill_gaps(series, 2), two, equal_nan=True)
    all_ = np.array([nan, 1, 2, 3, 4, 5, 6, 7, 8, nan])[:, None]
    assert np.array_equal(reference.fill_gaps(series, 99), all_, equal_nan=True)


def test_gaps_are_filled_before_all_else() -> None:
    days = np.delete(cal.day_number("noleap", 2000, 1) + np.arange(365), [10, 11])
    values = np.where(np.arange(363) < 10, 0.0, 6.0)[:, None]  # 0 before the absent days, 6 after
    options = {"baseline": (2000, 2000), "half_width": 0, "smooth_width": 1}
    filled = reference.climatology(values, days, "noleap", max_pad=2, **options)
    assert filled["seas"][9:13, 0].tolist() == [0, 2, 4, 6]
    assert filled["count"].min() == 1
    unfilled = reference.climatology(values, days, "noleap", max_pad=1, **options)
    assert np.flatnonzero(np.isnan(unfilled["seas"][:, 0])).tolist() == [10, 11]


# --- statistics ----------------------------------------------------------------------------------


def test_percentiles_and_moments_by_hand() -> None:
    got = reference.statistics_of(np.array([3.0, 1, 2, 10]), (0, 50, 90, 100), 0.0)
    np.testing.assert_allclose(got["thresh"], [1, 2.5, 3 + 0.7 * 7, 10])
    assert got["seas"] == 4
    assert got["std"] == pytest.approx(np.sqrt(12.5))  # deviations -1, -3, -2, 6
    assert got["skewness"] == pytest.approx(45 / 12.5**1.5)  # (-1 - 27 - 8 + 216) / 4
    assert got["kurtosis"] == pytest.approx(348.5 / 12.5**2 - 3)  # (1 + 81 + 16 + 1296) / 4


def test_equal_values_have_no_shape() -> None:
    got = reference.statistics_of(np.full(49, -1.8), (10, 90), 0.0)
    assert got["seas"] == -1.8
    assert list(got["thresh"]) == [-1.8, -1.8]
    assert got["std"] == 0
    assert np.isnan([got["skewness"], got["kurtosis"]]).all()


def test_smoothing_is_circular_and_missing_values_spread() -> None:
    values = np.zeros((10, 1))
    values[0] = 3
    assert reference.running_mean(values, 3)[:, 0].tolist() == [1, 1, 0, 0, 0, 0, 0, 0, 0, 1]
    values[0] = np.nan
    missing = np.isnan(reference.running_mean(values, 5)[:, 0])
    assert np.flatnonzero(missing).tolist() == [0, 1, 2, 8, 9]


def test_days_of_year_are_chosen_after_smoothing() -> None:
    days = span("2001-01-01", "2003-12-31")
    values = np.random.default_rng(2).normal(size=(len(days), 2))
    options = {"baseline": (2001, 2003), "percentiles": (10, 90)}
    every = reference.climatology(values, days, "standard", **options)
    doys = (366, 60, 1)
    some = reference.climatology(values, days, "standard", doys=doys, **options)
    for name, array in every.items():
        at = np.array(doys) - 1
        expected = array[:, at] if name == "thresh" else array[at]
        np.testing.assert_array_equal(some[name], expected)


def test_days_must_increase() -> None:
    with pytest.raises(ValueError, match="strictly increasing"):
        reference.climatology(np.zeros((2, 1)), np.array([3, 3]), "noleap", baseline=(1970, 1970))
