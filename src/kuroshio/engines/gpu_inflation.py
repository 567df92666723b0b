"""Maps inflated on one device: compressed chunks in, rows of keys out.

Several waves of maps are there at a time, each in a *place* with memory and a stream of its own: a
map is inflated serially, and one wave leaves much of the device idle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..device.gpu import DeviceArray, Inflater
from ..kernels.gpu.launches import chosen
from ..kernels.gpu.windows import MAP
from .gpu_tables import Tables
from .pinned import Pinned
from .rings import Lane, Ring

if TYPE_CHECKING:
    from .gpu_share import GpuShare
    from .wave import Wave

_ALIGNED = 16
BROKEN = 2  # a map: not even the library is content, or its length right
SUMMERS = 1024  # threads of a map: as inflated.h has it


def map_stride(map_bytes: int) -> int:
    """Bytes from one inflated map to the next."""
    return -(-map_bytes // _ALIGNED) * _ALIGNED


@dataclass(frozen=True)
class Room:
    """What the largest wave of a place needs."""

    maps: int
    chunk_bytes: int

    @classmethod
    def of(cls, waves: Sequence[np.ndarray]) -> Room:
        """Of waves given by the bytes that each of their chunks takes."""
        return cls(max(map(len, waves)), max(int(taken.sum()) for taken in waves))


class _Place:
    """What one wave takes on a device; `damaged` (map,) is in pinned memory."""

    def __init__(
        self, share: GpuShare, inflate: Inflater, room: Room, stride: int, pinned: Pinned
    ) -> None:
        gpu = share.gpu
        self.inflate = inflate
        self.compressed: DeviceArray = gpu.empty((room.chunk_bytes,), np.uint8)
        self.raw: DeviceArray = gpu.empty((room.maps * stride,), np.uint8)
        self.damaged = pinned.take((room.maps,), np.uint8)
        self.stream = gpu.stream()
        self.tables = Tables(gpu, self.stream)
        self.table: DeviceArray = None  # of the wave that is here
        self.carried, self.begun, self.inflated, self.judged, self.unpacked = (
            gpu.event() for _ in range(5)
        )


class GpuInflation:
    """What inflates on a device of a share, in places with `rooms`; maps have `map_bytes`."""

    def __init__(self, share: GpuShare, pinned: Pinned, rooms: list[Room], map_bytes: int) -> None:
        self.share, self.gpu, self.map_bytes = share, share.gpu, map_bytes
        self.stride = map_stride(map_bytes)
        most = max(room.maps for room in rooms)
        kernels = share.kernels
        self.sum_bytes = chosen(self.gpu, "sum_bytes", kernels["sum_bytes"], most * SUMMERS)
        self.judge = chosen(self.gpu, "judge_maps", kernels["judge_maps"], most)
        self.places: list[_Place] = []
        for room in rooms:
            inflate = self.gpu.inflater(room.maps, map_bytes)
            assert inflate is not None
            self.places.append(_Place(share, inflate, room, self.stride, pinned))

    def carry(self, ring: Ring, lane: Lane, wave: Wave, start: int, nbytes: int) -> None:
        """Begin to copy compressed bytes of a ring to where they belong in the wave's."""
        there = self.places[wave.place].compressed[start : start + nbytes]
        copying = self.share.copying
        lane.sent_bytes = nbytes
        with self.gpu.use():
            self.gpu.upload_between(lane.begun, there, ring.maps[:nbytes], lane.copied, copying)
            lane.free.record(copying)

    def inflate(self, wave: Wave) -> None:
        """Begin to inflate a wave that has been carried over, and to judge what comes out."""
        place, number = self.places[wave.place], len(wave)
        stream = place.stream
        with self.gpu.use():
            place.carried.record(self.share.copying)
            stream.wait_event(place.carried)
            stream.wait_event(place.unpacked)  # of the wave that was here before
            place.begun.record(stream)
            there = place.tables.send(self._tables(wave))
            names = ("sources", "nbytes", "targets", "room", "inflated", "statuses")
            place.inflate(stream, number, **{name: there[name] for name in names})
            place.inflated.record(stream)
            self._judge(stream, place.raw, there, number)
            self.gpu.download(place.damaged[:number], there["damaged"], stream)
            place.table = there["table"]
            place.judged.record(stream)

    def unpack(self, wave: Wave, some: slice) -> np.ndarray:
        """Wait for a wave and begin to unpack some of its maps to their rows.

        Returns uint8 (map,): 0, or how they are not as they should be (inflated.h), and left out.
        """
        place, share = self.places[wave.place], self.share
        self.gpu.wait(place.judged)
        raw = place.raw[some.start * self.stride + share.part.bytes.start :]
        table = place.table[some.start * MAP.itemsize :]
        with self.gpu.use():
            number = some.stop - some.start
            share.unpack(share.unpacking, raw, self.stride, self.map_bytes // 2, number, table)
            place.unpacked.record(share.unpacking)
        return place.damaged[some].copy()

    def times(self, wave: Wave) -> tuple[float, float]:
        """When, on the host's clock, inflating began and ended."""
        place, clock = self.places[wave.place], self.share.clock
        return clock.at(place.begun), clock.at(place.inflated)

    def synchronize(self) -> None:
        for place in self.places:
            place.stream.synchronize()

    def _tables(self, wave: Wave) -> dict[str, np.ndarray]:
        place, number = self.places[wave.place], len(wave)
        return {
            "sources": wave.streams + np.uint64(self.gpu.address(place.compressed)),
            "nbytes": wave.nbytes,
            "targets": np.arange(number, dtype=np.uint64) * np.uint64(self.stride)
            + np.uint64(self.gpu.address(place.raw)),
            "room": np.full(number, self.map_bytes, np.uint64),
            "inflated": np.zeros(number, np.uint64),
            "statuses": np.full(number, -1, np.int32),
            "checksums": wave.checksums,
            "sums": np.zeros((number, 2), np.uint32),
            "table": wave.table,
            "damaged": np.ones(number, np.uint8),
        }

    def _judge(
        self, stream: Any, raw: DeviceArray, there: dict[str, DeviceArray], number: int
    ) -> None:
        self.sum_bytes(
            stream, raw, np.int64(self.stride), np.int32(number), np.int64(self.map_bytes),
            there["sums"],
        )  # fmt: skip
        self.judge(
            stream, np.int32(number), np.int64(self.map_bytes), there["sums"], there["checksums"],
            there["inflated"], there["statuses"], there["table"], there["damaged"],
        )  # fmt: skip
