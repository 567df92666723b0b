"""Zarr 3: the metadata by zarr, the chunks encoded and written as files by us, in threads.

Blosc with LZ4 and byte shuffle: measured on 31-day smoothed fields at 1.6 GB/s on one core and a
ratio of 2.1, against Zstandard level 3 at 0.26 GB/s and 2.3.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from numcodecs import Blosc
from zarr.codecs import BloscCodec, BytesCodec

from .describe import Schema
from .locks import LIBRARIES
from .write_store import Encoded

LEVEL = 5


class ZarrStore:
    """A Zarr 3 group being filled; see `write_store.Store`."""

    def __init__(self, path: Path, schema: Schema, chunks: tuple[int, ...]):
        self._path = path
        group = zarr.open_group(path, mode="w-", zarr_format=3, attributes=_plain(schema.attrs))
        for name, field in schema.coords.items():
            values = np.asarray(field.values)
            text = values.dtype.kind in "UO"
            array = group.create_array(
                name,
                shape=values.shape,
                dtype="string" if text else values.dtype,
                chunks=values.shape or "auto",
                dimension_names=field.dims,
                attributes=_plain(dict(field.attrs)),
            )
            array[...] = values.astype(object) if text else values
        self._codecs: dict[str, Blosc] = {}
        for name, variable in schema.variables.items():
            size = variable.dtype.itemsize
            group.create_array(
                name,
                shape=schema.shape(name),
                dtype=variable.dtype,
                chunks=schema.chunk_shape(name, chunks),
                serializer=BytesCodec(endian="little"),
                compressors=BloscCodec(cname="lz4", clevel=LEVEL, shuffle="shuffle", typesize=size),
                fill_value=0 if variable.fill is None else variable.fill,
                dimension_names=variable.dims,
                attributes=_plain(variable.attrs),
            )
            self._codecs[name] = Blosc("lz4", LEVEL, Blosc.SHUFFLE)

    def encode(self, name: str, chunks: np.ndarray) -> Encoded:
        return Encoded([self._codecs[name].encode(chunk) for chunk in chunks])

    def store(self, name: str, indices: Sequence[tuple[int, ...]], encoded: Encoded) -> None:
        for index, data in zip(indices, encoded.chunks, strict=True):
            path = self._path.joinpath(name, "c", *map(str, index))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

    def finish(self, late_attrs: Mapping[str, str]) -> None:
        """Gather the metadata in one place; the chunks are there already."""
        if late_attrs:
            zarr.open_group(self._path, mode="r+").attrs.update(late_attrs)
        with LIBRARIES, warnings.catch_warnings():  # which threads share
            # xarray warns of a store without it, and zarr of making it: readers come first.
            warnings.filterwarnings("ignore", message="Consolidated metadata")
            zarr.consolidate_metadata(self._path, zarr_format=3)

    def abandon(self) -> None:
        """Every chunk is a file of its own: nothing is pending."""


def _plain(attrs: dict[str, Any]) -> dict[str, Any]:
    """Attributes as JSON holds them."""
    return {
        key: value.tolist() if isinstance(value, np.ndarray | np.generic) else value
        for key, value in attrs.items()
    }
