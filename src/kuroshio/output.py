"""A climatology file opened again: what `info` and `plot` share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from .errors import Refusal

EARTH_RADIUS_KM = 6371.0
_UNITS = {
    "celsius": "°C", "c": "°C", "degc": "°C", "deg_c": "°C", "degree_c": "°C", "degrees_c": "°C",
    "degree_celsius": "°C", "degrees_celsius": "°C", "kelvin": "K", "k": "K", "1": "",
}  # fmt: skip


def open_climatology(path: str | os.PathLike[str]) -> xr.Dataset:
    """The dataset of a climatology that kuroshio wrote, values not loaded.

    Raises Refusal where there is none, it cannot be read, or it holds something else.
    """
    path = Path(path)
    if not path.exists():
        raise Refusal(
            f"There is no file {path}. Give a climatology made by `kuroshio climatology`."
        )
    if path.is_dir() and path.suffix != ".zarr":
        raise Refusal(
            f"{path} is a folder. Give one climatology made by `kuroshio climatology`; "
            "what a folder of daily files holds is shown by `kuroshio plan`."
        )
    try:
        dataset = xr.open_dataset(path, engine="zarr" if path.suffix == ".zarr" else None)
    except (OSError, ValueError, KeyError) as error:
        # Of a ValueError xarray makes a paragraph on installing its engines.
        reason = str(error) if isinstance(error, OSError) else "it is neither"
        raise Refusal(
            f"{path} cannot be read as NetCDF or Zarr: {reason}. "
            "Give a climatology made by `kuroshio climatology`."
        ) from error
    absent = [name for name in ("seas", "thresh") if name not in dataset]
    if absent or "dayofyear" not in dataset.coords:
        dataset.close()
        if "kuroshio_moments" in dataset.attrs:
            raise Refusal(
                f"{path} is no climatology, but moments that one is made of, by `kuroshio moments "
                "climatology`; `kuroshio moments info` shows what it holds."
            )
        held = ", ".join(map(str, dataset.data_vars)) or "nothing"
        raise Refusal(
            f"{path} is no climatology of kuroshio: it has no "
            f"{' and no '.join(absent) or 'dayofyear'} (it holds {held}). "
            "Make one with `kuroshio climatology`."
        )
    return dataset


def with_one_percentile(dataset: xr.Dataset, percentile: float | None) -> xr.Dataset:
    """Of several thresholds one: that asked for, or 90 if held, or the highest."""
    held = np.atleast_1d(dataset.percentile.values)
    wanted = percentile if percentile is not None else (90.0 if 90.0 in held else held.max())
    if wanted not in held:
        raise Refusal(
            f"The percentile {wanted:g} is not in the file, which holds "
            f"{', '.join(f'{p:g}' for p in held)}."
        )
    if "percentile" not in dataset.dims:
        return dataset
    return dataset.isel(percentile=int(np.flatnonzero(held == wanted)[0]))


def cell_dims(dataset: xr.Dataset) -> tuple[str, ...]:
    """The dimensions of the cells, in order."""
    return tuple(str(dim) for dim in dataset.seas.dims if dim != "dayofyear")


def latitude_longitude(dataset: xr.Dataset) -> tuple[xr.DataArray, xr.DataArray] | None:
    """The cells' latitude and longitude coordinates (1-D or 2-D), None where there are none."""
    latitude = _coordinate(dataset, "latitude", ("lat", "latitude", "nav_lat"), "degrees_north")
    longitude = _coordinate(dataset, "longitude", ("lon", "longitude", "nav_lon"), "degrees_east")
    return None if latitude is None or longitude is None else (latitude, longitude)


def _coordinate(
    dataset: xr.Dataset, standard_name: str, names: tuple[str, ...], units: str
) -> xr.DataArray | None:
    cells = set(cell_dims(dataset))
    candidates = [c for c in dataset.coords.values() if c.dims and set(c.dims) <= cells]
    for fits in (
        lambda c: c.attrs.get("standard_name") == standard_name,
        lambda c: c.attrs.get("units") == units,
        lambda c: str(c.name).lower() in names,
    ):
        for candidate in candidates:
            if fits(candidate):
                return candidate
    return None


