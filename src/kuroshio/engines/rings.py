"""Pinned host memory between the reader and the device: how much of it pays, and what is waited.

Each thread of the crew has R *rings* that it fills in turn, each with a few maps; a full one is
copied to the device and can be filled again when it has been unpacked there. With one ring a thread
waits for every copy, and for those of others before it. With two it fills one while the other is
copied. Copies never wait for the device's computing (a batch's rows are not those of the
batch before), so more rings would only even out the reader's own unsteadiness; and no number of
them helps where the link needs longer for the rings of all threads than a thread to fill its own.

All begin with one. R is chosen from the measured times of the first turns (see waiting.py), under a
budget of memory, and the run's account says what waiting was predicted and what was measured.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from ..archive.model import Spans
from ..device.gpu import DeviceArray, Gpu
from .means import MOST_RINGS, RING_BYTES, TABLE_BYTES, TOGETHER
from .pinned import Pinned
from .waiting import copy_s_per_byte, waiting_s

_WORTH = 0.005  # of a thread's time for a turn: a ring that saves less is not taken
_SAMPLE = 32  # turns whose times are measured


def maps_of_ring(map_bytes: int, budget_bytes: int, threads: int) -> int:
    """Maps that a ring holds: few, so that two rings of every thread are within the budget."""
    room = min(RING_BYTES, budget_bytes // (MOST_RINGS * threads)) - TABLE_BYTES
    return max(min(room // map_bytes, TOGETHER), 1)


def choose_rings(most: int, threads: int, read_s: float | Sequence[float], copy_s: float) -> int:
    """The fewest rings of a thread, up to `most`, after which more would save next to nothing."""
    reads_s = float(np.mean(read_s))
    for rings in range(1, most):
        now, then = (waiting_s(r, threads, read_s, copy_s) for r in (rings, rings + 1))
        if now - then <= _WORTH * (reads_s + now):
            return rings
    return most


class Clock:
    """Events of a device on the host's clock."""

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self._start = gpu.event()
        stream = gpu.stream()
        with gpu.use():
            self._start.record(stream)
        gpu.wait(self._start)
        self._start_s = perf_counter()

    def at(self, event: Any) -> float:
        """When an event that has happened did, as perf_counter tells time."""
        return self._start_s + self.gpu.seconds(self._start, event)


@dataclass
class Lane:
    """A ring's likeness on one device, of what of it goes there, and the copy."""

    gpu: Gpu
    clock: Clock
    there: DeviceArray  # uint8: the table, and then maps
    begun: Any
    copied: Any
    free: Any  # after they have been unpacked
    sent_bytes: int = 0

    @property
    def table(self) -> DeviceArray:
        return self.there[:TABLE_BYTES]

    @property
    def maps(self) -> DeviceArray:
        return self.there[TABLE_BYTES:]


@dataclass
class Ring:
    """Maps in pinned memory, and what is known of their way to the devices."""

    memory: np.ndarray  # uint8: a table of the maps, and then the maps
    lanes: Sequence[Lane]
    busy: bool = False
    filled_s: float = 0.0

    @property
    def maps(self) -> np.ndarray:
        """uint8, one after the other."""
        return self.memory[TABLE_BYTES:]

    def write_table(self, table: np.ndarray) -> None:
        raw = np.ascontiguousarray(table).reshape(-1).view(np.uint8)
        self.memory[: raw.size] = raw


