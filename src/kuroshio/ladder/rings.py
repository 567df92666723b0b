"""Rings of host memory between the reader and the device, as the published program has them.

A thread reads batch after batch, each into a ring; whoever computes takes them in that order and
gives a ring back with what must have happened before it may be filled again. With R rings the
reader is up to R - 1 batches ahead.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from .files import LIBRARY, Files
from .problem import Batch, Pass


@dataclass(frozen=True)
class Full:
    """A batch that was read: its ring, maps (slot, year, cell), and when it was read."""

    ring: int
    maps: np.ndarray
    batch: Batch
    start_s: float
    stop_s: float


class Reader:
    """Reads the batches of a pass; use as a context, so that no thread outlives the pass.

    rings    float64 (map, cell) each, for the maps of a batch
    how      'library', in one thread at a time; or 'bytes'
    threads  that share the maps of a batch
    """

    def __init__(
        self, files: Files, rings: Sequence[np.ndarray], passing: Pass, how: str = LIBRARY,
        threads: int = 1,
    ) -> None:  # fmt: skip
        self._files, self._rings, self._pass, self._how = files, rings, passing, how
        self._free: queue.SimpleQueue[tuple[int, Callable[[], None]] | None] = queue.SimpleQueue()
        self._full: queue.SimpleQueue[Full | BaseException] = queue.SimpleQueue()
        self._stopped = False
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None
        # Daemonic: an interrupt in `__exit__` itself would leave it, and a process must end.
        self._thread = threading.Thread(
            target=self._read, name="kuroshio-ladder-reader", daemon=True
        )
        for ring in range(len(rings)):
            self.give_back(ring, _at_once)

    def __enter__(self) -> Reader:
        try:
            self._thread.start()  # waits for the thread, so an interrupt may come once it runs
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped = True
        self._free.put(None)
        if self._thread.ident is not None:
            self._thread.join()
        if self._pool:
            self._pool.shutdown(cancel_futures=True)

    def next(self) -> Full:
        """The next batch, waited for; an error of the reader is raised here."""
        found = self._full.get()
        if isinstance(found, BaseException):
            raise found
        return found

    def give_back(self, ring: int, wait: Callable[[], None]) -> None:
        """A ring may be filled again once `wait` has returned; the reader calls it."""
        self._free.put((ring, wait))

    def _read(self) -> None:
        try:
            for batch in self._pass.batches:
                free = self._free.get()
                if free is None:
                    return
                ring, wait = free
                wait()
                self._full.put(self._filled(ring, batch))
        except BaseException as error:
            self._full.put(error)

    def _filled(self, ring: int, batch: Batch) -> Full:
        start = perf_counter()
        slots, years = self._pass.slots, batch.years
        maps = self._rings[ring][: len(slots) * len(years)].reshape(len(slots), len(years), -1)
        wanted = [(i, j) for j in range(len(years)) for i in range(len(slots))]

        def read(place: tuple[int, int]) -> None:
            i, j = place
            if not self._stopped:
                self._files.read(years[j], slots[i], maps[i, j], self._how)

        for _ in self._pool.map(read, wanted) if self._pool else map(read, wanted):
            pass
        return Full(ring, maps, batch, start, perf_counter())


def _at_once() -> None:
    """Nothing has to happen before."""
