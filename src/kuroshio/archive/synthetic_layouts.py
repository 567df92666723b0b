"""The file layouts of the invented archives, and the skeleton that all files of one share."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import netCDF4
import numpy as np

LEVEL: Final = 4  # of deflate, as in the OISST files


@dataclass(frozen=True)
class Layout:
    """What the files of one kind of archive look like."""

    file_name: str  # with {date}
    dims: tuple[str, ...]
    poles: bool
    falling: bool
    dtype: str
    fill: float
    attrs: dict[str, Any]
    time_units: str
    time_dtype: str
    time_scale: int  # of the units in a day
    epoch: np.datetime64  # instant of time 0
    precision: type[np.floating]  # in which the field is computed
    global_attrs: dict[str, Any]
    deflated: bool = True


_TITLE = "Synthetic daily sea surface temperature, not an observation"
LAYOUTS = {
    "oisst": Layout(
        "oisst-avhrr-v02r01.{date}.nc", ("time", "zlev", "lat", "lon"), False, False, "<i2", -999,
        {"long_name": "Synthetic daily sea surface temperature", "units": "Celsius",
         "standard_name": "sea_surface_temperature",
         "valid_min": np.int16(-300), "valid_max": np.int16(4500),
         "add_offset": np.float32(0), "scale_factor": np.float32(0.01)},
        "days since 1978-01-01 12:00:00", "f4", 1, np.datetime64("1978-01-01T12"), np.float32,
        {"Conventions": "CF-1.6, ACDD-1.3", "title": _TITLE},
    ),
    "era5": Layout(
        "era5_sst_{date}.nc", ("time", "latitude", "longitude"), True, True, "<i2", -32767,
        {"long_name": "Synthetic sea surface temperature", "units": "K",
         "scale_factor": np.float64(1), "add_offset": np.float64(0)},
        "hours since 1900-01-01 00:00:00.0", "i4", 24, np.datetime64("1900-01-01T00"), np.float32,
        {"Conventions": "CF-1.6", "title": _TITLE},
    ),
    "f8": Layout(
        "sst_f8_{date}.nc", ("time", "lat", "lon"), True, False, "<f8", np.nan,
        {"long_name": "Synthetic sea surface temperature", "units": "degrees_C",
         "standard_name": "sea_surface_temperature"},
        "days since 1970-01-01 12:00:00", "f8", 1, np.datetime64("1970-01-01T12"), np.float64,
        {"Conventions": "CF-1.11", "title": _TITLE},
    ),
}  # fmt: skip
LAYOUTS["f8-plain"] = replace(LAYOUTS["f8"], deflated=False)

# The rest of an OISST file: name -> attributes; int16 at 0.01 like sst.
_OISST_OTHERS = {
    "anom": {"long_name": "Daily sea surface temperature anomalies", "units": "Celsius"},
    "err": {"long_name": "Estimated error standard deviation of analysed_sst", "units": "Celsius"},
    "ice": {"long_name": "Sea ice concentration", "units": "%"},
}


def grid_of(grid: float, layout: Layout) -> tuple[np.ndarray, np.ndarray]:
    """Latitude and longitude of the cells, float64 degrees, in the order of the files."""
    rows, columns = round(180 / grid), round(360 / grid)
    if layout.poles:
        latitude = -90 + grid * np.arange(rows + 1)
        return latitude[::-1].copy() if layout.falling else latitude, grid * np.arange(columns)
    return -90 + grid * (np.arange(rows) + 0.5), grid * (np.arange(columns) + 0.5)


def skeleton_of(
    layout: Layout, latitude: np.ndarray, longitude: np.ndarray, all_variables: bool
) -> bytes:
    """A whole NetCDF-4 file of the layout but for its date and its data."""
    lat_name, lon_name = layout.dims[-2:]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "skeleton.nc"
        with netCDF4.Dataset(path, "w") as file:
            file.setncatts(layout.global_attrs)
            for name, size in zip(
                layout.dims,
                (*[1] * (len(layout.dims) - 2), len(latitude), len(longitude)),
                strict=True,
            ):
                file.createDimension(name, size)
            time = file.createVariable("time", layout.time_dtype, ("time",))
            time.setncatts(
                {
                    "long_name": "time",
                    "standard_name": "time",
                    "axis": "T",
                    "units": layout.time_units,
                    "calendar": "standard",
                }
            )
            time[:] = 0
            if "zlev" in layout.dims:
                zlev = file.createVariable("zlev", "f4", ("zlev",))
                zlev.setncatts(
                    {
                        "long_name": "Sea surface height",
                        "units": "meters",
                        "positive": "down",
                        "axis": "Z",
                    }
                )
                zlev[:] = 0
            for name, values, units, axis in (
                (lat_name, latitude, "degrees_north", "Y"),
                (lon_name, longitude, "degrees_east", "X"),
            ):
                variable = file.createVariable(name, "f4", (name,))
                long_name = "latitude" if axis == "Y" else "longitude"
                variable.setncatts(
                    {
                        "long_name": long_name,
                        "standard_name": long_name,
                        "units": units,
                        "axis": axis,
                    }
                )
                variable[:] = values
            others = {
                name: {**attrs, "scale_factor": np.float32(0.01), "add_offset": np.float32(0)}
                for name, attrs in _OISST_OTHERS.items()
            }
            for name, attrs in {"sst": layout.attrs, **(others if all_variables else {})}.items():
                variable = file.createVariable(
                    name,
                    np.dtype(layout.dtype),
                    layout.dims,
                    fill_value=layout.fill,
                    zlib=layout.deflated,
                    complevel=LEVEL,
                    shuffle=layout.deflated,
                    chunksizes=[len(file.dimensions[dim]) for dim in layout.dims],
                )
                variable.setncatts(attrs)
        return path.read_bytes()
