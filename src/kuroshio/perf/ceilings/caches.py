"""What a processor's caches hold and who shares them, as Linux tells it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_CPUS = Path("/sys/devices/system/cpu")
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclass(frozen=True, slots=True)
class Cache:
    level: str
    nbytes: int
    sharers: int  # processors that share it
    count: int  # caches of this level in the machine


def caches(cpus: Path = _CPUS) -> list[Cache]:
    """Data caches of the machine's first processor, nearest first; none where nobody tells."""
    found = []
    for index in sorted((cpus / "cpu0" / "cache").glob("index*")):
        try:
            kind = (index / "type").read_text().strip()
            level = int((index / "level").read_text())
            nbytes = _size((index / "size").read_text().strip())
            shared = (index / "shared_cpu_list").read_text().strip()
        except (OSError, ValueError, KeyError):
            continue
        if kind in ("Data", "Unified") and nbytes:
            here = f"cache/{index.name}/shared_cpu_list"
            groups = {_text(cpu / here) for cpu in cpus.glob("cpu[0-9]*")} - {""}
            found.append(Cache(f"L{level}", nbytes, _members(shared), max(len(groups), 1)))
    return sorted(found, key=lambda cache: cache.level)


def _size(text: str) -> int:
    return int(text[:-1]) * _UNITS[text[-1]] if text[-1:] in _UNITS else int(text)


def _members(listed: str) -> int:
    """Of a list such as 0-3,8."""
    total = 0
    for part in listed.split(","):
        first, _, last = part.partition("-")
        total += int(last or first) - int(first) + 1
    return max(total, 1)


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
