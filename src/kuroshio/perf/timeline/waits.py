"""Calls at which the host waits for a device: those that say so, and those that do not."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class How(StrEnum):
    """Why the host waits."""

    EXPLICIT = "explicit synchronisation"
    READ_BACK = "scalar read back"
    COPY = "blocking copy"
    ALLOCATION = "allocation or release"


@dataclass(frozen=True)
class Wait:
    """One, from start to end on the host, ns.

    call       the runtime's, by name
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
    """Waits of one way, call and cause; times are ns on the host."""

    how: How
    call: str
    cause: str
    count: int
    time: int
    idle: int
    rows: tuple[int, ...]  # the longest, at most 20


@dataclass(frozen=True)
class Waits:
    """waits: in order, longest groups first. time and idle: union over all threads, ns.

    at_end  waits after the last step or launch: a profiler or a program ends with one
    """

    waits: tuple[Wait, ...]
    groups: tuple[Group, ...]
    time: int
    idle: int
    at_end: int
