"""A pipeline's spans: what its threads and its device did, and who starved whom."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from ..traces.events import Events, Kind
from .groups import during, on_host
from .intervals import NONE, Intervals


class Role(StrEnum):
    """Of a stage; for moments at which several are under way, the first counts."""

    KERNEL = "kernel"  # computes, on a device or on threads
    LINK = "link"  # copies to and from a device
    READING = "reading"  # finds, reads and inflates input
    PREPARATION = "preparation"  # makes of the input what kernels take
    OUTPUT = "output"
    COMPILING = "compiling"
    START = "start-up"  # what a run does once, before it begins to work
    OTHER = "other"
    WAITING = "waiting"  # nobody does anything that was recorded


_ROLES = {
    "compute": Role.KERNEL, "smooth": Role.KERNEL,
    "index": Role.READING, "read": Role.READING, "inflate": Role.READING, "fetch": Role.READING,
    "decode": Role.PREPARATION, "fill": Role.PREPARATION,
    "collect": Role.OUTPUT, "compress": Role.OUTPUT, "write": Role.OUTPUT,
    "compile": Role.COMPILING, "start": Role.START,
    "wait": Role.WAITING,
}  # fmt: skip
_ROUNDING = 1000  # ns
_ALONE = ("index", "compile", "start")  # one thread's, without which the others cannot begin


@dataclass(frozen=True)
class Stage:
    """All spans of one name; ns.

    busy      union over its threads, or over its device's streams
    work      sum over them
    lanes     threads or streams that did it
    """

    name: str
    role: Role
    on_device: bool
    spans: int
    busy: int
    work: int
    lanes: int


@dataclass(frozen=True)
class Pipeline:
    """From the first span to the last: `total` ns.

    threads    those that work; one that says it waits is none
    on_device  whether a device computes. Then parts are moments, and `of` is total: with the
               kernel at work nothing starves it, whatever else goes on. Without one, parts are
               threads' time, and `of` is total times threads,
               or more where a thread that waits for others worked beside them; while one looks
               through files, compiles or starts, others that have nothing to do wait for that
    bound_by   the role with the most of it; starves: whom it keeps waiting, None of the kernel
    """

    total: int
    threads: int
    on_device: bool
    stages: tuple[Stage, ...]
    parts: Mapping[Role, int]
    of: int
    bound_by: Role
    starves: Role | None


def pipeline_of(events: Events) -> Pipeline | None:
    """None of traces without stages."""
    stage = events.kind == Kind.STAGE
    rows = np.flatnonzero(stage | events.on_device)
    if not stage.any():
        return None
    roles = _roles(events)
    whole = during(events, rows)
    total = whole.span
    threads = _workers(events, np.flatnonzero(stage), roles)
    on_device = bool((events.kind == Kind.KERNEL).any())
    if on_device:
        parts, of = _moments(events, rows, roles, total), total
    else:
        rows = np.flatnonzero(stage)
        parts = _thread_time(events, rows, roles, total, threads)
        of = sum(parts.values())
    bound_by = max(parts, key=lambda role: parts[role])
    return Pipeline(
        total, threads, on_device, _stages(events, rows, roles), parts, of, bound_by,
        _starved(bound_by, on_device),
    )  # fmt: skip


def after_the_run(events: Events) -> int:
    """ns by which work of devices ends after the run that it is of, whose end is annotated; 0 if
    that is not so. Then it was not timed when it happened, and says nothing of who waited.
    """
    run = on_host(events) & (events.kind == Kind.ANNOTATION)
    if not (run.any() and events.on_device.any()):
        return 0
    late = int(events.end[events.on_device].max() - events.end[run].max())
    return late if late > _ROUNDING else 0


def least_without(events: Events, names: Collection[str]) -> int:
    """ns that stages of other names take at least, on the threads that did them.

    Work of workers may move from one to another and into smaller pieces; that of threads which
    wait for others may not, nor what only one can do.
    """
    rows = np.flatnonzero(events.kind == Kind.STAGE)
    roles = _roles(events)
    waits, lane = _waiters(events, rows, roles)
    others = ~_named(events, rows, names) & (roles[rows] != list(Role).index(Role.WAITING))
    works = others & ~np.isin(lane, waits)
    shared = int(events.duration[rows[works]].sum()) // _workers(events, rows, roles)
    alone = np.bincount(lane[others & ~works], events.duration[rows[others & ~works]])
    whole = events.duration[rows[others & _named(events, rows, _ALONE)]]
    return max(shared, int(alone.max(initial=0)), int(whole.max(initial=0)))


def _named(events: Events, rows: np.ndarray, names: Collection[str]) -> np.ndarray:
    """(row,) whether it has one of these names."""
    numbers = [number for number, name in enumerate(events.names) if name in names]
    return np.isin(events.name[rows], numbers)


def _roles(events: Events) -> np.ndarray:
    """(event,) int8: place in Role, of stages and of work of a device."""
    places = list(Role)
    roles = np.full(len(events), places.index(Role.OTHER), np.int8)
    spans = np.flatnonzero(events.kind == Kind.STAGE)
    used, at = np.unique(events.name[spans], return_inverse=True)
    by_name = [places.index(_ROLES.get(events.names[name], Role.OTHER)) for name in used.tolist()]
    roles[spans] = np.array(by_name, np.int8)[at]
    roles[events.kind == Kind.KERNEL] = places.index(Role.KERNEL)
    roles[events.of_kind(Kind.COPY, Kind.SET)] = places.index(Role.LINK)
    return roles


def _moments(events: Events, rows: np.ndarray, roles: np.ndarray, total: int) -> dict[Role, int]:
    """Of each role, what no role before it has; of kernels those of devices only."""
    host_computes = (events.kind == Kind.STAGE) & (roles == list(Role).index(Role.KERNEL))
    parts: dict[Role, int] = {}
    taken: Intervals = NONE
    for number, role in enumerate(Role):
        mine = rows[(roles[rows] == number) & ~host_computes[rows]]
        when = during(events, mine)
        parts[role] = (when - taken).total
        taken = taken | when
    parts[Role.WAITING] += total - taken.total
    return parts


def _thread_time(
    events: Events, rows: np.ndarray, roles: np.ndarray, total: int, threads: int
) -> dict[Role, int]:
    sums = np.bincount(roles[rows], events.duration[rows], len(Role)).astype(np.int64)
    parts = {role: int(sums[number]) for number, role in enumerate(Role)}
    parts[Role.WAITING] = max(total * threads - int(sums.sum()) + parts[Role.WAITING], 0)
    working = rows[roles[rows] != list(Role).index(Role.WAITING)]
    taken: Intervals = NONE
    for stage in _ALONE:
        when = during(events, rows[_named(events, rows, [stage])]) - taken
        taken = taken | when
        worked = int(when.within(events.start[working], events.end[working]).sum())
        idle = min(max(threads * when.total - worked, 0), parts[Role.WAITING])
        parts[_ROLES[stage]] += idle
        parts[Role.WAITING] -= idle
    return parts


def _workers(events: Events, rows: np.ndarray, roles: np.ndarray) -> int:
    """Threads of stages but those that say they wait: they wait for others, and wake them.

    What such a thread does itself, at the beginning, it does in the others' stead.
    """
    waits, lane = _waiters(events, rows, roles)
    return max(int(lane.max()) + 1 - len(waits), 1)


def _waiters(events: Events, rows: np.ndarray, roles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the threads that say they wait; (row,) the number of each one's thread."""
    _, lane = np.unique(_lanes(events, rows), axis=0, return_inverse=True)
    lane = lane.reshape(-1)
    return np.unique(lane[roles[rows] == list(Role).index(Role.WAITING)]), lane


def _starved(by: Role, on_device: bool) -> Role | None:
    if by in (Role.KERNEL, Role.COMPILING, Role.START, Role.WAITING):
        return None
    if by is Role.LINK or not on_device:
        return Role.KERNEL
    return Role.LINK if by in (Role.READING, Role.PREPARATION) else Role.KERNEL


def _stages(events: Events, rows: np.ndarray, roles: np.ndarray) -> tuple[Stage, ...]:
    order = rows[np.argsort(events.name[rows], kind="stable")]
    groups = np.split(order, np.flatnonzero(np.diff(events.name[order])) + 1)
    stages = [
        Stage(
            events.named(mine[0]), list(Role)[roles[mine[0]]], bool(events.on_device[mine[0]]),
            len(mine), during(events, mine).total, int(events.duration[mine].sum()),
            len(np.unique(_lanes(events, mine), axis=0)),
        )
        for mine in groups
    ]  # fmt: skip
    return tuple(sorted(stages, key=lambda stage: -stage.work))


def _lanes(events: Events, rows: np.ndarray) -> np.ndarray:
    columns = events.process, events.thread, events.device, events.stream
    return np.stack([column[rows].astype(np.int64) for column in columns], axis=1)
