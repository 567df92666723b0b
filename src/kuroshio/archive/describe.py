"""What a climatology file says of itself: dimensions, coordinates, variables, and how it was made.

Pure: from the archive's records and the request to a `Schema`; the writers turn that into a file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from .. import calendar
from ..errors import Refusal
from ..request import Request
from .model import Archive, Field

REFERENCE = "Hobday et al. 2016, https://doi.org/10.1016/j.pocean.2015.12.014"
ESTIMATOR = (
    "linear interpolation between order statistics at (n - 1) * p / 100, counted from 0 "
    "(Hyndman and Fan 1996, type 7)"
)
ESTIMATED = (
    "expansion from mean, standard deviation, skewness and kurtosis of the pool (Cornish and "
    "Fisher 1938): no order statistic"
)
OUR_NAMES = ("dayofyear", "month", "day_of_month", "percentile", "seas", "thresh")
TEMPERATURE_UNITS = {
    "k", "kelvin", "degk", "deg_k", "degree_k", "degrees_k", "degrees_kelvin",
    "c", "celsius", "degc", "deg_c", "degree_c", "degrees_c", "degree_celsius", "degrees_celsius",
}  # fmt: skip


@dataclass(frozen=True)
class OutputVariable:
    """A variable to write; `fill` None: every cell gets a value."""

    name: str
    dims: tuple[str, ...]
    dtype: np.dtype
    attrs: dict[str, Any]
    fill: float | None


@dataclass(frozen=True)
class Schema:
    """Everything in the output but the variables' values.

    sizes       dimension -> length
    cell_dims   the last dimensions of every variable, in order
    coords      name -> coordinate, bounds or grid mapping, values included
    """

    sizes: dict[str, int]
    cell_dims: tuple[str, ...]
    coords: dict[str, Field]
    variables: dict[str, OutputVariable]
    attrs: dict[str, Any]

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self.sizes[dim] for dim in self.variables[name].dims)

    def chunk_shape(self, name: str, chunks: tuple[int, ...]) -> tuple[int, ...]:
        """A variable's chunk from (days of year, *cells): one of any further dimension."""
        further = len(self.variables[name].dims) - len(chunks)
        return (chunks[0], *[1] * further, *chunks[1:])

    @property
    def nbytes(self) -> int:
        """Bytes of the variables uncompressed: more than the output will take."""
        return sum(
            math.prod(self.shape(name)) * variable.dtype.itemsize
            for name, variable in self.variables.items()
        )


def describe(
    archive: Archive,
    request: Request,
    doys: Sequence[int],
    *,
    sources: str = "",
    command: str = "",
) -> Schema:
    """The schema of the climatology of an archive for the days of year `doys`, in their order.

    sources   what the user named: a pattern, a folder, "a DataArray"
    command   how the job was started, for the history

    `seas` and `thresh` are float32 (dayofyear, *cells); with several percentiles `thresh` is
    (dayofyear, percentile, *cells), with one the percentile is a scalar coordinate.
    Raises Refusal where the grid uses a name that the output needs.
    """
    grid = archive.grid
    for name in (*grid.dims, *grid.coords):
        if name in OUR_NAMES or name in request.extras:
            raise Refusal(
                f"The grid has a dimension or coordinate called {name!r}, which is the name of "
                "something in the output. Rename it in the input."
            )
    coords = {**calendar_coords(archive.calendar, doys), **_percentile_coord(request)}
    coords |= {name: cleaned(field) for name, field in grid.coords.items()}
    sizes = {"dayofyear": len(doys)}
    if len(request.percentiles) > 1:
        sizes["percentile"] = len(request.percentiles)
    sizes |= dict(zip(grid.dims, grid.shape, strict=True))
    for field in grid.coords.values():
        sizes |= dict(zip(field.dims, field.values.shape, strict=True))
    return Schema(
        sizes,
        grid.dims,
        coords,
        _variables(archive, request, coords),
        _global_attrs(archive, request, doys, sources, command),
    )


def calendar_coords(name: str, doys: Sequence[int]) -> dict[str, Field]:
    days = np.array(doys, np.int64)
    month, day_of_month = calendar.month_day(name, days)
    template = {
        "standard": "29 February is 60 and 1 March 61 in every year",
        "all_leap": "every year has 366 days, 29 February is 60",
        "noleap": "every year has 365 days, 1 March is 60",
        "360_day": "every month has 30 days",
    }[name]
    along = ("dayofyear",)
    # dayofyear has no units: CDO warns of "1" on a record dimension, xarray decodes "days".
    return {
        "dayofyear": Field(
            along, days.astype(np.int16), {"long_name": f"day of year ({template})"}
        ),
        "month": Field(along, month.astype(np.int16), {"long_name": "month", "units": "1"}),
        "day_of_month": Field(
            along, day_of_month.astype(np.int16), {"long_name": "day of the month", "units": "1"}
        ),
    }


