"""What is found, which dates it has, and what is refused with which words."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import cftime
import netCDF4
import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from archive_files import FILL, codes, coordinate, read_all, write_oisst, write_series
from kuroshio import calendar as cal
from kuroshio.archive.badfile import BadFile
from kuroshio.archive.catalog import open_archive
from kuroshio.archive.fetch import fetch
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


# -- what is named ---------------------------------------------------------------------------


def test_folder_pattern_list_and_list_file_are_one(week, monkeypatch):
    expected = open_archive(week)
    assert expected.days.tolist() == list(range(day_number("2000-03-01"), day_number("2000-03-08")))
    assert expected.sources == tuple(str(week / f"{(i * 5) % 7}.nc") for i in range(7))
    assert (expected.variable, expected.grid.dims, expected.grid.shape) == \
        ("sst", ("lat", "lon"), (4, 6))
    paths = sorted(week.glob("*.nc"))
    listing = week / "files.txt"
    listing.write_text("# a comment\n\n" + "\n".join(p.name for p in paths) + "\n")
    monkeypatch.chdir(week)
    for source in (str(week / "*.nc"), "*.nc", ".", paths, map(str, paths), listing,
                   [week / "[0-3].nc", week / "[2-6].nc"]):
        found = open_archive(source)
        assert found.sources == expected.sources
        np.testing.assert_array_equal(read_all(found), read_all(expected))


def test_subfolders_where_the_folder_has_no_file(tmp_path):
    for year in (2000, 2001):
        (tmp_path / str(year)).mkdir()
        write_oisst(tmp_path / str(year) / "a.nc", 365 * (year - 1978))
    assert open_archive(tmp_path).days.size == 2
    assert open_archive(f"{tmp_path}/**/*.nc").days.size == 2


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("nothing/*.nc", "No file matches 'nothing/.*looked from"),
        ("nothing.nc", "no file or folder 'nothing.nc'.*looked from"),
        (".", "holds no file named"),
        ([], "list of files is empty"),
        ("https://example.org/a.nc", "is an address"),
        (12, "cannot be made of int"),
    ],
)
def test_nothing_found(tmp_path, monkeypatch, source, words):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Refusal, match=words):
        open_archive(source)


def test_empty_list_file_and_wrong_line(tmp_path):
    listing = tmp_path / "list.txt"
    listing.write_text("# nothing\n")
    with pytest.raises(Refusal, match="names no file"):
        open_archive(listing)
    listing.write_text("absent.nc\n")
    with pytest.raises(Refusal, match=r"In the list .*list\.txt: There is no file"):
        open_archive(listing)


# -- which variable --------------------------------------------------------------------------


def several(path: Path, **standard_names: str) -> None:
    with netCDF4.Dataset(path, "w") as file:
        for name, size in (("time", 3), ("lat", 2), ("lon", 2)):
            file.createDimension(name, size)
        coordinate(file, "time", np.arange(3), units="days since 2000-01-01", bounds="time_bnds")
        file.createDimension("nv", 2)
        file.createVariable("time_bnds", "f8", ("time", "nv"))[:] = 0
        file.createVariable("mask", "i1", ("lat", "lon"))[:] = 1
        for name, standard_name in standard_names.items():
            var = file.createVariable(name, "f4", ("time", "lat", "lon"))
            if standard_name:
                var.standard_name = standard_name
            var[:] = 1.0


def test_variable_by_standard_name(tmp_path):
    path = tmp_path / "a.nc"
    several(path, wind="wind_speed", water="sea_surface_temperature", ice="")
    assert open_archive(path).variable == "water"
    assert open_archive(path, variable="ice").variable == "ice"
    assert open_archive(path, variable="wind_speed").variable == "wind"


def test_variable_by_usual_name(tmp_path):
    several(tmp_path / "a.nc", anom="", analysed_sst="", err="")
    assert open_archive(tmp_path / "a.nc").variable == "analysed_sst"
    several(tmp_path / "b.nc", salinity="")
    assert open_archive(tmp_path / "b.nc").variable == "salinity"


def test_variable_absent_or_unclear(tmp_path):
    path = tmp_path / "a.nc"
    several(path, one="", two="wind_speed")
    for variable, words in ((None, "none is plainly meant"), ("sst", "no variable 'sst'")):
        with pytest.raises(Refusal, match=words) as caught:
            open_archive(path, variable=variable)
        assert "one(time=3, lat=2, lon=2)" in str(caught.value)
        assert "two(time=3, lat=2, lon=2) [wind_speed]" in str(caught.value)
        assert "mask" not in str(caught.value)
        assert "--var" in str(caught.value)


def test_variable_absent_from_a_later_file(week):
    with netCDF4.Dataset(week / "5.nc", "a") as file:
        file.renameVariable("sst", "tos")
    with pytest.raises(Refusal, match=r"no variable 'sst' in .*5\.nc"):
        open_archive(week)


def test_variable_without_time(tmp_path):
    several(tmp_path / "a.nc", sst="")
    with pytest.raises(Refusal, match=r"mask .*has no time coordinate.*never from file names"):
        open_archive(tmp_path / "a.nc", variable="mask")


# -- dates -----------------------------------------------------------------------------------

UNITS = ("days", "hours", "minutes", "seconds", "day", "h", "sec")


@given(
    calendar=st.sampled_from(["standard", "gregorian", "proleptic_gregorian", "noleap", "365_day",
                              "all_leap", "360_day", "NoLeap", None]),
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
    write_series(tmp_path / "a.nc", codes((70, 2, 2)), units="days since 2003-12-31 12:00:00",
                 calendar=calendar, fill_value=FILL)
    archive = open_archive(tmp_path / "a.nc")
    assert archive.calendar == calendar
    first = {"360_day": "2004-01-01"}.get(calendar, "2003-12-31")
    assert cal.iso_date(calendar, archive.days[0]) == first
    last = {"noleap": "2004-03-10", "360_day": "2004-03-10", "all_leap": "2004-03-09",
            "standard": "2004-03-09"}[calendar]
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


# -- not daily -------------------------------------------------------------------------------


def test_sub_daily_in_one_file(tmp_path):
    write_series(tmp_path / "a.nc", codes((8, 2, 2)), units="hours since 2001-01-01",
                 times=6 * np.arange(8))
    for duplicates in ("error", "last"):
        with pytest.raises(Refusal, match=r"sub-daily.*2001-01-01 at 00:00 and 06:00.*resample"):
            open_archive(tmp_path / "a.nc", duplicates=duplicates)


def test_sub_daily_over_files(tmp_path):
    for i in range(8):
        write_series(tmp_path / f"{i}.nc", codes((1, 2, 2)), units="hours since 2001-01-01",
                     times=[12 * i])
    for duplicates in ("error", "first"):
        with pytest.raises(Refusal, match=r"sub-daily.*cdo daymean"):
            open_archive(tmp_path, duplicates=duplicates)


@pytest.mark.parametrize(
    ("times", "word"),
    [(30.4 * np.arange(12), "monthly"), (8 * np.arange(20), "8-daily"),
     (365 * np.arange(5), "yearly"), (5 * np.arange(9), "5-daily")],
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


# -- duplicates ------------------------------------------------------------------------------


def overlapping(folder: Path, names: tuple[str, str]) -> tuple[np.ndarray, np.ndarray]:
    """Two files of which the second repeats the last two of the first's five days."""
    values = codes((5, 2, 2), 1), codes((5, 2, 2), 2)
    for name, data, first in zip(names, values, (0, 3), strict=True):
        write_series(folder / name, data, first, fill_value=FILL, zlib=True, chunksizes=(2, 2, 2))
    return tuple(np.where(v == FILL, np.nan, v * 0.01 + 5.0) for v in values)


