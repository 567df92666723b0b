"""What devices did and for how long: work, idleness, and what covered what."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..traces.events import ABSENT, Direction, Events, Kind
from .groups import by_device as rows_by_device
from .groups import communicating, computing, during

_WORDS = {
    Direction.TO_DEVICE: "to device", Direction.TO_HOST: "to host",
    Direction.ON_DEVICE: "on device", Direction.BETWEEN_DEVICES: "between devices",
    Direction.ON_HOST: "on host",
}  # fmt: skip


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


def work_of(events: Events) -> Work | None:
    """Of all devices together; None where none worked."""
    return _work(events[events.on_device], None) if events.on_device.any() else None


def by_device(events: Events) -> tuple[Work, ...]:
    """Of each device, by number; work whose device is not told counts as of one, ABSENT."""
    return tuple(_work(events[rows], number) for number, rows in rows_by_device(events))


def _work(events: Events, device: int | None) -> Work:
    compute = during(events, computing(events))
    communication = during(events, communicating(events))
    copies, sets = (events.kind == kind for kind in (Kind.COPY, Kind.SET))
    copying = during(events, copies)
    start, end = int(events.start.min()), int(events.end.max())
    busy = during(events, np.ones(len(events), bool)).total
    number_of_copies, number_of_sets = int(copies.sum()), int(sets.sum())
    return Work(
        device=device,
        kernels=len(events) - number_of_copies - number_of_sets,
        copies=number_of_copies,
        sets=number_of_sets,
        start=start,
        end=end,
        span=end - start,
        busy=busy,
        idle=end - start - busy,
        compute=compute.total,
        communication=communication.total,
        copying=copying.total,
        setting=during(events, sets).total,
        communication_covered=(communication & compute).total,
        copying_covered=(copying & compute).total,
        by_direction=_by_direction(events[copies]),
    )


def _by_direction(copies: Events) -> tuple[Copies, ...]:
    found = []
    for code in np.unique(copies.direction).tolist():
        mine = copies.direction == code
        told = copies.bytes[mine]
        found.append(
            Copies(
                None if code == ABSENT else _WORDS[Direction(code)],
                int(mine.sum()),
                during(copies, mine).total,
                # A sum of some of them would be called that of all.
                int(told.sum()) if (told != ABSENT).all() else None,
            )
        )
    return tuple(found)
