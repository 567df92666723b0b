"""From files and objects to results, for inputs that broke something once."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import kuroshio
from kuroshio import reference
from kuroshio.archive.catalog import open_archive
from kuroshio.errors import Refusal
from kuroshio.job import Job
from kuroshio.request import Request

DAYS = np.arange(10957, 10957 + 731)  # 2000 and 2001


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KUROSHIO_CACHE_DIR", str(tmp_path / "cache"))


def series_of(values: np.ndarray) -> xr.DataArray:
    time = ("time", DAYS[: len(values)], {"units": "days since 1970-01-01"})
    return xr.DataArray(values, dims=("time", "lat", "lon"), coords={"time": time}, name="sst")


def check(source: Any, values: np.ndarray, cells: tuple[slice, ...], **options: Any) -> None:
    """The result equals the oracle's at `cells` (it is slow)."""
    options = {"baseline": (2000, 2001), "smooth_width": 1, **options}
    with pytest.warns(UserWarning, match="is short"):
        found = kuroshio.climatology(source, percentile=50, **options)
    some = (slice(None), *cells)
    options = {"percentiles": (50.0,), **options}
    with np.errstate(invalid="ignore"):  # inf - inf
        expected = reference.climatology(values[some], DAYS[: len(values)], "standard", **options)
    np.testing.assert_allclose(found["seas"][some], expected["seas"], rtol=1e-6)
    np.testing.assert_allclose(found["thresh"][some], expected["thresh"][0], rtol=1e-6)


@pytest.mark.parametrize("dtype", ["i2", "f4"])
@pytest.mark.parametrize("chunk", [(1, 16, 9), (1, 7, 16), (1, 99, 99), (50, 7, 9), (50, 16, 16)])
def test_chunks_that_hang_over_the_grid_and_the_series(tmp_path: Path, chunk, dtype):
    """Dimensions that may grow have chunks larger than themselves."""
    values = np.random.default_rng(1).integers(0, 3000, (731, 7, 9)).astype(dtype)
    series = series_of(values)
    stored = {"chunksizes": chunk, "zlib": True, "_FillValue": values.dtype.type(-999)}
    path = tmp_path / "series.nc"
    series.to_netcdf(path, unlimited_dims=("time", "lat", "lon"), encoding={"sst": stored})
    check(str(path), values.astype(float), (slice(5, 7), slice(8, 9)))


@pytest.mark.parametrize("dtype", ["u1", "<u2", ">u2", "<u4", ">u4", ">i2", ">i4", ">f4", "i8"])
def test_every_integer_type_in_either_byte_order(dtype):
    high = np.iinfo(dtype).max if dtype[-2] == "u" else 100
    values = np.random.default_rng(1).integers(0, high, (731, 1, 2), endpoint=True).astype(dtype)
    check(series_of(values), values.astype(float), (slice(0, 1), slice(0, 2)))


@pytest.mark.parametrize("smooth_width", [1, 31])
@pytest.mark.parametrize("day", [2, 400])
def test_an_infinity_stays_within_its_windows(day, smooth_width):
    values = np.random.default_rng(1).normal(15, 5, (731, 1, 3))
    values[day, 0, 1], values[day, 0, 2] = np.inf, -np.inf
    check(series_of(values), values, (slice(0, 1), slice(0, 3)), smooth_width=smooth_width)


def test_an_undeclared_fill_value_stays_within_its_windows():
    values = np.random.default_rng(1).normal(15, 5, (731, 1, 3))
    values[100, 0, 1], values[100, 0, 2] = 1e20, 9.97e36
    check(series_of(values), values, (slice(0, 1), slice(0, 3)), smooth_width=31)


def test_small_values_keep_their_digits_beside_a_large_first_one():
    """As of rain in kg m-2 s-1: a result may be far smaller than the cell's first value."""
    values = np.random.default_rng(4).uniform(1e-13, 1e-12, (731, 1, 2))
    values[355:366] = 1e-4  # in the window of the first day of year
    check(series_of(values), values, (slice(1), slice(2)), doys=[1, 100, 200])


def test_values_beyond_float32_are_infinite_in_it():
    values = np.full((731, 1, 2), 1e300)
    values[..., 1] = -1e39
    with pytest.warns(UserWarning, match="is short"):
        found = kuroshio.climatology(series_of(values), baseline=(2000, 2001))
    assert (found.seas[..., 0] == np.inf).all()
    assert (found.thresh[..., 1] == -np.inf).all()


@pytest.mark.parametrize("smooth_width", [1, 31])
def test_the_cut_does_not_show_in_the_last_bit(tmp_path, smooth_width):
    """A machine with less memory free gives the same file."""
    rng = np.random.default_rng(5)
    values = rng.normal(280.0, 8.0, (731, 6, 20))
    values[rng.random(values.shape) < 0.9] = np.nan
    path = tmp_path / "series.nc"
    series_of(values).to_netcdf(path, encoding={"sst": {"chunksizes": (64, 6, 20), "zlib": True}})
    request = Request(baseline=(2000, 2001), smooth_width=smooth_width, extras=("count", "std"))
    archive = open_archive(str(path))
    roomy = Job(request, threads=2).run(archive)
    with pytest.raises(Refusal) as refusal:
        Job(request, memory_bytes=1).plan(archive)
    needed = float(re.search(r"needs ([\d.]+) kB", str(refusal.value))[1]) * 1000
    for factor in (1.01, 1.5, 3.0):
        tight = Job(request, memory_bytes=int(needed * factor), threads=3).run(archive)
        assert (tight.plan.blocks, tight.plan.batch) != (roomy.plan.blocks, roomy.plan.batch)
        for name, field in roomy.fields.items():
            np.testing.assert_array_equal(tight.fields[name], field, name)


@pytest.mark.parametrize(
    "wrong",
    [
        {"percentile": None}, {"percentile": "90th"}, {"percentile": [[10, 90]]},
        {"percentile": ["ninety"]}, {"min_valid": None}, {"min_valid": "80%"},
        {"memory_bytes": "4G"}, {"threads": "2"}, {"threads": 2.5}, {"doys": 5},
        {"extras": None}, {"max_pad": 10**9}, {"select": "depth=0"}, {"output": 5},
    ],
    ids=str,
)  # fmt: skip
def test_a_wrong_kind_of_argument_is_refused(wrong):
    """With its name, and not with a TypeError from far inside."""
    with pytest.raises(Refusal, match=next(iter(wrong))):
        kuroshio.climatology(series_of(np.zeros((731, 1, 1))), baseline=(2000, 2001), **wrong)


def test_a_baseline_far_longer_than_the_data_costs_nothing():
    """Years without data make no words of the bit planes, of which there would be thousands."""
    series = series_of(np.random.default_rng(1).normal(15, 5, (731, 1, 2)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # short, and covered by 2 of 19999 years
        found = kuroshio.climatology(series, baseline=(-9999, 9999), doys=[100])
        expected = kuroshio.climatology(series, baseline=(2000, 2001), doys=[100])
    np.testing.assert_array_equal(found.thresh, expected.thresh)


@pytest.mark.parametrize(
    ("series", "message"),
    [
        (series_of(np.zeros((731, 0, 2))), "has no cells"),
        (series_of(np.zeros((731, 1, 2), "f2")), "holds float16"),
    ],
    ids=["no cells", "float16"],
)
def test_data_that_cannot_be_computed_is_refused(series, message):
    with pytest.raises(Refusal, match=message):
        kuroshio.climatology(series, baseline=(2000, 2001))
