"""Calls at which the host waits for a device: those that say so, and those that do not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from ..traces.events import Direction, Events, Kind
from .groups import (
    ALLOCATION,
    BLOCKING_COPY,
    COPYING,
    LAUNCH,
    READ_BACK,
    SYNCHRONISING,
    calls,
    during,
    named,
)
from .intervals import union
from .launches import Launches, Links
from .nest import Nest

_ROWS = 20  # of a group that are named
# A copy's call that lasts as long as the copy waits for it. Clocks that a profiler fits to each
# other agree to about a microsecond.
_AGREE = 1000  # ns


class How(StrEnum):
    """Why the host waits."""

    EXPLICIT = "explicit synchronisation"
    READ_BACK = "scalar read back"
    COPY = "blocking copy"
    ALLOCATION = "allocation or release"


_HOW = tuple(How)


@dataclass(frozen=True)
class Wait:
    """One, from start to end on the host, ns.

    call       the runtime's, by name; the longest, where one operator makes several
    operator   the innermost that encloses it on its thread, None where none was recorded
    cause      the operator, or the call itself, that makes it a wait: aten::item
    idle       of it: no device works, ns
    row        of the call
    operator_row   of the operator, None of none
    """

    how: How
    call: str
    operator: str | None
    cause: str
    start: int
    end: int
    idle: int
    thread: int
    row: int
    operator_row: int | None


@dataclass(frozen=True)
class Group:
    """Waits of one way, call and cause; times are ns on the host, summed."""

    how: How
    call: str
    cause: str
    count: int
    time: int
    idle: int
    rows: tuple[int, ...]  # the longest, at most 20


@dataclass(frozen=True)
class Waits:
    """waits in order, groups by time. time and idle: union over all threads, ns.

    at_end  waits after the last launch: a program or a profiler ends with one
    """

    waits: tuple[Wait, ...]
    groups: tuple[Group, ...]
    time: int
    idle: int
    at_end: int


@dataclass(frozen=True)
class Blocking:
    """Of each event, a call of a runtime or not: whether and why the host waits in it.

    how        int8, of the ways, in How's order; -1 of what is no wait
    cause      row of the operator that makes it a wait, -1 of none
    innermost  row of the innermost operator around it, -1 of none
    """

    how: np.ndarray
    cause: np.ndarray
    innermost: np.ndarray

    @property
    def waits_for_device(self) -> np.ndarray:
        """Which end when the device has got somewhere."""
        return (self.how >= 0) & (self.how != _HOW.index(How.ALLOCATION))


def blocking_of(events: Events, links: Links, nest: Nest, launches: Launches | None) -> Blocking:
    how = _how(events, links, launches)
    cause, innermost = np.full((2, len(events)), -1, np.int64)
    rows = np.flatnonzero(how >= 0)
    how[rows], cause[rows], innermost[rows] = _causes(events, nest, rows, how[rows])
    return Blocking(how, cause, innermost)


def waits_of(events: Events, blocking: Blocking) -> Waits | None:
    """None where no call of a runtime was recorded."""
    if not (events.kind == Kind.CALL).any():
        return None
    busy = during(events, events.on_device)
    waits = _merged(events, blocking)
    starts = np.array([wait.start for wait in waits], np.int64)
    ends = np.array([wait.end for wait in waits], np.int64)
    idle = ends - starts - busy.within(starts, ends)
    waits = [replace(wait, idle=ns) for wait, ns in zip(waits, idle.tolist(), strict=True)]
    whole = union(starts, ends)
    launching = events.start[calls(events, LAUNCH)]
    last = int(launching.max()) if len(launching) else None
    return Waits(
        tuple(waits),
        _groups(waits),
        whole.total,
        (whole - busy).total,
        0 if last is None else sum(wait.start > last for wait in waits),
    )


def _how(events: Events, links: Links, launches: Launches | None) -> np.ndarray:
    """(event,) int8 of _HOW; -1 of what is no wait."""
    how = np.full(len(events), -1, np.int8)
    how[calls(events, ALLOCATION) & _while_working(events)] = _HOW.index(How.ALLOCATION)
    how[calls(events, BLOCKING_COPY)] = _HOW.index(How.COPY)
    if launches is not None and not launches.clocks_disagree:
        how[_outlasting(events, links)] = _HOW.index(How.COPY)
    how[calls(events, SYNCHRONISING)] = _HOW.index(How.EXPLICIT)
    return how


def _while_working(events: Events) -> np.ndarray:
    """Which begin after the first and before the last of the devices' work.

    What a program allocates before it begins costs it once, and its devices nothing.
    """
    work = events.on_device
    if not work.any():
        return np.zeros(len(events), bool)
    first, last = events.start[work].min(), events.end[work].max()
    return (events.start >= first) & (events.start < last)


def _outlasting(events: Events, links: Links) -> np.ndarray:
    """Rows of calls that should only begin a copy, and lasted until it had ended.

    Copies between the host's pageable memory and a device do so. One that waited for nothing on
    the device and was over within a microsecond may have ended by chance.
    """
    copies = np.flatnonzero((events.kind == Kind.COPY) & (links.call_of >= 0))
    copies = copies[np.isin(events.direction[copies], (Direction.TO_DEVICE, Direction.TO_HOST))]
    call = links.call_of[copies]
    lasts = events.end[call] >= events.end[copies] - _AGREE
    return call[lasts & (events.duration[call] > 2 * _AGREE)]


def _causes(
    events: Events, nest: Nest, rows: np.ndarray, how: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """How, the row of what makes each a wait, and of its innermost operator (-1 of none)."""
    reads_back = named(events, READ_BACK, events.kind == Kind.OPERATOR, whole=True)
    copies = named(events, COPYING, events.kind == Kind.OPERATOR, whole=True)
    operator, innermost = events.kind == Kind.OPERATOR, np.full(len(rows), -1, np.int64)
    back, copy = innermost.copy(), innermost.copy()
    for above in nest.upwards(nest.parents(rows)):
        there = above >= 0
        innermost = np.where((innermost < 0) & there & operator[above], above, innermost)
        back = np.where(there & reads_back[above], above, back)  # the outermost of them
        copy = np.where(there & copies[above], above, copy)
    innermost = np.where(innermost < 0, _by_number(events, rows), innermost)
    allocates = how == _HOW.index(How.ALLOCATION)
    is_back = (back >= 0) & ~allocates
    is_copy = (copy >= 0) & ~allocates & ~is_back
    how = np.where(is_back, _HOW.index(How.READ_BACK), np.where(is_copy, _HOW.index(How.COPY), how))
    cause = np.where(is_back, back, np.where(is_copy, copy, -1))
    return how, cause, innermost


def _by_number(events: Events, rows: np.ndarray) -> np.ndarray:
    """Rows of the operators, on whatever thread, that have these calls' numbers; -1 of none."""
    known = np.flatnonzero((events.kind == Kind.OPERATOR) & (events.operator >= 0))
    if not len(known):
        return np.full(len(rows), -1, np.int64)
    known = known[np.argsort(events.operator[known], kind="stable")]
    numbers = events.operator[known]
    at = np.minimum(np.searchsorted(numbers, events.operator[rows]), len(known) - 1)
    return np.where(numbers[at] == events.operator[rows], known[at], -1)


