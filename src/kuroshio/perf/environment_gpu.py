"""Which GPUs there are and the state they are in, from the driver: no library, no context.

NVIDIA's through its management library, AMD's and Hygon's from /sys. Numbers follow
CUDA_VISIBLE_DEVICES and HIP_VISIBLE_DEVICES as a program's do.
"""

from __future__ import annotations

import os
import re
from itertools import takewhile
from pathlib import Path
from typing import Any, Protocol

from ..device.names import gpu_name
from . import cuda_order, nvml

_VENDORS = {"0x1002": "AMD", "0x1d94": "Hygon"}
SYSTEM = Path("/sys")


class Watched(Protocol):
    """A GPU that can be asked how it is."""

    def fixed(self) -> dict[str, Any]: ...
    def now(self) -> dict[str, Any]: ...
    def clock_mhz(self) -> int | None: ...
    def throttling(self) -> list[str]: ...


def find(name: str) -> Watched | None:
    """The device that a program calls cuda:1 or hip:0; None where the driver does not show it."""
    kind, number = gpu_name(name)
    if number is None:
        raise ValueError(f"{name} is not one device")
    shown = _visible(kind)
    if shown is not None and number >= len(shown):
        return None
    which = str(number) if shown is None else shown[number]
    if kind == "cuda":
        if which.isdigit() and not cuda_order.by_bus() and nvml.unlike():
            place = cuda_order.bus_id(number)
            if place is not None:
                return nvml.by_bus(place)
        return nvml.by_index(int(which)) if which.isdigit() else nvml.by_uuid(which)
    cards = _cards()
    return cards[int(which)] if which.isdigit() and int(which) < len(cards) else None


def names() -> list[str]:
    """All that a program could use: cuda:0, ..., hip:0, ..."""
    found: list[str] = []
    for kind, there in (("cuda", nvml.count()), ("hip", len(_cards()))):
        shown = _visible(kind)
        most = there if shown is None else min(len(shown), there)
        # A variable may name what is not there, which hides all after it: CUDA_VISIBLE_DEVICES=-1.
        found += takewhile(find, (f"{kind}:{i}" for i in range(most)))
    return found


def _visible(kind: str) -> list[str] | None:
    """What the variable lets a program see, in its order; None: everything."""
    variables = ("CUDA_VISIBLE_DEVICES",) if kind == "cuda" else (
        "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES",
    )  # fmt: skip
    for variable in variables:
        if (text := os.environ.get(variable)) is not None:
            return [part.strip() for part in text.split(",") if part.strip()]
    return None


def _cards() -> list[Card]:
    """AMD's and Hygon's by their place on the bus, as HIP numbers them."""
    folders = [
        folder.resolve()
        for folder in SYSTEM.glob("class/drm/card*/device")
        if re.fullmatch(r"card\d+", folder.parent.name)
        and _read(folder / "vendor") in _VENDORS
        and (folder / "mem_info_vram_total").exists()
    ]
    return [Card(folder) for folder in sorted(set(folders))]


class Card:
    """A GPU of the driver amdgpu (or Hygon's of that make), as /sys shows it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def fixed(self) -> dict[str, Any]:
        cap = self._number("hwmon/hwmon*/power1_cap")
        clocks = self._clocks("pp_dpm_sclk")
        memory_clocks = self._clocks("pp_dpm_mclk")
        vendor = _VENDORS[_read(self._folder / "vendor") or ""]
        product = _read(self._folder / "product_name") or _read(self._folder / "device")
        return {
            "model": f"{vendor} {product}",
            "uuid": _read(self._folder / "unique_id"),
            "driver": _read(SYSTEM / "module/amdgpu/version") or os.uname().release,
            "memory_bytes": self._number("mem_info_vram_total"),
            "power_limit_w": None if cap is None else cap / 1e6,
            "max_clock_mhz": max((mhz for mhz, _ in clocks), default=None),
            "max_memory_clock_mhz": max((mhz for mhz, _ in memory_clocks), default=None),
            "performance_level": _read(self._folder / "power_dpm_force_performance_level"),
        }

    def now(self) -> dict[str, Any]:
        power = self._number("hwmon/hwmon*/power1_average")
        if power is None:
            power = self._number("hwmon/hwmon*/power1_input")
        heat = self._number("hwmon/hwmon*/temp1_input")
        total, used = (self._number(f"mem_info_vram_{each}") for each in ("total", "used"))
        return {
            "clock_mhz": self.clock_mhz(),
            "memory_clock_mhz": _current(self._clocks("pp_dpm_mclk")),
            "power_w": None if power is None else power / 1e6,
            "temperature_c": None if heat is None else heat / 1e3,
            "busy_percent": self._number("gpu_busy_percent"),
            "free_memory_bytes": None if total is None or used is None else total - used,
            "throttling": self.throttling(),
            "processes": _kfd_processes(),
        }

    def clock_mhz(self) -> int | None:
        return _current(self._clocks("pp_dpm_sclk"))

    def throttling(self) -> list[str]:
        """The power limit, where it is reached; /sys says no more than that in words."""
        power = self._number("hwmon/hwmon*/power1_average")
        cap = self._number("hwmon/hwmon*/power1_cap")
        return ["power limit"] if power and cap and power >= 0.98 * cap else []

    def _number(self, pattern: str) -> int | None:
        for path in sorted(self._folder.glob(pattern)):
            text = _read(path)
            if text and re.fullmatch(r"-?\d+", text):
                return int(text)
        return None

    def _clocks(self, name: str) -> list[tuple[int, bool]]:
        """(MHz, whether it is the present one) from lines such as '1: 1700Mhz *'."""
        text = _read(self._folder / name) or ""
        lines = re.findall(r"^\d+:\s*(\d+)\s*M[Hh]z\s*(\*?)", text, re.MULTILINE)
        return [(int(mhz), star == "*") for mhz, star in lines]


def _current(clocks: list[tuple[int, bool]]) -> int | None:
    return next((mhz for mhz, current in clocks if current), None)


def _kfd_processes() -> list[dict[str, int]]:
    """Processes that have opened AMD's compute driver, on any device."""
    folders = (SYSTEM / "class/kfd/kfd/proc").glob("[0-9]*")
    return [{"pid": int(folder.name)} for folder in sorted(folders)]


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None
