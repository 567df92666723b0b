"""NetCDF-4: the skeleton by netCDF4, the chunks compressed by us and placed by h5py.

HDF5 compresses in one thread at a time. So netCDF4 makes a file with everything but the values, and
the chunks go in as bytes (`write_direct_chunk`); a reader cannot tell the difference.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np

from .compress import compress_chunk
from .describe import Schema
from .locks import LIBRARIES
from .model import Field

_LATE_CHUNKS = 64  # that are kept for whoever stores; one more has to wait
_FIRST_BYTES = 1 << 16  # of a skeleton; it grows as it must


class NetcdfStore:
    """A NetCDF-4 file being filled; see `write_chunks.Store`."""

    def __init__(self, path: Path, schema: Schema, chunks: tuple[int, ...]):
        with LIBRARIES:
            _make_skeleton(path, schema, chunks)
        self._file = h5py.File(path, "r+")
        for name, variable in schema.variables.items():
            self._file[name].resize(schema.shape(name))
            if variable.fill is None:  # absent chunks read as 0, and 0 is a value
                del self._file[name].attrs["_FillValue"]
        self._datasets = {name: self._file[name].id for name in schema.variables}
        self._steps = {name: schema.chunk_shape(name, chunks) for name in schema.variables}
        self._lock = threading.Lock()
        self._late: deque[tuple[str, tuple[int, ...], bytes]] = deque()  # for whoever has the lock

    def encode(self, name: str, chunk: np.ndarray) -> bytes | memoryview:
        return compress_chunk(chunk)

    def store(self, name: str, index: tuple[int, ...], data: bytes | memoryview) -> None:
        """HDF5 takes one chunk at a time. Who comes meanwhile leaves his and goes on: a thread that
        waited could inflate something (16 threads lost a fifth of their time so)."""
        offset = tuple(i * step for i, step in zip(index, self._steps[name], strict=True))
        if self._lock.acquire(blocking=len(self._late) >= _LATE_CHUNKS):
            try:
                self._datasets[name].write_direct_chunk(offset, data)
            finally:
                self._lock.release()
        else:
            self._late.append((name, offset, bytes(data)))
        self._store_late()

    def _store_late(self) -> None:
        while self._late and self._lock.acquire(blocking=False):
            try:
                while self._late:
                    name, offset, data = self._late.popleft()
                    self._datasets[name].write_direct_chunk(offset, data)
            finally:
                self._lock.release()

    def finish(self, late_attrs: Mapping[str, str]) -> None:
        self._store_late()
        for name, value in late_attrs.items():
            self._file.attrs[name] = np.bytes_(value.encode())
        self._datasets.clear()
        self._file.close()

    def abandon(self) -> None:
        # On a full disk HDF5 fails to flush and says so; the file is removed anyhow.
        with contextlib.suppress(OSError, RuntimeError, ValueError):
            self._late.clear()
            self.finish({})


def _make_skeleton(path: Path, schema: Schema, chunks: tuple[int, ...]) -> None:
    """The file without values. Of a path that netCDF does not take it is made in memory, where the
    order of attributes is lost."""
    name = str(path)
    direct = name.isascii() and name.isprintable() and "\\" not in name
    where = name if direct else "skeleton"
    how: dict[str, Any] = {} if direct else {"memory": _FIRST_BYTES}
    file = netCDF4.Dataset(where, "w", format="NETCDF4", **how)
    try:
        for name, size in schema.sizes.items():
            # A record dimension, so that CDO and ncview step through the days of year.
            file.createDimension(name, None if name == "dayofyear" else size)
        for name, field in schema.coords.items():
            _add_coordinate(file, name, field)
        for name, variable in schema.variables.items():
            created = file.createVariable(
                name,
                variable.dtype,
                variable.dims,
                fill_value=0 if variable.fill is None else variable.fill,
                zlib=True,
                complevel=1,
                shuffle=True,
                chunksizes=schema.chunk_shape(name, chunks),
            )
            created.setncatts(variable.attrs)
        file.setncatts(schema.attrs)
    except BaseException:
        file.close()
        raise
    content = file.close()
    if not direct:
        path.write_bytes(content)


def _add_coordinate(file: netCDF4.Dataset, name: str, field: Field) -> None:
    values = np.asarray(field.values)
    if values.dtype.kind in "UO":
        created = file.createVariable(name, str, field.dims)
        values = values.astype(object)
    else:
        values = values.astype(np.int8) if values.dtype.kind == "b" else values
        chunks = values.shape if "dayofyear" in field.dims or values.size > 1000 else None
        created = file.createVariable(
            name,
            values.dtype.newbyteorder("="),
            field.dims,
            zlib=chunks is not None,
            complevel=1,
            chunksizes=chunks,
        )
    created.setncatts(dict(field.attrs))
    created[...] = values if values.ndim else values[()]
