"""NVIDIA's management library through ctypes: what a device is, its clocks, power and users.

It comes with the driver, needs no context on the device and answers in well under a millisecond,
which `nvidia-smi` does not.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

_UNKNOWN = 2**64 - 1  # memory of a process that the driver does not tell
_SM, _MEMORY = 1, 2  # nvmlClockType
# nvmlClocksThrottleReasons that say that the device is slower than it could be.
THROTTLING = {
    0x04: "power limit",
    0x08: "hardware slowdown",
    0x20: "heat (software)",
    0x40: "heat (hardware)",
    0x80: "power brake",
}


class _Memory(ctypes.Structure):
    _fields_ = (
        ("total", ctypes.c_ulonglong),
        ("free", ctypes.c_ulonglong),
        ("used", ctypes.c_ulonglong),
    )


class _Utilization(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class _Process(ctypes.Structure):
    _fields_ = (
        ("pid", ctypes.c_uint),
        ("used", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    )


@cache
def library() -> Any | None:
    """The library, begun; None where there is no NVIDIA driver."""
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return None
    return nvml if nvml.nvmlInit_v2() == 0 else None


def count() -> int:
    """Devices that the driver shows, hidden ones of CUDA_VISIBLE_DEVICES among them."""
    number = ctypes.c_uint(0)
    nvml = library()
    if nvml is None or nvml.nvmlDeviceGetCount_v2(ctypes.byref(number)) != 0:
        return 0
    return number.value


def unlike() -> bool:
    """Whether devices are of several models: then their order depends on who numbers them."""
    found = [by_index(number) for number in range(count())]
    return len({each.model() for each in found if each}) > 1


class Device:
    """One device; what it does not tell is None."""

    def __init__(self, nvml: Any, handle: ctypes.c_void_p) -> None:
        self._nvml, self._handle = nvml, handle

    def fixed(self) -> dict[str, Any]:
        """What stays: model, uuid, driver, memory, limits."""
        memory = self._get("nvmlDeviceGetMemoryInfo", _Memory())
        limit = self._number("nvmlDeviceGetEnforcedPowerLimit")
        return {
            "model": self.model(),
            "uuid": self._text("nvmlDeviceGetUUID"),
            "driver": self._driver(),
            "memory_bytes": None if memory is None else memory.total,
            "power_limit_w": None if limit is None else limit / 1e3,
            "max_clock_mhz": self._number("nvmlDeviceGetMaxClockInfo", _SM),
            "max_memory_clock_mhz": self._number("nvmlDeviceGetMaxClockInfo", _MEMORY),
        }

    def now(self) -> dict[str, Any]:
        """What changes: clocks, power, heat, use, other processes."""
        memory = self._get("nvmlDeviceGetMemoryInfo", _Memory())
        use = self._get("nvmlDeviceGetUtilizationRates", _Utilization())
        power = self._number("nvmlDeviceGetPowerUsage")
        return {
            "clock_mhz": self.clock_mhz(),
            "memory_clock_mhz": self._number("nvmlDeviceGetClockInfo", _MEMORY),
            "power_w": None if power is None else power / 1e3,
            "temperature_c": self._number("nvmlDeviceGetTemperature", 0),
            "busy_percent": None if use is None else use.gpu,
            "free_memory_bytes": None if memory is None else memory.free,
            "throttling": self.throttling(),
            "processes": self._processes(),
        }

    def model(self) -> str | None:
        return self._text("nvmlDeviceGetName")

    def clock_mhz(self) -> int | None:
        return self._number("nvmlDeviceGetClockInfo", _SM)

    def throttling(self) -> list[str]:
        """Why it is slower than it could be; usually nothing."""
        bits = self._get("nvmlDeviceGetCurrentClocksThrottleReasons", ctypes.c_ulonglong(0))
        return [] if bits is None else [why for bit, why in THROTTLING.items() if bits.value & bit]

    def _get(self, call: str, into: Any, *arguments: int) -> Any | None:
        function = getattr(self._nvml, call, None)
        if function is None:
            return None
        given = [ctypes.c_uint(each) for each in arguments]
        return into if function(self._handle, *given, ctypes.byref(into)) == 0 else None

    def _number(self, call: str, *arguments: int) -> int | None:
        got = self._get(call, ctypes.c_uint(0), *arguments)
        return None if got is None else int(got.value)

    def _text(self, call: str) -> str | None:
        text = ctypes.create_string_buffer(96)
        done = getattr(self._nvml, call)(self._handle, text, ctypes.c_uint(len(text)))
        return text.value.decode(errors="replace") if done == 0 else None

    def _driver(self) -> str | None:
        text = ctypes.create_string_buffer(96)
        done = self._nvml.nvmlSystemGetDriverVersion(text, ctypes.c_uint(len(text)))
        return text.value.decode(errors="replace") if done == 0 else None

    def _processes(self) -> list[dict[str, int | None]] | None:
        call = getattr(self._nvml, "nvmlDeviceGetComputeRunningProcesses_v3", None)
        if call is None:
            return None
        room = (_Process * 64)()
        number = ctypes.c_uint(len(room))
        if call(self._handle, ctypes.byref(number), room) != 0:
            return None
        return [
            {"pid": each.pid, "memory_bytes": None if each.used == _UNKNOWN else each.used}
            for each in room[: number.value]
        ]


def by_index(index: int) -> Device | None:
    """The device of the driver's own number."""
    handle, nvml = ctypes.c_void_p(), library()
    if nvml is None or nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)) != 0:
        return None
    return Device(nvml, handle)


def by_uuid(uuid: str) -> Device | None:
    handle, nvml = ctypes.c_void_p(), library()
    if nvml is None or nvml.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(handle)) != 0:
        return None
    return Device(nvml, handle)


def by_bus(place: str) -> Device | None:
    """The device at a place on the bus, such as 00000000:65:00.0."""
    handle, nvml = ctypes.c_void_p(), library()
    if nvml is None or nvml.nvmlDeviceGetHandleByPciBusId_v2(place.encode(), ctypes.byref(handle)):
        return None
    return Device(nvml, handle)
