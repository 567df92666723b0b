"""The low-level look into an HDF5 file: where the chunks lie, and whether they are plain bytes."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from h5py import h5a, h5d, h5f, h5p, h5t, h5z

from .badfile import BadFile
from .facts import Ranges, Storage

SIGNATURE = b"\x89HDF\r\n\x1a\n"
SMALL_BYTES = 1 << 18  # contiguous steps are joined up to this size into one piece
_DISK_TYPES = {
    "|i1": h5t.STD_I8LE, "|u1": h5t.STD_U8LE,
    "<i2": h5t.STD_I16LE, "<u2": h5t.STD_U16LE,
    "<i4": h5t.STD_I32LE, "<u4": h5t.STD_U32LE,
    "<i8": h5t.STD_I64LE, "<u8": h5t.STD_U64LE,
    "<f4": h5t.IEEE_F32LE, "<f8": h5t.IEEE_F64LE,
}  # fmt: skip
# What the NetCDF library stores where nothing was written. Bytes have none.
NETCDF_FILL = {
    "i2": np.int16(-32767),
    "u2": np.uint16(65535),
    "i4": np.int32(-2147483647),
    "u4": np.uint32(4294967295),
    "i8": np.int64(-9223372036854775806),
    "u8": np.uint64(18446744073709551614),
    "f4": np.float32(9.969209968386869e36),
    "f8": np.float64(9.969209968386869e36),
}


def open_file(path: str) -> h5f.FileID:
    """The file, opened for reading without a lock: read-only file systems have none.

    Where this process has it open already in another way, HDF5 wants the same of us.
    """
    name = os.fsencode(path)
    for locking, lenient in ((False, True), (True, True), (True, False), (False, False)):
        try:
            return h5f.open(name, h5f.ACC_RDONLY, _access(locking, lenient))
        except OSError as error:
            problem = error
            if "flag values don't match" not in str(error):
                break
    raise BadFile(path, reason(problem)) from problem


@cache
def _access(locking: bool, lenient: bool) -> h5p.PropFAID:
    access = h5p.create(h5p.FILE_ACCESS)
    access.set_file_locking(locking, lenient)
    return access


def storage(
    file: h5f.FileID,
    dataset: h5d.DatasetID,
    path: str,
    dtype: np.dtype,
    time_axis: int | None,
    picked: Sequence[int],
) -> tuple[Storage, Ranges]:
    """How the data of one variable are stored, and where what can be read as bytes lies."""
    shape = dataset.shape
    creation = dataset.get_create_plist()
    layout = creation.get_layout()
    plain = _plain(file, dataset, dtype, time_axis, picked)
    if layout == h5d.CHUNKED:
        chunk = creation.get_chunk()
        filters = [creation.get_filter(i)[0] for i in range(creation.get_nfilters())]
        shuffle, deflate = h5z.FILTER_SHUFFLE in filters, h5z.FILTER_DEFLATE in filters
        usual = filters in ([], [h5z.FILTER_DEFLATE], [h5z.FILTER_SHUFFLE, h5z.FILTER_DEFLATE])
        whole = all(c == 1 or p < 0 for c, p in zip(chunk, picked, strict=True))
        if not (plain and usual and whole):
            return Storage(chunk), ()
        return chunks(dataset, path, Storage(chunk, deflate, shuffle), dtype, picked)
    chunk = steps_of(shape, dtype.itemsize, time_axis, picked)
    if creation.get_external_count():
        plain = False
    start = dataset.get_offset() if plain and layout == h5d.CONTIGUOUS else None
    if start is None or any(p >= 0 and n > 1 for n, p in zip(shape, picked, strict=True)):
        return Storage(chunk), ()
    _check_end(path, start + int(np.prod(shape)) * dtype.itemsize)
    return Storage(chunk, start=int(start)), ()


def steps_of(
    shape: Sequence[int], itemsize: int, time_axis: int | None, picked: Sequence[int]
) -> tuple[int, ...]:
    """A unit of reading for data without chunks: all cells of as many steps as are still small."""
    cells = [n for i, n in enumerate(shape) if picked[i] < 0 and i != time_axis]
    steps = max(1, SMALL_BYTES // max(1, int(np.prod(cells)) * itemsize))
    return tuple(
        1 if p >= 0 else steps if i == time_axis else max(1, n)
        for i, (n, p) in enumerate(zip(shape, picked, strict=True))
    )


def default_fill(dataset: h5d.DatasetID) -> dict[str, Any]:
    """_FillValue as NetCDF itself put it where nothing was written; empty where it did not.

    The NetCDF library gives a variable without _FillValue its type's default (9.97e36 for floats)
    as HDF5 fill value; a cell that holds it was never written.
    """
    creation = dataset.get_create_plist()
    if creation.fill_value_defined() != h5d.FILL_VALUE_USER_DEFINED:
        return {}
    fill = np.zeros((), dataset.dtype)
    creation.get_fill_value(fill)
    default = NETCDF_FILL.get(dataset.dtype.str[1:])
    return {"_FillValue": default} if default is not None and fill[()] == default else {}


def attribute(owner: Any, name: bytes) -> Any:
    """One attribute as a NumPy scalar, array or str; None where there is none."""
    if not h5a.exists(owner, name):
        return None
    found = h5a.open(owner, name)
    if found.shape is None:
        return None
    values = np.empty(found.shape, found.dtype)
    if values.size:
        found.read(values)
    return plain_value(values)


def plain_value(values: np.ndarray) -> Any:
    """An attribute's values as str, NumPy scalar or array."""
    value = values.reshape(-1)[0] if values.size == 1 else values
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _plain(
    file: h5f.FileID,
    dataset: h5d.DatasetID,
    dtype: np.dtype,
    time_axis: int | None,
    picked: Sequence[int],
) -> bool:
    """Whether the bytes are those of a little-endian NumPy array (time, cells)."""
    disk = _DISK_TYPES.get(dtype.str)
    if disk is None or not dataset.get_type().equal(disk):
        return False
    if file.get_create_plist().get_userblock():
        return False
    return time_axis is None or all(p >= 0 for p in picked[:time_axis])


