"""The values of a piece, as stored: the plain way, right for every kind of storage.

read.py has a faster way for byte ranges; this one is what that is tested against.
"""

from __future__ import annotations

import math
import os
import zlib
from collections import OrderedDict
from typing import Any

import numpy as np

from .badfile import BadFile
from .locks import LIBRARIES
from .model import ArraySlice, ByteRange, FileSlice

_MOST_OPEN = 32
_open: OrderedDict[str, Any] = OrderedDict()


def fetch(where: ByteRange | FileSlice | ArraySlice) -> np.ndarray:
    """Read one piece: (time, *cell dims), the stored type in native byte order, not unpacked.

    A byte range gives its whole stored chunk, which may be larger than the piece's box. BadFile
    names a file whose content is damaged or gone.
    """
    if isinstance(where, ByteRange):
        values = _bytes(where)
    elif isinstance(where, FileSlice):
        values = _time_first(_file_slice(where), where.time_axis)
    else:
        values = _time_first(_array_slice(where), where.time_axis)
    return np.ascontiguousarray(values, values.dtype.newbyteorder("="))


def close_files() -> None:
    """Close the files that `fetch` keeps open."""
    with LIBRARIES:
        while _open:
            _open.popitem()[1].close()


def _bytes(where: ByteRange) -> np.ndarray:
    dtype = np.dtype(where.dtype)
    expected = math.prod(where.shape) * dtype.itemsize
    try:
        with open(where.path, "rb") as file:
            file.seek(where.offset)
            data = file.read(where.nbytes)
        if len(data) < where.nbytes:
            raise BadFile(where.path, f"it ends before byte {where.offset + where.nbytes:,}")
        if where.deflate:
            data = zlib.decompress(data)
    except (OSError, zlib.error) as error:
        raise BadFile(where.path, f"the chunk at byte {where.offset:,}: {error}") from error
    if len(data) != expected:
        raise BadFile(
            where.path,
            f"the chunk at byte {where.offset:,} holds {len(data):,} bytes and not {expected:,}",
        )
    if where.shuffle:
        planes = np.frombuffer(data, np.uint8).reshape(dtype.itemsize, -1)
        data = planes.T.tobytes()
    return np.frombuffer(data, dtype).reshape(where.shape)


def _file_slice(where: FileSlice) -> np.ndarray:
    with LIBRARIES:
        try:
            return np.asarray(_variable(where)[where.index])
        except KeyError as error:
            raise BadFile(where.path, f"it has no variable {where.variable} any more") from error
        except (OSError, RuntimeError, IndexError, ValueError) as error:
            raise BadFile(where.path, f"{where.variable} cannot be read: {error}") from error


def _variable(where: FileSlice) -> Any:
    """The variable in an open file: h5py's where it can decode it, else netCDF4's."""
    path = where.path
    file = _open.pop(path, None)
    if file is None:
        file = _open_file(path, where.variable)
        if len(_open) >= _MOST_OPEN:
            _open.popitem(last=False)[1].close()
    _open[path] = file
    return file[where.variable]


def _open_file(path: str, variable: str) -> Any:
    import h5py
    import netCDF4

    from . import hdf5
    from .variables import NON_COORDINATE

    if h5py.is_hdf5(os.fsencode(path)):
        file = h5py.File(hdf5.open_file(path))
        shadowed = NON_COORDINATE + variable in file
        if variable in file and not shadowed and _decodable(file[variable]):
            return file
        file.close()
    dataset = netCDF4.Dataset(path)
    dataset.set_auto_maskandscale(False)
    dataset.set_auto_chartostring(False)
    return dataset


def _decodable(dataset: Any) -> bool:
    """Whether h5py has all the filters of a dataset; NetCDF brings some that it lacks."""
    from h5py import h5z

    creation = dataset.id.get_create_plist()
    return all(h5z.filter_avail(creation.get_filter(i)[0]) for i in range(creation.get_nfilters()))


def _array_slice(where: ArraySlice) -> np.ndarray:
    array = where.array
    if not hasattr(array, "store_path"):
        values = array[where.index]
        return np.asarray(values.compute() if hasattr(values, "compute") else values)
    try:
        return np.asarray(array[where.index])
    except Exception as error:  # zarr raises many kinds for a chunk that is damaged
        raise BadFile(str(array.store_path), f"a chunk cannot be read: {error}") from error


def _time_first(values: np.ndarray, time_axis: int | None) -> np.ndarray:
    if time_axis is None:
        return values[np.newaxis]
    return np.moveaxis(values, time_axis, 0)