def _merged(events: Events, blocking: Blocking) -> list[Wait]:
    """One wait of all calls that the same operator made: item copies, then synchronises."""
    rows = np.flatnonzero(blocking.how >= 0)
    keys = np.where(blocking.cause[rows] >= 0, blocking.cause[rows], len(events) + rows)
    order = np.lexsort((-events.duration[rows], keys))
    rows, keys = rows[order], keys[order]
    if not len(rows):
        return []
    first = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    starts = np.minimum.reduceat(events.start[rows], first)
    ends = np.maximum.reduceat(events.end[rows], first)
    waits = []
    for at, start, end in zip(first.tolist(), starts.tolist(), ends.tolist(), strict=True):
        row, why, within = (
            int(rows[at]),
            int(blocking.cause[rows[at]]),
            int(blocking.innermost[rows[at]]),
        )
        waits.append(
            Wait(
                how=_HOW[blocking.how[row]],
                call=events.named(row),
                operator=events.named(within) if within >= 0 else None,
                cause=events.named(why if why >= 0 else row),
                start=start,
                end=end,
                idle=0,
                thread=int(events.thread[row]),
                row=row,
                operator_row=within if within >= 0 else None,
            )
        )
    return sorted(waits, key=lambda wait: (wait.start, wait.end))


def _groups(waits: Sequence[Wait]) -> tuple[Group, ...]:
    groups: dict[tuple[How, str, str], list[Wait]] = {}
    for wait in waits:
        groups.setdefault((wait.how, wait.call, wait.cause), []).append(wait)
    made = [
        Group(
            *key,
            len(mine),
            sum(wait.end - wait.start for wait in mine),
            sum(wait.idle for wait in mine),
            tuple(w.row for w in sorted(mine, key=lambda w: w.start - w.end)[:_ROWS]),
        )
        for key, mine in groups.items()
    ]
    return tuple(sorted(made, key=lambda group: -group.time))
