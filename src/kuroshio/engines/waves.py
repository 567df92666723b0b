"""Maps inflated on the devices, a wave of them for each batch, while the host inflates the rest.

Threads of the crew read compressed chunks into their rings, which are copied to the devices; the
last of a wave begins its inflating there. Every device inflates all maps of a wave and keeps its
cells of them.

A damaged stream is no error of the devices' library: it may come out too long, and over what lies
behind. So each map is held to its length and its checksum, and what fails is read again by the
host, which names the file. Where a device stops at it, `doubt` looks for it on the host. A run that
is to skip bad files does not come here: no byte on a device could be trusted after one.
"""

from __future__ import annotations

import threading
from collections import deque
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
from .gpu_inflation import WAVES, GpuInflation, map_stride
from .gpu_share import GpuShare
from .means import Means
from .rings import Ring, Rings

_ALIGNED = 16  # bytes: streams begin at multiples of it, and chunks just before
_BEFORE = _ALIGNED - bulk.STREAM_HEAD
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


class Waves:
    """The waves of a block; at most WAVES of them are under way."""

    def __init__(
        self, means: Means, batches: Sequence[Batch], shares: Sequence[GpuShare], rings: Rings,
        map_bytes: int, device_bytes: int, next_ring: Callable[[], Ring],
    ) -> None:  # fmt: skip
        """device_bytes: of each device; next_ring: the ring that the calling thread fills."""
        self.means, self.rings, self.next_ring = means, rings, next_ring
        taken = [_room(self._chunk_bytes(batch.loads)) for batch in batches]
        longest = max(int(some.max(initial=0)) for some in taken)
        each = map_stride(map_bytes) + longest
        most = min(max(map(len, taken)), device_bytes // (WAVES * each))
        if longest > rings.maps * map_bytes:  # it would not fit into a ring
            most = 0
        self.division = Division(map_bytes, means.crew.threads, most)
        compressed = max(int(some[:most].sum()) for some in taken)
        self.inflations = [
            GpuInflation(share, rings.pinned, most, compressed, map_bytes)
            for share in (shares if most else ())
        ]
        self.under_way: deque[Wave | None] = deque()
        self._begun = 0
        self._urgent_s = means.crew.urgent_s

    def start(self, loads: Sequence[Load]) -> tuple[list[Work], Sequence[Load]]:
        """Begin with a batch: the works that carry its wave over, and what is left to the host."""
        urgent_s = self.means.crew.urgent_s
        if urgent_s > self._urgent_s:  # a batch has been smoothed and written
            self.division.other_s, self._urgent_s = urgent_s - self._urgent_s, urgent_s
        number = self.division.for_device(len(loads))
        if not number:
            self.under_way.append(None)
            return [], loads
        wave = self._wave(loads[:number])
        self.under_way.append(wave)
        parts = self._parts(wave)
        wave.not_carried = len(parts)
        carrying = self.means.crew.start(self._carry, [(wave, part) for part in parts])
        return [carrying], loads[number:]

    def settle(self) -> list[Load]:
        """Wait for the earliest wave; the maps that the host must read again."""
        wave = self.under_way[0]
        again = np.zeros(len(wave.loads) if wave else 0, bool)
        if wave is not None:
            start = perf_counter()
            for inflation in self.inflations:
                again |= inflation.wait(wave)
            self.means.spans("wait", start, perf_counter(), 0)
            self._account(wave)
        self.under_way.popleft()
        return [wave.loads[i] for i in np.flatnonzero(again).tolist()] if wave else []

    def doubt(self) -> None:
        """A device has stopped: BadFile if a map that it was at is damaged."""
        reader = self.means.reader
        raw = np.empty((_DOUBTED, self.division.map_bytes), np.uint8)
        for wave in self.under_way:
            loads = wave.loads if wave else ()
            for i in range(0, len(loads), _DOUBTED):
                reader.inflate_together(loads[i : i + _DOUBTED], raw)

    def close(self) -> None:
        """Wait for what is under way, and give all memory back."""
        for inflation in self.inflations:
            with suppress(Exception):  # after a failure, which has been raised before
                inflation.synchronize()
        self.inflations = []

    def _wave(self, loads: Sequence[Load]) -> Wave:
        pieces = [self.means.reader.archive.pieces[load.piece] for load in loads]
        sizes = self._chunk_bytes(loads)
        taken = _room(sizes)
        ends = np.cumsum(taken)
        table = np.zeros(len(loads), MAP)
        table["row"] = [load.rows[0] for load in loads]
        codes = [fill_code(piece.packing) for piece in pieces]
        table["fill"] = [fill for fill, _ in codes]
        table["filled"] = [not none for _, none in codes]
        wave = Wave(
            loads=loads,
            place=self._begun % WAVES,
            starts=ends - taken + _BEFORE,
            edge=int(ends[-1]),
            nbytes=(sizes - bulk.STREAM_HEAD - bulk.STREAM_TAIL).astype(np.uint64),
            table=table,
            checksums=np.zeros(len(loads), np.uint32),
        )
        self._begun += 1
        return wave

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
        took = 0.0
        for inflation in self.inflations:
            begun, ended = inflation.times(wave)
            nbytes = len(wave.loads) * self.division.map_bytes
            self.means.spans("device inflate", begun, ended, nbytes)
            took = max(took, ended - begun)
        self.division.device_took(len(wave.loads), took)

    def _chunk_bytes(self, loads: Sequence[Load]) -> np.ndarray:
        pieces = self.means.reader.archive.pieces
        wheres = cast(list[ByteRange], [pieces[load.piece].where for load in loads])
        return np.array([where.nbytes for where in wheres], np.int64)


def _room(chunk_bytes: np.ndarray) -> np.ndarray:
    """Bytes that chunks take among others."""
    return -(-(_BEFORE + chunk_bytes) // _ALIGNED) * _ALIGNED
