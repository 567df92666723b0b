"""What devices did and for how long: work, idleness, and what covered what."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Copies:
    """Of one direction; None where the format does not tell it."""

    direction: str | None  # 'to device', 'to host', 'on device', 'between devices', 'on host'
    count: int
    time: int  # ns, of the union
    bytes: int | None


@dataclass(frozen=True)
class Work:
    """Of one device, or of all together: moments at which any of them works. Times are ns.

    device         its number; None of all together
    start, end     of its first and of its last work
    span           from one to the other
    busy, idle     union of kernels, copies and sets, and the rest of the span
    compute        union of kernels that are no communication
    communication  union of kernels of nccl, rccl and the like
    copying, setting   unions of copies and of sets
    communication_covered, copying_covered   what of them compute covers
    """

    device: int | None
    kernels: int
    copies: int
    sets: int
    start: int
    end: int
    span: int
    busy: int
    idle: int
    compute: int
    communication: int
    copying: int
    setting: int
    communication_covered: int
    copying_covered: int
    by_direction: tuple[Copies, ...]
