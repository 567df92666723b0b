"""A GPU as a place: maps are copied to it on one stream and worked on in another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..device.gpu import DeviceArray, Gpu, Kernel
from ..device.occupancy import occupancy
from ..engines.rings import Clock
from ..kernels.gpu.launches import chosen
from .place import Feed, Launch, Resources, Span, Worker
from .texts import text

_BUFFERS = 2  # on the device, so that one is copied to while the other is worked on


class _GpuLaunch:
    """With the block that suits the device, or one that was asked for."""

    def __init__(self, place: GpuPlace, name: str, kernel: Kernel, block: int) -> None:
        self._place, self._name, self._kernel, self._block = place, name, kernel, block
        self.resources: Resources | None = None

    def __call__(self, cells: int, *args: Any) -> None:
        if self.resources is None:
            self.resources = self._chosen(cells)
        blocks = -(-cells // self.resources.block)
        self._kernel(self._place.stream, blocks, self.resources.block, args)

    def _chosen(self, cells: int) -> Resources:
        gpu, kernel, block = self._place.gpu, self._kernel, self._block
        if block:
            share = occupancy(
                gpu.limits, block=block, registers=kernel.registers, shared_bytes=0
            ).share
        else:
            launch = chosen(gpu, self._name, kernel, cells).launch
            block, share = launch.block, launch.share
        return Resources(self._name, kernel.registers, kernel.local_bytes, block, share)


@dataclass
class Timed:
    """Two events around what was begun on a stream."""

    begun: Any
    ended: Any

    def at(self, clock: Clock) -> Span:
        return clock.at(self.begun), clock.at(self.ended)


class GpuPlace:
    """As `place.Place`.

    streams  1: copies and kernels take turns on the same one
    block    threads of every kernel's blocks; 0: what suits the kernel and the device
    bounds   arguments of __launch_bounds__
    """

    def __init__(self, gpu: Gpu, streams: int = 2, block: int = 0, bounds: str = "256") -> None:
        self.gpu, self.name, self.model, self.block = gpu, gpu.name, gpu.model, block
        self._bounds = bounds
        self.stream = gpu.stream()
        self.copying = gpu.stream() if streams == 2 else self.stream
        self.clock = Clock(gpu)

    def __enter__(self) -> GpuPlace:
        self._using: AbstractContextManager[Any] = self.gpu.use()
        self._using.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._using.__exit__(*error)

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> DeviceArray:
        return self.gpu.zeros(shape, dtype)

    def clear(self, array: DeviceArray) -> None:
        self.gpu.clear(array, self.stream)

    def kernels(
        self, name: str, macros: Mapping[str, int | str], kernels: Sequence[str]
    ) -> Mapping[str, Launch]:
        compiled = self.gpu.kernels(text(name, {"BOUNDS": self._bounds, **macros}), kernels)
        return {each: _GpuLaunch(self, each, compiled[each], self.block) for each in kernels}

    def host(self, shape: tuple[int, ...]) -> np.ndarray:
        return self.gpu.pinned(shape, np.float64)

    def free_bytes(self) -> int:
        return self.gpu.free_bytes()

    def seconds(self, begin: Callable[[], Any]) -> float:
        timed = self.timed(self.stream, begin)
        self.gpu.wait(timed.ended)
        return self.gpu.seconds(timed.begun, timed.ended)

    def timed(self, stream: Any, begin: Callable[[], Any]) -> Timed:
        """What `begin` begins on a stream, between two events."""
        timed = Timed(self.gpu.event(), self.gpu.event())
        timed.begun.record(stream)
        begin()
        timed.ended.record(stream)
        return timed

    def feed(self, maps: int, cells: int) -> Feed:
        return _GpuFeed(self, (maps, cells))


class _GpuFeed:
    """As `place.Feed`. Device memory is taken when the first batch needs it."""

    def __init__(self, place: GpuPlace, shape: tuple[int, int]) -> None:
        self._place, self._shape = place, shape
        self._buffers: list[DeviceArray] = []
        self._free: list[Any] = []  # events after which a buffer may be copied to again
        self._copies: list[Timed] = []
        self._computes: list[Timed] = []
        self._results: list[np.ndarray] = []  # pinned

    def send(self, worker: Worker, maps: np.ndarray, number: int) -> Callable[[], None]:
        gpu, copying, stream = self._place.gpu, self._place.copying, self._place.stream
        there, place = worker.target(number), -1
        if there is None:
            place = number % _BUFFERS
            there = self._buffer(place)[: maps.shape[0] * maps.shape[1]].reshape(maps.shape)
            if self._free[place] is not None:
                copying.wait_event(self._free[place])
        copy = self._place.timed(copying, lambda: gpu.upload(there, maps, copying))
        self._copies.append(copy)
        stream.wait_event(copy.ended)
        compute = self._place.timed(stream, lambda: worker.batch(there, maps.shape[1]))
        self._computes.append(compute)
        if place >= 0:
            self._free[place] = compute.ended
        return lambda: gpu.wait(copy.ended)

    def finish(self, worker: Worker) -> tuple[np.ndarray, np.ndarray]:
        gpu, stream = self._place.gpu, self._place.stream
        found: list[DeviceArray] = []
        self._computes.append(self._place.timed(stream, lambda: found.extend(worker.finish())))
        if not self._results:
            self._results = [gpu.pinned(each.shape, np.float32) for each in found]
        means, thresholds = (
            here[: each.shape[0]] for here, each in zip(self._results, found, strict=True)
        )
        gpu.download(means, found[0], stream)
        gpu.download(thresholds, found[1], stream)
        end = gpu.event()
        end.record(stream)
        gpu.wait(end)
        return means, thresholds

    def spans(self) -> tuple[list[Span], list[Span]]:
        clock = self._place.clock
        copies, computes = ([each.at(clock) for each in t] for t in (self._copies, self._computes))
        self._copies, self._computes = [], []
        return copies, computes

    def _buffer(self, place: int) -> DeviceArray:
        while len(self._buffers) <= place:
            self._buffers.append(self._place.gpu.empty(self._shape, np.float64))
            self._free.append(None)
        return self._buffers[place]
