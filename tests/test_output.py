"""A climatology opened again: refusals, coordinates, the nearest cell, and `info`."""

import io
import json

import numpy as np
import pytest
import xarray as xr
from rich.console import Console

from kuroshio.archive.model import Grid
from kuroshio.errors import Refusal
from kuroshio.info import print_info, read_info
from kuroshio.output import (
    days_text,
    far_from_cells,
    latitude_longitude,
    nearest_cell,
    open_climatology,
    units_text,
)
from small_climatologies import global_grid, loose_grid, polar_grid, write_climatology


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_info_tells_what_is_in_the_file(tmp_path, suffix):
    path = write_climatology(tmp_path / f"c{suffix}", global_grid(), [1, 2, 3])
    info = read_info(path)
    assert info["format"] == {".nc": "NetCDF-4", ".zarr": "Zarr 3"}[suffix]
    assert info["size_bytes"] > 1000
    assert list(info["variables"]) == ["seas", "thresh"]
    assert info["variables"]["seas"]["shape"] == [3, 6, 12]
    assert info["variables"]["seas"]["chunks"] == [3, 6, 12]
    assert info["grid"]["latitude"] == {"first": -75.0, "last": 75.0, "step": 30.0}
    assert info["days"]["text"] == "1 January to 3 January (3 days of year)"
    assert info["made"]["baseline"] == [1991, 2020]
    for as_json in (False, True):
        out = io.StringIO()
        print_info(path, as_json=as_json, console=Console(file=out, width=100))
        text = out.getvalue()
        assert "90th percentile of daily sea surface temperature" in text
        assert "sst/[0-9]*.nc" in text  # not taken for markup
        if as_json:
            assert json.loads(text) == info
        else:
            assert "°C" in text
            assert "1991 2020" in text


def test_info_of_other_grids(tmp_path):
    for name, grid in {"loose": loose_grid(), "polar": polar_grid()}.items():
        info = read_info(write_climatology(tmp_path / f"{name}.nc", grid))
        assert "latitude" in info["grid"]
        assert "step" not in info["grid"]["latitude"]
    bare = read_info(write_climatology(tmp_path / "bare.nc", Grid(("a", "b"), (2, 3))))
    assert bare["grid"] == {"dims": ["a", "b"], "shape": [2, 3]}


def test_what_is_no_climatology_is_refused(tmp_path):
    with pytest.raises(Refusal, match="There is no file"):
        open_climatology(tmp_path / "none.nc")
    (tmp_path / "text.nc").write_text("hello")
    with pytest.raises(Refusal, match="cannot be read"):
        open_climatology(tmp_path / "text.nc")
    (tmp_path / "empty.zarr").mkdir()
    with pytest.raises(Refusal, match="cannot be read"):
        open_climatology(tmp_path / "empty.zarr")
    xr.Dataset({"sst": ("time", np.zeros(2))}).to_netcdf(tmp_path / "other.nc")
    with pytest.raises(Refusal, match=r"no seas and no thresh.*holds sst"):
        open_climatology(tmp_path / "other.nc")


@pytest.mark.parametrize("grid", [global_grid(), loose_grid(), polar_grid()])
def test_the_nearest_cell_is_the_nearest_on_the_sphere(tmp_path, grid):
    rng = np.random.default_rng()
    land = rng.random(grid.shape) < 0.5
    with open_climatology(write_climatology(tmp_path / "c.nc", grid, land=land)) as dataset:
        lat, lon = (c.values for c in xr.broadcast(*latitude_longitude(dataset)))
        xyz = np.stack([np.cos(np.radians(lat)) * np.cos(np.radians(lon)),
                        np.cos(np.radians(lat)) * np.sin(np.radians(lon)),
                        np.sin(np.radians(lat))])  # fmt: skip
        for point in zip(rng.uniform(-90, 90, 10), rng.uniform(-180, 360, 10), strict=True):
            cell, where = nearest_cell(dataset, point)
            a, o = np.radians(point)
            at = np.array([np.cos(a) * np.cos(o), np.cos(a) * np.sin(o), np.sin(a)])
            gap = np.linalg.norm(xyz - at.reshape(3, *[1] * lat.ndim), axis=0)
            gap[land] = np.inf
            index = tuple(cell[str(dim)] for dim in dataset.seas.dims[1:])
            assert not land[index]
            assert gap[index] == pytest.approx(gap.min(), abs=1e-9)
            assert where == (lat[index], lon[index])


def test_a_point_far_from_the_cells_is_told(tmp_path):
    land = np.ones((6, 12), bool)
    land[3:] = False  # values north of the equator only, centres 30 degrees apart
    with open_climatology(write_climatology(tmp_path / "c.nc", global_grid(), land=land)) as data:
        assert far_from_cells(data, (20, 10)) is None
        told = far_from_cells(data, (-60, 15))  # 75 degrees of 111.2 km
        assert told is not None
        assert "latitude 15, longitude 15: 8,340 km" in told


def test_made_is_told_in_order_whatever_the_format(tmp_path):
    keys = [
        list(read_info(write_climatology(tmp_path / name, global_grid()))["made"])
        for name in ("c.nc", "c.zarr")
    ]
    assert keys[0] == keys[1]
    assert keys[0][0] == "convention"
    assert keys[0][-1] == "history"


def test_a_point_needs_coordinates_and_values(tmp_path):
    bare = write_climatology(tmp_path / "a.nc", Grid(("a",), (3,)))
    land = write_climatology(tmp_path / "b.nc", global_grid(), land=...)
    for path, words in ((bare, "no latitude and longitude"), (land, "No cell")):
        with open_climatology(path) as dataset, pytest.raises(Refusal, match=words):
            nearest_cell(dataset, (0, 0))


@pytest.mark.parametrize(
    ("doys", "words"),
    [
        ([60], "29 February (1 day of year)"),
        (range(336, 367), "1 December to 31 December (31 days of year)"),
        ([*range(336, 367), *range(1, 61)], "1 December to 29 February (91 days of year)"),
        ([1, 32, 60], "1 January to 29 February (3 days of year, with gaps)"),
    ],
)
def test_days_in_words(tmp_path, doys, words):
    with open_climatology(write_climatology(tmp_path / "c.nc", Grid(("a",), (2,)), doys)) as d:
        assert days_text(d) == words


def test_units_in_words():
    assert [units_text(u) for u in ("Celsius", "degC", "K", "1", "m s-1", None)] == [
        "°C", "°C", "K", "", "m s-1", ""
    ]  # fmt: skip
