"""What is found: which files, which variable, which grid, and what is refused."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import netCDF4
import numpy as np
import pytest
import xarray as xr

from archive_files import codes, coordinate, read_all, write_oisst, write_series
from kuroshio.archive.badfile import BadFile
from kuroshio.archive.catalog import open_archive
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


# -- what is named -------------------------------------------------------------------------------


def test_folder_pattern_list_and_list_file_are_one(week, monkeypatch):
    expected = open_archive(week)
    assert expected.days.tolist() == list(range(day_number("2000-03-01"), day_number("2000-03-08")))
    assert expected.sources == tuple(str(week / f"{(i * 5) % 7}.nc") for i in range(7))
    assert (expected.variable, expected.grid.dims, expected.grid.shape) == (
        "sst",
        ("lat", "lon"),
        (4, 6),
    )
    paths = sorted(week.glob("*.nc"))
    listing = week / "files.txt"
    listing.write_text("# a comment\n\n" + "\n".join(p.name for p in paths) + "\n")
    monkeypatch.chdir(week)
    for source in (
        str(week / "*.nc"),
        "*.nc",
        ".",
        paths,
        map(str, paths),
        listing,
        [week / "[0-3].nc", week / "[2-6].nc"],
    ):
        found = open_archive(source)
        assert found.sources == expected.sources
        np.testing.assert_array_equal(read_all(found), read_all(expected))


def test_folder_of_zarr_stores(tmp_path):
    data = xr.DataArray(
        np.ones((6, 4)),
        dims=("time", "cell"),
        name="sst",
        coords={"time": np.arange("2000-01-01", "2000-01-07", dtype="M8[D]").astype("M8[ns]")},
    )
    for i in range(2):
        part = data.isel(time=slice(3 * i, 3 * i + 3)).to_dataset()
        part.to_zarr(tmp_path / f"{i}.zarr", consolidated=False)
    archive = open_archive(tmp_path)
    assert archive.days.size == 6
    assert [Path(s).name for s in archive.sources] == ["0.zarr", "1.zarr"]


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


# -- which variable ------------------------------------------------------------------------------


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


def test_variable_among_likely_ones(tmp_path):
    """One that is likely by name and by standard_name wins; two likely ones are not guessed at."""
    path = tmp_path / "a.nc"
    several(path, sst="sea_surface_temperature", sst_error="sea_surface_temperature")
    assert open_archive(path).variable == "sst"
    for names in (
        {"sst": "", "t2m": "air_temperature"},
        {"sst": "", "t2m": ""},
        {"a": "sea_surface_temperature", "b": "air_temperature"},
    ):
        several(path, **names)
        with pytest.raises(Refusal, match="Several variables could be meant"):
            open_archive(path)


def test_variable_absent_or_unclear(tmp_path):
    path = tmp_path / "a.nc"
    several(path, one="", two="wind_speed")
    for variable, words in ((None, "Several variables could be"), ("sst", "no variable 'sst'")):
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


# -- grids ---------------------------------------------------------------------------------------


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
        var.setncatts(
            {
                "coordinates": "lat lon",
                "grid_mapping": "crs",
                "units": "degC",
                "valid_min": np.float32(-2),
                "standard_name": "sea_surface_temperature",
            }
        )
        var[:] = 1.0
    archive = open_archive(path)
    assert archive.attrs == {
        "grid_mapping": "crs",
        "units": "degC",
        "standard_name": "sea_surface_temperature",
    }
    coords = archive.grid.coords
    assert {n: f.dims for n, f in coords.items()} == {
        "x": ("x",),
        "lat": ("y", "x"),
        "lon": ("y", "x"),
        "lat_corners": ("y", "x", "nv"),
        "crs": (),
        "level": (),
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


# -- further dimensions --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dims",
    [
        ("time", "depth", "lat", "lon"),
        ("time", "lev", "ncells"),
        ("time", "member", "y", "x"),
        ("time", "a", "lat", "lon"),
        ("time", "number", "cell"),
    ],
)
def test_longer_dimensions_need_a_choice(tmp_path, dims):
    path = tmp_path / "a.nc"
    write_series(path, codes((3, 4, 3, 2)[: len(dims)]), dims=dims)
    with pytest.raises(Refusal, match=rf"{dims[1]}=4\..*--sel {dims[1]}=0"):
        open_archive(path)
    archive = open_archive(path, select={dims[1]: 3})
    assert archive.grid.dims == dims[2:]


@pytest.mark.parametrize(
    ("select", "words"),
    [
        ({"depth": 4}, "outside the dimension depth.*size 4.*0 to 3"),
        ({"level": 0}, "names no dimension.*depth, lat, lon"),
        ({"time": 0}, "names no dimension"),
        ({"depth": 0.5}, "not a whole number"),
    ],
)
def test_selections_refused(tmp_path, select, words):
    write_series(tmp_path / "a.nc", codes((3, 4, 3, 2)), dims=("time", "depth", "lat", "lon"))
    with pytest.raises(Refusal, match=words):
        open_archive(tmp_path / "a.nc", select=select)


def test_a_single_row_stays_a_dimension(tmp_path):
    write_series(tmp_path / "a.nc", codes((3, 1, 1)))
    assert open_archive(tmp_path).grid.shape == (1, 1)


# -- packing refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "attrs", "words"),
    [
        ("f4", {"scale_factor": 0.1}, "Only integers may be packed"),
        ("i2", {"_Unsigned": "true"}, "_Unsigned"),
        ("i2", {"scale_factor": 0.0}, "no value can be recovered"),
    ],
)
def test_packing_refused(tmp_path, dtype, attrs, words):
    write_series(tmp_path / "a.nc", np.ones((2, 2, 2), dtype), attrs=attrs)
    with pytest.raises(Refusal, match=words):
        open_archive(tmp_path)


# -- xarray and Zarr refused ---------------------------------------------------------------------


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