def test_duplicates_are_refused_and_both_named(tmp_path):
    overlapping(tmp_path, ("a.nc", "b.nc"))
    with pytest.raises(Refusal, match=r"2 dates appear more than once.*2001-01-04, in .*a\.nc and "
                                      r"in .*b\.nc.*--duplicates last.*_preliminary"):
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
    assert (len(archive.pieces), sum(-1 in p.steps for p in archive.pieces)) == \
        ((5, 1) if winner == 1 else (5, 0))


def test_duplicate_within_a_file(tmp_path):
    write_series(tmp_path / "a.nc", codes((4, 2, 2)), times=[0, 1, 1, 2])
    with pytest.raises(Refusal, match="1 date appears more than once"):
        open_archive(tmp_path)
    assert open_archive(tmp_path, duplicates="last").days.size == 3


def test_unknown_rule(week):
    with pytest.raises(Refusal, match="duplicates is 'newest'; it must be one of error, last"):
        open_archive(week, duplicates="newest")


# -- grids -----------------------------------------------------------------------------------


def test_grids_that_differ(week):
    write_oisst(week / "z.nc", 8200, codes((5, 6)))
    with pytest.raises(Refusal, match=r"0\.nc and .*z\.nc .*shapes \(4, 6\) against \(5, 6\)"):
        open_archive(week)
    write_oisst(week / "z.nc", 8200, lat0=-10.25)
    with pytest.raises(Refusal, match=r"0\.nc and .*z\.nc .*lat differs by value, -10 against"):
        open_archive(week)
    write_oisst(week / "z.nc", 8200, units="K")
    with pytest.raises(Refusal, match=r"z\.nc .*units are Celsius against K"):
        open_archive(week)
    write_oisst(week / "z.nc", 8200, lat0=-10.000001)
    assert open_archive(week).days.size == 8


