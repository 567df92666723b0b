"""Between devices: peer copies and all-reduce, over message sizes: the communication roof."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from time import perf_counter
from typing import Any

import numpy as np

from ..raised import said
from .ceiling import GB, US, Ceiling, Missing, ceiling
from .cpu import Effort

MESSAGES = tuple(1 << power for power in range(10, 29, 3))  # bytes: 1 KB to 128 MB
_REPEAT = 20


def several(kind: str, numbers: list[int], effort: Effort) -> Iterator[Ceiling | Missing]:
    """Of the devices with these numbers; with one there is nothing to measure."""
    if len(numbers) < 2:
        yield Missing("peer copy and all-reduce", "there is one device")
        return
    import cupy

    yield from peer_copies(cupy, kind, numbers[:2], effort)
    yield from all_reduce(cupy, numbers, effort)


def peer_copies(
    cupy: Any, kind: str, pair: list[int], effort: Effort
) -> Iterator[Ceiling | Missing]:
    """From the first to the second device."""
    runtime = cupy.cuda.runtime
    source, target = pair
    direct = bool(runtime.deviceCanAccessPeer(target, source))
    name = f"peer copy {kind}:{source} to {kind}:{target}"
    if direct:
        for here, there in (pair, pair[::-1]):
            with cupy.cuda.Device(here), suppress(runtime.CUDARuntimeError):  # it may be enabled
                runtime.deviceEnablePeerAccess(there)
    buffers = [_on(cupy, number, MESSAGES[-1]) for number in pair]
    way = "direct" if direct else "through the host: the driver offers no direct access"
    with cupy.cuda.Device(source):
        stream = cupy.cuda.Stream(non_blocking=True)

        def copy(nbytes: int) -> None:
            runtime.memcpyPeerAsync(
                buffers[1].data.ptr, target, buffers[0].data.ptr, source, nbytes, stream.ptr
            )

        how = f"{_REPEAT} in a row on one stream, {way}; host clock until synchronised"
        yield from _by_size(name, how, copy, [stream], effort)


def all_reduce(cupy: Any, numbers: list[int], effort: Effort) -> Iterator[Ceiling | Missing]:
    """Sums of float32 over all devices through NCCL (RCCL), from one process."""
    name = f"all-reduce of {len(numbers)}"
    nccl = getattr(cupy.cuda, "nccl", None)
    if nccl is None or not getattr(nccl, "available", False):
        yield Missing(name, "CuPy has no NCCL here")
        return
    try:
        yield from _reduced(cupy, nccl, name, numbers, effort)
    except nccl.NcclError as problem:  # such as too little shared memory in a container
        yield Missing(name, f"NCCL failed: {said(problem)}")


def _reduced(
    cupy: Any, nccl: Any, name: str, numbers: list[int], effort: Effort
) -> Iterator[Ceiling]:
    parts = nccl.NcclCommunicator.initAll(numbers)
    buffers = [_on(cupy, number, MESSAGES[-1]) for number in numbers]
    streams = []
    for number in numbers:
        with cupy.cuda.Device(number):
            streams.append(cupy.cuda.Stream(non_blocking=True))

    def reduce(nbytes: int) -> None:
        nccl.groupStart()
        for number, part, buffer, stream in zip(numbers, parts, buffers, streams, strict=True):
            with cupy.cuda.Device(number):
                part.allReduce(
                    buffer.data.ptr, buffer.data.ptr, nbytes // 4, nccl.NCCL_FLOAT32,
                    nccl.NCCL_SUM, stream.ptr,
                )  # fmt: skip
        nccl.groupEnd()

    how = (
        f"float32 sums of {len(numbers)} devices in one process, {_REPEAT} in a row; bytes of "
        "one device's message; host clock until synchronised"
    )
    yield from _by_size(name, how, reduce, streams, effort)


def _by_size(
    name: str, how: str, send: Callable[[int], None], streams: list[Any], effort: Effort
) -> Iterator[Ceiling]:
    """Rates of messages of every size, and the time of the smallest."""
    for nbytes in MESSAGES:
        seconds = []
        for _ in range(effort.samples + 1):
            start = perf_counter()
            for _ in range(_REPEAT):
                send(nbytes)
            for stream in streams:
                stream.synchronize()
            seconds.append((perf_counter() - start) / _REPEAT)
        seconds = seconds[1:]  # the first sets the way up
        rates = [1e-9 * nbytes / s for s in seconds]
        yield ceiling(name, "link", GB, rates, how, message_bytes=nbytes)
        if nbytes == MESSAGES[0]:
            times = [1e6 * s for s in seconds]
            yield ceiling(f"{name}, latency", "link", US, times, how, message_bytes=nbytes)


def _on(cupy: Any, number: int, nbytes: int) -> Any:
    with cupy.cuda.Device(number):
        return cupy.zeros((nbytes,), np.uint8)
