"""Which engine carries out a run."""

from __future__ import annotations

from .cpu import CpuEngine
from .protocol import Engine


def choose_engine() -> Engine:
    """The processor's."""
    return CpuEngine()
