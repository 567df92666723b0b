"""Memory whose pages are there before they are wanted.

The system gives a program's memory page by page, at the first touch, zeroed: 0.8 to 2.5 s a GB on a
virtual machine. A thread that touches it needs no interpreter lock, so it does that while the main
thread imports and prepares the kernels and nothing can be computed yet.
"""

from __future__ import annotations

import math
import threading

import numpy as np

_STEP = 4 << 20  # bytes touched between looks at whether that is enough
_LINE = 64


class ReadyMemory:
    """Zeroed memory for one array; a thread begins to touch it at once, until it is taken.

    nbytes  how much is expected; of it the first `ready` bytes are touched
    """

    def __init__(self, nbytes: int, ready: int) -> None:
        self._memory = _aligned(nbytes)
        self._enough = threading.Event()
        self._thread = threading.Thread(target=self._touch, args=(ready,), name="kuroshio-memory")
        self._thread.start()

    def take(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """The memory (or other, if it is too small) as zeros of a shape; to be called once."""
        self.close()
        size = math.prod(shape) * dtype.itemsize
        memory, self._memory = self._memory, _aligned(0)
        if memory.size < size:
            memory = _aligned(size)
        return memory[:size].view(dtype).reshape(shape)

    def close(self) -> None:
        """End the thread."""
        self._enough.set()
        self._thread.join()

    def _touch(self, nbytes: int) -> None:
        for start in range(0, nbytes, _STEP):
            if self._enough.is_set():
                return
            self._memory[start : min(start + _STEP, nbytes)] = 0


def aligned_zeros(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Zeros whose rows start on cache lines when their length is a whole number of them."""
    return _aligned(math.prod(shape) * dtype.itemsize).view(dtype).reshape(shape)


def _aligned(nbytes: int) -> np.ndarray:
    raw = np.zeros(nbytes + _LINE, np.uint8)
    skip = -raw.ctypes.data % _LINE
    return raw[skip : skip + nbytes]
