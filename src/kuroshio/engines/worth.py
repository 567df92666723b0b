"""Whether a GPU pays: what it saves of a run's computing against what starting it costs."""

from __future__ import annotations

from dataclasses import dataclass

# Importing CuPy, the device's context, kernels from the cache, the driver's end. Measured on an
# H200's host, against a run on the processor: 0.6 s more before the first file, 0.3 after the last.
GPU_START_S = 0.9

# An ordinary thread, for a cell, day of year, word of its window and byte of its keys; a guess
# between sorted lists and bit planes (measured: docs/design/engine.md).
_COMPUTE_S_PER_BYTE = 1.6e-9
_INFLATE_S_PER_BYTE = 1 / 0.7e9  # a thread beside others
# By what part each further thread makes all threads' work longer: 16 took 2.2 s for work that
# shared evenly would have taken 1.2 (a season of the globe; benchmarks/results/h200.json).
_HELD_UP = 0.05
_INFLATED_THERE = 0.8  # of what a device could inflate, about; the rest stays with the threads


@dataclass(frozen=True)
class Task:
    """What is to be computed, known before it is planned.

    A word is what the window holds at one offset from its centre: a day of up to 32 years.
    """

    cells: int
    doys: int
    words: int  # of a window
    key_bytes: int
    threads: int  # that the run may use
    inflatable_bytes: int = 0  # decoded, that a device with a library for it can inflate

    @property
    def compute_s(self) -> float:
        """About how long the processor would compute the windows, on all the threads."""
        words = self.cells * self.doys * self.words
        return self._shared(words * self.key_bytes * _COMPUTE_S_PER_BYTE)

    @property
    def inflate_s(self) -> float:
        """About how long all the threads would inflate what a device can."""
        return self._shared(self.inflatable_bytes * _INFLATE_S_PER_BYTE)

    def _shared(self, thread_s: float) -> float:
        return thread_s * (1 + _HELD_UP * (self.threads - 1)) / self.threads


def gpu_saves_s(task: Task, *, inflates: bool = False) -> float:
    """Seconds by which a run is shorter with a GPU; negative where it is longer.

    The GPU takes the windows off the threads, and if it `inflates` most of that; they go on
    reading and writing. Its own time is hidden behind theirs. So it saves theirs, less its start.
    """
    inflating_s = task.inflate_s * _INFLATED_THERE if inflates else 0.0
    return task.compute_s + inflating_s - GPU_START_S
