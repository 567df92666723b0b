"""Whether a GPU pays: what it saves of a run's computing against what starting it costs."""

from __future__ import annotations

from dataclasses import dataclass

GPU_START_S = 1.0  # importing CuPy, the device's context, kernels from the cache

# An ordinary thread, for a cell, day of year, word of its window and byte of its keys; a guess
# between sorted lists and bit planes (measured: docs/design/engine.md).
_COMPUTE_S_PER_BYTE = 1.6e-9


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

    @property
    def compute_s(self) -> float:
        """About how long the processor would compute the windows, on all the threads."""
        words = self.cells * self.doys * self.words
        return words * self.key_bytes * _COMPUTE_S_PER_BYTE / self.threads


def gpu_saves_s(task: Task) -> float:
    """Seconds by which a run is shorter with a GPU; negative where it is longer.

    The GPU takes the windows off the threads, and they go on reading, inflating and writing. Its
    own time for the windows is hidden behind theirs. So it saves their computing, less its start.
    """
    return task.compute_s - GPU_START_S
