"""How quickly a GPU inflates deflate streams: a large batch of them at a time."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import numpy as np

from ...device.gpu import Gpu
from .ceiling import GB, Ceiling, Missing, ceiling
from .gpu_clock import EVENTS, Clock, Sizes
from .inflating import SHAPE, made_map

NAME = "inflate on the device"
_ALIGNED = 16  # bytes, where a stream begins


def inflate(gpu: Gpu, stream, sizes: Sizes) -> Iterator[Ceiling | Missing]:  # type: ignore[no-untyped-def]
    """Decoded bytes a second of as many streams as there are, or as memory allows."""
    raw = made_map()
    packer = zlib.compressobj(4, zlib.DEFLATED, -zlib.MAX_WBITS)
    packed = packer.compress(raw) + packer.flush()
    stride = -(-len(packed) // _ALIGNED) * _ALIGNED
    count = min(sizes.streams, gpu.free_bytes() // 4 // (len(raw) + stride))
    if not count:
        yield Missing(NAME, f"only {gpu.free_bytes():,} bytes of its memory are free")
        return
    inflater = gpu.inflater(count, len(raw))
    if inflater is None:
        yield Missing(NAME, "no library for it is here (for NVIDIA: pip install kuroshio[nvcomp])")
        return
    one = np.frombuffer(packed.ljust(stride, b"\0"), np.uint8)
    sources = gpu.array(np.tile(one, count))
    target = gpu.zeros((count * len(raw),), np.uint8)
    number = np.arange(count, dtype=np.uint64)
    tables = {
        "sources": np.uint64(gpu.address(sources)) + number * np.uint64(stride),
        "nbytes": np.full(count, len(packed), np.uint64),
        "targets": np.uint64(gpu.address(target)) + number * np.uint64(len(raw)),
        "room": np.full(count, len(raw), np.uint64),
        "inflated": np.zeros(count, np.uint64),
        "statuses": np.full(count, -1, np.int32),
    }
    there = {name: gpu.array(table) for name, table in tables.items()}
    few = sizes.effort._replace(samples=max(sizes.effort.samples // 3, 2))  # each takes long
    seconds = Clock(gpu, stream, few).on_device(lambda: inflater(stream, count, **there))
    last = np.empty(len(raw), np.uint8)
    gpu.download(last, target[-len(raw) :], stream)
    stream.synchronize()
    if last.tobytes() != raw:
        yield Missing(NAME, "what came out is not what went in")
        return
    how = (
        f"decoded bytes of {count:,} streams at a time, each of a made map of {SHAPE[0]} x "
        f"{SHAPE[1]} 16-bit codes, shuffled, deflated to {len(packed) / len(raw):.0%}; {EVENTS}"
    )
    yield ceiling(NAME, None, GB, [1e-9 * count * len(raw) / s for s in seconds], how)