def _percentile_coord(request: Request) -> dict[str, Field]:
    several = len(request.percentiles) > 1
    values = np.array(request.percentiles if several else request.percentiles[0], np.float64)
    dims = ("percentile",) if several else ()
    return {"percentile": Field(dims, values, {"long_name": "percentile", "units": "percent"})}


def cleaned(field: Field) -> Field:
    """Without attributes that say how the values were stored in the input."""
    stored = ("_FillValue", "missing_value", "scale_factor", "add_offset", "coordinates")
    attrs = {key: value for key, value in field.attrs.items() if key not in stored}
    return Field(field.dims, field.values, attrs)


def _variables(
    archive: Archive, request: Request, coords: Mapping[str, Field]
) -> dict[str, OutputVariable]:
    dims = ("dayofyear", *archive.grid.dims)
    thresh_dims = dims if len(request.percentiles) == 1 else ("dayofyear", "percentile", *dims[1:])
    what = str(archive.attrs.get("long_name") or archive.variable).strip()
    carried = {
        key: archive.attrs[key] for key in ("standard_name", "units") if key in archive.attrs
    }
    units = {key: carried[key] for key in ("units",) if key in carried}
    is_temperature = str(carried.get("units", "")).lower() in TEMPERATURE_UNITS
    on_scale = {"units_metadata": "temperature: on_scale"} if is_temperature else {}
    difference = {"units_metadata": "temperature: difference"} if is_temperature else {}
    pool = f"pool of {request.window} days in {_years(request)}"
    smoothed = f", then a {request.smooth_width}-day mean" if request.smooth_width > 1 else ""
    mean_method = _method(archive, "mean", pool + smoothed)
    parts: list[tuple[str, tuple[str, ...], dict[str, Any]]] = [
        ("seas", dims, {
            "long_name": f"climatological mean of {lower(what)}", **carried, **on_scale,
            "cell_methods": mean_method,
        }),
        ("thresh", thresh_dims, {
            "long_name": f"{_percentiles(request)} of {lower(what)}", **carried, **on_scale,
            "comment": f"percentile of the {pool}{smoothed}; {_estimator(request)}",
        }),
    ]  # fmt: skip
    extras: dict[str, dict[str, Any]] = {
        "count": {
            "long_name": "number of valid values in the pool", "units": "1",
            "standard_name": "number_of_observations",
        },
        "std": {
            "long_name": f"standard deviation of {lower(what)} in the pool", **units,
            **difference, "cell_methods": _method(archive, "standard_deviation", pool),
            "comment": "divided by the number of values, not smoothed",
        },
        "skewness": {
            "long_name": f"skewness of {lower(what)} in the pool", "units": "1",
            "comment": "third central moment over the standard deviation cubed, not smoothed",
        },
        "kurtosis": {
            "long_name": f"excess kurtosis of {lower(what)} in the pool", "units": "1",
            "comment": "fourth central moment over the variance squared, minus 3, not smoothed",
        },
    }  # fmt: skip
    parts += [(name, dims, extras[name]) for name in request.extras]
    ancillary = {"ancillary_variables": "count"} if "count" in request.extras else {}
    made = {}
    for name, its_dims, attrs in parts:
        dtype: np.dtype = np.dtype(np.float32)
        if name == "count":
            longest = request.window * request.years
            dtype = np.dtype(np.int16 if longest <= np.iinfo(np.int16).max else np.int32)
        attrs |= links(archive, its_dims, coords, percentile=name == "thresh")
        attrs |= ancillary if name in ("seas", "thresh") else {}
        made[name] = OutputVariable(
            name, its_dims, dtype, attrs, None if name == "count" else float("nan")
        )
    return made


def _method(archive: Archive, method: str, comment: str) -> str:
    before = str(archive.attrs.get("cell_methods", "")).strip()
    return f"{before} time: {method} (comment: {comment})".strip()


def links(
    archive: Archive, dims: tuple[str, ...], coords: Mapping[str, Field], percentile: bool
) -> dict[str, str]:
    """The attributes by which a variable points to its coordinates and grid mapping."""
    bounds = {field.attrs.get("bounds") for field in coords.values()}
    bounds |= {field.attrs.get("climatology") for field in coords.values()}
    mappings = [name for name, field in coords.items() if "grid_mapping_name" in field.attrs]
    auxiliary = [
        name
        for name, field in coords.items()
        if name not in dims and name not in bounds and name not in mappings
        and set(field.dims) <= set(dims) and (name != "percentile" or percentile)
    ]  # fmt: skip
    found = {"coordinates": " ".join(auxiliary)}
    mapping = str(archive.attrs.get("grid_mapping", ""))
    if mapping and mapping.split(":")[0].split()[0] in coords:
        found["grid_mapping"] = mapping
    elif len(mappings) == 1:
        found["grid_mapping"] = mappings[0]
    return found