@dataclass
class Rings:
    """The rings of all threads of a run, and the times that say how many of them are wanted.

    `nbytes` of pinned memory are taken now, `most_bytes` were at most; `maps` are those of a ring.
    """

    pinned: Pinned
    spans: Spans
    threads: int
    budget_bytes: int
    maps: int = 0
    wanted: int = 1
    waited_s: float = 0.0
    nbytes: int = 0
    most_bytes: int = 0
    _firsts: int = 0  # threads that have a ring
    _turns: Counter[int] = field(default_factory=Counter)  # by the rings that the thread had
    _rings: list[Ring] = field(default_factory=list)
    _read_s: list[float] = field(default_factory=list)
    _copy_s: list[float] = field(default_factory=list)
    _copied: list[int] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def most(self) -> int:
        """Rings that all threads may come to have together."""
        return MOST_RINGS * self.threads

    def next(self, own: threading.local, nbytes: int, lanes: Callable[[], Sequence[Lane]]) -> Ring:
        """The ring that a thread fills next with so many bytes of maps; `own` keeps a thread's.

        lanes  makes those of a new ring
        """
        mine: list[Ring] = own.__dict__.setdefault("rings", [])
        nbytes += TABLE_BYTES
        if len(mine) < self.wanted and self._afford_ring(nbytes, first=not mine):
            memory = self.pinned.take((nbytes,), np.uint8)
            memory[:] = 0
            mine.insert(0, Ring(memory, lanes()))
            with self._lock:
                self._rings.append(mine[0])
        else:
            mine.append(mine.pop(0))  # first comes the one that was sent the longest ago
        if mine[0].busy:
            self._wait(mine[0], len(mine))
        return mine[0]

    def sent(self, ring: Ring, filled_s: float) -> None:
        """A ring that took `filled_s` to fill is on its way on all lanes."""
        ring.busy, ring.filled_s = True, filled_s

    def assembly(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """Zeroed host memory for parts of maps: pinned if the budget has it, else ordinary."""
        nbytes = int(np.prod(shape)) * dtype.itemsize
        with self._lock:
            if self.nbytes + nbytes > self.budget_bytes:
                return np.zeros(shape, dtype)
            self._count(nbytes)
        memory = self.pinned.take(shape, dtype)
        memory[:] = 0
        return memory

    def give_back(self) -> None:
        """A block has ended: no thread uses its rings, and the devices have done with them."""
        for ring in self._rings:
            if ring.busy:
                with suppress(Exception):  # after a failure, which has been raised before
                    self._copied_at(ring)
        self._rings.clear()
        self.pinned.take_back()
        with self._lock:
            self.nbytes = self._firsts = 0

    def report(self) -> dict[str, float | int] | None:
        """What was chosen and why, for the run's account; None where no ring was used again."""
        if not self._read_s:
            return None
        copy_s = self._copy_of_ring_s()
        predicted = sum(
            turns * waiting_s(rings, self.threads, self._read_s, copy_s)
            for rings, turns in self._turns.items()
        )
        return {
            "rings": max(self._turns),
            "maps": self.maps,
            "pinned_gb": round(self.most_bytes / 1e9, 3),
            "predicted_wait_s": round(predicted, 4),
            "measured_wait_s": round(self.waited_s, 4),
            "read_s": round(float(np.median(self._read_s)), 6),
            "copy_s": round(copy_s, 6),
            "copy_gb_per_s": round(float(np.median(self._copied)) / max(copy_s, 1e-9) / 1e9, 1),
        }

    def _wait(self, ring: Ring, rings: int) -> None:
        start = perf_counter()
        for lane in ring.lanes:
            lane.gpu.wait(lane.free)
        stop = perf_counter()
        ring.busy = False
        copy_s, nbytes = self._copied_at(ring)
        with self._lock:
            self._turns[rings] += 1
            self.waited_s += stop - start
            if len(self._read_s) < _SAMPLE:
                self._read_s.append(ring.filled_s)
                self._copy_s.append(copy_s)
                self._copied.append(nbytes)
                if len(self._read_s) == _SAMPLE:
                    most = self.budget_bytes // (self.threads * ring.memory.nbytes)
                    self.wanted = choose_rings(
                        max(min(most, MOST_RINGS), 1), self.threads, self._read_s,
                        self._copy_of_ring_s(),
                    )  # fmt: skip

    def _copied_at(self, ring: Ring) -> tuple[float, int]:
        """Account for the copies; seconds between the events of the longest, and its bytes."""
        longest = (0.0, 0)
        for lane in ring.lanes:
            begun = lane.clock.at(lane.begun)
            # Not from two times on the clock: they count thousandths of a second in few digits.
            copy_s = lane.gpu.seconds(lane.begun, lane.copied)
            self.spans("device copy", begun, begun + copy_s, lane.sent_bytes, device=lane.gpu.name)
            longest = max(longest, (copy_s, lane.sent_bytes))
        return longest

    def _copy_of_ring_s(self) -> float:
        return copy_s_per_byte(self._copy_s, self._copied) * float(np.median(self._copied))

    def _afford_ring(self, nbytes: int, first: bool) -> bool:
        """Count a ring's bytes, unless it is a thread's second and they are too many.

        Every thread must have a first one, also those that come late.
        """
        with self._lock:
            if first:
                self._firsts += 1
            elif self.nbytes + nbytes * (1 + self.threads - self._firsts) > self.budget_bytes:
                return False
            self._count(nbytes)
            return True

    def _count(self, nbytes: int) -> None:
        self.nbytes += nbytes
        self.most_bytes = max(self.most_bytes, self.nbytes)
