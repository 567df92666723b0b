"""A trace: the events of one process or rank, and what is known of where they come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from .events import Events


@dataclass(frozen=True)
class Device:
    """A device as the profiler described it; what it did not say is None."""

    number: int
    name: str | None = None
    maker: str | None = None  # 'NVIDIA', 'AMD', 'Hygon'
    architecture: str | None = None  # sm_90, gfx906
    multiprocessors: int | None = None  # or compute units
    memory_bytes: int | None = None


@dataclass(frozen=True)
class Trace:
    """Events in order of start.

    form         the format's name, for people
    rank, ranks  this process among those that worked together, None where that is not told
    process_ranks   those of a file's processes, by their numbers, where it tells them
    devices      by number
    cannot_tell  what this trace or its format does not show, a sentence each, without full stop
    facts        versions and the like, by name
    """

    path: Path
    form: str
    events: Events
    devices: Mapping[int, Device] = field(default_factory=dict)
    rank: int | None = None
    ranks: int | None = None
    cannot_tell: tuple[str, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    process_ranks: Mapping[int, int] = field(default_factory=dict)