def test_types_that_differ(tmp_path):
    write_series(tmp_path / "a.nc", codes((2, 2, 2)))
    write_series(tmp_path / "b.nc", np.ones((2, 2, 2), "f4"), 2)
    with pytest.raises(Refusal, match="stored types are int16 against float32"):
        open_archive(tmp_path)


def test_units_of_time_may_differ(tmp_path):
    write_oisst(tmp_path / "a.nc", 8095)
    write_oisst(tmp_path / "b.nc", 0, time_units="hours since 2000-03-02 12:00:00")
    write_oisst(tmp_path / "c.nc", 0, time_units="days since 2000-03-03 12:00:00")
    start = day_number("2000-03-01")
    assert open_archive(tmp_path).days.tolist() == [start, start + 1, start + 2]


def test_coordinates_bounds_and_mapping_travel(tmp_path):
    path = tmp_path / "curvilinear.nc"
    with netCDF4.Dataset(path, "w") as file:
        for name, size in (("time", 2), ("y", 3), ("x", 4), ("nv", 4), ("level", 1)):
            file.createDimension(name, size)
        coordinate(file, "time", [0, 1], units="days since 2000-01-01")
        coordinate(file, "level", [5.0], units="m", positive="down")
        coordinate(file, "x", np.arange(4), standard_name="projection_x_coordinate")
        for name, units in (("lat", "degrees_north"), ("lon", "degrees_east")):
            var = file.createVariable(name, "f4", ("y", "x"), fill_value=-1e30)
            var.units = units
            var[:] = np.arange(12).reshape(3, 4)
            var[0, 0] = -1e30
        file["lat"].bounds = "lat_corners"
        file.createVariable("lat_corners", "f8", ("y", "x", "nv"))[:] = 7.0
        file.createVariable("crs", "i4", ()).grid_mapping_name = "polar_stereographic"
        var = file.createVariable("tos", "f4", ("time", "level", "y", "x"), fill_value=1e20)
        var.setncatts({"coordinates": "lat lon", "grid_mapping": "crs", "units": "degC",
                       "valid_min": np.float32(-2), "standard_name": "sea_surface_temperature"})
        var[:] = 1.0
    archive = open_archive(path)
    assert archive.attrs == {"grid_mapping": "crs", "units": "degC",
                             "standard_name": "sea_surface_temperature"}
    coords = archive.grid.coords
    assert {n: f.dims for n, f in coords.items()} == {
        "x": ("x",), "lat": ("y", "x"), "lon": ("y", "x"), "lat_corners": ("y", "x", "nv"),
        "crs": (), "level": (),
    }
    assert coords["lat"].attrs == {"units": "degrees_north", "bounds": "lat_corners"}
    assert np.isnan(coords["lat"].values[0, 0])
    assert coords["crs"].attrs == {"grid_mapping_name": "polar_stereographic"}
    assert coords["level"].values == 5.0


