"""How many maps devices inflate while the host's threads inflate the rest.

A device takes as long for one map as for hundreds, for it inflates each serially; with more it is
limited by what it can do at once. The host's time goes with the number of maps, on top of what its
threads do meanwhile: carrying the device's part over, smoothing and writing. The division that is
done first is taken, with figures of one machine to begin with and, from then on, what was measured.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..intervals import Intervals

# Measured (docs/design/gpu.md): an H200 with nvCOMP 6.0, and a thread beside fifteen others.
_STREAM_BYTES_PER_S = 28e6
_DEVICE_BYTES_PER_S = 32e9
_THREAD_BYTES_PER_S = 0.6e9
_CARRIED = 0.1  # of the time in which a thread inflates a map, to read and send it as it is
_WORTH = 0.1  # of the host's time for all maps: what saves less is not worth a device's while
_TICK_S = 1e-6  # that a device's clock may not see
_LEARNT = 0.1  # of what a group of maps tells of threads, which hold each other up


@dataclass
class Division:
    """Of maps of so many bytes, with so many threads."""

    map_bytes: int
    threads: int
    device_factor: float = 1.0  # of the times that the figures above give
    host_factor: float = 1.0
    other_s: float = 0.0  # thread seconds of other work that a batch makes
    taken: int = 0
    maps: int = 0
    predicted_s: float = 0.0
    _done: int = 0  # by devices
    _busy: Intervals = field(default_factory=Intervals)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def device_s(self, maps: np.ndarray | int, *, beside: bool = False) -> Any:
        """How long a device is at so many, or by how much longer beside others."""
        least = 0.0 if beside else self.map_bytes / _STREAM_BYTES_PER_S
        many = maps * (self.map_bytes / _DEVICE_BYTES_PER_S)
        return self.device_factor * np.where(np.equal(maps, 0), 0.0, np.maximum(least, many))

    def host_s(
        self, inflated: np.ndarray | int, carried: np.ndarray | int, batches: int = 1
    ) -> Any:
        """How long the threads are at so many, and at what else they have to do for batches."""
        one = self.host_factor * self.map_bytes / _THREAD_BYTES_PER_S
        return (one * (inflated + _CARRIED * carried) + batches * self.other_s) / self.threads

    def share(self, maps: int, batches: int, *, beside: bool) -> float:
        """The part of so many maps that is a device's; `beside` others that it is at already."""
        taken = np.arange(maps + 1)
        device_s = self.device_s(taken, beside=beside)
        done_s = np.maximum(device_s, self.host_s(maps - taken, taken, batches))
        best = int(np.argmin(done_s))
        alone_s = self.host_factor * maps * self.map_bytes / _THREAD_BYTES_PER_S / self.threads
        if done_s[0] - done_s[best] < _WORTH * alone_s:
            return 0.0
        return best / maps

    def count(self, taken: int, maps: int, *, beside: bool) -> None:
        """So many of so many have been given to a device, which need not have room for its part."""
        self.taken += taken
        self.maps += maps
        self.predicted_s += float(self.device_s(taken, beside=beside))

    def device_took(self, maps: int, begun_s: float, ended_s: float) -> None:
        """When a device was at so many, perhaps beside others."""
        self._busy.add(begun_s, ended_s)
        self._done += maps
        expected_s = float(self.device_s(self._done)) / self.device_factor
        self.device_factor = max(self._busy.seconds, _TICK_S) / expected_s

    def host_took(self, maps: int, thread_s: float) -> None:
        """Thread seconds of maps that the host inflated."""
        told = thread_s * _THREAD_BYTES_PER_S / (maps * self.map_bytes)
        with self._lock:
            self.host_factor += _LEARNT * (told - self.host_factor)

    def report(self) -> dict[str, float | int] | None:
        """For the run's account; None where a device inflated nothing."""
        if not self.taken:
            return None
        return {
            "maps_on_device": self.taken,
            "maps": self.maps,
            "device_predicted_s": round(self.predicted_s, 4),
            "device_measured_s": round(self._busy.seconds, 4),
        }
