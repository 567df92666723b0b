"""Writers of small daily files of every kind, and the plain way to read an archive back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np

from kuroshio.archive.fetch import fetch
from kuroshio.archive.model import Archive, ByteRange

OISST_UNITS = "days since 1978-01-01 12:00:00"
FILL = -999


def codes(shape: Sequence[int], seed: int = 0, dtype: str = "i2") -> np.ndarray:
    """Random packed temperatures with some missing."""
    rng = np.random.default_rng(seed)
    values = rng.integers(-180, 3200, tuple(shape))
    return np.where(rng.random(tuple(shape)) < 0.1, FILL, values).astype(dtype)


def write_oisst(
    path: Path,
    day: int,
    values: np.ndarray | None = None,
    *,
    lat0: float = -10.0,
    units: str = "Celsius",
    time_units: str = OISST_UNITS,
) -> np.ndarray:
    """One day in the layout of NOAA's OISST: four packed variables, one chunk each."""
    if values is None:
        values = codes((4, 6), seed=day)
    nlat, nlon = values.shape
    with netCDF4.Dataset(path, "w") as file:
        for name, size in (("time", None), ("zlev", 1), ("lat", nlat), ("lon", nlon)):
            file.createDimension(name, size)
        coordinate(file, "time", [day], units=time_units)
        coordinate(file, "zlev", [0.0], units="meters", positive="down")
        coordinate(file, "lat", lat0 + 0.25 * np.arange(nlat), units="degrees_north")
        coordinate(file, "lon", 0.125 + 0.25 * np.arange(nlon), units="degrees_east")
        names = {
            "sst": "Daily sea surface temperature",
            "anom": "Daily anomalies",
            "err": "Estimated error",
            "ice": "Sea ice concentration",
        }
        for name, text in names.items():
            var = file.createVariable(
                name,
                "i2",
                ("time", "zlev", "lat", "lon"),
                zlib=True,
                complevel=4,
                fill_value=FILL,
                chunksizes=(1, 1, nlat, nlon),
            )
            var.set_auto_maskandscale(False)
            var.long_name, var.units = text, units
            var.scale_factor, var.add_offset = np.float32(0.01), np.float32(0)
            var[:] = values[None, None]
    return values


def coordinate(file: netCDF4.Dataset, name: str, values: Any, dtype: str = "f4", **attrs: Any):
    var = file.createVariable(name, dtype, (name,))
    var.setncatts(attrs)
    var[:] = values
    return var


def write_series(
    path: Path,
    values: np.ndarray,
    first_day: int = 0,
    *,
    format: str = "NETCDF4",
    dims: Sequence[str] = ("time", "lat", "lon"),
    units: str = "days since 2001-01-01",
    calendar: str | None = "standard",
    name: str = "sst",
    attrs: dict[str, Any] | None = None,
    unlimited: bool = True,
    times: Any = None,
    **storage: Any,
) -> None:
    """Several days in one file; `storage` goes to netCDF4's createVariable."""
    with netCDF4.Dataset(path, "w", format=format) as file:
        for dim, size in zip(dims, values.shape, strict=True):
            file.createDimension(dim, None if dim == "time" and unlimited else size)
        if times is None:
            times = first_day + np.arange(values.shape[list(dims).index("time")])
        time = coordinate(file, "time", times, "f8", units=units)
        if calendar is not None:
            time.calendar = calendar
        for dim, size in zip(dims, values.shape, strict=True):
            if dim in ("lat", "lon"):
                side = "degrees_north" if dim == "lat" else "degrees_east"
                coordinate(file, dim, 0.5 + np.arange(size), units=side)
            elif dim == "depth":
                coordinate(file, dim, 10.0 * np.arange(size), units="m", positive="down")
        var = file.createVariable(name, values.dtype, dims, **storage)
        var.set_auto_maskandscale(False)
        if attrs is None:
            attrs = {"scale_factor": 0.01, "add_offset": 5.0} if values.dtype.kind == "i" else {}
        var.setncatts(attrs)
        var[:] = values


def unpack(values: np.ndarray, packing: Any) -> np.ndarray:
    """float64 values, NaN where missing, as the Packing says."""
    missing = np.isin(values, np.array(packing.missing)) if packing.missing else False
    return np.where(missing, np.nan, values.astype(np.float64) * packing.scale + packing.offset)


def read_all(archive: Archive) -> np.ndarray:
    """All values (step, *cell dims), float64 with NaN; every one must come from one piece only."""
    out = np.full((archive.days.size, *archive.grid.shape), np.nan)
    times_read = np.zeros(out.shape, int)
    for piece in archive.pieces:
        values = fetch(piece.where)
        assert values.dtype.isnative
        assert values.dtype == archive.dtype.newbyteorder("=")
        assert values.shape[0] >= len(piece.steps)
        sizes = tuple(s.stop - s.start for s in piece.box)
        if isinstance(piece.where, ByteRange):
            assert values.shape == piece.where.shape
            assert np.dtype(piece.where.dtype).newbyteorder("=") == values.dtype
        else:
            assert values.shape == (len(piece.steps), *sizes)
        values = values[(slice(None), *(slice(0, n) for n in sizes))]
        for i, step in enumerate(piece.steps):
            if step >= 0:
                out[(step, *piece.box)] = unpack(values[i], piece.packing)
                times_read[(step, *piece.box)] += 1
    assert (times_read == 1).all()
    return out
