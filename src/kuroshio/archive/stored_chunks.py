"""Chunks of our own files, read without a library's lock: inflated by as many threads as want them.

Of files that somebody wrote anew in another way nothing is known here; `stored` reads those through
xarray.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import deflate
import numpy as np
from numcodecs import Blosc

from ..errors import Refusal
from .decode import unshuffle


class Chunks(NamedTuple):
    """How a variable is stored, and where its chunks are.

    ranges  chunk index -> (byte offset, bytes) in an HDF5 file; None: files of a Zarr store
    """

    path: Path
    shape: tuple[int, ...]
    chunk: tuple[int, ...]
    dtype: np.dtype
    fill: Any
    ranges: dict[tuple[int, ...], tuple[int, int]] | None

    def read(self, first: slice, second: slice) -> np.ndarray:
        """A part of the first two dimensions, all of the others."""
        wanted = [first, second, *(slice(None) for _ in self.shape[2:])]
        parts = [slice(*w.indices(size)) for w, size in zip(wanted, self.shape, strict=True)]
        out = np.empty([part.stop - part.start for part in parts], self.dtype)
        for index in self._indices(parts):
            to, of = [], []
            for number, size, part in zip(index, self.chunk, parts, strict=True):
                begin = max(number * size, part.start)
                end = min((number + 1) * size, part.stop)
                to.append(slice(begin - part.start, end - part.start))
                of.append(slice(begin - number * size, end - number * size))
            values = self._values(index)
            out[tuple(to)] = self.fill if values is None else values[tuple(of)]
        return out

    def absent(self, first: slice, second: slice) -> int:
        """How many chunks of such a part are not stored."""
        wanted = [first, second, *(slice(None) for _ in self.shape[2:])]
        parts = [slice(*w.indices(size)) for w, size in zip(wanted, self.shape, strict=True)]
        if self.ranges is not None:
            return sum(index not in self.ranges for index in self._indices(parts))
        return sum(not self._file(index).exists() for index in self._indices(parts))

    def _indices(self, parts: list[slice]) -> Iterator[tuple[int, ...]]:
        """Of the chunks that hold something of a part."""
        counts = (
            range(part.start // size, -(-part.stop // size))
            for part, size in zip(parts, self.chunk, strict=True)
        )
        return product(*counts)

    def _file(self, index: tuple[int, ...]) -> Path:
        return self.path.joinpath("c", *map(str, index))

    def _values(self, index: tuple[int, ...]) -> np.ndarray | None:
        """A whole chunk; None where it is not stored, being fill.

        Of a chunk cut short Blosc makes a SystemError."""
        try:
            if self.ranges is None:
                return self._of_store(index)
            return self._of_file(*self.ranges[index]) if index in self.ranges else None
        except (OSError, ValueError, RuntimeError, SystemError, deflate.DeflateError) as error:
            raise Refusal(
                f"The file {self.path} is damaged, a chunk cannot be read: {error}. Make it anew."
            ) from error

    def _of_store(self, index: tuple[int, ...]) -> np.ndarray | None:
        try:
            data = self._file(index).read_bytes()
        except FileNotFoundError:
            return None
        return np.frombuffer(Blosc().decode(data), self.dtype).reshape(self.chunk)

    def _of_file(self, offset: int, nbytes: int) -> np.ndarray:
        with open(self.path, "rb", buffering=0) as file:
            data = os.pread(file.fileno(), nbytes, offset)
        size = math.prod(self.chunk)
        raw = np.frombuffer(deflate.zlib_decompress(data, size * self.dtype.itemsize), np.uint8)
        values = np.empty(size, self.dtype)
        unshuffle(raw.reshape(self.dtype.itemsize, -1), values)
        return values.reshape(self.chunk)


def chunks_of(path: Path, name: str) -> Chunks | None:
    """How a variable is stored, if as our writers do it."""
    return _in_store(path / name) if path.suffix == ".zarr" else _in_file(path, name)


def _in_store(path: Path) -> Chunks | None:
    """As write_zarr.ZarrStore has it."""
    try:
        found = json.loads((path / "zarr.json").read_text())
        codecs = [codec["name"] for codec in found["codecs"]]
        little = found["codecs"][0].get("configuration", {}).get("endian") == "little"
        plain = found["chunk_key_encoding"] == {
            "name": "default", "configuration": {"separator": "/"},
        }  # fmt: skip
        chunk = tuple(found["chunk_grid"]["configuration"]["chunk_shape"])
        dtype = np.dtype(found["data_type"])
        fill = np.nan if found["fill_value"] == "NaN" else found["fill_value"]
        shape = tuple(found["shape"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    if codecs != ["bytes", "blosc"] or not little or not plain:
        return None
    return Chunks(path, shape, chunk, dtype, fill, None)


def _in_file(path: Path, name: str) -> Chunks | None:
    """As write_netcdf.NetcdfStore has it."""
    from h5py import h5d, h5z

    from . import hdf5

    file = hdf5.open_file(str(path))
    dataset = h5d.open(file, name.encode())
    creation = dataset.get_create_plist()
    filters = [creation.get_filter(i)[0] for i in range(creation.get_nfilters())]
    if creation.get_layout() != h5d.CHUNKED or filters != [h5z.FILTER_SHUFFLE, h5z.FILTER_DEFLATE]:
        return None
    chunk = tuple(int(size) for size in creation.get_chunk())
    ranges: dict[tuple[int, ...], tuple[int, int]] = {}
    unusual = []

    def keep(info: h5d.StoreInfo) -> None:
        unusual.extend([1] * bool(info.filter_mask))
        at = tuple(a // b for a, b in zip(info.chunk_offset, chunk, strict=True))
        ranges[at] = info.byte_offset, info.size

    dataset.chunk_iter(keep)
    if unusual or dataset.dtype.byteorder == ">":
        return None
    fill = np.zeros((), dataset.dtype)
    creation.get_fill_value(fill)
    return Chunks(path, dataset.shape, chunk, dataset.dtype, fill[()], ranges)
