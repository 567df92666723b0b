"""Between devices: peer copies and all-reduce, over message sizes: the communication roof."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from importlib import import_module
from time import perf_counter
from typing import Any

import numpy as np

from .ceiling import GB, US, Ceiling, Missing, ceiling
from .cpu import Effort
from .libraries import Unavailable, first_of

Reducing = tuple[
    Callable[[int], None], Callable[[], None]
]  # begin sums of so many bytes; wait for them
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
    with cupy.cuda.Device(source):
        stream = cupy.cuda.Stream(non_blocking=True)
        way = "direct" if direct else "through the host: the driver offers no direct access"

        def copy(nbytes: int) -> None:
            runtime.memcpyPeerAsync(
                buffers[1].data.ptr, target, buffers[0].data.ptr, source, nbytes, stream.ptr
            )

        how = f"{_REPEAT} in a row on one stream, {way}; host clock until synchronised"
        yield from _by_size(name, how, copy, stream.synchronize, effort)


def all_reduce(cupy: Any, numbers: list[int], effort: Effort) -> Iterator[Ceiling | Missing]:
    """Sums of float32 over all devices through NCCL (RCCL), from one process."""
    name = f"all-reduce of {len(numbers)}"
    try:
        library, (reduce, wait) = first_of(
            [("CuPy", partial(_by_cupy, cupy, numbers)), ("PyTorch", partial(_by_torch, numbers))]
        )
    except Unavailable as problem:
        yield Missing(name, str(problem))
        return
    how = (
        f"{library}: float32 sums of {len(numbers)} devices, {_REPEAT} in a row; bytes of one "
        "device's message; host clock until synchronised"
    )
    yield from _by_size(name, how, reduce, wait, effort)


def _by_size(
    name: str, how: str, send: Callable[[int], None], wait: Callable[[], None], effort: Effort
) -> Iterator[Ceiling]:
    """Rates of messages of every size, and the time of the smallest."""
    for nbytes in MESSAGES:
        seconds = []
        for _ in range(effort.samples + 1):
            start = perf_counter()
            for _ in range(_REPEAT):
                send(nbytes)
            wait()
            seconds.append((perf_counter() - start) / _REPEAT)
        seconds = seconds[1:]  # the first sets up the way
        rates = [1e-9 * nbytes / s for s in seconds]
        yield ceiling(name, "link", GB, rates, how, message_bytes=nbytes)
        if nbytes == MESSAGES[0]:
            times = [1e6 * s for s in seconds]
            yield ceiling(f"{name}, latency", "link", US, times, how, message_bytes=nbytes)


def _by_cupy(cupy: Any, numbers: list[int]) -> Reducing:
    nccl = getattr(cupy.cuda, "nccl", None)
    if nccl is None or not getattr(nccl, "available", False):
        raise RuntimeError("it has no NCCL here")
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

    def wait() -> None:
        for stream in streams:
            stream.synchronize()

    return reduce, wait


def _by_torch(numbers: list[int]) -> Reducing:
    """CUDA, ROCm and DTK builds of PyTorch all call their devices cuda."""
    torch = import_module("torch")
    nccl = import_module("torch.cuda.nccl")
    buffers = [torch.zeros(MESSAGES[-1] // 4, device=f"cuda:{number}") for number in numbers]
    if not nccl.is_available(buffers):
        raise RuntimeError("it has no NCCL here")

    def reduce(nbytes: int) -> None:
        nccl.all_reduce([buffer[: nbytes // 4] for buffer in buffers])

    def wait() -> None:
        for number in numbers:
            torch.cuda.synchronize(number)

    reduce(4)
    wait()
    return reduce, wait


def _on(cupy: Any, number: int, nbytes: int) -> Any:
    with cupy.cuda.Device(number):
        return cupy.zeros((nbytes,), np.uint8)
