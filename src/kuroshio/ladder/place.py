"""Where rungs run: a GPU or the processor, behind one interface.

A rung is written once. Its kernels exist twice, under the same names and with the same arguments:
as text for GPUs (`rungs/NAME.h`) and compiled by Numba (`rungs/NAME_cpu.py`), where a function
works on the cells `first` to `last` - 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

Array = Any  # of CuPy or of NumPy


@dataclass(frozen=True)
class Resources:
    """What the compiler made of a kernel on the device at hand."""

    kernel: str
    registers: int  # a thread
    local_bytes: int  # a thread has outside of registers: scratch, stack frame
    block: int
    occupancy: float  # resident warps or wavefronts, of the most there can be


class Launch(Protocol):
    """A kernel, with a thread a cell."""

    resources: Resources | None  # None on the processor

    def __call__(self, cells: int, *args: Any) -> None:
        """Begin it on all cells, after what was begun before.

        args  arrays of this place and NumPy scalars (np.int32, np.float64) of the types that the
              parameters have
        """
        ...


class Place(Protocol):
    """A GPU's compute stream, or the processor's threads."""

    name: str  # cuda:0, hip:0, cpu
    model: str

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> Array: ...

    def clear(self, array: Array) -> None:
        """Begin to set it to zeros, after what was begun before."""
        ...

    def kernels(
        self, name: str, macros: Mapping[str, int | str], kernels: Sequence[str]
    ) -> Mapping[str, Launch]:
        """The kernels of `rungs/NAME`; `macros` go before a GPU's text."""
        ...

    def host(self, shape: tuple[int, ...]) -> np.ndarray:
        """Host memory, float64, for a ring."""
        ...

    def free_bytes(self) -> int:
        """Of the place's own memory."""
        ...

    def seconds(self, begin: Callable[[], Any]) -> float:
        """From when the device begins what `begin` begins until it has ended it."""
        ...

    def feed(self, maps: int, cells: int) -> Feed:
        """For batches of so many maps at most."""
        ...


class Worker(Protocol):
    """A rung at work on a pass; it belongs to one place and is used for all passes."""

    def begin(self, slots: int, days: int) -> None:
        """Forget the pass before; the next has so many slots and days."""
        ...

    def target(self, batch: int) -> Array | None:
        """Where a batch's maps (slot, year, cell) are to go; None: wherever, for `batch` only."""
        ...

    def batch(self, maps: Array, years: int) -> None:
        """Begin to work on the maps (slot, year, cell) of a batch."""
        ...

    def finish(self) -> tuple[Array, Array]:
        """Begin what is left; means and thresholds, float32 (day, cell), at this place."""
        ...

    @property
    def launches(self) -> Sequence[Launch]:
        """The kernels, for what the compiler made of them."""
        ...


Span = tuple[float, float]  # seconds of perf_counter's clock


class Feed(Protocol):
    """The way of a rung's maps from rings to a place, and of its results back."""

    def send(self, worker: Worker, maps: np.ndarray, number: int) -> Callable[[], None]:
        """Begin to copy a ring's maps (slot, year, cell) and to work on them.

        Returns what must be called, by any thread, before the ring is filled again.
        """
        ...

    def finish(self, worker: Worker) -> tuple[np.ndarray, np.ndarray]:
        """Means and thresholds, float32 (day, cell), here; they hold until the next `finish`."""
        ...

    def spans(self) -> tuple[list[Span], list[Span]]:
        """When was copied and when kernels ran, of what has been finished, and no longer known."""
        ...


def empty_host(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Ordinary host memory with every page there."""
    memory = np.empty(shape, dtype)
    memory.reshape(-1).view(np.uint8)[::4096] = 0
    return memory
