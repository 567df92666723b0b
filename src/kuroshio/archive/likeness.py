"""A file like one already described, read at a fraction of the cost.

The files of a daily archive differ in their dates, their packing and the addresses of their chunks.
A `Likeness` is taken of one file that was described in full; of the next it reads only what can
differ, with types and sizes known in advance, and compares the rest byte by byte.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from h5py import h5a, h5d, h5f, h5s, h5t

from . import hdf5
from .badfile import BadFile
from .facts import FileFacts, Form
from .layout import Layout, edges
from .model import Packing
from .packing import PACKING_ATTRS, packing
from .timeaxis import seconds


class _Unlike(Exception):
    """This file is not like the first."""


@dataclass(frozen=True, slots=True)
class _Attribute:
    name: bytes
    dtype: np.dtype
    shape: tuple[int, ...]
    type: h5t.TypeID | None  # None: a string of variable length, which h5py converts
    nbytes: int
    value: Any


@dataclass(frozen=True, slots=True)
class _Coordinate:
    name: bytes
    shape: tuple[int, ...]
    type: h5t.TypeID
    buffer: np.ndarray
    edges: bytes


class Likeness:
    """What of a described HDF5 file must be found again in another.

    stored, ranges, fill  what `hdf5.storage` and `hdf5.default_fill` say of this file
    """

    def __init__(self, file: h5f.FileID, layout: Layout, path: str) -> None:
        """KeyError where the file keeps a variable under another name than NetCDF shows."""
        self.layout = layout
        self._names = layout.variable.encode(), layout.time.encode()
        dataset, times = (h5d.open(file, name) for name in self._names)
        if len(dataset.shape) != len(layout.dims):
            raise KeyError(layout.variable)
        self._fixed = self._fixed_sizes(dataset.shape)
        self._type = h5t.py_create(dataset.dtype)
        self._creation = dataset.get_create_plist()
        self.fill = hdf5.default_fill(dataset)
        self.stored, self.ranges = hdf5.storage(
            file, dataset, path, layout.dtype, layout.time_axis, layout.picked
        )
        self._chunks = self.stored._replace(places=()) if self.stored.places else None
        self._form = Form(layout.fingerprint, dataset.shape, self.stored)
        self._counts = h5a.get_num_attrs(dataset), h5a.get_num_attrs(times)
        self._units = _attributes(dataset, ("units",))
        self._packing = _attributes(dataset, PACKING_ATTRS)
        self._last: tuple[list[Any], Packing] | None = None  # what the attributes said, and meant
        self._dates = _attributes(times, ("units", "calendar"))
        self._times = times.dtype, h5t.py_create(times.dtype)
        self._coordinates = [
            found
            for name in sorted(layout.grid.coords)
            if (found := _coordinate(file, name)) is not None
        ]

    def facts(self, path: str) -> FileFacts | None:
        """The facts of another file, or None where it must be described in full."""
        try:
            file = hdf5.open_file(path)
        except BadFile:
            return None  # no HDF5 file, or a broken one: whoever describes it says more
        try:
            return self._read(file, path)
        except (_Unlike, KeyError):
            return None
        except (OSError, RuntimeError) as error:
            file.close()  # which takes h5py long; else the last reference to it does it
            raise BadFile(path, hdf5.reason(error)) from error

    def _read(self, file: h5f.FileID, path: str) -> FileFacts:
        layout = self.layout
        dataset, times = h5d.open(file, self._names[0]), h5d.open(file, self._names[1])
        shape = dataset.shape
        counts = h5a.get_num_attrs(dataset), h5a.get_num_attrs(times)
        if counts != self._counts or self._fixed_sizes(shape) != self._fixed:
            raise _Unlike
        if not dataset.get_type().equal(self._type):
            raise _Unlike
        if any(_read_attribute(dataset, units) != units.value for units in self._units):
            raise _Unlike
        for coordinate in self._coordinates:
            _compare(file, coordinate)
        found = self._seconds(times, path)
        if layout.time_axis is not None:
            found = found[: shape[layout.time_axis]]
        created_alike = dataset.get_create_plist().equal(self._creation)
        how = self._packing_of(dataset, created_alike, path)
        if created_alike and self._chunks and not file.get_create_plist().get_userblock():
            stored, ranges = hdf5.chunks(dataset, path, self._chunks, layout.dtype, layout.picked)
        else:
            stored, ranges = hdf5.storage(
                file, dataset, path, layout.dtype, layout.time_axis, layout.picked
            )
        form = Form(layout.fingerprint, shape, stored)
        if form == self._form:  # one object for all is sent once, and soon compared
            form = self._form
        return FileFacts(path, form, found, how, ranges)

    def _seconds(self, times: h5d.DatasetID, path: str) -> np.ndarray:
        units, *calendar = (_read_attribute(times, a) for a in self._dates)
        dtype, kind = self._times
        values = np.empty(times.shape, dtype)
        if values.size:
            times.read(h5s.ALL, h5s.ALL, values, kind)
        return seconds(values, units, calendar[0] if calendar else None, path)

    def _packing_of(self, dataset: h5d.DatasetID, created_alike: bool, path: str) -> Packing:
        """Worked out anew only where it is another than the last file's."""
        attrs = {a.name.decode(): _read_attribute(dataset, a) for a in self._packing}
        if not attrs.keys() & {"_FillValue", "missing_value"}:
            attrs |= self.fill if created_alike else hdf5.default_fill(dataset)
        said = [v if isinstance(v, str) else (v.dtype.str, v.tobytes()) for v in attrs.values()]
        if self._last is None or self._last[0] != said:
            how = packing(attrs, self.layout.dtype, self.layout.variable, path)
            self._last = said, how
        return self._last[1]

    def _fixed_sizes(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(n for i, n in enumerate(shape) if i != self.layout.time_axis)


def _attributes(owner: h5d.DatasetID, names: tuple[str, ...]) -> list[_Attribute]:
    """The attributes of these names that there are."""
    found = []
    for name in names:
        value = hdf5.attribute(owner, name.encode())
        if value is not None:
            at = h5a.open(owner, name.encode())
            kind = None if at.dtype.kind == "O" else h5t.py_create(at.dtype)
            found.append(
                _Attribute(name.encode(), at.dtype, at.shape, kind, at.get_storage_size(), value)
            )
    return found


def _read_attribute(owner: h5d.DatasetID, known: _Attribute) -> Any:
    """The value of an attribute; by its known type where it has the known size."""
    at = h5a.open(owner, known.name)
    if known.type is None or at.get_storage_size() != known.nbytes:
        value = hdf5.attribute(owner, known.name)
        if value is None:
            raise _Unlike
        return value
    values = np.empty(known.shape, known.dtype)
    at.read(values, known.type)
    return hdf5.plain_value(values)


def _coordinate(file: h5f.FileID, name: str) -> _Coordinate | None:
    dataset = h5d.open(file, name.encode())
    if dataset.get_type().get_class() not in (h5t.INTEGER, h5t.FLOAT):
        return None  # a text, or a grid mapping without a value
    dtype = dataset.dtype
    values = np.empty(dataset.shape, dtype)
    dataset.read(h5s.ALL, h5s.ALL, values)
    return _Coordinate(
        name.encode(),
        dataset.shape,
        h5t.py_create(dtype),
        np.empty_like(values),
        edges(values).tobytes(),
    )


def _compare(file: h5f.FileID, known: _Coordinate) -> None:
    """_Unlike where a coordinate has another shape or other values."""
    dataset = h5d.open(file, known.name)
    if dataset.shape != known.shape:
        raise _Unlike
    dataset.read(h5s.ALL, h5s.ALL, known.buffer, known.type)
    if edges(known.buffer).tobytes() != known.edges:
        raise _Unlike
