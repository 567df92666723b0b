"""Steps of a program, and each one's time as parts that add up to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from .spread import Spread


class Part(StrEnum):
    """What a moment is counted as: the first of these that is so."""

    COMPUTE = "compute"  # a kernel that is no communication runs
    COMMUNICATION = "communication"  # exposed: no such kernel covers it
    COPIES = "copies"  # copies and sets, exposed
    READING = "reading"  # the device is idle, the host loads data
    WAITING = "waiting"  # the device is idle, the host is in a synchronising call
    PREPARATION = "host preparation"  # the device is idle, the host does something else
    UNKNOWN = "not recorded"  # the device is idle, and no host event says why


class Source(StrEnum):
    """Where steps come from."""

    ANNOTATIONS = "annotations of the program"
    PERIODS = "repeating sequences of kernels"
    WHOLE = "the whole recording, since no steps were found"


@dataclass(frozen=True)
class Step:
    """From start to end, ns; the parts add up to it."""

    name: str
    start: int
    end: int
    parts: Mapping[Part, int]
    row: int | None  # of the annotation


@dataclass(frozen=True)
class Bound:
    """What a part could give at most (Amdahl): all steps' time over what remains, ratios."""

    time: int  # ns, of all steps
    share: float
    vanished: float | None  # as many times faster without the part; None where it is all
    halved: float  # with the part twice as fast


@dataclass(frozen=True)
class Steps:
    """All steps, in order; total is their time in ns."""

    source: Source
    steps: tuple[Step, ...]
    total: int
    durations: Spread | None
    bounds: Mapping[Part, Bound]
