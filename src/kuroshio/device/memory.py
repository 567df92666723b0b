"""The key buffer's memory: which pages it lies in, and pages that are there before they are wanted.

The system gives a program's memory page by page, at the first touch, zeroed. A thread that touches
it needs no interpreter lock, so it does that while the main thread imports and prepares the kernels
and nothing can be computed yet.

Huge pages (2 MB, what NumPy asks for) are quick where the machine has some at hand, but a virtual
machine may have to get each from its host: 2.0 s a GB, where ordinary pages, out of what lies about
in small pieces, took 0.4 to 0.7. Measured on global maps of 30 years, thread seconds with huge and
with ordinary pages: making keys 1.5 and 0.6 (a season), selecting 5.7 and 4.7 (the full year; why
is not known, and in a small test huge pages were the quicker, 480 against 530 ns a tile and day).
Small pieces run out, though: when all 1.3 GB of a full year took them, none were left for the pages
of the output, and writing took 2.5 instead of 0.5. So the first part is ordinary and the rest huge.
"""

from __future__ import annotations

import errno
import math
import mmap
import sys
import threading

import numpy as np

_ORDINARY = 1 << 30  # bytes of a buffer in ordinary pages
_STEP = 16 << 20  # bytes touched without the interpreter lock, for which a thread may wait 5 ms
_LINE = 64


class ReadyMemory:
    """Zeroed memory for one array; a thread begins to touch it at once, until it is taken.

    nbytes  how much is expected; of it the first `ready` bytes are touched
    """

    def __init__(self, nbytes: int, ready: int) -> None:
        self._memory = _pages(nbytes)
        self._enough = threading.Event()
        self._thread = threading.Thread(target=self._touch, args=(ready,), name="kuroshio-memory")
        self._thread.start()

    def take(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """The memory (or other, if it is too small) as zeros of a shape; to be called once."""
        self.close()
        size = math.prod(shape) * dtype.itemsize
        memory, self._memory = self._memory, _pages(0)
        if memory.size < size:
            memory = _pages(size)
        return memory[:size].view(dtype).reshape(shape)

    def close(self) -> None:
        """End the thread."""
        self._enough.set()
        self._thread.join()

    def _touch(self, nbytes: int) -> None:
        for start in range(0, nbytes, _STEP):
            if self._enough.is_set():
                return
            # A byte a page (all bytes: 0.55 s a GB instead of 0.46, the system has zeroed them).
            self._memory[start : min(start + _STEP, nbytes) : mmap.PAGESIZE] = 0


def aligned_zeros(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Zeros whose rows start on cache lines when their length is a whole number of them."""
    return _aligned(math.prod(shape) * dtype.itemsize).view(dtype).reshape(shape)


def _pages(nbytes: int) -> np.ndarray:
    """Zeroed bytes on cache lines, the first _ORDINARY of them in ordinary pages."""
    if sys.platform != "linux" or nbytes < mmap.PAGESIZE:
        return _aligned(nbytes)
    try:
        pages = mmap.mmap(-1, nbytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        pages.madvise(mmap.MADV_HUGEPAGE)
        pages.madvise(mmap.MADV_NOHUGEPAGE, 0, min(nbytes, _ORDINARY))
    except OSError as error:
        if error.errno == errno.ENOMEM:
            raise MemoryError(str(error)) from error
        return _aligned(nbytes)  # a kernel without huge pages knows no advice on them
    return np.frombuffer(pages, np.uint8)


def _aligned(nbytes: int) -> np.ndarray:
    raw = np.zeros(nbytes + _LINE, np.uint8)
    skip = -raw.ctypes.data % _LINE
    return raw[skip : skip + nbytes]
