"""How long a NetCDF-3 file must be: the library reads what is missing at its end as zeros."""

from __future__ import annotations

import os
import struct
from typing import BinaryIO

from .badfile import BadFile

_TYPE_BYTES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 4, 6: 8, 7: 1, 8: 2, 9: 4, 10: 8, 11: 8}
_STREAMING = (0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF)


def check_size(path: str) -> None:
    """BadFile where the file ends before the data that its header promises, or has no header."""
    size = os.stat(path).st_size
    try:
        with open(path, "rb") as file:
            end = _data_end(file)
    except (OSError, struct.error, KeyError, IndexError, MemoryError) as error:
        raise BadFile(path, "its NetCDF-3 header cannot be read") from error
    if size < end:
        raise BadFile(path, f"it is truncated: {size:,} bytes, but its data reach byte {end:,}")


class _Header:
    """Reads the numbers of a header in turn; CDF-5 counts in 8 bytes, CDF-2 addresses in 8."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        version = file.read(4)[3]
        self.count_bytes = 8 if version == 5 else 4
        self.address_bytes = 4 if version == 1 else 8

    def number(self, width: int) -> int:
        return struct.unpack(">I" if width == 4 else ">Q", self.file.read(width))[0]

    def count(self) -> int:
        return self.number(self.count_bytes)

    def skip(self, nbytes: int) -> None:
        self.file.seek(_padded(nbytes), os.SEEK_CUR)

    def items(self) -> range:
        """The number of entries of a list, after its tag."""
        self.number(4)
        return range(self.count())

    def skip_attributes(self) -> None:
        for _ in self.items():
            self.skip(self.count())
            kind = self.number(4)
            self.skip(self.count() * _TYPE_BYTES[kind])


def _padded(nbytes: int) -> int:
    return -(-nbytes // 4) * 4


def _data_end(file: BinaryIO) -> int:
    """The first byte after the last value of any variable."""
    header = _Header(file)
    records = header.count()
    sizes = []
    for _ in header.items():
        header.skip(header.count())
        sizes.append(header.count())
    header.skip_attributes()
    fixed_end, record_sizes, record_starts = 0, [], []
    for _ in header.items():
        header.skip(header.count())
        shape = [sizes[header.count()] for _ in range(header.count())]
        header.skip_attributes()
        width = _TYPE_BYTES[header.number(4)]
        header.count()  # the size as written, which overflows for large variables
        begin = header.number(header.address_bytes)
        is_record = bool(shape) and shape[0] == 0
        nbytes = width
        for n in shape[1:] if is_record else shape:
            nbytes *= n
        if is_record:
            record_sizes.append(nbytes)
            record_starts.append(begin)
        else:
            fixed_end = max(fixed_end, begin + nbytes)
    if not record_sizes or records in (0, *_STREAMING):
        return fixed_end
    # One record variable alone is not padded; several are, each to four bytes.
    stride = record_sizes[0] if len(record_sizes) == 1 else sum(map(_padded, record_sizes))
    last = max(s + n for s, n in zip(record_starts, record_sizes, strict=True))
    return max(fixed_end, last + (records - 1) * stride)
