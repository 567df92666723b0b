"""From files and objects to results, for inputs that broke something once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import kuroshio
from kuroshio import reference

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
        found = kuroshio.climatology(source, **options)
    some = (slice(None), *cells)
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
