"""One measured ceiling, a data sheet's peak, and what could not be measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

GB, GOP, US = "GB/s", "Gop/s", "us"
BANDWIDTHS = ("memory read", "memory copy", "memory triad")
_LARGE = 1 << 20  # bytes of a message whose rate is no latency
LEVELS = ("L1", "L2", "L3", "memory")  # nearest first


@dataclass(frozen=True, slots=True)
class Ceiling:
    """A rate or a latency: the median of n samples, the lowest and the highest of them.

    level          L1, L2, L3, memory, link, disk, or None for arithmetic
    threads        of a processor that worked at once; None for what has none
    message_bytes  of one transfer, where the rate depends on it
    """

    name: str
    level: str | None
    unit: str
    value: float
    low: float
    high: float
    n: int
    how: str
    threads: int | None = None
    message_bytes: int | None = None

    @property
    def unsteady(self) -> bool:
        """Whether its samples differ so much that something else must have been at work.

        Latencies, and messages that take no longer, always have stragglers.
        """
        brief = self.unit == US or (self.message_bytes or _LARGE) < _LARGE
        return not brief and self.low < 0.6 * self.high

    @property
    def label(self) -> str:
        """name, level, threads: memory read (L2, 4 threads)."""
        about = [self.level] if self.level and self.level not in self.name else []
        if self.threads:
            about.append(f"{self.threads} thread{'s' * (self.threads > 1)}")
        return f"{self.name} ({', '.join(about)})" if about else self.name

    def as_json(self) -> dict[str, Any]:
        return {k: v for k, v in asdict(self).items() if v is not None or k == "level"}


@dataclass(frozen=True, slots=True)
class Missing:
    """What could not be measured here, and why."""

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class Peak:
    """What a data sheet promises; never used in place of a measurement."""

    name: str
    level: str | None
    unit: str
    value: float
    source: str


def ceiling(
    name: str, level: str | None, unit: str, samples: Sequence[float], how: str,
    threads: int | None = None, message_bytes: int | None = None,
) -> Ceiling:  # fmt: skip
    """The ceiling that samples (in `unit`) make."""
    median, low, high = float(np.median(samples)), min(samples), max(samples)
    return Ceiling(
        name, level, unit, median, float(low), float(high), len(samples), how, threads,
        message_bytes,
    )  # fmt: skip
