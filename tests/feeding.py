"""Rings and their lanes as an engine makes and feeds them, for the tests of rings by themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kuroshio.device.gpu import Gpu
from kuroshio.engines.pinned import Pinned
from kuroshio.engines.rings import TABLE_BYTES, Clock, Lane, Ring, Rings


class Fed:
    """Rings of some devices; `spans` has what they reported."""

    def __init__(
        self, gpus: Sequence[Gpu], threads: int, budget: int, maps: int = 0, nbytes: int = 1000
    ) -> None:
        self.gpus, self.nbytes = gpus, nbytes
        self.spans: list[tuple] = []
        self.clocks = [Clock(gpu) for gpu in gpus]
        self.rings = Rings(
            Pinned(gpus[0], 0, 0),
            lambda *span, **_: self.spans.append(span),
            threads,
            budget,
            maps=maps,
        )
        self.copying = [gpu.stream() for gpu in gpus]
        self.unpacking = [gpu.stream() for gpu in gpus]

    def lanes(self) -> list[Lane]:
        made = []
        for gpu, clock in zip(self.gpus, self.clocks, strict=True):
            with gpu.use():
                there = gpu.empty((TABLE_BYTES + self.nbytes,), np.uint8)
                made.append(Lane(gpu, clock, there, *(gpu.event() for _ in range(3))))
        return made

    def next(self, own: Any) -> Ring:
        return self.rings.next(own, self.nbytes, self.lanes)

    def send(
        self, ring: Ring, nbytes: int, filled_s: float,
        unpack: Callable[[int, Lane, Any], None] = lambda *_: None,
    ) -> None:  # fmt: skip
        """So many bytes of maps to every device; unpack(device, lane, stream) is given each."""
        self.rings.sent(ring, filled_s)
        sent = TABLE_BYTES + nbytes
        for i, lane in enumerate(ring.lanes):
            lane.sent_bytes = sent
            with lane.gpu.use():
                lane.begun.record(self.copying[i])
                lane.gpu.upload(lane.there[:sent], ring.memory[:sent], self.copying[i])
                lane.copied.record(self.copying[i])
                self.unpacking[i].wait_event(lane.copied)
                unpack(i, lane, self.unpacking[i])
                lane.free.record(self.unpacking[i])

    def synchronize(self) -> None:
        for stream in self.unpacking:
            stream.synchronize()
