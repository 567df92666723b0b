"""From the variables of a dataset to what an archive needs: variable, time axis, cells.

Every format is first seen as a mapping of `Var`; what is decided here is the same for NetCDF,
Zarr and xarray. `Layout` is all that must agree between the parts of an archive.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import Refusal
from .choose import Var, choose_variable, listing, summary, time_of
from .model import Field, Grid
from .names import DEGREES, ENSEMBLE, HORIZONTAL, HORIZONTAL_NAMES, VERTICAL
from .packing import STORAGE_ATTRS, packing

LARGE_VALUES = 65_536  # larger coordinates are compared between files by their edges


@dataclass(frozen=True)
class Layout:
    """All that the parts of an archive must have in common; the length of time is not part of it.

    dims, picked   the variable's own dimensions; the index taken of a dropped one, -1 for kept ones
    time_axis      position of time among `dims`; None where time is a scalar coordinate
    """

    variable: str
    dims: tuple[str, ...]
    picked: tuple[int, ...]
    time: str
    time_axis: int | None
    dtype: np.dtype
    calendar: str
    attrs: Mapping[str, Any]
    grid: Grid

    @property
    def cell_axes(self) -> tuple[int, ...]:
        """Positions of the grid's dimensions among `dims`, in the grid's order."""
        return tuple(i for i, p in enumerate(self.picked) if p < 0 and i != self.time_axis)

    @property
    def compared(self) -> tuple[str, ...]:
        """The coordinates whose values must agree between files."""
        return tuple(sorted(self.grid.coords))

    @cached_property
    def fingerprint(self) -> str:
        digest = hashlib.blake2b(digest_size=16)
        head = (
            self.variable,
            self.dims,
            self.picked,
            self.time_axis,
            self.dtype.str,
            self.calendar,
            self.grid.dims,
            self.grid.shape,
            str(self.attrs.get("units")),
        )
        digest.update(repr(head).encode())
        for name in self.compared:
            digest.update(name.encode())
            digest.update(edges(self.grid.coords[name].values).tobytes())
        return digest.hexdigest()


def edges(values: np.ndarray) -> np.ndarray:
    """What of a coordinate is compared: all of it, of a large one the first and the last row."""
    values = np.asarray(values)
    if values.size <= LARGE_VALUES or values.ndim < 2:
        return values
    return values[[0, -1]]


def describe(
    variables: Mapping[str, Var],
    variable: str | None,
    select: Mapping[str, int],
    origin: str,
    calendar_of: Callable[[Var], str],
) -> tuple[Layout, Var, Var]:
    """The layout of the variable asked for (None: the obvious one), it, and its time coordinate."""
    var = choose_variable(variables, variable, origin)
    if var.dtype.kind not in "iuf" or var.dtype.itemsize > 8 or var.dtype == np.float16:
        raise Refusal(
            f"The variable {var.name} of {origin} holds {var.dtype}; "
            f"integers and float32 or float64 can be read.{listing(variables)}"
        )
    time, axis = time_of(var, variables, origin)
    picked = _pick(var, axis, variables, select, origin)
    kept = [i for i, p in enumerate(picked) if p < 0 and i != axis]
    dims = tuple(var.dims[i] for i in kept)
    shape = tuple(var.shape[i] for i in kept)
    if 0 in shape:
        raise Refusal(
            f"The variable {summary(var)} of {origin} has no cells: one of its dimensions has the "
            "size 0. Give data of at least one cell."
        )
    dropped = {var.dims[i]: p for i, p in enumerate(picked) if p >= 0}
    grid = Grid(dims, shape, _coords(var, time, dims, dropped, variables, origin))
    attrs = {k: v for k, v in var.attrs.items() if k not in STORAGE_ATTRS and k != "coordinates"}
    layout = Layout(
        var.name, var.dims, picked, time.name, axis, var.dtype, calendar_of(time), attrs, grid
    )
    return layout, var, time


def _pick(
    var: Var,
    time_axis: int | None,
    variables: Mapping[str, Var],
    select: Mapping[str, int],
    origin: str,
) -> tuple[int, ...]:
    """For every dimension the index to take, or -1 to keep it."""
    sizes = dict(zip(var.dims, var.shape, strict=True))
    for dim, index in select.items():
        if dim not in sizes or (time_axis is not None and dim == var.dims[time_axis]):
            allowed = [d for i, d in enumerate(var.dims) if i != time_axis]
            raise Refusal(
                f"The selection {dim}={index} names no dimension that {var.name} of {origin} could "
                f"lose. Its dimensions besides time are {', '.join(allowed) or 'none'}."
            )
        if not -sizes[dim] <= index < sizes[dim]:
            raise Refusal(
                f"The selection {dim}={index} is outside the dimension {dim} of {var.name}, which "
                f"has the size {sizes[dim]} in {origin}. Allowed are 0 to {sizes[dim] - 1}."
            )
    horizontal = _spanned_by_latlon(var, variables)
    picked = [-1] * len(var.dims)
    extra, vertical = [], []
    for i, (dim, size) in enumerate(sizes.items()):
        if i == time_axis:
            continue
        kind = _kind(dim, variables, horizontal)
        if dim in select:
            picked[i] = select[dim] % size
        elif size == 1 and kind != "horizontal":
            picked[i] = 0
        elif kind == "other":
            vertical.append(dim)
        elif kind == "unknown":
            extra.append(dim)
    left = [d for i, d in enumerate(var.dims) if picked[i] < 0 and i != time_axis]
    wanted = vertical + (extra if len(left) - len(vertical) > 2 else [])
    if not wanted and len(left) > 2:
        wanted = left
    if wanted:
        has = ", ".join(f"{d}={sizes[d]}" for d in wanted)
        example = " ".join(f"--sel {d}=0" for d in wanted[: max(1, len(left) - 2)])
        raise Refusal(
            f"The variable {summary(var)} of {origin} has more than time and horizontal "
            f"dimensions: {has}. A climatology is made of one index at a time: choose with "
            f"{example} (select={{'{wanted[0]}': 0}}), counted from 0."
        )
    return tuple(picked)


def _kind(dim: str, variables: Mapping[str, Var], spanned: frozenset[str]) -> str:
    """'horizontal', 'other' (vertical, ensemble) or 'unknown'."""
    coordinate = variables.get(dim)
    attrs = coordinate.attrs if coordinate is not None else {}
    axis, standard = str(attrs.get("axis", "")).upper(), attrs.get("standard_name")
    if axis == "Z" or "positive" in attrs or standard in ("depth", "height", "realization"):
        return "other"
    if axis in ("X", "Y") or standard in HORIZONTAL_NAMES or _degrees(attrs) or dim in spanned:
        return "horizontal"
    if dim.lower() in VERTICAL or dim.lower() in ENSEMBLE:
        return "other"
    return "horizontal" if dim.lower() in HORIZONTAL else "unknown"


def _degrees(attrs: Mapping[str, Any]) -> bool:
    return str(attrs.get("units", "")).lower() in DEGREES


def _is_latlon(var: Var) -> bool:
    return (
        _degrees(var.attrs)
        or var.attrs.get("standard_name") in HORIZONTAL_NAMES
        or var.name.lower() in ("lat", "lon", "latitude", "longitude", "nav_lat", "nav_lon")
    )


def _spanned_by_latlon(var: Var, variables: Mapping[str, Var]) -> frozenset[str]:
    """Dimensions that latitude and longitude variables of the dataset depend on."""
    return frozenset(
        dim
        for other in variables.values()
        if _is_latlon(other)
        and other.name != var.name
        and len(other.dims) <= 2
        and set(other.dims) <= set(var.dims)
        for dim in other.dims
    )


def _coords(
    var: Var,
    time: Var,
    dims: tuple[str, ...],
    dropped: Mapping[str, int],
    variables: Mapping[str, Var],
    origin: str,
) -> dict[str, Field]:
    """Coordinates, auxiliary latitudes and longitudes, their bounds, and the grid mapping."""
    names = [d for d in (*dims, *dropped) if d in variables]
    listed = str(var.attrs.get("coordinates", "")).split()
    names += [n for n in listed if n in variables]
    names += [v.name for v in variables.values() if _is_latlon(v) and v.dims]
    coords: dict[str, Field] = {}
    for name in dict.fromkeys(names):
        other = variables[name]
        if name in (time.name, var.name) or not set(other.dims) <= {*dims, *dropped}:
            continue
        if other.dtype.kind not in "iufSU" or _follows_time(other, time):
            continue
        index = tuple(dropped.get(d, slice(None)) for d in other.dims)
        kept = tuple(d for d in other.dims if d in dims)
        bounds = variables.get(str(other.attrs.get("bounds", "")))
        coords[name] = _field(other, kept, index, origin, without=() if bounds else ("bounds",))
        if bounds is not None and bounds.dims[: len(other.dims)] == other.dims:
            coords[bounds.name] = _field(
                bounds, (*kept, *bounds.dims[len(other.dims) :]), index, origin
            )
    for word in str(var.attrs.get("grid_mapping", "")).replace(":", " ").split():
        mapping = variables.get(word)
        if mapping is not None and word not in coords and not mapping.dims:
            coords[word] = _field(mapping, (), (), origin)
    return coords


def _follows_time(var: Var, time: Var) -> bool:
    """Scalar dates such as a forecast's reference time belong to the step, not to the grid."""
    return not var.dims and (
        " since " in str(var.attrs.get("units", ""))
        or str(var.attrs.get("standard_name", ""))
        in ("time", "forecast_reference_time", "forecast_period")
    )


def _field(
    var: Var,
    dims: tuple[str, ...],
    index: tuple[slice | int, ...],
    origin: str,
    without: tuple[str, ...] = (),
) -> Field:
    values = np.asarray(var.read())[index]
    if values.dtype.kind in "iuf":
        values = values.astype(values.dtype.newbyteorder("="), copy=False)
        how = packing(var.attrs, values.dtype, var.name, origin)
        if how.packed:
            values = values * how.scale + how.offset
        elif how.missing and values.dtype.kind == "f" and dims:
            values = np.where(np.isin(values, how.missing), np.nan, values).astype(values.dtype)
    attrs = {k: v for k, v in var.attrs.items() if k not in STORAGE_ATTRS and k not in without}
    return Field(dims, values, attrs)
