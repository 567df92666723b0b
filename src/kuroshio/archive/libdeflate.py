"""The library libdeflate, for compiled code that calls it."""

from __future__ import annotations

import ctypes
import functools


@functools.cache
def libdeflate() -> ctypes.CDLL:
    """The library in the package `deflate`; ImportError or OSError where it cannot be had."""
    import deflate

    library = ctypes.CDLL(deflate._deflate.__file__)
    library.libdeflate_alloc_decompressor.restype = ctypes.c_void_p
    library.libdeflate_free_decompressor.argtypes = [ctypes.c_void_p]
    library.libdeflate_free_decompressor.restype = None
    return library
