"""NetCDF-4: the skeleton by netCDF4, the chunks compressed by us and placed by h5py.

HDF5 compresses in one thread at a time. So netCDF4 makes a file with everything but the values, and
the chunks go in as bytes (`write_hdf5`); a reader cannot tell the difference.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np

from .compress import compress_chunks
from .describe import Schema
from .locks import LIBRARIES
from .model import Field
from .write_hdf5 import StoredChunk, make_ready, store_chunks
from .write_store import Encoded

_LATE_BYTES = 64 << 20  # about, of chunks that are kept for whoever stores; one more has to wait
_AT_ONCE = 16  # of these chunks, stored in one go
_FIRST_BYTES = 1 << 16  # of a skeleton; it grows as it must


class NetcdfStore:
    """A NetCDF-4 file being filled; see `write_store.Store`."""

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
        self._late: deque[StoredChunk] = deque()  # for whoever has the lock
        self._spare: deque[np.ndarray] = deque()  # memory of stored chunks, to be used again
        make_ready()
        compress_chunks(np.zeros((1, 8), np.float32), deque())  # compiled, as above

    def encode(self, name: str, chunks: np.ndarray) -> Encoded:
        return Encoded(*compress_chunks(chunks, self._spare))

    def store(self, name: str, indices: Sequence[tuple[int, ...]], encoded: Encoded) -> None:
        """HDF5 takes one chunk at a time. Who comes meanwhile leaves his and goes on: a thread that
        waited could inflate something (16 threads lost a fifth of their time so)."""
        dataset, step, last = self._datasets[name], self._steps[name], len(indices) - 1
        late = [
            StoredChunk(
                dataset,
                tuple(i * n for i, n in zip(index, step, strict=True)),
                data,
                encoded.memory if number == last else None,
            )
            for number, (index, data) in enumerate(zip(indices, encoded.chunks, strict=True))
        ]
        self._late.extend(late)
        size = max(map(len, encoded.chunks))
        while self._late and self._lock.acquire(blocking=len(self._late) * size > _LATE_BYTES):
            try:
                self._store_late()
            finally:
                self._lock.release()

    def _store_late(self) -> None:
        """Some of the chunks that are there; the lock is held, so they come in their order."""
        chunks: list[StoredChunk] = []
        while self._late and len(chunks) < _AT_ONCE:
            chunks.append(self._late.popleft())
        store_chunks(chunks)
        self._spare.extend(chunk.memory for chunk in chunks if chunk.memory is not None)

    def finish(self, late_attrs: Mapping[str, str]) -> None:
        while self._late:
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
