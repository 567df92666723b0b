"""What torch.profiler writes beside its events: devices, ranks, versions, and the clock's zero."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from .chrome_columns import whole
from .events import ABSENT, Events
from .sound import MOST_DEVICES
from .trace import Device

_FACTS = re.compile(r".*_version|schemaVersion|with_stack|record_shapes|profile_memory|traceName")
_LONGEST_FACT = 200  # characters
_LARGEST_BASE = 1 << 62
_HYGON = re.compile(r"hygon|\bDCU\b|K100|Z100|BW\d+", re.IGNORECASE)
_AMD = re.compile(r"AMD|Radeon|Instinct|gfx", re.IGNORECASE)
_AMD_LANES = 64
_MAKERS = {"hipprof": "Hygon", "rocprof": "AMD"}


def base_ns(metadata: Mapping[str, Any]) -> int:
    """Of ts 0, in ns of the epoch; 0 where it is not told."""
    base = whole(metadata.get("baseTimeNanoseconds"))
    return base if 0 <= base < _LARGEST_BASE else 0


def devices(metadata: Mapping[str, Any], events: Events, form: str) -> dict[int, Device]:
    """As described; of those that only worked, the number, and the maker that the format tells."""
    found = {}
    described = metadata.get("deviceProperties")
    for each in described[:MOST_DEVICES] if isinstance(described, list) else ():
        if isinstance(each, dict) and (number := whole(each.get("id"))) != ABSENT:
            found[number] = _device(number, each)
    numbers = np.unique(events.device[events.on_device]).tolist()
    for number in numbers[:MOST_DEVICES]:
        if number != ABSENT and number not in found:
            found[number] = Device(number, maker=_MAKERS.get(form))
    return found


def _device(number: int, told: Mapping[str, Any]) -> Device:
    name = told.get("name")
    name = str(name)[:_LONGEST_FACT] if name else None
    maker = _maker(name or "", whole(told.get("warpSize")))
    major, minor = whole(told.get("computeMajor")), whole(told.get("computeMinor"))
    return Device(
        number,
        name,
        maker,
        # AMD's numbers are the same of several architectures: 9 and 0 of gfx908 and gfx90a.
        f"sm_{major}{minor}" if maker == "NVIDIA" and major > 0 and minor >= 0 else None,
        _positive(told.get("numSms")),
        _positive(told.get("totalGlobalMem")),
    )


def _maker(name: str, lanes: int) -> str | None:
    if _HYGON.search(name):
        return "Hygon"
    if lanes == _AMD_LANES or _AMD.search(name):
        return "AMD"
    return "NVIDIA" if name else None


def _positive(value: Any) -> int | None:
    number = whole(value)
    return number if number > 0 else None


def ranks(metadata: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """This process's rank, and how many there are."""
    told = metadata.get("distributedInfo")
    if not isinstance(told, dict):
        return None, None
    rank, number = whole(told.get("rank")), whole(told.get("world_size"))
    return rank if rank >= 0 else None, number if number > 0 else None


def facts(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Versions and how it was recorded; of our own traces all that they tell."""
    ours = metadata.get("otherData")
    told = {**metadata, **(ours if isinstance(ours, dict) else {})}
    kept = ours if isinstance(ours, dict) else ()
    found = {
        key: str(value)[:_LONGEST_FACT]
        for key, value in told.items()
        if isinstance(value, str | int | float) and (_FACTS.fullmatch(key) or key in kept)
    }
    information = metadata.get("distributedInfo")
    if isinstance(information, dict):
        for key in ("backend", "nccl_version"):
            if isinstance(information.get(key), str):
                found[key] = information[key][:_LONGEST_FACT]
    return found
