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
    dtype: np.dtype
    type: h5t.TypeID
    edges: bytes


class Likeness:
    """What of a described HDF5 file must be found again in another."""

    def __init__(self, file: h5f.FileID, layout: Layout) -> None:
        """KeyError where the file keeps a variable under another name than NetCDF shows."""
        self.layout = layout
        dataset = h5d.open(file, layout.variable.encode())
        times = h5d.open(file, layout.time.encode())
        if len(dataset.shape) != len(layout.dims):
            raise KeyError(layout.variable)
        self._fixed = self._fixed_sizes(dataset.shape)
        self._type = h5t.py_create(dataset.dtype)
        self._counts = h5a.get_num_attrs(dataset), h5a.get_num_attrs(times)
        self._units = _attributes(dataset, ("units",))
        self._packing = _attributes(dataset, PACKING_ATTRS)
        self._dates = _attributes(times, ("units", "calendar"))
        self._times = times.dtype
        self._coordinates = [
            found
            for name in sorted(layout.grid.coords)
            if (found := _coordinate(file, name)) is not None
        ]

    def facts(self, path: str) -> FileFacts | None:
        """The facts of another file, or None where it must be described in full."""
        file = hdf5.open_file(path)
        try:
            return self._read(file, path)
        except (_Unlike, KeyError):
            return None
        except (OSError, RuntimeError) as error:
            raise BadFile(path, hdf5.reason(error)) from error
        finally:
            file.close()

    def _read(self, file: h5f.FileID, path: str) -> FileFacts:
        layout = self.layout
        dataset = h5d.open(file, layout.variable.encode())
        times = h5d.open(file, layout.time.encode())
        shape = dataset.shape
        counts = h5a.get_num_attrs(dataset), h5a.get_num_attrs(times)
        if counts != self._counts or self._fixed_sizes(shape) != self._fixed:
            raise _Unlike
        if not dataset.get_type().equal(self._type):
            raise _Unlike
        if any(_read_attribute(dataset, units) != units.value for units in self._units):
            raise _Unlike
        for coordinate in self._coordinates:
            if _read_edges(file, coordinate) != coordinate.edges:
                raise _Unlike
        attrs = {a.name.decode(): _read_attribute(dataset, a) for a in self._packing}
        if not attrs.keys() & {"_FillValue", "missing_value"}:
            attrs |= hdf5.default_fill(dataset)
        dates = {a.name: _read_attribute(times, a) for a in self._dates}
        values = np.empty(times.shape, self._times)
        if values.size:
            times.read(h5s.ALL, h5s.ALL, values)
        found = seconds(values, dates[b"units"], dates.get(b"calendar"), path)
        if layout.time_axis is not None:
            found = found[: shape[layout.time_axis]]
        how = packing(attrs, layout.dtype, layout.variable, path)
        store, ranges = hdf5.storage(
            file, dataset, path, layout.dtype, layout.time_axis, layout.picked
        )
        return FileFacts(path, Form(layout.fingerprint, shape, store), found, how, ranges)

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
        return hdf5.attribute(owner, known.name)
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
        name.encode(), dataset.shape, dtype, h5t.py_create(dtype), edges(values).tobytes()
    )


def _read_edges(file: h5f.FileID, known: _Coordinate) -> bytes:
    dataset = h5d.open(file, known.name)
    if dataset.shape != known.shape:
        raise _Unlike
    values = np.empty(known.shape, known.dtype)
    dataset.read(h5s.ALL, h5s.ALL, values, known.type)
    return edges(values).tobytes()
