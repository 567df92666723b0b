"""One cell's series out of an archive."""

from __future__ import annotations

import numpy as np
import xarray as xr

from kuroshio.archive.catalog import open_archive
from kuroshio.archive.point import series_at


def test_a_series_from_chunks_that_hang_over_the_end(tmp_path):
    """Packed values with gaps, 50-day chunks of a 365-day year, a box cut in cells, too."""
    rng = np.random.default_rng()
    values = np.rint(rng.normal(15, 5, (365, 5, 4)) * 100) / 100
    values[rng.random(values.shape) < 0.2] = np.nan
    days = np.datetime64("2001-01-01") + np.arange(365)
    field = xr.DataArray(
        values,
        {"time": days.astype("datetime64[ns]"), "lat": range(5), "lon": range(4)},
        ("time", "lat", "lon"),
        "sst",
    )
    packed = {"dtype": "i2", "scale_factor": 0.01, "_FillValue": -999, "zlib": True}
    field.to_netcdf(tmp_path / "a.nc", encoding={"sst": {**packed, "chunksizes": (50, 2, 4)}})
    archive = open_archive(str(tmp_path / "a.nc"), cache=False)
    found_days, found = series_at(archive, (4, 3))
    np.testing.assert_array_equal(found_days, days.astype("datetime64[D]").astype(np.int64))
    np.testing.assert_allclose(found, values[:, 4, 3], atol=1e-9)
