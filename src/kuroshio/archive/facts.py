"""What is known of one file without its data: enough to plan, and small enough to cache."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .model import Packing

Ranges = tuple[tuple[int, int], ...]


class Storage(NamedTuple):
    """How the numbers of a variable are stored.

    chunk    shape of the unit of reading over the variable's own dimensions
    start    byte offset of contiguous little-endian data, -1 for anything else
    places   first index in each dimension of the chunks that can be read as bytes; all others go
             through a library
    """

    chunk: tuple[int, ...]
    deflate: bool = False
    shuffle: bool = False
    start: int = -1
    places: tuple[tuple[int, ...], ...] = ()


class Form(NamedTuple):
    """What the files of a daily archive have in common, so that it is kept once for all of them.

    `fingerprint` is the layout's; `shape` that of the variable over its own dimensions.
    """

    fingerprint: str
    shape: tuple[int, ...]
    storage: Storage


class FileFacts(NamedTuple):
    """One file: its form, its dates, its packing, and where its chunks lie.

    `seconds` (int64, one a time step) counts from 1970-01-01 in the layout's calendar; `ranges` has
    the byte offset and the bytes of each chunk of `form.storage.places`.
    """

    path: str
    form: Form
    seconds: np.ndarray
    packing: Packing
    ranges: Ranges = ()
