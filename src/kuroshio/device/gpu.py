"""What the engine asks of a GPU: memory, copies, streams, events and kernels; CuPy provides them.

CuPy is the same for CUDA and for ROCm, and builds of it exist for other HIP devices; nothing here
asks more of it than version 12.3 has. `cuda.py` finds the devices. The tests have another `Gpu`
that runs the kernels' text on the processor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np

from ..errors import Refusal
from .occupancy import Limits

DeviceArray = Any  # of CuPy, or of NumPy where a device is emulated: shape, dtype, basic slices


class GpuError(Refusal):
    """The device cannot do what was asked: what is the matter, and what to do.

    Where the processor does the work instead, only `what` is told. A compiler's messages go into
    `log`, line by line.
    """

    def __init__(self, what: str, to_do: str = "", log: str = "") -> None:
        super().__init__(f"{what} {to_do}".strip(), log)
        self.what = what


class Stream(Protocol):
    """Work that the device carries out in order."""

    def wait_event(self, event: Any) -> None: ...
    def synchronize(self) -> None: ...


class Event(Protocol):
    """A point in a stream."""

    def record(self, stream: Any) -> None: ...
    def synchronize(self) -> None: ...


class Kernel(Protocol):
    """A compiled kernel, and what the compiler made of it."""

    registers: int  # a thread
    local_bytes: int  # a thread has of slow memory, because registers did not suffice

    def __call__(
        self, stream: Any, blocks: int, threads: int, args: Sequence[Any], shared_bytes: int = 0
    ) -> None:
        """Launch; args are device arrays, NumPy scalars of the parameters' types, or None."""
        ...


class Inflater(Protocol):
    """Raw deflate streams inflated on a device, many at a time."""

    def __call__(
        self, stream: Any, count: int, *, sources: DeviceArray, nbytes: DeviceArray,
        targets: DeviceArray, room: DeviceArray, inflated: DeviceArray, statuses: DeviceArray,
    ) -> None:  # fmt: skip
        """Begin to inflate `count` streams.

        sources, nbytes  uint64 (stream,): the addresses of streams and how long they are
        targets, room    where each goes and how much room is there
        inflated         how much came out; uint64, too
        statuses         int32: 0 where the stream was found to be whole, which need not be true

        What is damaged may be written beyond its room, or stop the device.
        """
        ...


class Gpu(Protocol):
    """One device. Threads that use it enter it first: `with gpu.use():`."""

    name: str  # as --device calls it: cuda:0, hip:1
    model: str
    limits: Limits
    shared_bytes: int  # a block may have, asked for at its launch

    def use(self) -> AbstractContextManager[Any]: ...

    def free_bytes(self) -> int:
        """Memory not in use by anybody."""
        ...

    def empty(self, shape: tuple[int, ...], dtype: Any) -> DeviceArray: ...

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> DeviceArray: ...

    def array(self, values: np.ndarray) -> DeviceArray:
        """A copy of a small array on the device; returns when it is there."""
        ...

    def address(self, array: DeviceArray) -> int:
        """Where its first byte lies."""
        ...

    def inflater(self, streams: int, most_bytes: int) -> Inflater | None:
        """For so many streams of so many bytes inflated; None where no library can do that."""
        ...

    def inflates(self) -> bool:
        """Whether there will be an `inflater`."""
        ...

    def clear(self, target: DeviceArray, stream: Any) -> None:
        """Begin to set it to zeros."""
        ...

    def pinned(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """Host memory that the device copies from and to by itself."""
        ...

    def write_combined(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """Pinned memory past the processor's caches: quick to write in order, slow to read."""
        ...

    def stream(self) -> Stream: ...

    def event(self) -> Event: ...

    def wait(self, event: Any) -> None:
        """Until an event has happened; errors of what came before it are raised here."""
        ...

    def seconds(self, start: Any, stop: Any) -> float:
        """Between two events that have happened."""
        ...

    def upload(self, target: DeviceArray, source: np.ndarray, stream: Any) -> None:
        """Begin to copy contiguous host memory (if it is not pinned, copy it)."""
        ...

    def upload_between(
        self, begun: Any, target: DeviceArray, source: np.ndarray, copied: Any, stream: Any
    ) -> None:
        """The same of pinned memory, between two events that enclose this copy and no other."""
        ...

    def upload_parts(self, target: DeviceArray, source: np.ndarray, stream: Any) -> None:
        """The same part of each row of pinned memory, (row, byte), side by side."""
        ...

    def download(self, target: np.ndarray, source: DeviceArray, stream: Any) -> None:
        """Begin to copy contiguous memory, to such memory or to stretches of rows (row, item)."""
        ...

    def kernels(self, text: str, names: Sequence[str]) -> Mapping[str, Kernel]:
        """Compile a text, or take it from the cache on disk."""
        ...