def _global_attrs(
    archive: Archive, request: Request, doys: Sequence[int], sources: str, command: str
) -> dict[str, Any]:
    what = str(archive.attrs.get("long_name") or archive.variable).strip()
    attrs: dict[str, Any] = {
        "Conventions": "CF-1.11",
        "title": (
            f"Daily climatology and {_percentiles(request)} of {lower(what)}, {_years(request)}"
        ),
        "history": history_line(command),
        "references": REFERENCE,
        "convention": "hobday: mean and percentile of pooled days as in Hobday et al. 2016",
        "baseline": np.array(request.baseline, np.int32),
        "percentile": np.array(request.percentiles, np.float64),
        "estimator": _estimator(request),
        "half_width_days": np.int32(request.half_width),
        "window_days": np.int32(request.window),
        "smooth_width_days": np.int32(request.smooth_width),
        "smoothing": (
            f"circular running mean of seas and thresh over {request.smooth_width} days of year"
            if request.smooth_width > 1
            else "none"
        ),
    }
    if archive.calendar == "standard":
        attrs["feb29"] = {
            "mean": "mean of the results for 28 February and 1 March, before smoothing",
            "pool": "from the pool about the 29 Februaries of leap years",
        }[request.feb29]
    attrs |= {
        "min_valid_share": np.float64(request.min_valid),
        "max_pad_days": np.int32(request.max_pad),
        "calendar": archive.calendar,
        "source_variable": archive.variable,
        **({"source_files": sources} if sources else {}),
        **_account(archive, request),
        "kuroshio_version": package_version(),
    }
    return {k: storable(v) if isinstance(v, str) else v for k, v in attrs.items()}


def storable(text: str) -> str:
    """The text in UTF-8: file names may hold bytes that are no text, and these are spelled out."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _account(archive: Archive, request: Request) -> dict[str, Any]:
    """How much input there was, and what of it was absent or left out."""
    first, last = request.baseline
    start = int(calendar.day_number(archive.calendar, first, 1))
    stop = int(calendar.day_number(archive.calendar, last + 1, 1))
    present = int(np.count_nonzero((archive.days >= start) & (archive.days < stop)))
    account: dict[str, Any] = {"source_file_count": np.int32(len(archive.sources))}
    if archive.sources:
        account["source_first_file"] = archive.sources[0]
        account["source_last_file"] = archive.sources[-1]
    if len(archive.days):
        account["source_first_day"] = calendar.iso_date(archive.calendar, int(archive.days[0]))
        account["source_last_day"] = calendar.iso_date(archive.calendar, int(archive.days[-1]))
    account["source_day_count"] = np.int32(len(archive.days))
    account["baseline_missing_days"] = np.int32(stop - start - present)
    if archive.skipped:
        account["skipped_files"] = "; ".join(archive.skipped)
    if archive.notes:
        account["notes"] = "; ".join(archive.notes)
    return account


def history_line(command: str) -> str:
    """When, with which version, how."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return f"{now} kuroshio {package_version()}: {command or 'called from Python'}"


def package_version() -> str:
    """The installed version, or 'unknown' where the sources are used without installing."""
    try:
        return version("kuroshio")
    except PackageNotFoundError:
        return "unknown"


def _years(request: Request) -> str:
    first, last = request.baseline
    return str(first) if first == last else f"{first}-{last}"


def _estimator(request: Request) -> str:
    return ESTIMATOR if request.method == "exact" else ESTIMATED


def _percentiles(request: Request) -> str:
    """'90th percentile', or '10th, 90th and 99th percentiles'."""
    *others, last = (_ordinal(p) for p in request.percentiles)
    return f"{', '.join(others)} and {last} percentiles" if others else f"{last} percentile"


def _ordinal(percentile: float) -> str:
    text = f"{percentile:g}"
    if text.endswith(("11", "12", "13")) and "." not in text:
        return f"{text}th"
    endings = {"1": "st", "2": "nd", "3": "rd"}
    return text + ("th" if "." in text else endings.get(text[-1], "th"))


def lower(name: str) -> str:
    """A long name inside a sentence: 'Daily sea ...' but 'SST' as it is."""
    return name[0].lower() + name[1:] if name[1:2].islower() else name
