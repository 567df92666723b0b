"""Pinned host memory between the reader and the device: how much of it pays, and what is waited.

Each thread of the crew has R *rings* that it fills in turn, each with a few maps; a full one is
copied to the device and can be filled again when it has been unpacked there. With one ring a thread
waits for every copy, and all threads may be queueing for the link. With two it fills one while the
other is copied. Copies never wait for the device's computing (a batch's rows are not those of the
batch before), so more rings would only even out the reader's own unsteadiness; and no number of
them helps where the link needs longer for the rings of all threads than a thread to fill its own.

R is chosen from the measured times of the first rings, under a budget of memory, and the run's
account says what waiting was predicted and what was measured.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from ..archive.model import Spans
from ..device.gpu import DeviceArray, Gpu
from .means import TOGETHER

_MOST = 2
_WORTH = 0.005  # of the time a map is read in: a ring that saves less is not taken
_SAMPLE = 32  # rings whose times are measured
_RING_BYTES = 8 << 20  # about: small copies do not fill the link
_TABLE_BYTES = 256  # of a ring, before its maps: what the device must know of them


def maps_of_ring(map_bytes: int, budget_bytes: int, threads: int) -> int:
    """Maps that a ring holds: few, so that two rings of every thread are within the budget."""
    room = min(_RING_BYTES, budget_bytes // (_MOST * threads)) - _TABLE_BYTES
    return max(min(room // map_bytes, TOGETHER), 1)


def waiting_s(rings: int, threads: int, read_s: float, copy_s: float) -> float:
    """Seconds that a thread waits before a ring, at most: all threads may be full at once.

    read_s  a thread fills a ring;  copy_s  the link copies one
    """
    return max(threads * copy_s - (read_s if rings > 1 else 0.0), 0.0)


def choose_rings(most: int, threads: int, read_s: float, copy_s: float) -> int:
    """The fewest rings of a thread, up to `most`, after which more would save next to nothing."""
    for rings in range(1, most):
        saved = waiting_s(rings, threads, read_s, copy_s) - waiting_s(
            rings + 1, threads, read_s, copy_s
        )
        if saved <= _WORTH * read_s:
            return rings
    return most


class Clock:
    """Events of a device on the host's clock."""

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self._start = gpu.event()
        stream = gpu.stream()
        self._start.record(stream)
        gpu.wait(self._start)
        self._start_s = perf_counter()

    def at(self, event: Any) -> float:
        """When an event that has happened did, as perf_counter tells time."""
        return self._start_s + self.gpu.seconds(self._start, event)


@dataclass
class Ring:
    """Maps in pinned memory with a table of them, its likeness on the device, and what goes on."""

    memory: np.ndarray  # uint8: the table, and then the maps
    there: DeviceArray
    begun: Any
    copied: Any
    free: Any  # after it has been unpacked
    busy: bool = False
    sent_bytes: int = 0
    filled_s: float = 0.0

    @property
    def maps(self) -> np.ndarray:
        """uint8, one after the other."""
        return self.memory[_TABLE_BYTES:]

    def write_table(self, table: np.ndarray) -> None:
        raw = np.ascontiguousarray(table).reshape(-1).view(np.uint8)
        self.memory[: raw.size] = raw

    @property
    def table_there(self) -> DeviceArray:
        return self.there[:_TABLE_BYTES]

    @property
    def maps_there(self) -> DeviceArray:
        return self.there[_TABLE_BYTES:]


@dataclass
class Rings:
    """The rings of all threads of a run, and the times that say how many of them are wanted."""

    gpu: Gpu
    clock: Clock
    spans: Spans
    threads: int
    budget_bytes: int
    wanted: int = _MOST
    waited_s: float = 0.0
    turns: int = 0
    nbytes: int = 0
    most_bytes: int = 0
    _firsts: int = 0  # threads that have a ring
    _read_s: list[float] = field(default_factory=list)
    _copy_s: list[float] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def next(self, own: threading.local, nbytes: int) -> Ring:
        """The ring that a thread fills next with so many bytes of maps; `own` keeps a thread's."""
        mine: list[Ring] = own.__dict__.setdefault("rings", [])
        nbytes += _TABLE_BYTES
        if len(mine) < self.wanted and self._afford_ring(nbytes, first=not mine):
            gpu = self.gpu
            memory = gpu.pinned((nbytes,), np.uint8)
            memory[_TABLE_BYTES:].view(np.uint8)[:] = 0
            there = gpu.empty((nbytes,), np.uint8)
            mine.insert(0, Ring(memory, there, gpu.event(), gpu.event(), gpu.event()))
        else:
            mine.append(mine.pop(0))  # first comes the one that was sent the longest ago
        if mine[0].busy:
            self._wait(mine[0])
        return mine[0]

    def send(self, ring: Ring, nbytes: int, stream: Any, filled_s: float) -> None:
        """Begin to copy so many bytes of maps, after `filled_s` of filling; then record `free`."""
        nbytes += _TABLE_BYTES
        ring.begun.record(stream)
        self.gpu.upload(ring.there[:nbytes], ring.memory[:nbytes], stream)
        ring.copied.record(stream)
        ring.busy, ring.sent_bytes, ring.filled_s = True, nbytes, filled_s

    def assembly(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """Zeroed host memory for parts of maps: pinned if the budget has it, else ordinary."""
        nbytes = int(np.prod(shape)) * dtype.itemsize
        with self._lock:
            if self.nbytes + nbytes > self.budget_bytes:
                return np.zeros(shape, dtype)
            self._count(nbytes)
        memory = self.gpu.pinned(shape, dtype)
        memory[:] = 0
        return memory

    def dropped(self) -> None:
        """Nobody has any of the memory given so far: a block has ended."""
        with self._lock:
            self.nbytes = self._firsts = 0

    def report(self) -> dict[str, float | int]:
        """What was chosen and why, for the run's account."""
        times = self._times()
        predicted = self.turns * waiting_s(self.wanted, self.threads, **times) if times else 0.0
        return {
            "rings": self.wanted,
            "pinned_gb": round(self.most_bytes / 1e9, 3),
            "predicted_wait_s": round(predicted, 4),
            "measured_wait_s": round(self.waited_s, 4),
            **{name: round(value, 6) for name, value in times.items()},
        }

    def _wait(self, ring: Ring) -> None:
        start = perf_counter()
        self.gpu.wait(ring.free)
        stop = perf_counter()
        ring.busy = False
        begun, copied = self.clock.at(ring.begun), self.clock.at(ring.copied)
        self.spans("device copy", begun, copied, ring.sent_bytes)
        with self._lock:
            self.turns += 1
            self.waited_s += stop - start
            if len(self._read_s) < _SAMPLE:
                self._read_s.append(ring.filled_s)
                self._copy_s.append(copied - begun)
                if len(self._read_s) == _SAMPLE:
                    most = self.budget_bytes // (self.threads * ring.memory.nbytes)
                    most = max(min(most, _MOST), 1)
                    self.wanted = choose_rings(most, self.threads, **self._times())

    def _times(self) -> dict[str, float]:
        if not self._read_s:
            return {}
        return {
            "read_s": float(np.median(self._read_s)), "copy_s": float(np.median(self._copy_s)),
        }  # fmt: skip

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
