"""What is known of one file without its data: enough to plan, and small enough to cache."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .model import Packing


def _no_chunks() -> np.ndarray:
    return np.empty((0, 2), np.int64)


@dataclass(frozen=True, slots=True)
class Storage:
    """Where the numbers lie in a file.

    chunk    shape of the unit of reading over the variable's own dimensions
    table    int64 (chunk, 2 + dimension): byte offset, bytes, and first index in each dimension, of
             the chunks that can be read as bytes; all others go through a library
    start    byte offset of contiguous little-endian data, -1 for anything else
    """

    chunk: tuple[int, ...]
    deflate: bool = False
    shuffle: bool = False
    start: int = -1
    table: np.ndarray = field(default_factory=_no_chunks)


@dataclass(frozen=True, slots=True)
class FileFacts:
    """One file: its dates, its packing, its storage, and the fingerprint of its layout.

    `shape` is that of the variable over its own dimensions; `seconds` (int64, one a time step)
    counts from 1970-01-01 in the layout's calendar.
    """

    path: str
    fingerprint: str
    shape: tuple[int, ...]
    seconds: np.ndarray
    packing: Packing
    storage: Storage
