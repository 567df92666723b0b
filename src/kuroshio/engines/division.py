"""How many of a batch's maps devices inflate while the host's threads inflate the rest.

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

# Measured (docs/design/gpu.md): an H200 with nvCOMP 6.0, and a thread beside fifteen others.
_STREAM_BYTES_PER_S = 28e6
_DEVICE_BYTES_PER_S = 32e9
_THREAD_BYTES_PER_S = 0.6e9
_CARRIED = 0.1  # of the time in which a thread inflates a map, to read and send it as it is
_WORTH = 0.1  # of the host's time for all maps: what saves less is not worth a device's while


@dataclass
class Division:
    """Of maps of so many bytes, with so many threads; a device takes at most `most` at a time."""

    map_bytes: int
    threads: int
    most: int
    device_factor: float = 1.0  # of the times that the figures above give
    host_factor: float = 1.0
    other_s: float = 0.0  # thread seconds of other work in the time of a batch
    taken: int = 0
    maps: int = 0
    predicted_s: float = 0.0
    measured_s: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def device_s(self, maps: np.ndarray | int) -> Any:
        """How long a device is at so many."""
        one, many = self.map_bytes / _STREAM_BYTES_PER_S, self.map_bytes / _DEVICE_BYTES_PER_S
        return self.device_factor * np.where(np.equal(maps, 0), 0.0, np.maximum(one, maps * many))

    def host_s(self, inflated: np.ndarray | int, carried: np.ndarray | int) -> Any:
        """How long the threads are at so many, and at what else they have to do."""
        one = self.host_factor * self.map_bytes / _THREAD_BYTES_PER_S
        return (one * (inflated + _CARRIED * carried) + self.other_s) / self.threads

    def for_device(self, maps: int) -> int:
        """How many of a batch's maps it gets."""
        taken = np.arange(min(maps, self.most) + 1)
        done_s = np.maximum(self.device_s(taken), self.host_s(maps - taken, taken))
        best = int(np.argmin(done_s))
        alone_s = self.host_factor * maps * self.map_bytes / _THREAD_BYTES_PER_S / self.threads
        best = best if done_s[0] - done_s[best] > _WORTH * alone_s else 0
        with self._lock:
            self.maps += maps
            self.taken += best
        return best

    def device_took(self, maps: int, seconds: float) -> None:
        with self._lock:
            self.predicted_s += float(self.device_s(maps))
            self.measured_s += seconds
            self.device_factor *= seconds / float(self.device_s(maps))

    def host_took(self, maps: int, thread_s: float) -> None:
        """Thread seconds of maps that the host inflated."""
        with self._lock:
            told = thread_s * _THREAD_BYTES_PER_S / (maps * self.map_bytes)
            self.host_factor += 0.1 * (told - self.host_factor)  # threads hold each other up

    def report(self) -> dict[str, float | int] | None:
        """For the run's account; None where a device inflated nothing."""
        if not self.taken:
            return None
        return {
            "maps_on_device": self.taken,
            "maps": self.maps,
            "device_predicted_s": round(self.predicted_s, 4),
            "device_measured_s": round(self.measured_s, 4),
        }
