"""A file of ours read back as it is stored: attributes, coordinates, and variables band by band."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import xarray as xr

from ..errors import Refusal
from .model import Field
from .stored_chunks import chunks_of

_HOW_STORED = ("_FillValue", "coordinates", "grid_mapping", "missing_value")


class Stored:
    """A NetCDF-4 or Zarr file that an OutputWriter made; a context manager.

    attrs    global attributes
    coords   name -> coordinate, bounds or grid mapping, values included
    """

    def __init__(self, path: str | os.PathLike[str], variables: tuple[str, ...]) -> None:
        """`variables` along dayofyear are left to `read`; all others are taken for coordinates."""
        self.path = Path(path)
        engine: Any = "zarr" if self.path.suffix == ".zarr" else "netcdf4"
        if not self.path.exists():
            raise Refusal(f"There is no file {self.path}. Give one that kuroshio wrote.")
        try:
            self._dataset = xr.open_dataset(
                self.path, engine=engine, decode_cf=False, cache=False, chunks=None
            )
        except (OSError, ValueError, KeyError, AttributeError, RuntimeError) as error:
            reason = str(error) if isinstance(error, OSError) else "it is neither"
            raise Refusal(
                f"{self.path} cannot be read as NetCDF or Zarr: {reason}. Give one that kuroshio "
                "wrote."
            ) from error
        self.attrs: dict[str, Any] = dict(self._dataset.attrs)
        self.names = tuple(name for name in variables if name in self._dataset.variables)
        try:
            self._chunks = {name: chunks_of(self.path, name) for name in self.names}
            self.coords = self._coords()
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            self._dataset.close()
            raise Refusal(f"{self.path} is damaged: {error}. Make it anew.") from error

    def _coords(self) -> dict[str, Field]:
        return {
            str(name): Field(
                tuple(str(dim) for dim in variable.dims),
                np.asarray(variable.values),
                {k: v for k, v in variable.attrs.items() if k not in _HOW_STORED},
            )
            for name, variable in self._dataset.variables.items()
            if name not in self.names
        }

    def dims(self, name: str) -> tuple[str, ...]:
        return tuple(str(dim) for dim in self._dataset[name].dims)

    def shape(self, name: str) -> tuple[int, ...]:
        return self._dataset[name].shape

    def chunk_rows(self, name: str) -> int:
        """Rows of the first cell dimension that lie in a chunk."""
        encoding = self._dataset[name].encoding
        chunks = encoding.get("chunksizes") or encoding.get("preferred_chunks") or ()
        if isinstance(chunks, dict):
            chunks = tuple(chunks.values())
        return int(chunks[1]) if len(chunks) > 1 else self.shape(name)[1]

    def read(self, name: str, days: slice, rows: slice) -> np.ndarray:
        """(day of year, row, *other cells) of a variable as stored; from any thread.

        Raises Refusal where it is damaged.
        """
        chunks = self._chunks[name]
        if chunks is not None:
            return chunks.read(days, rows)
        return np.array(self._dataset[name].variable[days, rows].values)

    def absent(self, name: str, days: slice, rows: slice) -> int | None:
        """How many chunks of such a part are not stored, being fill or lost; None: unknown."""
        chunks = self._chunks[name]
        return None if chunks is None else chunks.absent(days, rows)

    def close(self) -> None:
        self._dataset.close()

    def __enter__(self) -> Stored:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
