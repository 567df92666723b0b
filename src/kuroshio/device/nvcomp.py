"""NVIDIA's library of decompressors on the device, nvCOMP, as far as raw deflate streams go.

Its functions are called at the C interface that its header nvcomp/deflate.h describes for version
6: the wheels nvidia-libnvcomp-cu13 and -cu12 bring nothing but the library. A stream is inflated
serially, some tens of milliseconds for 2 MB, but thousands at a time. Of damaged streams it may
write more than there is room for, or stop the device: see engines/waves.py for what follows.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_VERSION = 6  # the only one whose interface this is known to be
_SIZE, _POINTER = ctypes.c_size_t, ctypes.c_void_p


class _Options(ctypes.Structure):
    """nvcompBatchedDeflateDecompressOpts_t; zeros are its defaults."""

    _fields_ = (
        ("backend", ctypes.c_int),
        ("sort", ctypes.c_int),
        ("reserved", ctypes.c_char * 56),
    )


class NvcompFailed(Exception):
    """The library refuses a call; the message has its status."""


@functools.cache
def library() -> ctypes.CDLL | None:
    """The library, or None where it is not installed, does not load, or is of another version."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        spec = find_spec("nvidia.libnvcomp")
    except ModuleNotFoundError:  # nothing of NVIDIA's
        return None
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for path in sorted(Path(folder, "lib64").glob(f"libnvcomp.so.{_VERSION}*")):
            try:
                return _declared(ctypes.CDLL(str(path)))
            except (OSError, AttributeError):
                continue
    return None


def _declared(found: ctypes.CDLL) -> ctypes.CDLL | None:
    """The library with its functions' parameters; AttributeError where one is missing."""
    found.nvcompBatchedDeflateDecompressGetTempSize.argtypes = (
        _SIZE, _SIZE, _Options, ctypes.POINTER(_SIZE), _SIZE, _POINTER,
    )  # fmt: skip
    found.nvcompBatchedDeflateDecompressAsync.argtypes = (
        _POINTER, _POINTER, _POINTER, _POINTER, _SIZE, _POINTER, _SIZE, _POINTER, _Options,
        _POINTER, _POINTER,
    )  # fmt: skip
    properties = (ctypes.c_uint32 * 8)()
    if found.nvcompGetProperties(properties) or properties[0] // 1000 != _VERSION:
        return None
    return found


def scratch_bytes(streams: int, most_bytes: int) -> int:
    """Memory of the device that inflating so many streams, of so many bytes each, needs besides."""
    wanted = _SIZE()
    functions = library()
    assert functions is not None
    _check(
        functions.nvcompBatchedDeflateDecompressGetTempSize(
            streams, most_bytes, _Options(), ctypes.byref(wanted), streams * most_bytes, None
        )
    )
    return wanted.value


def inflate(
    stream: int, count: int, *, sources: int, nbytes: int, targets: int, room: int, inflated: int,
    statuses: int, scratch: int, scratch_nbytes: int,
) -> None:  # fmt: skip
    """Begin to inflate on the current device's `stream`; all others are addresses on the device.

    sources, nbytes, targets, room, inflated  (count,) uint64: where the streams lie and how long
                 they are, where they go and how much room is there, how much came
    statuses     (count,) int32, 0 where all is well
    """
    functions = library()
    assert functions is not None
    _check(
        functions.nvcompBatchedDeflateDecompressAsync(
            sources, nbytes, room, inflated, count, scratch, scratch_nbytes, targets, _Options(),
            statuses, stream,
        )
    )  # fmt: skip


def _check(status: Any) -> None:
    if status:
        raise NvcompFailed(f"nvCOMP answered {status}")
