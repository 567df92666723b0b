"""The whole way, command line and Python, on real series whose climatologies others computed.

`expected_*_clim.csv` come from marineHeatWaves on the same series (float64); `test_clim_oisst*.nc`
from xmhw's tests. Ours are float32: 1e-6 of rounding at 25 degrees.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import kuroshio as ks
from archive_files import write_series
from cli_runs import run_here
from kuroshio.job import Job
from kuroshio.request import Request

WITHIN = 2e-6
SERIES = {"WA": "sst_WA.csv", "NWAtl": "sst_NW_Atl.csv"}
SETTINGS: dict[str, tuple[dict[str, Any], list[object]]] = {
    "": ({}, []),
    "_nosmooth": ({"smooth_width": 1}, ["--no-smooth"]),
    "_1983_2012": ({"baseline": (1983, 2012)}, ["--baseline", 1983, 2012]),
    # Made from the negated series: the 90th percentile of -x is the negated 10th of x.
    "_cold": ({"percentile": 10}, ["--percentile", 10]),
}
SHIPPED = [("WA", ""), ("WA", "_nosmooth"), ("WA", "_1983_2012"), ("WA", "_cold"), ("NWAtl", "")]
SHIPPED += [("NWAtl", "_1983_2012")]
CELL = {"lat": -29.375, "lon": 112.625}  # WA


@pytest.fixture(autouse=True, scope="module")
def _own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUROSHIO_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


def read_series(shared: Path, site: str) -> xr.DataArray:
    rows = np.loadtxt(shared / "sst" / SERIES[site], str, delimiter=",", skiprows=1)
    time = rows[:, 0].astype("datetime64[ns]")
    return xr.DataArray(
        rows[:, 1].astype(np.float32), {"time": time}, ["time"], name="sst", attrs={"units": "degC"}
    )


def assert_as_shipped(shared: Path, made: xr.Dataset, site: str, setting: str) -> None:
    """One cell's seas and thresh over the whole year."""
    path = shared / "sst" / f"expected_{site}{setting}_clim.csv"
    doy, seas, thresh = np.loadtxt(path, delimiter=",", skiprows=1).T
    np.testing.assert_array_equal(made.dayofyear, doy)
    np.testing.assert_allclose(made.seas.squeeze(), seas, rtol=0, atol=WITHIN)
    np.testing.assert_allclose(made.thresh.squeeze(), thresh, rtol=0, atol=WITHIN)


@pytest.mark.parametrize(("site", "setting"), SHIPPED)
def test_series_in_python(shared, site, setting):
    """A bare series, and the same as a grid of one cell."""
    series = read_series(shared, site)
    options = {"baseline": (1982, 2011), **SETTINGS[setting][0]}
    made = ks.climatology(series, **options)
    assert made.seas.dims == ("dayofyear",)
    assert_as_shipped(shared, made, site, setting)
    made = series.expand_dims({"lat": [0.0], "lon": [0.0]}).kuroshio.climatology(**options)
    assert_as_shipped(shared, made, site, setting)


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
@pytest.mark.parametrize(("site", "setting"), SHIPPED)
def test_series_on_the_command_line(shared, tmp_path, site, setting, suffix):
    """From NetCDF files of ten years, packed like OISST, into either format."""
    codes = np.rint(read_series(shared, site).values.astype("f8") * 100).astype("i2")
    for first in range(0, codes.size, 3650):
        write_series(
            tmp_path / f"{site} from {first}.nc", codes[first : first + 3650, None, None], first,
            units="days since 1982-01-01", zlib=True, shuffle=True, chunksizes=(365, 1, 1),
            attrs={"scale_factor": np.float32(0.01), "add_offset": np.float32(0), "units": "degC"},
            fill_value=-999,
        )  # fmt: skip
    output = tmp_path / f"clim{suffix}"
    options = SETTINGS[setting][1] or []
    baseline = [] if "--baseline" in options else ["--baseline", 1982, 2011]
    done = run_here("climatology", tmp_path / "*.nc", *baseline, *options, "-q", "-o", output)
    assert (done.status, done.out, done.err) == (0, "", "")
    with xr.open_dataset(output, engine="zarr" if suffix == ".zarr" else None) as made:
        assert_as_shipped(shared, made, site, setting)


