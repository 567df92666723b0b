"""Kernels of communication libraries: what they did, of how many bytes, and who came last."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..traces.events import Events
from .groups import communicating
from .kernels import short

# What names of kernels and of frameworks' records have in common, longer words first.
_KINDS = {
    "all-reduce": r"all_?reduce", "reduce-scatter": r"reduce_?scatter",
    "all-gather": r"all_?gather", "all-to-all": r"all_?to_?all",
    "send-receive": r"send_?recv|\bsend|\brecv",
    "broadcast": r"broadcast", "gather": r"gather", "scatter": r"scatter", "reduce": r"reduce",
}  # fmt: skip
_ITEM = {
    "byte": 1, "char": 1, "int8": 1, "uint8": 1, "bool": 1, "float8_e4m3fn": 1, "float8_e5m2": 1,
    "half": 2, "float16": 2, "bfloat16": 2, "short": 2, "int16": 2,
    "float": 4, "float32": 4, "int": 4, "int32": 4,
    "double": 8, "float64": 8, "long": 8, "int64": 8,
}  # fmt: skip
# So much of the longest duration apart, ranks did not come together.
_APART = 0.1


@dataclass(frozen=True)
class Collective:
    """One kernel. kind: all-reduce, ..., or the kernel's name; None where the trace is silent."""

    row: int
    kind: str
    name: str
    duration: int  # ns
    bytes: int | None  # of the larger side of a rank's message
    group: int | None  # ranks that take part


@dataclass(frozen=True)
class Straggler:
    """A collective that every rank has, matched by name and order.

    durations by rank, ns: the shortest is of the rank that came last, since it did not wait
    waited     longest less shortest
    """

    name: str
    order: int
    last: int
    waited: int
    durations: tuple[int, ...]
    rows: tuple[int, ...]

    @property
    def apart(self) -> bool:
        """Whether one rank came clearly after the others."""
        return self.waited > _APART * max(self.durations)


def collectives_of(events: Events) -> list[Collective]:
    """In order of start."""
    told = {
        key: column
        for key in ("Collective name", "In msg nelems", "Out msg nelems", "dtype", "Group size")
        if (column := events.others.get(key)) is not None
    }
    found = []
    for row in np.flatnonzero(communicating(events)).tolist():
        said = {
            key: column.values[code]
            for key, column in told.items()
            if (code := int(column.codes[row])) >= 0
        }
        name = short(events.named(row))
        found.append(
            Collective(
                row,
                _kind(said.get("Collective name", "")) or _kind(name) or name,
                name,
                int(events.end[row] - events.start[row]),
                _bytes(said),
                _whole(said.get("Group size")),
            )
        )
    return found


def _kind(name: str) -> str | None:
    plain = name.strip("_").lower()
    return next((kind for kind, words in _KINDS.items() if re.search(words, plain)), None)


def _bytes(said: dict[str, str]) -> int | None:
    """Of the larger side: an all-gather makes it of many, a reduce-scatter takes it apart."""
    sides = [_whole(said.get(key)) for key in ("In msg nelems", "Out msg nelems")]
    items = [side for side in sides if side is not None]
    item = _ITEM.get(said.get("dtype", "").lower())
    return max(items) * item if items and item else None


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"\d{1,15}", text.strip()) else None


def matched(ranks: Sequence[Sequence[Collective]]) -> tuple[list[list[Collective]], set[str]]:
    """Those that all ranks have, by name and order within it: a list with one of each rank.

    And the names of which ranks have different numbers: their order says nothing.
    """
    by_name: list[dict[str, list[Collective]]] = []
    for mine in ranks:
        names: dict[str, list[Collective]] = defaultdict(list)
        for each in mine:
            names[each.name].append(each)
        by_name.append(names)
    together, differ = [], set()
    for name in dict.fromkeys(name for names in by_name for name in names):
        lists = [names.get(name, []) for names in by_name]
        if len({len(each) for each in lists}) == 1:
            together += [list(each) for each in zip(*lists, strict=True)]
        else:
            differ.add(name)
    return together, differ


def stragglers_of(together: Sequence[Sequence[Collective]]) -> list[Straggler]:
    """The most waited for first."""
    orders: dict[str, int] = defaultdict(int)
    found = []
    for each in together:
        name = each[0].name
        durations = [one.duration for one in each]
        found.append(
            Straggler(
                name, orders[name], int(np.argmin(durations)), max(durations) - min(durations),
                tuple(durations), tuple(one.row for one in each),
            )
        )  # fmt: skip
        orders[name] += 1
    return sorted(found, key=lambda straggler: -straggler.waited)