def test_unstructured_cells(tmp_path):
    path = tmp_path / "cells.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("time", 2)
        file.createDimension("ncells", 5)
        coordinate(file, "time", [0, 1], units="days since 2000-01-01")
        for name, units in (("clat", "degrees_north"), ("clon", "degrees_east")):
            file.createVariable(name, "f8", ("ncells",)).units = units
            file[name][:] = np.arange(5)
        file.createVariable("to", "f4", ("time", "ncells"))[:] = 1.0
    archive = open_archive(path)
    assert (archive.grid.dims, archive.grid.shape) == (("ncells",), (5,))
    assert set(archive.grid.coords) == {"clat", "clon"}


# -- further dimensions ----------------------------------------------------------------------


@pytest.mark.parametrize("dims", [("time", "depth", "lat", "lon"), ("time", "lev", "ncells"),
                                  ("time", "member", "y", "x"), ("time", "a", "lat", "lon"),
                                  ("time", "number", "cell")])
def test_longer_dimensions_need_a_choice(tmp_path, dims):
    path = tmp_path / "a.nc"
    write_series(path, codes((3, 4, 3, 2)[: len(dims)]), dims=dims)
    with pytest.raises(Refusal, match=rf"{dims[1]}=4\..*--sel {dims[1]}=0"):
        open_archive(path)
    archive = open_archive(path, select={dims[1]: 3})
    assert archive.grid.dims == dims[2:]


@pytest.mark.parametrize(
    ("select", "words"),
    [({"depth": 4}, "outside the dimension depth.*size 4.*0 to 3"),
     ({"level": 0}, "names no dimension.*depth, lat, lon"),
     ({"time": 0}, "names no dimension"),
     ({"depth": 0.5}, "not a whole number")],
)
def test_selections_refused(tmp_path, select, words):
    write_series(tmp_path / "a.nc", codes((3, 4, 3, 2)), dims=("time", "depth", "lat", "lon"))
    with pytest.raises(Refusal, match=words):
        open_archive(tmp_path / "a.nc", select=select)


def test_a_single_row_stays_a_dimension(tmp_path):
    write_series(tmp_path / "a.nc", codes((3, 1, 1)))
    assert open_archive(tmp_path).grid.shape == (1, 1)


# -- packing refused -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "attrs", "words"),
    [("f4", {"scale_factor": 0.1}, "Only integers may be packed"),
     ("i2", {"_Unsigned": "true"}, "_Unsigned"),
     ("i2", {"scale_factor": 0.0}, "no value can be recovered")],
)
def test_packing_refused(tmp_path, dtype, attrs, words):
    write_series(tmp_path / "a.nc", np.ones((2, 2, 2), dtype), attrs=attrs)
    with pytest.raises(Refusal, match=words):
        open_archive(tmp_path)


# -- bad files -------------------------------------------------------------------------------


