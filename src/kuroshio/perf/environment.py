"""What a measurement was made with and on (a minimal stand-in)."""

from __future__ import annotations

import platform
from typing import Any


def environment(device: str) -> dict[str, Any]:
    """The machine and the software, as plain words."""
    return {"device": device, "machine": platform.machine(), "python": platform.python_version()}


def differences(a: dict[str, Any], b: dict[str, Any]) -> list[str]:
    """What two environments do not have in common."""
    return sorted(key for key in a.keys() | b.keys() if a.get(key) != b.get(key))
