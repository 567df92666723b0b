"""Which variable of a dataset is meant, and which of its axes is time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import Refusal
from .timeaxis import is_time_units

STANDARD_NAMES = (
    "sea_surface_temperature",
    "sea_surface_foundation_temperature",
    "sea_surface_subskin_temperature",
    "sea_surface_skin_temperature",
    "sea_water_temperature",
    "sea_water_potential_temperature",
    "sea_water_conservative_temperature",
    "air_temperature",
)
NAMES = ("sst", "analysed_sst", "tos", "thetao", "sea_surface_temperature", "t2m", "tas", "temp")
_LINKS = ("bounds", "climatology", "grid_mapping", "coordinates")


@dataclass(frozen=True)
class Var:
    """One variable of a dataset, whatever holds it; `read` gives all its values as stored.

    Decoded dates, datetime64 or cftime objects, have the dtype 'M8[s]'.
    """

    name: str
    dims: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: np.dtype
    attrs: Mapping[str, Any]
    read: Callable[[], np.ndarray] = field(compare=False)


def candidates(variables: Mapping[str, Var]) -> list[Var]:
    """Numeric variables with a time dimension and cells, that describe no other variable."""
    helpers = {
        word.rstrip(":")
        for var in variables.values()
        for key in _LINKS
        for word in str(var.attrs.get(key, "")).split()
    }
    return [
        var
        for name, var in variables.items()
        if name not in helpers
        and var.dtype.kind in "iuf"
        and len(var.dims) >= 2
        and name not in var.dims
        and (_time_axis(var, variables) is not None or _scalar_time(var, variables) is not None)
    ]


def choose_variable(variables: Mapping[str, Var], wanted: str | None, origin: str) -> Var:
    """The variable by its name, else by its CF standard_name; without a wish, the obvious one."""
    if wanted is not None:
        if wanted in variables:
            return variables[wanted]
        same = [v for v in candidates(variables) if v.attrs.get("standard_name") == wanted]
        if len(same) == 1:
            return same[0]
        raise Refusal(
            f"There is no variable {wanted!r} in {origin}, by name or by standard_name."
            f"{listing(variables)} Choose with --var (variable=)."
        )
    found = candidates(variables)
    if len(found) == 1:
        return found[0]
    said = [v for v in found if v.attrs.get("standard_name") in STANDARD_NAMES]
    named = [v for v in found if v.name.lower() in NAMES]
    either = [v for v in found if v in said or v in named]
    if len(either) == 1:
        return either[0]
    if len(named) == 1 and named[0] in said:  # its error or anomaly may borrow the standard_name
        return named[0]
    if not found:
        raise Refusal(
            f"There is no gridded variable in {origin}.{listing(variables)} Give files of daily "
            "data: a variable with a time dimension and at least one other, whose time has units "
            "like 'days since 1970-01-01'. A single series needs a cell dimension of length one: "
            "in xarray, series.expand_dims('station', axis=1)."
        )
    raise Refusal(
        f"Several variables could be meant in {origin}.{listing(variables)} "
        "Choose with --var (variable=)."
    )


def time_of(var: Var, variables: Mapping[str, Var], origin: str) -> tuple[Var, int | None]:
    """The time coordinate of a variable, and its axis; None for a scalar time."""
    found = _time_axis(var, variables)
    if found is not None:
        return found
    scalar = _scalar_time(var, variables)
    if scalar is not None:
        return scalar, None
    dims = ", ".join(var.dims) or "none"
    raise Refusal(
        f"The variable {var.name} of {origin} has no time coordinate (its dimensions are {dims}). "
        "Dates are taken from a coordinate with units like 'days since 1970-01-01', "
        "never from file names."
    )


def _time_axis(var: Var, variables: Mapping[str, Var]) -> tuple[Var, int] | None:
    for axis, dim in enumerate(var.dims):
        coordinate = variables.get(dim)
        if coordinate is not None and coordinate.dims == (dim,) and _is_time(coordinate):
            return coordinate, axis
    for axis, dim in enumerate(var.dims):  # a date along a dimension of another name
        for other in variables.values():
            if other.dims == (dim,) and dim not in variables and _is_time(other):
                return other, axis
    return None


def _scalar_time(var: Var, variables: Mapping[str, Var]) -> Var | None:
    for name in (*str(var.attrs.get("coordinates", "")).split(), "time", "valid_time"):
        scalar = variables.get(name)
        if scalar is not None and scalar.shape == () and _is_time(scalar):
            return scalar
    return None


def _is_time(var: Var) -> bool:
    return var.dtype.kind == "M" or is_time_units(var.attrs.get("units"))


def listing(variables: Mapping[str, Var]) -> str:
    """A sentence that names the variables one could ask for."""
    found = [summary(var) for var in candidates(variables)]
    if not found:
        return " Nothing there depends on time and on cells."
    return f" It has {'; '.join(found)}."


def summary(var: Var) -> str:
    """Name, sizes, and what the variable is said to be."""
    sizes = ", ".join(f"{d}={n}" for d, n in zip(var.dims, var.shape, strict=True))
    said = [str(var.attrs[k]) for k in ("standard_name", "long_name") if var.attrs.get(k)]
    return f"{var.name}({sizes})" + (f" [{', '.join(said)}]" if said else "")
