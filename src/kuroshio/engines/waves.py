"""Maps inflated on the devices, many at a time, while the host inflates the rest.

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

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from ..archive import bulk
from ..archive.model import Piece
from ..archive.plan import Batch, Load
from ..device.cpu import Work
from ..device.gpu import GpuError
from .division import Division
from .gpu_inflation import BROKEN, GpuInflation, Room, map_stride
from .gpu_share import GpuShare
from .means import Means, together
from .rings import Ring, Rings
from .wave import Wave, rooms_of, wheres_of

_WAVE_MAPS = 1000  # together: fewer would leave a device idle, and of more the first would be late
_PLACES = 3  # for waves under way: more than a device can be at, so that it need not wait
_PUT_S = 1.2e-8  # a thread's, to smooth, compress and write a value, until it is measured
_DOUBTED = 4  # maps that a thread reads together, when one of them is to blame


@dataclass(frozen=True)
class _Begun:
    """What is known of a batch whose wave has begun: its maps in the wave, and who carries them."""

    wave: Wave | None
    mine: slice
    carrying: list[Work]


class Waves:
    """The waves of a block, for one or more batches each."""

    def __init__(
        self, means: Means, batches: Sequence[Batch], shares: Sequence[GpuShare], rings: Rings,
        map_bytes: int, statistics: int, device_bytes: int, next_ring: Callable[[], Ring],
    ) -> None:  # fmt: skip
        """device_bytes: of each device; next_ring: the ring that the calling thread fills."""
        self.means, self.rings, self.next_ring = means, rings, next_ring
        self.batches = [batch.loads for batch in batches]
        values = (
            max(batch.doys.size for batch in batches) * statistics * means.needs.archive.grid.cells
        )
        self.division = Division(map_bytes, means.crew.threads, other_s=values * _PUT_S)
        taken = [rooms_of(wheres_of(self._pieces(loads))) for loads in self.batches]
        longest = max(int(some.max(initial=0)) for some in taken)
        self.most = min(_WAVE_MAPS, device_bytes // _PLACES // (map_stride(map_bytes) + longest))
        if longest > rings.maps * map_bytes:  # it would not fit into a ring
            self.most = 0
        self.groups = _groups([len(loads) for loads in self.batches], self.most)
        rooms = [
            Room.of(
                [np.concatenate(taken[group])[: self.most] for group in self.groups[i::_PLACES]]
            )
            for i in range(min(_PLACES, len(self.groups)))
        ]
        self.inflations = [
            GpuInflation(share, rings.pinned, rooms, map_bytes)
            for share in (shares if self.most else ())
        ]
        self.begun: list[_Begun] = []  # batches
        self.groups_begun = 0
        self.settled = 0  # batches
        self._urgent_s = means.crew.urgent_s

    def start(self, number: int) -> tuple[list[Work], Sequence[Load]]:
        """For a batch: who carries its maps over, and what is left to the host."""
        if not self.inflations:
            return [], self.batches[number]
        self._begin()
        mine = self.begun[number].mine
        return self.begun[number].carrying, self.batches[number][mine.stop - mine.start :]

    def settle(self, read_again: Callable[[Sequence[Load]], object]) -> None:
        """Wait for the next batch's maps; the host reads again, a ring's at a time, what is wrong.

        A map that an overwritten neighbour has spoilt is whole then. Where the library itself was
        not content with one that is, nothing that it wrote can be trusted: GpuError.
        """
        if not self.inflations:
            return
        number, begun = self.settled, self.begun[self.settled]
        if begun.wave is None:
            self.settled += 1
            return
        wrong = np.zeros(begun.mine.stop - begun.mine.start, np.uint8)
        start = perf_counter()
        for inflation in self.inflations:
            np.maximum(wrong, inflation.unpack(begun.wave, begun.mine), out=wrong)
        self.settled += 1  # only now: where a device has stopped, these maps are in doubt
        self.means.spans("wait", start, perf_counter(), 0)
        self._account(begun.wave)
        again = [self.batches[number][i] for i in np.flatnonzero(wrong).tolist()]
        for some in together(again, self.rings.maps):
            read_again(some)  # BadFile, as a rule
        if (wrong == BROKEN).any():
            gpu = self.inflations[0].gpu
            raise GpuError(
                f"{gpu.name} ({gpu.model}) takes files for damaged that are whole.",
                "Use --device cpu, or uninstall nvCOMP; please report it.",
            )

    def doubt(self) -> None:
        """A device has stopped: BadFile if a map that it was at is damaged."""
        begun = self.batches[self.settled : len(self.begun)]
        groups = [group for loads in begun for group in together(loads, _DOUBTED)]

        def look(group: Sequence[Load]) -> None:
            raw = np.empty((len(group), self.division.map_bytes), np.uint8)
            self.means.reader.inflate_together(group, raw)

        with ThreadPoolExecutor(self.means.crew.threads) as threads:  # the crew has stopped
            deque(threads.map(look, groups), maxlen=0)

    def close(self) -> None:
        """Wait for what is under way, and give all memory back."""
        for inflation in self.inflations:
            with suppress(Exception):  # after a failure, which has been raised before
                inflation.synchronize()
        self.inflations = []

    def _begin(self) -> None:
        """Begin the waves for which there are places: those of settled batches are free."""
        done = sum(group.stop <= self.settled for group in self.groups)
        groups = self.groups[self.groups_begun : done + _PLACES]
        maps = sum(len(loads) for group in groups for loads in self.batches[group])
        if not maps:
            self.begun += [_Begun(None, slice(0, 0), [])] * sum(g.stop - g.start for g in groups)
            self.groups_begun += len(groups)
            return
        urgent_s = self.means.crew.urgent_s
        if urgent_s > self._urgent_s:  # a batch has been smoothed and written
            self.division.other_s, self._urgent_s = urgent_s - self._urgent_s, urgent_s
        batches = groups[-1].stop - groups[0].start
        beside = self.groups_begun > done
        share = self.division.share(maps, batches, beside=beside)
        taken = 0
        for group in groups:
            taken += self._begin_wave(group, share)
            self.groups_begun += 1
        self.division.count(taken, maps, beside=beside)

    def _begin_wave(self, group: slice, share: float) -> int:
        """Of each batch the first maps; of one too large for a wave, as many as it holds.

        Returns how many.
        """
        numbers = [min(round(share * len(loads)), self.most) for loads in self.batches[group]]
        parts = zip(self.batches[group], numbers, strict=True)
        loads = [load for some, number in parts for load in some[:number]]
        wave, carrying = None, list[Work]()
        if loads:
            rows = [load.rows[0] for load in loads]
            wave = Wave.of(self._pieces(loads), rows, self.groups_begun % _PLACES)
            parts_of_it = wave.parts(self.rings.maps * self.division.map_bytes)
            wave.not_carried = len(parts_of_it)
            carrying = [self.means.crew.start(self._carry, [(wave, part) for part in parts_of_it])]
        ends = np.cumsum(numbers).tolist()
        for number, end in zip(numbers, ends, strict=True):
            self.begun.append(_Begun(wave, slice(end - number, end), carrying))
        return len(loads)

    def _carry(self, wave: Wave, part: slice) -> None:
        """Read some of a wave's chunks into a ring and send them; with the last, inflate it."""
        ring = self.next_ring()
        start = perf_counter()
        first, last = int(wave.edges[part.start]), int(wave.edges[part.stop])
        wave.checksums[part] = bulk.read_streams(
            wheres_of(wave.pieces[part]), ring.maps[: last - first], wave.chunks[part] - first,
            self.means.spans,
        )  # fmt: skip
        self.rings.sent(ring, perf_counter() - start)
        for inflation, lane in zip(self.inflations, ring.lanes, strict=True):
            inflation.carry(ring, lane, wave, first, last - first)
        with wave.lock:
            wave.not_carried -= 1
            whole = wave.not_carried == 0
        if whole:
            for inflation in self.inflations:
                inflation.inflate(wave)
        self.means.have_read(part.stop - part.start)

    def _account(self, wave: Wave) -> None:
        if wave.accounted:
            return
        wave.accounted = True
        for inflation in self.inflations:
            begun, ended = inflation.times(wave)
            nbytes = len(wave) * self.division.map_bytes
            self.means.spans(
                "device inflate", begun, ended, nbytes, device=inflation.gpu.name,
                stream=wave.place,
            )  # fmt: skip
        self.division.device_took(len(wave), begun, ended)  # of the last: they are alike

    def _pieces(self, loads: Sequence[Load]) -> list[Piece]:
        pieces = self.means.reader.archive.pieces
        return [pieces[load.piece] for load in loads]


def _groups(maps: Sequence[int], most: int) -> list[slice]:
    """Batches for a wave each: the first alone, so that it is early; then up to `most` maps."""
    groups, first, together = [slice(0, 1)], 1, 0
    for i, number in enumerate(maps[1:], 1):
        if together and together + number > most:
            groups.append(slice(first, i))
            first, together = i, 0
        together += number
    return [*groups, slice(first, len(maps))] if first < len(maps) else groups
