"""Maps inflated on the devices, a wave of them for each batch, while the host inflates the rest.

Waves are begun well before their batches, for a device inflates many maps as quickly as few, and
become rows of keys when the batch is launched. Threads of the crew read compressed chunks into
their rings, which are copied to the devices; the last of a wave begins its inflating there. Every
device inflates all maps of a wave and keeps its cells of them.

A damaged stream is no error of the devices' library: it may come out too long, and over what lies
behind. So each map is held to its length and its checksum, and what fails is read again by the
host, which names the file. Where a device stops at it, `doubt` looks for it on the host. A run that
is to skip bad files does not come here: no byte on a device could be trusted after one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import perf_counter
from typing import cast

import numpy as np

from ..archive import bulk
from ..archive.decode import fill_code
from ..archive.model import ByteRange
from ..archive.plan import Batch, Load
from ..device.cpu import Work
from ..kernels.gpu.windows import MAP
from .division import Division
from .gpu_inflation import GpuInflation, map_stride
from .gpu_share import GpuShare
from .means import Means
from .rings import Ring, Rings

_ALIGNED = 16  # bytes: streams begin at multiples of it, and chunks just before
_BEFORE = _ALIGNED - bulk.STREAM_HEAD
_BUSY_MAPS = 3000  # that a device is at keep it busy: an H200, some 23 a multiprocessor
_DOUBTED = 4  # maps that a thread reads together, when one of them is to blame


@dataclass
class Wave:
    """Maps of a batch that devices inflate.

    starts (map,) int64 where each compressed chunk begins, edge the end of the last; streams and
    nbytes (map,) uint64 of the raw streams in them; checksums (map,) uint32; table (map,) MAP
    """

    loads: Sequence[Load]
    place: int
    starts: np.ndarray
    edge: int
    nbytes: np.ndarray
    table: np.ndarray
    checksums: np.ndarray
    not_carried: int = 0  # parts of it
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def streams(self) -> np.ndarray:
        return (self.starts + bulk.STREAM_HEAD).astype(np.uint64)


@dataclass(frozen=True)
class Room:
    """What the largest wave of a place needs."""

    maps: int
    chunk_bytes: int


class Waves:
    """The waves of a block, one for each batch, begun as long before it as there are places."""

    def __init__(
        self, means: Means, batches: Sequence[Batch], shares: Sequence[GpuShare], rings: Rings,
        map_bytes: int, device_bytes: int, next_ring: Callable[[], Ring],
    ) -> None:  # fmt: skip
        """device_bytes: of each device; next_ring: the ring that the calling thread fills."""
        self.means, self.rings, self.next_ring = means, rings, next_ring
        self.batches = [batch.loads for batch in batches]
        self.division = Division(map_bytes, means.crew.threads)
        rooms = self._rooms(map_bytes, device_bytes)
        self.inflations = [
            GpuInflation(share, rings.pinned, rooms, map_bytes)
            for share in (shares if rooms else ())
        ]
        self.places = len(rooms)
        self.most = max((room.maps for room in rooms), default=0)  # of a wave
        self.waves: list[tuple[Wave | None, Work | None]] = []  # begun, of all batches
        self.settled = 0
        self._urgent_s = means.crew.urgent_s

    def start(self, number: int) -> tuple[list[Work], Sequence[Load]]:
        """For a batch: the work that carries its wave over, and what is left to the host."""
        loads = self.batches[number]
        if not self.inflations:
            return [], loads
        self._begin()
        wave, work = self.waves[number]
        return [work] if work else [], loads[len(wave.loads) if wave else 0 :]

    def settle(self) -> list[Load]:
        """Wait for the earliest wave; the maps that the host must read again."""
        if not self.inflations:
            return []
        wave, _ = self.waves[self.settled]
        again = np.zeros(len(wave.loads) if wave else 0, bool)
        if wave is not None:
            start = perf_counter()
            for inflation in self.inflations:
                again |= inflation.unpack(wave)
            self.means.spans("wait", start, perf_counter(), 0)
            self._account(wave)
        self.settled += 1
        return [wave.loads[i] for i in np.flatnonzero(again).tolist()] if wave else []

    def doubt(self) -> None:
        """A device has stopped: BadFile if a map that it was at is damaged."""
        reader = self.means.reader
        raw = np.empty((_DOUBTED, self.division.map_bytes), np.uint8)
        for wave, _ in self.waves[self.settled :]:
            loads = wave.loads if wave else ()
            for i in range(0, len(loads), _DOUBTED):
                reader.inflate_together(loads[i : i + _DOUBTED], raw)

    def close(self) -> None:
        """Wait for what is under way, and give all memory back."""
        for inflation in self.inflations:
            with suppress(Exception):  # after a failure, which has been raised before
                inflation.synchronize()
        self.inflations = []

    def _rooms(self, map_bytes: int, device_bytes: int) -> list[Room]:
        """Of as many places as keep a device busy and have room there; none: no wave can be."""
        taken = [_room(self._chunk_bytes(loads)) for loads in self.batches]
        longest = max((int(some.max(initial=0)) for some in taken), default=0)
        if not longest or longest > self.rings.maps * map_bytes:  # it would not fit into a ring
            return []
        each = map_stride(map_bytes) + longest
        most = min(max(map(len, taken)), device_bytes // each)
        maps, count = 0, 0
        while (
            count < len(taken) and maps < _BUSY_MAPS and (count + 1) * most * each <= device_bytes
        ):
            maps += min(len(taken[count]), most)
            count += 1
        rooms = []
        for place in range(count):
            mine = [some[:most] for some in taken[place::count]]
            rooms.append(Room(max(map(len, mine)), max(int(some.sum()) for some in mine)))
        return rooms if all(room.maps for room in rooms) else []

    def _begin(self) -> None:
        """Begin the waves for which there are places: those of settled batches are free."""
        first = len(self.waves)
        stop = min(self.settled + self.places, len(self.batches))
        numbers = [min(len(loads), self.most) for loads in self.batches[first:stop]]
        if not sum(numbers):
            self.waves += [(None, None)] * len(numbers)
            return
        urgent_s = self.means.crew.urgent_s
        if urgent_s > self._urgent_s:  # a batch has been smoothed and written
            self.division.other_s, self._urgent_s = urgent_s - self._urgent_s, urgent_s
        share = self.division.share(sum(numbers), beside=self.settled < first)
        for place, number in enumerate(numbers, first):
            loads = self.batches[place][: round(share * number)]
            self.division.count(len(loads), len(self.batches[place]))
            self.waves.append(self._begun(loads, place % self.places) if loads else (None, None))

    def _begun(self, loads: Sequence[Load], place: int) -> tuple[Wave, Work]:
        wave = self._wave(loads, place)
        parts = self._parts(wave)
        wave.not_carried = len(parts)
        return wave, self.means.crew.start(self._carry, [(wave, part) for part in parts])

    def _wave(self, loads: Sequence[Load], place: int) -> Wave:
        pieces = [self.means.reader.archive.pieces[load.piece] for load in loads]
        sizes = self._chunk_bytes(loads)
        taken = _room(sizes)
        ends = np.cumsum(taken)
        table = np.zeros(len(loads), MAP)
        table["row"] = [load.rows[0] for load in loads]
        codes = [fill_code(piece.packing) for piece in pieces]
        table["fill"] = [fill for fill, _ in codes]
        table["filled"] = [not none for _, none in codes]
        return Wave(
            loads=loads,
            place=place,
            starts=ends - taken + _BEFORE,
            edge=int(ends[-1]),
            nbytes=(sizes - bulk.STREAM_HEAD - bulk.STREAM_TAIL).astype(np.uint64),
            table=table,
            checksums=np.zeros(len(loads), np.uint32),
        )

    def _parts(self, wave: Wave) -> list[range]:
        """Maps that fit into a ring together."""
        room = self.rings.maps * self.division.map_bytes
        parts, first, begin = list[range](), 0, 0
        ends = [*(wave.starts[1:] - _BEFORE).tolist(), wave.edge]
        for i, end in enumerate(ends):
            if end - begin > room and i > first:
                parts.append(range(first, i))
                first, begin = i, ends[i - 1]
        return [*parts, range(first, len(ends))]

    def _carry(self, wave: Wave, part: range) -> None:
        """Read some of a wave's chunks into a ring and send them; with the last, inflate it."""
        ring = self.next_ring()
        start = perf_counter()
        mine = slice(part.start, part.stop)
        begin = int(wave.starts[part.start]) - _BEFORE
        end = wave.edge
        if part.stop < len(wave.loads):
            end = int(wave.starts[part.stop]) - _BEFORE
        pieces = self.means.reader.archive.pieces
        wheres = cast(list[ByteRange], [pieces[load.piece].where for load in wave.loads[mine]])
        wave.checksums[mine] = bulk.read_streams(
            wheres, ring.maps[: end - begin], wave.starts[mine] - begin, self.means.spans
        )
        self.rings.sent(ring, perf_counter() - start)
        for inflation, lane in zip(self.inflations, ring.lanes, strict=True):
            inflation.carry(ring, lane, wave, begin, end - begin)
        with wave.lock:
            wave.not_carried -= 1
            whole = wave.not_carried == 0
        if whole:
            for inflation in self.inflations:
                inflation.inflate(wave)
        self.means.have_read(len(part))

    def _account(self, wave: Wave) -> None:
        nbytes = len(wave.loads) * self.division.map_bytes
        for inflation in self.inflations:
            begun, ended = inflation.times(wave)
            self.means.spans("device inflate", begun, ended, nbytes)
        self.division.device_took(len(wave.loads), begun, ended)  # of the last: they are alike

    def _chunk_bytes(self, loads: Sequence[Load]) -> np.ndarray:
        pieces = self.means.reader.archive.pieces
        wheres = cast(list[ByteRange], [pieces[load.piece].where for load in loads])
        return np.array([where.nbytes for where in wheres], np.int64)


def _room(chunk_bytes: np.ndarray) -> np.ndarray:
    """Bytes that chunks take among others."""
    return -(-(_BEFORE + chunk_bytes) // _ALIGNED) * _ALIGNED