def spoil(path: Path, how: str) -> None:
    data = path.read_bytes()
    if how == "truncated":
        path.write_bytes(data[: len(data) * 2 // 3])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "not data":
        path.write_bytes(b"<html>The server is busy</html>")
    elif how == "damaged header":
        path.write_bytes(data[:96] + bytes(400) + data[496:])
    elif how == "gone":
        path.unlink()
        path.symlink_to(path.with_suffix(".absent"))


@pytest.mark.parametrize("which", ["0.nc", "5.nc"])
@pytest.mark.parametrize("how", ["truncated", "empty", "not data", "damaged header", "gone"])
def test_bad_file_is_named_or_skipped(week, how, which):
    spoil(week / which, how)
    with pytest.raises(BadFile, match=rf"{which} cannot be used: .*--skip-bad"):
        open_archive(week)
    archive = open_archive(week, skip_bad=True)
    assert archive.days.size == 6
    assert len(archive.skipped) == 1
    assert archive.skipped[0].startswith(f"{week / which}: ")
    assert np.isfinite(read_all(archive)).any()


@pytest.mark.parametrize("unlimited", [True, False])
@pytest.mark.parametrize("format", ["NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET",
                                    "NETCDF3_64BIT_DATA"])
def test_truncated_netcdf3(tmp_path, format, unlimited):
    """The NetCDF library would read zeros."""
    path = tmp_path / "a.nc"
    write_series(path, codes((5, 3, 3)), format=format, unlimited=unlimited)
    data = path.read_bytes()
    path.write_bytes(data[:-4])
    with pytest.raises(BadFile, match="truncated"):
        open_archive(path)
    path.write_bytes(data[:40])
    with pytest.raises(BadFile, match=r"a\.nc"):
        open_archive(path)


@given(seed=st.integers(0, 2**32 - 1))
def test_random_damage_never_ends_in_another_error(tmp_path_factory, seed):
    """Whatever bytes are wrong, a file is refused with its name, or read."""
    folder = tmp_path_factory.mktemp("damage")
    rng = np.random.default_rng(seed)
    write_oisst(folder / "a.nc", 8095)
    write_oisst(folder / "b.nc", 8096)
    path = folder / rng.choice(["a.nc", "b.nc"])
    data = np.fromfile(path, np.uint8)
    start = rng.integers(data.size)
    data[start : start + rng.integers(1, 64)] = rng.integers(256)
    data.tofile(path)
    said = path.name
    try:
        for piece in open_archive(folder, cache=False).pieces:
            fetch(piece.where)
    except Refusal as refusal:
        said = str(refusal)
    assert path.name in said


def test_all_bad(week):
    for path in week.glob("*.nc"):
        spoil(path, "truncated")
    with pytest.raises(Refusal, match="None of the 7 files can be used"):
        open_archive(week, skip_bad=True)


def test_file_without_steps(tmp_path):
    write_series(tmp_path / "a.nc", codes((0, 2, 2)))
    with pytest.raises(Refusal, match="no time steps"):
        open_archive(tmp_path)
    write_series(tmp_path / "b.nc", codes((2, 2, 2)))
    assert open_archive(tmp_path).days.size == 2


# -- xarray and Zarr refused -----------------------------------------------------------------


def test_xarray_refusals():
    data = xr.DataArray(np.ones((2, 2)), dims=("y", "x"), name="sst")
    with pytest.raises(Refusal, match="has no time coordinate"):
        open_archive(data)
    times = np.array(["2000-01-01T00", "2000-01-01T12"], "M8[ns]")
    data = xr.DataArray(np.ones((2, 2)), dims=("time", "x"), name="sst", coords={"time": times})
    with pytest.raises(Refusal, match="sub-daily"):
        open_archive(data)
    with pytest.raises(Refusal, match="is named 'sst' and not 'tos'"):
        open_archive(data, variable="tos")
    with pytest.raises(Refusal, match="missing values"):
        open_archive(data.assign_coords(time=np.array(["2000-01-01", "NaT"], "M8[ns]")))


def test_damaged_zarr(tmp_path):
    store = tmp_path / "a.zarr"
    store.mkdir()
    with pytest.raises(BadFile, match=r"a\.zarr"):
        open_archive(store)
