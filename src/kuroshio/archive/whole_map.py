"""One map of a file that has one: through the library, or its bytes.

The library's way is what a program does that opens each file, asks for its variable and closes it:
in one thread at a time, whatever number of them asks, for HDF5 has a lock.
"""

from __future__ import annotations

import numpy as np
from h5py import h5d, h5s

from .badfile import BadFile
from .hdf5 import open_file, reason
from .model import ByteRange


def read_by_library(path: str, variable: str, out: np.ndarray) -> None:
    """All values of a variable, float64, to contiguous `out`. BadFile if they cannot be read."""
    file = open_file(path)
    try:
        dataset = h5d.open(file, variable.encode())
        if dataset.get_space().get_simple_extent_npoints() != out.size:
            raise BadFile(path, f"{variable} has not the {out.size:,} values of a map")
        dataset.read(h5s.ALL, h5s.ALL, out)
    except (OSError, KeyError, RuntimeError) as error:
        raise BadFile(path, reason(error)) from error
    finally:
        file.close()


def read_bytes(where: ByteRange, out: np.ndarray) -> None:
    """The bytes of a chunk that is stored as it is, to contiguous `out` of that size."""
    view = memoryview(out.reshape(-1).view(np.uint8).data)
    try:
        with open(where.path, "rb", buffering=0) as file:
            file.seek(where.offset)
            while len(view):
                got = file.readinto(view)
                if not got:
                    raise BadFile(where.path, "it ends before its data does")
                view = view[got:]
    except OSError as error:
        raise BadFile(where.path, error.strerror or str(error)) from error
