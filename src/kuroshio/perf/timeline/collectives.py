"""Kernels of communication libraries: what they did, of how many bytes, and who came last."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..traces.chrome_messages import GROUP, RECORD, larger_side
from ..traces.events import Events, Kind
from .groups import communicating, named
from .kernels import short
from .launches import link
from .nest import Nest

# What names of kernels and of frameworks' records have in common, longer words first.
_KINDS = {
    "all-reduce": r"all_?reduce", "reduce-scatter": r"reduce_?scatter",
    "all-gather": r"all_?gather", "all-to-all": r"all_?to_?all",
    "send-receive": r"send_?recv|\bsend|\brecv",
    "broadcast": r"broadcast", "gather": r"gather", "scatter": r"scatter", "reduce": r"reduce",
}  # fmt: skip
_ANY_KIND = re.compile("|".join(_KINDS.values()), re.IGNORECASE)
_EVEN = frozenset({"all-reduce", "reduce-scatter", "all-gather", "broadcast", "reduce"})
_UNEVEN = 8  # times as large as another rank's, a message is of another collective
_RECORDS = (Kind.OPERATOR, Kind.ANNOTATION)
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
    """A collective that every rank has, matched by name, kind, size and order.

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
    """In order of start. What a kernel does not tell, the host's record around its call may."""
    rows = np.flatnonzero(communicating(events))
    told = {
        key: column
        for key in ("Collective name", "In msg nelems", "Out msg nelems", "dtype", GROUP)
        if (column := events.others.get(key)) is not None
    }
    found = []
    for row, record in zip(rows.tolist(), _records(events, rows), strict=True):
        said = {
            key: column.values[code]
            for key, column in told.items()
            if (code := int(column.codes[row])) >= 0
        }
        name = short(events.named(row))
        sides = [_whole(said.get(key)) for key in ("In msg nelems", "Out msg nelems")]
        size = larger_side(sides, said.get("dtype", ""))
        found.append(
            Collective(
                row,
                _kind(said.get("Collective name", "")) or _kind(record.name) or _kind(name) or name,
                name,
                int(events.end[row] - events.start[row]),
                record.bytes if size is None else size,
                _whole(said.get(GROUP)) or record.group,
            )
        )
    return found


@dataclass(frozen=True)
class _Record:
    """What the host's records around a kernel's call tell of it: the most bytes, and the rest."""

    bytes: int | None = None
    name: str = ""  # which has the kind in it
    group: int | None = None


def _records(events: Events, rows: np.ndarray) -> list[_Record]:
    """Of each kernel."""
    is_record = named(events, RECORD, events.of_kind(*_RECORDS), whole=True)
    if not (len(rows) and is_record.any()):
        return [_Record()] * len(rows)
    has_kind = named(events, _ANY_KIND, is_record)
    ranks = np.full(len(events), -1, np.int64)
    if column := events.others.get(GROUP):
        numbers = np.array([*(_whole(each) or -1 for each in column.values), -1])
        ranks[is_record] = numbers[column.codes[is_record]]
    nest, calls = Nest(events), link(events).call_of[rows]
    size, kind, group = np.full((3, len(rows)), -1, np.int64)
    for above in nest.upwards(nest.parents(calls)):
        record = (above >= 0) & is_record[above]
        size = np.where(record, np.maximum(size, events.bytes[above]), size)
        kind = np.where(record & has_kind[above] & (kind < 0), above, kind)
        group = np.where(record & (group < 0), ranks[above], group)
    return [
        _Record(
            None if most < 0 else most,
            "" if row < 0 else events.named(row),
            None if count < 0 else count,
        )
        for most, row, count in zip(size.tolist(), kind.tolist(), group.tolist(), strict=True)
    ]


@lru_cache(1024)
def _kind(name: str) -> str | None:
    plain = name.strip("_").lower()
    return next((kind for kind, words in _KINDS.items() if re.search(words, plain)), None)


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"\d{1,15}", text.strip()) else None


def matched(ranks: Sequence[Sequence[Collective]]) -> tuple[list[list[Collective]], set[str]]:
    """Those that all ranks have, alike and in order: a list with one of each rank.

    And the names of which ranks have different numbers, or sizes that cannot be of one collective:
    their order says nothing. Alike are those of one name, kind (NCCL sends and receives for what a
    program calls all-to-all) and, where all ranks have as many, bytes.
    """
    by_name: list[dict[tuple[str, str, int | None], list[Collective]]] = []
    for mine in ranks:
        names: dict[tuple[str, str, int | None], list[Collective]] = defaultdict(list)
        for each in mine:
            names[each.name, each.kind, each.bytes if each.kind in _EVEN else None].append(each)
        by_name.append(names)
    together, differ = [], set()
    for name in dict.fromkeys(name for names in by_name for name in names):
        lists = [names.get(name, []) for names in by_name]
        pairs = [list(each) for each in zip(*lists, strict=False)]
        if len({len(each) for each in lists}) == 1 and all(map(_may_be_one, pairs)):
            together += pairs
        else:
            differ.add(name[0])
    return together, differ


def _may_be_one(ranks: Sequence[Collective]) -> bool:
    """Whether what ranks sent is of a size: if not, something is missing in one of the traces."""
    sizes = [each.bytes for each in ranks if each.bytes]
    return not sizes or max(sizes) <= _UNEVEN * min(sizes)


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
