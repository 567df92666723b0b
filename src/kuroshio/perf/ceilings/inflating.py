"""How quickly deflate streams are inflated: by each library that is there, a piece at a time."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from importlib import import_module

import numpy as np

from .ceiling import GB, Ceiling, ceiling
from .cpu import Effort
from .team import passes_for, rates

SHAPE = 720, 1440  # of 16-bit codes, as a map of a quarter degree
Inflate = Callable[[bytes, int], bytes]


def inflate(threads: int, effort: Effort) -> Iterator[Ceiling]:
    """Decoded bytes a second of a smooth map with noise, its bytes shuffled, deflated at level 4.

    How quick it is depends on the data: noisier data deflate less and inflate more slowly.
    """
    raw = made_map()
    stream = zlib.compress(raw, 4)
    for library, function in _libraries():

        def again(passes: int, function: Inflate = function) -> None:
            for _ in range(passes):
                function(stream, len(raw))

        passes = passes_for(again, (), effort.sample_s)
        samples = rates(again, tuple, threads, 1e-9 * len(raw), effort.samples, passes)
        how = (
            f"{library}: decoded bytes of a made map of {SHAPE[0]} x {SHAPE[1]} 16-bit codes, "
            f"shuffled, deflated to {len(stream) / len(raw):.0%}; other data are quicker or slower"
        )
        yield ceiling(f"inflate ({library})", None, GB, samples, how, threads)


def made_map() -> bytes:
    """Codes of a smooth field with noise: all low bytes, then all high ones."""
    rows, columns = np.ogrid[0 : np.pi : SHAPE[0] * 1j, 0 : 6 * np.pi : SHAPE[1] * 1j]
    noise = np.random.default_rng(0).normal(0, 12, SHAPE)
    codes = (2800 * np.sin(rows) + 150 * np.cos(columns) + noise).astype("<i2")
    return codes.reshape(-1).view(np.uint8).reshape(-1, 2).T.tobytes()


def _libraries() -> Iterator[tuple[str, Inflate]]:
    """Those that are installed, the quickest usually first; zlib is always there."""
    for library, module, call in (
        ("libdeflate", "deflate", lambda m: lambda data, size: m.zlib_decompress(data, size)),
        ("isal", "isal.isal_zlib", lambda m: lambda data, size: m.decompress(data, bufsize=size)),
        ("zlib", "zlib", lambda m: lambda data, size: m.decompress(data, bufsize=size)),
    ):
        try:
            yield library, call(import_module(module))
        except ImportError:
            continue
