"""How devices are called: auto, cpu, cuda:0, hip:1, cuda:all."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from ..errors import Refusal


class GpuName(NamedTuple):
    """GPUs of one kind, 'cuda' or 'hip': the one of this number, or all of them (None)."""

    kind: str
    number: int | None


def check_device(name: Any) -> str:
    """The same name, or a Refusal that says which there are."""
    if not isinstance(name, str) or not (name in ("auto", "cpu") or _match(name)):
        raise Refusal(
            f"{name!r} is no device. Give auto, cpu, cuda:0 (or another number), cuda:all, hip:0 "
            "or hip:all."
        )
    return name


def gpu_name(name: str) -> GpuName:
    """What the name of a GPU, or of all of them, says."""
    match = _match(check_device(name))
    if match is None:
        raise ValueError(f"{name} names no GPU")
    return GpuName(match[1], None if match[2] == "all" else int(match[2]))


def _match(name: str) -> re.Match[str] | None:
    return re.fullmatch(r"(cuda|hip):([0-9]{1,9}|all)", name)