def test_the_cell_in_its_own_grid(shared, tmp_path):
    """oisst_short.nc holds four cells about WA, as float32 without compression."""
    path = shared / "sst" / "oisst_short.nc"
    made = ks.climatology(path, baseline=(1982, 2011))
    cell = made.sel(latitude=CELL["lat"], longitude=CELL["lon"], method="nearest")
    assert_as_shipped(shared, cell, "WA", "")
    output = tmp_path / "clim.nc"
    done = run_here("climatology", path, "--baseline", 1982, 2011, "-q", "-o", output)
    assert done.status == 0, done
    with xr.open_dataset(output) as written:
        for name in ("seas", "thresh"):
            np.testing.assert_array_equal(written[name], made[name])


@pytest.mark.parametrize("memory", [None, 3_000_000])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i2"])
def test_the_cell_in_a_larger_grid(shared, dtype, memory):
    """Neighbours of every kind, land among them, and a cut into blocks change nothing."""
    series = read_series(shared, "WA")
    rng = np.random.default_rng()
    shape = (series.size, 20, 30)
    values = rng.integers(-180, 3500, shape, "i2")
    values[:, rng.random(shape[1:]) < 0.3] = -999  # land
    values[rng.random(shape[0]) < 0.01] = -999  # days without data, but not at our cell
    codes = np.rint(series.values.astype("f8") * 100).astype("i2")
    row, column = rng.integers(20), rng.integers(30)
    values[:, row, column] = codes
    if dtype == "i2":
        data, attrs = values, {"scale_factor": 0.01, "_FillValue": np.int16(-999)}
    else:
        data = np.where(values == -999, np.nan, values.astype("f8") / 100).astype(dtype)
        data[:, row, column] = series.values if dtype == "f4" else codes / 100
        attrs = {}
    grid = xr.DataArray(data, {"time": series.time}, ["time", "y", "x"], name="sst", attrs=attrs)
    made = ks.climatology(grid, baseline=(1982, 2011), memory_bytes=memory)
    if memory:
        job = Job(Request(baseline=(1982, 2011)), memory_bytes=memory)
        assert job.plan(ks.open_archive(grid))[1].blocks > 1
    assert_as_shipped(shared, made.isel(y=row, x=column), "WA", "")


@pytest.mark.parametrize(("suffix", "smooth"), [("", []), ("_nosmooth", ["--no-smooth"])])
def test_two_cells_of_xmhw(shared, tmp_path, suffix, smooth):
    output = tmp_path / "clim.nc"
    path = shared / "sst" / "oisst_2003_2004.nc"
    done = run_here("climatology", path, "--baseline", 2003, 2004, *smooth, "-q", "-o", output)
    assert done.status == 0, done
    assert done.err.startswith("note: A baseline of 2 years is short")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        here = ks.climatology(path, baseline=(2003, 2004), smooth_width=1 if smooth else 31)
    assert any("baseline of 2 years is short" in str(w.message) for w in caught)
    with (
        xr.open_dataset(output) as made,
        xr.open_dataset(shared / "sst" / f"test_clim_oisst{suffix}.nc") as expected,
    ):
        for k, (lat, lon) in enumerate([(-42.625, 148.125), (-41.625, 148.375)], 1):
            for found in (made, here):
                cell = found.sel(lat=lat, lon=lon, method="nearest")
                for name in ("seas", "thresh"):
                    theirs = expected[f"{name}{k}"]
                    np.testing.assert_allclose(cell[name], theirs, rtol=0, atol=1e-4)


def test_all_land(shared, tmp_path):
    """A grid without a value: an output without a value, and no error."""
    for suffix in (".nc", ".zarr"):
        output = tmp_path / f"clim{suffix}"
        done = run_here("climatology", shared / "sst" / "land.nc", "--baseline", 2003, 2004, "-q",
                        "--extra", "count", "-o", output)  # fmt: skip
        assert done.status == 0, done
        with xr.open_dataset(output, engine="zarr" if suffix == ".zarr" else None) as made:
            assert np.isnan(made.seas).all()
            assert np.isnan(made.thresh).all()
            assert (made["count"] == 0).all()
