"""What happens around a measurement: clocks, throttling, interruptions, other work.

Looked at between samples, never while one is timed.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path
from time import perf_counter
from typing import Any

from ..device.cpu import available_threads
from ..errors import Refusal
from . import environment_gpu
from .environment import cpu_mhz, load

_EVERY_S = 0.25  # looks are this far apart: some take a millisecond
# The lowest clock seen may be so much of the highest: of a processor, of which the fastest core is
# looked at, and of a GPU.
_FALL = (0.8, 0.9)
_CGROUP = Path("/sys/fs/cgroup/cpu.stat")
_CPUS = Path("/sys/devices/system/cpu")


class Watch:
    """The state of a processor or GPU over a measurement."""

    def __init__(self, device: str) -> None:
        self.device = device
        self._gpu = _gpu(device)
        self._clocks: list[float] = []
        self._throttling: Counter[str] = Counter()
        self._looks = 0
        self._last = float("-inf")
        self._before = _counters()
        self._since = perf_counter(), _processor_s()

    def look(self) -> None:
        """Take the clock and the reasons for a low one, if the last time is long enough ago."""
        if perf_counter() - self._last < _EVERY_S:
            return
        self._looks += 1
        mhz = self._gpu.clock_mhz() if self._gpu else cpu_mhz()
        if mhz:
            self._clocks.append(mhz)
        if self._gpu:
            self._throttling.update(self._gpu.throttling())
        self._last = perf_counter()

    def throttled(self) -> str | None:
        """That clocks were lowered, with the figures, or None."""
        found = [f"{why} in {n} of {self._looks} looks" for why, n in self._throttling.items()]
        low, high = min(self._clocks, default=0.0), max(self._clocks, default=0.0)
        if low < _FALL[self._gpu is not None] * high:
            found.append(f"its clock went between {high:.0f} and {low:.0f} MHz")
        after = _counters()
        if (hot := after["heat"] - self._before["heat"]) > 0:
            found.append(f"the processor was slowed by heat {hot} times")
        if (held := after["quota"] - self._before["quota"]) > 0:
            found.append(f"the container's limit of processor time stopped it {held} times")
        return ", ".join(found) or None

    def company(self) -> str | None:
        """What else was at work, as a probable cause of noise."""
        found = []
        now = load()
        if now is not None and now > available_threads() + 0.5:
            found.append(f"load {now:g} on {available_threads()} processors")
        if (aside := _counters()["aside"] - self._before["aside"]) > 10:
            found.append(f"this process was set aside {aside} times")
        others = (self._gpu.now().get("processes") or []) if self._gpu else []
        if len(others) > 1:  # one is this process, under whatever number
            found.append(f"{len(others)} processes on {self.device}")
        return ", ".join(found) or None

    def record(self) -> dict[str, Any]:
        """For the row: clocks seen, and what lowered them."""
        return {
            "looks": self._looks,
            "clock_mhz": [min(self._clocks), max(self._clocks)] if self._clocks else None,
            "throttling": dict(self._throttling),
            "processors": self._processors(),
        }

    def _processors(self) -> float | None:
        """How many this process and its children kept busy, on average; None: too short to tell."""
        since, before_s = self._since
        spent = perf_counter() - since
        return round((_processor_s() - before_s) / spent, 2) if spent >= _EVERY_S / 5 else None


def _processor_s() -> float:
    """Seconds of processors, of this process and of those that it waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _gpu(device: str) -> environment_gpu.Watched | None:
    if device == "cpu":
        return None
    try:
        return environment_gpu.find(device)
    except Refusal:
        return None


def _counters() -> dict[str, int]:
    """heat: times that processors were throttled; quota: that the container was; aside: that
    another process took the processor from this one."""
    quota = re.search(r"nr_throttled (\d+)", _read(_CGROUP))
    heat = [_read(path) for path in _CPUS.glob("cpu[0-9]*/thermal_throttle/core_throttle_count")]
    return {
        "heat": sum(int(text) for text in heat if text.strip().isdigit()),
        "quota": int(quota[1]) if quota else 0,
        "aside": _set_aside(),
    }


def _set_aside() -> int:
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