def nearest_cell(
    dataset: xr.Dataset, point: tuple[float, float]
) -> tuple[dict[str, int], tuple[float, float]]:
    """The cell with values that is nearest to a latitude and longitude (degrees) on the sphere.

    Returns its index along every cell dimension (0 along depths and the like) and its own latitude
    and longitude. Raises Refusal where there is no such point, the grid has no such coordinates or
    no cell has values.
    """
    if not (-90 <= point[0] <= 90 and -360 <= point[1] <= 360):
        raise Refusal(
            f"There is no point at latitude {point[0]:g}, longitude {point[1]:g}. Give the "
            "latitude first, from -90 to 90, and then the longitude, such as --point 30 -40."
        )
    found = latitude_longitude(dataset)
    if found is None:
        raise Refusal("The grid has no latitude and longitude, so no point can be found on it.")
    latitude, longitude = xr.broadcast(*found)
    first = {dim: 0 for dim in cell_dims(dataset) if dim not in latitude.dims}
    field = dataset.seas.isel(dayofyear=0, **first).transpose(*latitude.dims)
    lat, lon = np.radians(latitude.values), np.radians(longitude.values)
    at_lat, at_lon = np.radians(point)
    closeness = np.sin(lat) * np.sin(at_lat) + np.cos(lat) * np.cos(at_lat) * np.cos(lon - at_lon)
    closeness = np.where(np.isnan(field.values), -np.inf, closeness)
    best = np.unravel_index(int(np.nanargmax(closeness)), closeness.shape)
    if not np.isfinite(closeness[best]):
        raise Refusal("No cell of the file has values on its first day of year.")
    where = float(latitude.values[best]), float(longitude.values[best])
    return first | {str(d): int(i) for d, i in zip(latitude.dims, best, strict=True)}, where


def far_from_cells(dataset: xr.Dataset, point: tuple[float, float]) -> str | None:
    """A sentence where the nearest cell with values is not the cell that holds the point.

    That is: where it is farther away than its own nearest neighbour (100 km for a single cell).
    """
    _, (lat, lon) = nearest_cell(dataset, point)
    latitude, longitude = xr.broadcast(*latitude_longitude(dataset))  # type: ignore[misc]
    away = _distance_km((lat, lon), point)
    apart = _distance_km((lat, lon), (latitude.values, longitude.values))
    spacing = apart[apart > 0.01].min(initial=np.inf)
    if away <= (spacing if np.isfinite(spacing) else 100.0):
        return None
    east = (lon + 180) % 360 - 180
    return (
        f"The nearest cell with values is at latitude {lat:g}, longitude {east:g}: "
        f"{away:,.0f} km from the point."
    )


def _distance_km(a: tuple[Any, Any], b: tuple[Any, Any]) -> Any:
    """Along the great circle, by the haversine formula; degrees in."""
    (lat_a, lon_a), (lat_b, lon_b) = np.radians(a), np.radians(b)
    half = np.sin((lat_b - lat_a) / 2) ** 2
    half = half + np.cos(lat_a) * np.cos(lat_b) * np.sin((lon_b - lon_a) / 2) ** 2
    return 2 * EARTH_RADIUS_KM * np.arcsin(np.sqrt(np.clip(half, 0, 1)))


def units_text(units: object) -> str:
    """Units as a reader writes them: °C for any spelling of Celsius."""
    return _UNITS.get(str(units or "").lower(), str(units or ""))


def date_text(month: int, day: int) -> str:
    """'15 July'."""
    return f"{day} {MONTHS[month - 1]}"


def days_text(dataset: xr.Dataset) -> str:
    """The days of year of a file in few words: '1 January to 31 December (366 days of year)'."""
    doys = dataset.dayofyear.values
    ends = [
        date_text(int(dataset.month[i]), int(dataset.day_of_month[i])) for i in (0, len(doys) - 1)
    ]
    if len(doys) == 1:
        return f"{ends[0]} (1 day of year)"
    gaps = np.count_nonzero(np.diff(doys) != 1) - np.count_nonzero(np.diff(doys) < 0)
    words = "days of year" + (", with gaps" if gaps else "")
    return f"{ends[0]} to {ends[1]} ({len(doys)} {words})"


MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
