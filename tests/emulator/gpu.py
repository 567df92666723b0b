"""A device as late as the rules allow: nothing is done before somebody waits for it.

A copy from pinned memory that is filled again too early, or a kernel on rows that are already
overwritten, then gives wrong results and not, as on a quick device, right ones by luck.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from time import perf_counter
from typing import Any

import numpy as np

from kuroshio.device.gpu import GpuError

from .kernels import kernels_of


class Event:
    def __init__(self) -> None:
        self.stream: Stream | None = None
        self.mark = 0
        self.time_s = 0.0

    def record(self, stream: Stream) -> None:
        with stream.gpu.lock:
            self.stream, self.mark = stream, stream.put(self._happen)

    def _happen(self) -> None:
        self.time_s = perf_counter()


class Stream:
    """Work in order, done as far as somebody has waited for."""

    def __init__(self, gpu: EmulatedGpu) -> None:
        self.gpu = gpu
        self.queue: deque[Any] = deque()
        self.done = self.given = 0

    def put(self, work: Any) -> int:
        with self.gpu.lock:
            self.queue.append(work)
            self.given += 1
            return self.given

    def run(self, mark: int) -> None:
        while self.done < mark:
            work = self.queue.popleft()
            self.done += 1
            work()

    def wait_event(self, event: Event) -> None:
        stream, mark = event.stream, event.mark  # as recorded by now
        if stream is not None:
            self.put(lambda: stream.run(mark))

    def synchronize(self) -> None:
        with self.gpu.lock:
            self.run(self.given)


class EmulatedKernel:
    registers = local_bytes = 0

    def __init__(self, launch: Any) -> None:
        self._launch = launch

    def __call__(
        self, stream: Stream, blocks: int, threads: int, args: Sequence[Any], shared_bytes: int = 0
    ) -> None:
        assert threads % 64 == 0
        stream.put(lambda: self._launch(blocks, threads, args, shared_bytes))


class EmulatedGpu:
    """As device.gpu.Gpu. `memory_bytes` is what it has; `held` counts what has been taken."""

    name, model, wave_size = "emulated:0", "an emulated device", 32

    def __init__(self, memory_bytes: int = 1 << 32, shared_bytes: int = 227 << 10) -> None:
        self.memory_bytes, self.shared_bytes = memory_bytes, shared_bytes
        self.lock = threading.RLock()
        self._pinned: list[tuple[int, int]] = []

    def use(self) -> AbstractContextManager[Any]:
        return nullcontext()

    def free_bytes(self) -> int:
        return self.memory_bytes

    def empty(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        array = np.empty(shape, dtype)
        if array.nbytes > self.memory_bytes:
            raise GpuError(f"out of memory: {array.nbytes} of {self.memory_bytes} bytes")
        array.reshape(-1).view(np.uint8)[:] = 0xA5  # as dirty as a device's
        return array

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        return np.zeros(shape, dtype)

    def array(self, values: np.ndarray) -> np.ndarray:
        return values.copy()

    def clear(self, target: np.ndarray, stream: Stream) -> None:
        stream.put(lambda: target.fill(0))

    def pinned(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        array = np.empty(shape, dtype)
        with self.lock:
            self._pinned.append((array.ctypes.data, array.ctypes.data + array.nbytes))
        return array

    def stream(self) -> Stream:
        return Stream(self)

    def event(self) -> Event:
        return Event()

    def wait(self, event: Event) -> None:
        with self.lock:
            if event.stream is not None:
                event.stream.run(event.mark)

    def seconds(self, start: Event, stop: Event) -> float:
        return stop.time_s - start.time_s

    def upload(self, target: np.ndarray, source: np.ndarray, stream: Stream) -> None:
        assert target.flags.c_contiguous
        assert source.flags.c_contiguous
        assert target.nbytes == source.nbytes, (target.shape, source.shape)
        if not self._is_pinned(source):
            source = source.copy()
        stream.put(lambda: _copy(target, source))

    def download(self, target: np.ndarray, source: np.ndarray, stream: Stream) -> None:
        assert target.flags.c_contiguous
        assert source.flags.c_contiguous
        assert target.nbytes == source.nbytes, (target.shape, source.shape)
        stream.put(lambda: _copy(target, source))

    def kernels(self, text: str, names: Sequence[str]) -> Mapping[str, EmulatedKernel]:
        launches = kernels_of(text, tuple(names))
        return {name: EmulatedKernel(launches[name]) for name in names}

    def _is_pinned(self, array: np.ndarray) -> bool:
        start = array.ctypes.data
        with self.lock:
            return any(low <= start < high for low, high in self._pinned)


def _copy(target: np.ndarray, source: np.ndarray) -> None:
    target.reshape(-1).view(np.uint8)[:] = source.reshape(-1).view(np.uint8)
