"""What the rest of the package knows of an archive: a grid, a list of days, and pieces to read.

The catalog makes these records; the plan arranges them; the reader fetches them. They hold
facts only, so a plan can be made, printed and tested without opening a file. Records of which there
are tens of thousands are named tuples: those are made in a third of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

Progress = Callable[[str, int, int], None]  # (stage, done, total)


class Spans(Protocol):
    """The account's: told of every span of the calling thread, or of a device if one is named.

    `stream` numbers those of a device that are at the same stage.
    """

    def __call__(
        self, stage: str, start_s: float, stop_s: float, nbytes: int, *, device: str = "",
        stream: int = 0,
    ) -> object: ...  # fmt: skip


@dataclass(frozen=True)
class Field:
    """A small array that travels with the grid: a coordinate, its bounds, a grid mapping."""

    dims: tuple[str, ...]
    values: np.ndarray
    attrs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Grid:
    """The cells: every dimension of the variable but time (and dropped singletons)."""

    dims: tuple[str, ...]
    shape: tuple[int, ...]
    coords: Mapping[str, Field] = field(default_factory=dict)  # name -> coordinate, bounds, mapping

    @property
    def cells(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))


@dataclass(frozen=True, slots=True)
class Packing:
    """CF packing: value = code * scale + offset; a code listed in `missing` is no value.

    `scale` and `offset` are the decimals the producer wrote: a float32 attribute 0.01 is the
    number 0.01, not the nearest float32 to it. `missing` is in stored codes; NaN is always missing.
    """

    scale: float = 1.0
    offset: float = 0.0
    missing: tuple[float, ...] = ()
    packed: bool = False  # True: integers with a scale or offset; False: stored as they are


class ByteRange(NamedTuple):
    """A chunk (or contiguous slab) of raw bytes in a file: the fast path.

    `shape` is that of the stored chunk, (time, *cell dims) with singletons kept out; where a chunk
    hangs over the edge of the array it is larger than the piece's box, which keeps its corner.
    """

    path: str
    offset: int
    nbytes: int
    shape: tuple[int, ...]
    dtype: str  # NumPy type string with byte order, little-endian for the fast path
    deflate: bool = False
    shuffle: bool = False


@dataclass(frozen=True, slots=True)
class FileSlice:
    """A hyperslab of a variable in a file that only a library can read (h5py or netCDF4)."""

    path: str
    variable: str
    index: tuple[slice | int, ...]  # over the variable's own dimensions, dropped ones as integers
    time_axis: int | None = 0  # of the indexed array; None: one step without a time dimension


@dataclass(frozen=True, slots=True)
class ArraySlice:
    """A hyperslab of an array object: NumPy, dask or zarr."""

    array: Any
    index: tuple[slice | int, ...]
    time_axis: int | None = 0


class Piece(NamedTuple):
    """The unit of reading: some time steps of a box of cells, read at once and only once."""

    steps: tuple[int, ...]  # archive step of each time index; -1: not wanted (a dropped duplicate)
    box: tuple[slice, ...]  # start and stop in every cell dimension
    packing: Packing
    where: ByteRange | FileSlice | ArraySlice


@dataclass(frozen=True)
class Archive:
    """A variable on a grid on a list of days, and the pieces that hold it.

    `days` counts days in `calendar` (see `calendar.day_number`), strictly increasing, one a step;
    days that are absent are simply not listed.
    """

    variable: str
    attrs: Mapping[str, Any]  # of the variable, packing and chunking attributes left out
    dtype: np.dtype  # as stored
    grid: Grid
    calendar: str  # a key of calendar.CALENDARS
    days: np.ndarray  # int64 (step,)
    pieces: tuple[Piece, ...]
    sources: tuple[str, ...] = ()  # files (or a word for an object in memory), in time order
    skipped: tuple[str, ...] = ()  # files left out on the user's word (--skip-bad), with the reason
    notes: tuple[str, ...] = ()  # what the user should be told: duplicates dropped, days missing
    time_origin: str = "days since 1970-01-01"  # only for messages
