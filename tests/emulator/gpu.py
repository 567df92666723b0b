"""A device as late as the rules allow: nothing is done before somebody waits for it.

A copy from pinned memory that is filled again too early, or a kernel on rows that are already
overwritten, then gives wrong results and not, as on a quick device, right ones by luck.
"""

from __future__ import annotations

import ctypes
import threading
import weakref
import zlib
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import count
from time import perf_counter
from typing import Any

import numpy as np

from kuroshio.device.gpu import GpuError
from kuroshio.device.occupancy import ARCHITECTURES

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
    registers, local_bytes = 32, 0

    def __init__(self, gpu: EmulatedGpu, name: str, launch: Any) -> None:
        self._gpu, self._name, self._launch = gpu, name, launch

    def __call__(
        self, stream: Stream, blocks: int, threads: int, args: Sequence[Any], shared_bytes: int = 0
    ) -> None:
        assert threads % 64 == 0
        assert shared_bytes <= self._gpu.shared_bytes
        stream.put(lambda: self._run(blocks, threads, args, shared_bytes))

    def _run(self, *launch: Any) -> None:
        self._gpu.ran.append(self._name)
        if self._name == self._gpu.failing:
            raise GpuError("a kernel failed")
        self._launch(*launch)


class EmulatedInflater:
    """As device.gpu.Inflater: late, and careless of the room that what it writes has."""

    def __init__(self, gpu: EmulatedGpu, streams: int, most_bytes: int) -> None:
        self._gpu, self._streams, self._most_bytes = gpu, streams, most_bytes

    def __call__(self, stream: Stream, count: int, **tables: np.ndarray) -> None:
        assert 0 < count <= self._streams
        stream.put(lambda: self._run(count, tables))

    def _run(self, count: int, tables: dict[str, np.ndarray]) -> None:
        self._gpu.ran.append("inflate")
        statuses = tables.pop("statuses").view(np.int32)
        numbers = {name: table.view(np.uint64).tolist() for name, table in tables.items()}
        assert all(len(each) >= count for each in numbers.values())
        assert max(numbers["room"]) <= self._most_bytes
        for i in range(count):
            source, nbytes = numbers["sources"][i], numbers["nbytes"][i]
            assert source % 4 == 0
            raw, statuses[i] = _inflated(ctypes.string_at(source, nbytes))
            if statuses[i] and self._gpu.inflating == "stops":
                raise GpuError("the device stopped")
            ctypes.memmove(numbers["targets"][i], raw, min(len(raw), numbers["room"][i]))
            tables["inflated"].view(np.uint64)[i] = len(raw)
            if len(raw) > numbers["room"][i] and i + 1 < count:
                ctypes.memset(numbers["targets"][i + 1], 0xEE, 8)
        if self._gpu.inflating == "lies":
            statuses[count // 2] = 12
        if self._gpu.inflating == "errs":
            ctypes.memset(numbers["targets"][count // 2], 0xEE, 8)


def _inflated(data: bytes) -> tuple[bytes, int]:
    """What comes out of a raw stream, and whether it is found to be damaged: 0 if not."""
    inflate = zlib.decompressobj(wbits=-zlib.MAX_WBITS)
    try:
        out = inflate.decompress(data)
    except zlib.error:
        return b"", 12
    return out, 0 if inflate.eof else 10


class EmulatedGpu:
    """As device.gpu.Gpu, with `memory_bytes`; a kernel of the name `failing` fails as it runs.

    It inflates if `inflating` is "yes"; if "stops", the device stops at a damaged stream; if
    "errs", a map comes out wrong; if "lies", one that is whole is called damaged.

    `live` has what is held of the device and of pinned memory: (pinned, address, bytes). `ran` has
    the names of kernels that have run.
    """

    model = "an emulated device"
    limits = ARCHITECTURES["sm_90"]

    def __init__(
        self, memory_bytes: int = 1 << 32, shared_bytes: int = 227 << 10, failing: str = "",
        beside: EmulatedGpu | None = None, inflating: str = "",
    ) -> None:  # fmt: skip
        self.memory_bytes, self.shared_bytes, self.failing = memory_bytes, shared_bytes, failing
        self.inflating = inflating
        self.lock = threading.RLock()
        self.live: dict[int, tuple[bool, int, int]] = {}
        self.most_pinned_bytes = 0
        self.ran: list[str] = []
        self._numbers = count()
        self.host: list[EmulatedGpu] = beside.host if beside else []  # all devices of one host
        self.name = f"emulated:{len(self.host)}"
        self.host.append(self)

    @classmethod
    def several(cls, number: int, inflating: str = "") -> list[EmulatedGpu]:
        """Devices of one host: what one has pinned is pinned for all."""
        gpus = [cls(inflating=inflating)]
        gpus += [cls(beside=gpus[0], inflating=inflating) for _ in range(number - 1)]
        return gpus

    def use(self) -> AbstractContextManager[Any]:
        return nullcontext()

    def free_bytes(self) -> int:
        return self.memory_bytes - self.held_bytes(pinned=False)

    def held_bytes(self, pinned: bool) -> int:
        return sum(
            nbytes for is_pinned, _, nbytes in list(self.live.values()) if is_pinned == pinned
        )

    def empty(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        nbytes = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        if nbytes > self.free_bytes():
            raise GpuError(f"out of memory: {nbytes} bytes of {self.free_bytes()}")
        return self._held(np.empty(shape, dtype), pinned=False)

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        array = self.empty(shape, dtype)
        array.fill(0)
        return array

    def array(self, values: np.ndarray) -> np.ndarray:
        array = self.empty(values.shape, values.dtype)
        array[...] = values
        return array

    def address(self, array: np.ndarray) -> int:
        return array.ctypes.data

    def inflates(self) -> bool:
        return self.inflating != ""

    def inflater(self, streams: int, most_bytes: int) -> EmulatedInflater | None:
        return EmulatedInflater(self, streams, most_bytes) if self.inflates() else None

    def clear(self, target: np.ndarray, stream: Stream) -> None:
        stream.put(lambda: target.fill(0))

    def pinned(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        array = self._held(np.empty(shape, dtype), pinned=True)
        self.most_pinned_bytes = max(self.most_pinned_bytes, self.held_bytes(pinned=True))
        return array

    def write_combined(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        return self.pinned(shape, dtype)

    def _held(self, array: np.ndarray, pinned: bool) -> np.ndarray:
        """As dirty as a device's, and counted until nobody has it, nor a part of it."""
        array.reshape(-1).view(np.uint8)[:] = 0xA5
        number = next(self._numbers)
        self.live[number] = (pinned, array.ctypes.data, array.nbytes)
        weakref.finalize(array, self.live.pop, number)
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

    def upload_between(
        self, begun: Event, target: np.ndarray, source: np.ndarray, copied: Event, stream: Stream
    ) -> None:
        assert self._is_pinned(source)
        begun.record(stream)
        self.upload(target, source, stream)
        copied.record(stream)

    def upload_parts(self, target: np.ndarray, source: np.ndarray, stream: Stream) -> None:
        assert self._is_pinned(source)
        assert source.strides[1] == source.itemsize == 1
        assert target.size == source.size
        stream.put(lambda: target.__setitem__(slice(None), source.reshape(-1)))

    def download(self, target: np.ndarray, source: np.ndarray, stream: Stream) -> None:
        assert target.flags.c_contiguous or (target.ndim == 2 and target[0].flags.c_contiguous)
        assert source.flags.c_contiguous
        assert target.nbytes == source.nbytes, (target.shape, source.shape)
        stream.put(lambda: _copy(target, source))

    def kernels(self, text: str, names: Sequence[str]) -> Mapping[str, EmulatedKernel]:
        launches = kernels_of(text, tuple(names))
        return {name: EmulatedKernel(self, name, launches[name]) for name in names}

    def _is_pinned(self, array: np.ndarray) -> bool:
        at = array.ctypes.data
        return any(
            pinned and start <= at < start + nbytes
            for gpu in self.host
            for pinned, start, nbytes in list(gpu.live.values())
        )


def _copy(target: np.ndarray, source: np.ndarray) -> None:
    target[...] = source.reshape(-1).view(np.uint8).view(target.dtype).reshape(target.shape)
