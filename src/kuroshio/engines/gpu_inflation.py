"""Maps inflated on one device: compressed chunks in, rows of keys out.

Two waves of maps can be there, each with memory and a stream of its own, for one leaves much of the
device idle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..device.gpu import DeviceArray, Inflater
from ..kernels.gpu.launches import chosen
from .gpu_tables import Tables
from .pinned import Pinned
from .rings import Lane, Ring

if TYPE_CHECKING:
    from .gpu_share import GpuShare
    from .waves import Wave

_ALIGNED = 16
SUMMERS = 1024  # threads of a map: as inflated.h has it
WAVES = 2


def map_stride(map_bytes: int) -> int:
    """Bytes from one inflated map to the next."""
    return -(-map_bytes // _ALIGNED) * _ALIGNED


class _Place:
    """What one wave takes on a device."""

    def __init__(
        self, share: GpuShare, inflate: Inflater, compressed_bytes: int, raw_bytes: int
    ) -> None:
        gpu = share.gpu
        self.inflate = inflate
        self.compressed: DeviceArray = gpu.empty((compressed_bytes,), np.uint8)
        self.raw: DeviceArray = gpu.empty((raw_bytes,), np.uint8)
        self.stream = gpu.stream()
        self.tables = Tables(gpu, self.stream)
        self.carried, self.begun, self.inflated, self.unpacked = (gpu.event() for _ in range(4))


class GpuInflation:
    """What inflates on a device of a share; `most` maps of `map_bytes` at a time."""

    def __init__(
        self, share: GpuShare, pinned: Pinned, most: int, compressed_bytes: int, map_bytes: int
    ) -> None:
        self.share, self.gpu, self.map_bytes = share, share.gpu, map_bytes
        self.stride = map_stride(map_bytes)
        self.damaged = pinned.take((WAVES, most), np.uint8)
        kernels = share.kernels
        self.sum_bytes = chosen(self.gpu, "sum_bytes", kernels["sum_bytes"], most * SUMMERS)
        self.judge = chosen(self.gpu, "judge_maps", kernels["judge_maps"], most)
        self.places: list[_Place] = []
        for _ in range(WAVES):
            inflate = self.gpu.inflater(most, map_bytes)
            assert inflate is not None
            self.places.append(_Place(share, inflate, compressed_bytes, most * self.stride))

    def carry(self, ring: Ring, lane: Lane, wave: Wave, start: int, nbytes: int) -> None:
        """Begin to copy compressed bytes of a ring to where they belong in the wave's."""
        there = self.places[wave.place].compressed[start : start + nbytes]
        copying = self.share.copying
        lane.sent_bytes = nbytes
        with self.gpu.use():
            lane.begun.record(copying)
            self.gpu.upload(there, ring.maps[:nbytes], copying)
            lane.copied.record(copying)
            lane.free.record(copying)

    def inflate(self, wave: Wave) -> None:
        """Begin to inflate a wave that has been carried over, to judge it and to unpack it."""
        place, share, number = self.places[wave.place], self.share, len(wave.loads)
        stream = place.stream
        with self.gpu.use():
            place.carried.record(share.copying)
            stream.wait_event(place.carried)
            place.begun.record(stream)
            there = place.tables.send(self._tables(wave))
            room = ("sources", "nbytes", "targets", "room", "inflated", "statuses")
            place.inflate(stream, number, **{name: there[name] for name in room})
            place.inflated.record(stream)
            self._judge(stream, place.raw, there, number)
            mine = place.raw[share.part.bytes.start :]
            share.unpack(stream, mine, self.stride, self.map_bytes // 2, number, there["table"])
            self.gpu.download(self.damaged[wave.place, :number], there["damaged"], stream)
            place.unpacked.record(stream)

    def wait(self, wave: Wave) -> np.ndarray:
        """Until a wave's rows are there; which of its maps are not as they should be."""
        self.gpu.wait(self.places[wave.place].unpacked)
        return self.damaged[wave.place, : len(wave.loads)] != 0

    def times(self, wave: Wave) -> tuple[float, float]:
        """When, on the host's clock, inflating began and ended."""
        place, clock = self.places[wave.place], self.share.clock
        return clock.at(place.begun), clock.at(place.inflated)

    def synchronize(self) -> None:
        for place in self.places:
            place.stream.synchronize()

    def _tables(self, wave: Wave) -> dict[str, np.ndarray]:
        place, number = self.places[wave.place], len(wave.loads)
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
