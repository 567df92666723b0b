"""The variables of a file as `Var`: HDF5 (NetCDF-4) by h5py, other NetCDF formats by netCDF4."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import h5py
import numpy as np

from . import hdf5
from .badfile import BadFile
from .choose import Var
from .locks import LIBRARIES

NON_COORDINATE = "_nc4_non_coord_"  # NetCDF-4 stores a variable so that is named like a dimension
_ONLY_A_DIMENSION = "This is a netCDF dimension but not a netCDF variable"
_INTERNAL = frozenset({
    "DIMENSION_LIST", "REFERENCE_LIST", "CLASS", "NAME", "DIMENSION_LABELS", "_NCProperties",
    "_Netcdf4Dimid", "_Netcdf4Coordinates", "_nc3_strict",
})  # fmt: skip


@contextmanager
def hdf5_variables(path: str) -> Iterator[tuple[h5py.h5f.FileID, Mapping[str, Var]]]:
    """The open file and the variables of its root group, values as stored."""
    file = h5py.File(hdf5.open_file(path))
    try:
        try:
            found = _of_root(file)
        except (KeyError, ValueError, TypeError) as error:  # what h5py makes of damage
            raise BadFile(path, hdf5.reason(error)) from error
        yield file.id, found
    except (OSError, RuntimeError) as error:
        raise BadFile(path, hdf5.reason(error)) from error
    finally:
        file.close()  # and with it the variables found


@contextmanager
def netcdf_variables(path: str) -> Iterator[Mapping[str, Var]]:
    """The variables of a NetCDF-3 file, or whatever else netCDF4 can open, values as stored."""
    with LIBRARIES, _open_netcdf(path) as dataset:
        dataset.set_auto_maskandscale(False)
        dataset.set_auto_chartostring(False)
        try:
            yield {
                name: Var(name, v.dimensions, v.shape, v.dtype, dict(v.__dict__),
                          partial(v.__getitem__, Ellipsis))
                for name, v in dataset.variables.items()
                if isinstance(v.dtype, np.dtype)
            }  # fmt: skip
        except (OSError, RuntimeError, IndexError) as error:
            raise BadFile(path, str(error) or type(error).__name__) from error


def _open_netcdf(path: str) -> Any:
    import netCDF4

    try:
        return netCDF4.Dataset(path)
    except UnicodeEncodeError as error:
        raise BadFile(path, "its path is no UTF-8 text, which the netCDF library needs") from error
    except (OSError, RuntimeError) as error:
        text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        if "Unknown file format" in text:
            text = "it is neither a NetCDF nor an HDF5 file"
        raise BadFile(path, text) from error


def _of_root(root: h5py.File) -> dict[str, Var]:
    datasets = {
        name: item
        for name, item in root.items()
        if isinstance(item, h5py.Dataset) and item.shape is not None
    }
    ids = {
        int(hdf5.attribute(d.id, b"_Netcdf4Dimid")): name
        for name, d in datasets.items()
        if d.is_scale and "_Netcdf4Dimid" in d.attrs
    }
    found = {}
    for name, dataset in datasets.items():
        said = hdf5.attribute(dataset.id, b"NAME")
        if isinstance(said, str) and said.startswith(_ONLY_A_DIMENSION):
            continue
        shown = name.removeprefix(NON_COORDINATE)
        attrs = {
            key: hdf5.attribute(dataset.id, key.encode())
            for key in dataset.attrs
            if key not in _INTERNAL
        }
        kept = {k: v for k, v in attrs.items() if v is not None}
        found[shown] = Var(
            shown,
            _dims(name, dataset, ids),
            dataset.shape,
            dataset.dtype,
            kept,
            partial(dataset.__getitem__, Ellipsis),
        )
    return found


def _dims(name: str, dataset: h5py.Dataset, ids: Mapping[int, str]) -> tuple[str, ...]:
    """Names of the dimensions: of their scales, else one for each size."""
    listed = hdf5.attribute(dataset.id, b"_Netcdf4Coordinates")
    if listed is not None:
        named = [ids.get(int(i)) for i in np.atleast_1d(listed)]
        if len(named) == dataset.ndim and None not in named:
            return tuple(n for n in named if n is not None)
    if dataset.is_scale and dataset.ndim == 1:
        return (name,)
    dims: list[str] = []
    for axis, size in enumerate(dataset.shape):
        scales = dataset.dims[axis]
        label = scales[0].name.rpartition("/")[2] if len(scales) else f"unnamed_{size}"
        dims.append(label if label not in dims else f"{label}_{axis}")
    return tuple(dims)
