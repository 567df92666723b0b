"""How long a GPU is at work, by its own events or by the host's clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any, NamedTuple

from ...device.gpu import Gpu
from .cpu import FULL, Effort


class Sizes(NamedTuple):
    """How much there is to do."""

    memory_bytes: int = 1 << 30  # of an array
    link_bytes: int = 256 << 20  # of a copy
    rounds: int = 2048  # of arithmetic in a launch
    launches: int = 1000
    effort: Effort = FULL
    streams: int = 2048  # inflated at a time


EVENTS = "device events around the launches"
HOST = "host clock from the call until the stream is synchronised"


@dataclass
class Clock:
    """Times work on a stream of a device, again and again."""

    gpu: Gpu
    stream: Any
    effort: Effort

    def on_device(self, work: Callable[[], Any]) -> list[float]:
        """Seconds of one `work`, a sample each; so many are put into a sample that it lasts."""
        self._once(work, 1)
        first = max(self._once(work, 1), 1e-7)
        times = max(1, min(1000, round(self.effort.sample_s / first)))
        return [self._once(work, times) / times for _ in range(self.effort.samples)]

    def on_host(self, work: Callable[[], Any]) -> list[float]:
        """Seconds until it is done."""
        samples = []
        for _ in range(self.effort.samples + 1):
            start = perf_counter()
            work()
            self.stream.synchronize()
            samples.append(perf_counter() - start)
        return samples[1:]

    def _once(self, work: Callable[[], Any], times: int) -> float:
        start, stop = self.gpu.event(), self.gpu.event()
        start.record(self.stream)
        for _ in range(times):
            work()
        stop.record(self.stream)
        self.gpu.wait(stop)
        return self.gpu.seconds(start, stop)
