"""What a profiler recorded, as columns: an event a row, in order of start.

Times are whole nanoseconds of the profiler's own clock. What a format does not tell is ABSENT, so
that it can be called "not recorded" and is never taken for zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import IntEnum
from typing import Any

import numpy as np

ABSENT = -1


class Kind(IntEnum):
    """What an event is. The first three are work of a device; the others happen on the host."""

    KERNEL = 0
    COPY = 1
    SET = 2
    CALL = 3  # of the runtime or the driver: launches, copies, synchronisations, allocations
    OPERATOR = 4  # of a framework
    ANNOTATION = 5  # a range that the program named, steps among them
    WAIT = 6  # a synchronisation as a profiler drew it, besides the call
    STAGE = 7  # what a thread of a pipeline was doing


DEVICE_KINDS = (Kind.KERNEL, Kind.COPY, Kind.SET)


class Direction(IntEnum):
    """Of a copy."""

    TO_DEVICE = 0
    TO_HOST = 1
    ON_DEVICE = 2
    BETWEEN_DEVICES = 3
    ON_HOST = 4


# Columns and their types; all are ABSENT where a reader gives nothing.
_TYPES: dict[str, Any] = {
    "kind": np.uint8, "name": np.int32, "start": np.int64, "end": np.int64,
    "process": np.int64, "thread": np.int64, "device": np.int32, "stream": np.int64,
    "correlation": np.int64, "operator": np.int64, "bytes": np.int64, "direction": np.int8,
    "grid": np.int64, "block": np.int32, "registers": np.int32, "shared": np.int32,
    "scratch": np.int32,
}  # fmt: skip
_TRIPLES = frozenset({"grid", "block"})


@dataclass(frozen=True)
class Column:
    """An attribute that only one format knows, as text: `values[codes[event]]`; ABSENT for none."""

    codes: np.ndarray  # int32 (event,)
    values: tuple[str, ...]


class Names(tuple[str, ...]):
    """Names by number. There may be as many as events, and they are looked through repeatedly."""

    told: dict[object, np.ndarray]  # what was found in them, by what was asked, by number

    def __init__(self, names: Iterable[str]) -> None:  # which tuple takes
        self.told = {}


@dataclass(frozen=True)
class Events:
    """The table; every array has a row an event.

    kind         uint8, see Kind
    name         int32, of `names`
    start, end   int64, ns
    process, thread   int64, of host events, as the profiler numbers them
    device, stream    of device events: int32 and int64
    correlation  int64, the same for a call and for the device's event that it began
    operator     int64, of an operator and of the calls and device events within it
    bytes        int64, of copies and sets; of records of collectives, of the message's larger side
    direction    int8 of copies, see Direction
    grid, block  (event, 3) of kernels: blocks or workgroups, and threads in each
    registers    int32, a thread; of AMD vector registers
    shared, scratch   int32 bytes: shared memory of a block, and memory of a thread beyond registers
    others       what else the format told of device events, by its own names; GROUP of records, too
    """

    names: Names
    kind: np.ndarray
    name: np.ndarray
    start: np.ndarray
    end: np.ndarray
    process: np.ndarray
    thread: np.ndarray
    device: np.ndarray
    stream: np.ndarray
    correlation: np.ndarray
    operator: np.ndarray
    bytes: np.ndarray
    direction: np.ndarray
    grid: np.ndarray
    block: np.ndarray
    registers: np.ndarray
    shared: np.ndarray
    scratch: np.ndarray
    others: Mapping[str, Column] = field(default_factory=dict)

    @classmethod
    def of(
        cls, names: Sequence[str], others: Mapping[str, Column] | None = None, **columns: Any
    ) -> Events:
        """From the columns that a format tells, as arrays or lists; `start` is needed."""
        number = len(columns["start"])
        made = {}
        for name, kind in _TYPES.items():
            shape = (number, 3) if name in _TRIPLES else (number,)
            given = columns.pop(name, None)
            if given is None:
                made[name] = np.full(shape, 0 if name == "kind" else ABSENT, kind)
            else:
                made[name] = np.broadcast_to(np.asarray(given, kind), shape)
        if columns:
            raise TypeError(f"events have no columns {', '.join(columns)}")
        return cls(Names(names), **made, others=dict(others or {}))

    def __len__(self) -> int:
        return len(self.start)

    def __getitem__(self, rows: np.ndarray) -> Events:
        """Of these rows: a mask, or their numbers."""
        others = {key: replace(each, codes=each.codes[rows]) for key, each in self.others.items()}
        return Events(
            self.names, **{name: getattr(self, name)[rows] for name in _TYPES}, others=others
        )

    @property
    def duration(self) -> np.ndarray:
        """int64, ns."""
        return self.end - self.start

    @property
    def on_device(self) -> np.ndarray:
        """Which are work of a device."""
        return self.kind <= Kind.SET

    def of_kind(self, *kinds: Kind) -> np.ndarray:
        """Which are of one of these kinds."""
        return np.isin(self.kind, kinds)

    def named(self, row: int) -> str:
        return self.names[self.name[row]]

    def tell(self, column: str) -> bool:
        """Whether any event has this column."""
        return bool((getattr(self, column) != ABSENT).any())

    def in_order(self) -> Events:
        """By start, and of those that start together the longest first, so that parents lead."""
        return self[np.lexsort((-self.end, self.start))]


def joined(parts: Iterable[Events]) -> Events:
    """One table of several; names are numbered anew. Not in order."""
    parts = list(parts)
    numbers: dict[str, int] = {}
    for part in parts:
        for name in part.names:
            numbers.setdefault(name, len(numbers))
    if not parts:
        return Events.of((), start=())
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in _TYPES
    }
    columns["name"] = np.concatenate(
        [np.array([numbers[name] for name in part.names], np.int32)[part.name] for part in parts]
    )
    keys = dict.fromkeys(key for part in parts for key in part.others)
    lengths = [len(part) for part in parts]
    others = {key: joined_column([part.others.get(key) for part in parts], lengths) for key in keys}
    return Events.of(tuple(numbers), others, **columns)


def joined_column(columns: Sequence[Column | None], lengths: Sequence[int]) -> Column:
    """One of several tables'; rows of those that have none are ABSENT."""
    told = [column.values for column in columns if column is not None]
    numbers: dict[str, int] = {}
    codes = []
    for column, length in zip(columns, lengths, strict=True):
        if column is None:
            codes.append(np.full(length, ABSENT, np.int32))
        elif len(told) == 1:  # there may be as many values as events
            codes.append(column.codes)
        else:
            own = [numbers.setdefault(value, len(numbers)) for value in column.values]
            codes.append(np.array([*own, ABSENT], np.int32)[column.codes])
    return Column(np.concatenate(codes), told[0] if len(told) == 1 else tuple(numbers))


assert set(_TYPES) | {"names", "others"} == {each.name for each in fields(Events)}
