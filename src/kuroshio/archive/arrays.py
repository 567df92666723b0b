"""Zarr stores and xarray objects as parts of an archive. Imported only where one is given."""

from __future__ import annotations

import base64
import struct
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from ..errors import Refusal
from .badfile import BadFile
from .choose import Var
from .layout import Layout, describe
from .packing import packing
from .pieces import array_pieces
from .timeaxis import calendar_name, from_dates, seconds
from .timeline import Part

LARGE_BYTES = 64 << 20  # arrays without chunks are cut in time into pieces of up to this size


def array_part(source: Any, variable: str | None, select: Mapping[str, int]) -> Part:
    """The part of an archive that a Zarr store (its path) or an xarray object is."""
    if isinstance(source, str):
        return _zarr_part(source, variable, select)
    return _xarray_part(source, variable, select)


def _part(
    name: str,
    variables: Mapping[str, Var],
    arrays: Mapping[str, Any],
    variable: str | None,
    select: Mapping[str, int],
) -> Part:
    times: dict[str, tuple[np.ndarray, str]] = {}

    def calendar_of(time: Var) -> str:
        times["of"] = _seconds(time, name)
        return times["of"][1]

    layout, var, _ = describe(variables, variable, select, name, calendar_of)
    how = packing(var.attrs, var.dtype, var.name, name)
    array = arrays[var.name]
    chunk = _unit(array, var, layout)
    return Part(name, layout, times["of"][0], partial(array_pieces, array, layout, how, chunk))


def _seconds(time: Var, name: str) -> tuple[np.ndarray, str]:
    if time.dtype.kind == "M":
        return from_dates(time.read(), name)
    calendar = time.attrs.get("calendar")
    ours = calendar_name(calendar, name)
    return seconds(time.read(), time.attrs["units"], calendar, name), ours


def _unit(array: Any, var: Var, layout: Layout) -> tuple[int, ...]:
    """The chunk to read at once over the array's own dimensions."""
    chunk = _stored_chunk(array, var)
    if chunk is None:
        step_bytes = max(1, layout.grid.cells * var.dtype.itemsize)
        steps = max(1, LARGE_BYTES // step_bytes)
        return tuple(steps if i == layout.time_axis else max(1, n) for i, n in enumerate(var.shape))
    return chunk


def _stored_chunk(array: Any, var: Var) -> tuple[int, ...] | None:
    shards = getattr(array, "shards", None)
    if shards is not None and int(np.prod(shards)) * var.dtype.itemsize <= 4 * LARGE_BYTES:
        return tuple(shards)
    chunks = getattr(array, "chunks", None)
    if not chunks:
        preferred = getattr(array, "encoding", {}).get("preferred_chunks")
        if not preferred:
            return None
        return tuple(
            min(max(1, n), int(preferred.get(d, n))) if n else 1
            for d, n in zip(var.dims, var.shape, strict=True)
        )
    return tuple(max(c) if isinstance(c, tuple) else int(c) for c in chunks)


def _zarr_part(path: str, variable: str | None, select: Mapping[str, int]) -> Part:
    import zarr

    try:
        group = zarr.open(path, mode="r")
        if not isinstance(group, zarr.Group):
            raise Refusal(
                f"{path} is a single Zarr array and has no time coordinate. "
                "Give the group (the folder) that holds the variable and its coordinates."
            )
        arrays = dict(group.arrays())
        variables = {name: _zarr_var(name, array) for name, array in arrays.items()}
        return _part(path, variables, arrays, variable, select)
    except Refusal:
        raise
    except Exception as error:  # zarr raises many kinds for a store that is damaged
        raise BadFile(path, f"zarr says: {error or type(error).__name__}") from error


def _zarr_var(name: str, array: Any) -> Var:
    attrs = dict(array.attrs)
    if array.metadata.zarr_format == 2:
        dims = tuple(attrs.get("_ARRAY_DIMENSIONS", ()))
        if array.fill_value is not None:
            attrs["_FillValue"] = array.fill_value
    else:
        dims = tuple(d or "" for d in array.metadata.dimension_names or ())
        if isinstance(attrs.get("_FillValue"), str) and array.dtype.kind == "f":
            coded = base64.standard_b64decode(attrs["_FillValue"])  # xarray's way of writing floats
            attrs["_FillValue"] = struct.unpack("<d", coded)[0]
    if len(dims) != array.ndim:
        dims = tuple(f"{name}_{i}" for i in range(array.ndim))
    dtype = array.dtype if isinstance(array.dtype, np.dtype) else np.dtype("O")
    return Var(name, dims, tuple(array.shape), dtype, attrs, partial(array.__getitem__, Ellipsis))


def _xarray_part(source: Any, variable: str | None, select: Mapping[str, int]) -> Part:
    import xarray as xr

    if isinstance(source, xr.DataArray):
        given = source.name if source.name is not None else "data"
        if variable is not None and variable not in (given, source.attrs.get("standard_name")):
            raise Refusal(
                f"The DataArray given is named {given!r} and not {variable!r}. "
                "Leave the variable out, or pass the Dataset that holds it."
            )
        variable = str(given)
        source = source.to_dataset(name=given)
    elif not isinstance(source, xr.Dataset):
        raise Refusal(
            f"An archive cannot be made of xarray's {type(source).__name__}. "
            "Pass a Dataset or a DataArray."
        )
    variables = {str(name): _xarray_var(str(name), v) for name, v in source.variables.items()}
    arrays = {str(name): _raw(v) for name, v in source.variables.items()}
    return _part("the xarray object", variables, arrays, variable, select)


def _xarray_var(name: str, variable: Any) -> Var:
    attrs = dict(variable.attrs)
    for key in ("coordinates", "grid_mapping"):  # xarray keeps these aside when it decodes
        if key not in attrs and key in variable.encoding:
            attrs[key] = variable.encoding[key]
    dims = tuple(str(d) for d in variable.dims)
    dtype = variable.dtype
    if dtype.kind == "O" and variable.size and hasattr(_first(variable), "calendar"):
        dtype = np.dtype("M8[s]")
    return Var(name, dims, tuple(variable.shape), dtype, attrs, lambda: np.asarray(variable.values))


def _first(variable: Any) -> Any:
    return np.asarray(variable[(0,) * variable.ndim].values).item()


def _raw(variable: Any) -> Any:
    """The array under an xarray variable; the variable itself where it is still in a file."""
    if variable.chunks is not None or variable._in_memory:
        return variable.data
    return variable