def chunks(
    dataset: h5d.DatasetID, path: str, stored: Storage, dtype: np.dtype, picked: Sequence[int]
) -> tuple[Storage, Ranges]:
    """Where those chunks lie that can be read as bytes, of a variable known to be `stored` so."""
    rows: list[tuple[tuple[int, ...], int, int]] = []
    raw = None if stored.deflate else math.prod(stored.chunk) * dtype.itemsize
    fixed = [(axis, p) for axis, p in enumerate(picked) if p >= 0]

    def keep(chunk: h5d.StoreInfo) -> None:
        first, mask, start, nbytes = chunk
        if mask == 0 and raw in (None, nbytes) and all(first[axis] == p for axis, p in fixed):
            rows.append((first, start, nbytes))

    dataset.chunk_iter(keep)
    rows.sort()
    _check_end(path, max((start + nbytes for _, start, nbytes in rows), default=0))
    places = tuple(first for first, _, _ in rows)
    return stored._replace(places=places), tuple((start, nbytes) for _, start, nbytes in rows)


def _check_end(path: str, end: int) -> None:
    size = os.stat(path).st_size
    if end > size:
        raise BadFile(path, f"it is truncated: {size:,} bytes, but its data reach byte {end:,}")


def reason(error: Exception) -> str:
    """HDF5's own word on what is wrong, out of h5py's message."""
    text = str(error)
    cut = re.search(r"truncated file: eof = (\d+).*stored_eof = (\d+)", text)
    if cut:
        return f"it is truncated, {int(cut[1]):,} bytes of {int(cut[2]):,}"
    inner = text[text.find("(") + 1 : text.rfind(")")] if "(" in text else text
    return f"HDF5 cannot read it ({inner or type(error).__name__})"
