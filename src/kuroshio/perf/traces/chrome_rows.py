"""Chrome's events gathered into columns, some thousand at a time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from ...errors import Refusal
from . import chrome_kinds
from .chrome_columns import Arguments, Names, Texts, Triples, whole, wholes
from .chrome_messages import GROUP, RECORD, messages
from .chrome_pairs import PHASES, Pairs
from .decimals import nanoseconds
from .events import ABSENT, Column, Events, Kind, joined_column
from .sound import LONGEST_NS, MOST_EVENTS, fitting

if TYPE_CHECKING:
    from .chrome import Event

# Arguments by column; those that come first go before others.
_OPERATOR = {"operator": ("External id", "external id")}
_OF_CALLS = {
    **_OPERATOR,
    "correlation": ("correlation",),
    "bytes": ("bytes", "Bytes", "size"),
    "device": ("device", "devId", "dev-id"),
    "stream": ("stream", "queueId", "queue-id", "stream-id"),
    "shared": ("shared memory",),
}
_OF_DEVICE = {**_OF_CALLS, "registers": ("registers per thread",)}
_BEGIN, _END, _GRID, _BLOCK = "BeginNs", "EndNs", "grid", "block"
_REPEATED = ("DurationNs", "Name", "name", "index")  # what columns have, too
_NOTHING = msgspec.Raw()
_NARROW = ("device", "shared", "registers")  # int32

_FLOW = "DataFlow"  # arrows from a call to what it began, where nothing else links them
# Phases that are counted apart, or have no length and are not missed.
_POINTLESS = frozenset([*"XiIsftMC", None])
_LONGEST_CATEGORY = 80  # characters
_OPERATORS = (Kind.OPERATOR, Kind.ANNOTATION)


@dataclass(frozen=True)
class Flows:
    """Arrows' beginnings and ends, by number; their processes and threads by name, and times."""

    begins: np.ndarray
    arrow: np.ndarray
    process: np.ndarray
    thread: np.ndarray
    at: np.ndarray  # ns, as drawn


@dataclass(frozen=True)
class Gathered:
    """Events, not in order, and what is needed to link them; rows as of the events.

    process, thread   numbers of their names in `lanes`
    drawn             ns, where the event is drawn, which arrows refer to
    """

    events: Events
    process: np.ndarray
    thread: np.ndarray
    drawn: np.ndarray
    lanes: tuple[str, ...]
    flows: Flows


class _Group:
    """Events that tell the same arguments, as columns."""

    def __init__(
        self, keys: Mapping[str, Sequence[str]], shapes: Sequence[str] = (), learns: bool = True
    ) -> None:
        self.columns: defaultdict[str, list[np.ndarray]] = defaultdict(list)
        self.number = 0
        self.others: dict[str, Texts] = {}
        self._keys, self._shapes = keys, shapes
        known = [_BEGIN, _END, *_REPEATED, *(key for each in keys.values() for key in each)]
        self.arguments = Arguments(known, shapes, learns)
        self._triples = Triples()

    def add(self, **columns: np.ndarray) -> None:
        for name, column in columns.items():
            self.columns[name].append(column)

    def add_arguments(
        self, texts: Sequence[msgspec.Raw], others: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Begin and end where arguments have them, in ns; ABSENT elsewhere."""
        arguments = self.arguments
        found = arguments.decode(texts)
        for name, keys in self._keys.items():
            column = arguments.wholes(found, keys[0])
            for key in keys[1:]:
                if (column == ABSENT).any():
                    column = np.where(column == ABSENT, arguments.wholes(found, key), column)
            self.columns[name].append(fitting(column) if name in _NARROW else column)
        for name in self._shapes:
            column = self._triples.of(arguments.column(found, name) or [_NOTHING] * len(texts))
            self.columns[name].append(fitting(column) if name == _BLOCK else column)
        for key in arguments.others if others else ():
            self.others.setdefault(key, Texts()).add(self.number, arguments.column(found, key))
        self.number += len(texts)
        return arguments.wholes(found, _BEGIN), arguments.wholes(found, _END)


class Rows:
    """All events that are kept, and counts of those that are not."""

    def __init__(self, path: Path) -> None:
        self.kept = 0
        self.unkept: Counter[str] = Counter()  # by category
        self.lengthless = 0  # of phases that are not read
        self.pairs = Pairs()
        self.names = Names(path)
        self._path = path
        self._lanes = Names(path)
        self._forms = np.zeros(len(chrome_kinds.FORMS), np.int64)  # events
        self._labels: dict[object, str] = {}  # of processes
        self._device = _Group(_OF_DEVICE, (_GRID, _BLOCK))
        self._calls = _Group(_OF_CALLS, (_GRID, _BLOCK))
        self._operators = _Group(_OPERATOR, learns=False)
        self._is_record = bytearray()  # by number of a name
        self._flows: list[tuple[np.ndarray, ...]] = []

    @property
    def form(self) -> str:
        """The format's name: that of the most events."""
        return chrome_kinds.FORMS[int(self._forms.argmax())]

    def add(self, batch: Sequence[Event]) -> None:
        """Some events, in any order."""
        by_category: defaultdict[object, list[Event]] = defaultdict(list)
        for event in batch:
            by_category[event.cat].append(event)
        grouped: tuple[tuple[list[Event], list[int]], ...] = (([], []), ([], []), ([], []))
        phases: set[object] = set()
        for category, events in by_category.items():
            whole_ones = self._with_length(events, phases)
            code = chrome_kinds.CODES.get(category)
            if code is not None:
                found, codes = grouped[_GROUPS[code]]
                found += whole_ones
                codes += [code] * len(whole_ones)
            elif category is None:
                for event in whole_ones:
                    if (code := self._of_rocprof(event)) is not None:
                        grouped[_GROUPS[code]][0].append(event)
                        grouped[_GROUPS[code]][1].append(code)
            else:
                self.unkept[str(category)[:_LONGEST_CATEGORY]] += len(whole_ones)
        groups = (self._device, self._calls, self._operators)
        for group, (events, codes) in zip(groups, grouped, strict=True):
            if events:
                self._add(group, events, np.array(codes))
        if arrows := [event for event in by_category[_FLOW] if event.ph in ("s", "t", "f")]:
            self._add_flows(arrows)
        if phases & PHASES and (joined := self.pairs.joined(batch)):
            self.add(joined)

    def _with_length(self, events: list[Event], met: set[object]) -> list[Event]:
        """Those that have a length; the others are counted, or tell a process's name."""
        phases = set(map(attrgetter("ph"), events))
        met |= phases
        if phases == {"X"}:
            return events
        if "M" in phases:
            for event in events:
                self._label(event)
        if others := phases - _POINTLESS - PHASES:
            self.lengthless += sum(event.ph in others for event in events)
        return [event for event in events if event.ph == "X"] if "X" in phases else []

    def _add(self, group: _Group, events: list[Event], codes: np.ndarray) -> None:
        self.kept += len(events)
        if self.kept > MOST_EVENTS:
            raise Refusal(
                f"{self._path} has more than {MOST_EVENTS // 1_000_000} million events, which are "
                "too many to hold. Record fewer steps."
            )
        forms = np.bincount(codes // chrome_kinds.A_FORM, minlength=len(self._forms))
        self._forms += forms
        start, timed = nanoseconds([event.ts for event in events])
        length, long = nanoseconds([event.dur for event in events])
        timed &= long & (length <= LONGEST_NS)
        drawn = np.where(timed, start, ABSENT)
        end = np.where(timed, start + length, ABSENT)
        begin_ns, end_ns = group.add_arguments(
            [event.args for event in events], others=group is self._device
        )
        exact = (begin_ns != ABSENT) & (end_ns != ABSENT)
        names, lanes = self.names, self._lanes
        name = np.array([names[event.name] for event in events], np.int32)
        if group is self._operators:
            sizes, ranks = messages(events, self._records(name))
            group.add(bytes=sizes)
            if ranks:
                told = [ranks.get(row, _NOTHING) for row in range(len(events))]
                group.others.setdefault(GROUP, Texts()).add(group.number - len(events), told)
        group.add(
            kind=(codes % chrome_kinds.A_FORM).astype(np.uint8),
            name=name,
            start=np.where(exact, begin_ns, drawn),
            end=np.where(exact, end_ns, end),
            drawn=drawn,
            exact=exact,
            process_lane=np.array([lanes[event.pid] for event in events], np.int32),
            thread_lane=np.array([lanes[event.tid] for event in events], np.int32),
        )

    def _records(self, name: np.ndarray) -> np.ndarray:
        """Which of these events, by the numbers of their names, are records of collectives."""
        new = self.names.texts[len(self._is_record) :]
        self._is_record += bytes(RECORD.match(text) is not None for text in new)
        return np.frombuffer(bytes(self._is_record), bool)[name]

    def _of_rocprof(self, event: Event) -> int | None:
        """Of an event without a category, which rocprof's are."""
        if b'"BeginNs"' in bytes(event.args):
            kind = chrome_kinds.of_rocprof(event.pid, self._labels.get(event.pid))
            if kind is not None:
                return kind + chrome_kinds.A_FORM * chrome_kinds.FORMS.index(chrome_kinds.ROCPROF)
        self.unkept[""] += 1
        return None

    def _label(self, event: Event) -> None:
        if event.ph == "M" and event.name == "process_name" and len(self._labels) < 10_000:
            try:
                named = msgspec.json.decode(event.args, type=dict[str, Any])
            except msgspec.DecodeError:
                return
            self._labels[event.pid] = str(named.get("name", ""))

    def _add_flows(self, arrows: list[Event]) -> None:
        at, known = nanoseconds([event.ts for event in arrows])
        rows = np.flatnonzero(known).tolist()
        lanes = self._lanes
        self._flows.append(
            (
                np.array([arrows[row].ph == "s" for row in rows], bool),
                wholes([arrows[row].id for row in rows]),
                np.array([lanes[arrows[row].pid] for row in rows], np.int32),
                np.array([lanes[arrows[row].tid] for row in rows], np.int32),
                at[rows],
            )
        )

    def gathered(self, base_ns: int) -> Gathered:
        """All; `base_ns` is added to times in microseconds."""
        groups = (self._device, self._calls, self._operators)
        numbers = [group.number for group in groups]
        names = dict.fromkeys(name for group in groups for name in group.columns)
        columns = {}
        for name in names:
            parts = [_whole_column(group, name) for group in groups if group.number]
            columns[name] = np.concatenate(parts)
            for group in groups:
                group.columns.pop(name, None)
        process, thread = columns.pop("process_lane"), columns.pop("thread_lane")
        number = np.array([*map(whole, self._lanes.texts), ABSENT], np.int64)
        work = np.arange(len(process)) < numbers[0]
        exact = columns.pop("exact")
        # Where only the lane tells a device and a stream: a process and a thread of torch's.
        for name, lane, there in (("device", process, ~exact), ("stream", thread, True)):
            if name in columns:
                rows = np.flatnonzero(there & work & (columns[name] == ABSENT))
                told = number[lane[rows]]
                columns[name][rows] = fitting(told) if name in _NARROW else told
        columns["process"] = np.where(work, ABSENT, number[process])
        columns["thread"] = np.where(work, ABSENT, number[thread])
        moved = ~exact & (columns["start"] != ABSENT)
        for name in ("start", "end"):
            columns[name][moved] += base_ns
        texts = {
            key: [_other(group, key) for group in groups]
            for key in dict.fromkeys(key for group in groups for key in group.others)
        }
        others = {key: joined_column(each, numbers) for key, each in texts.items() if any(each)}
        drawn = columns.pop("drawn")
        flows = [np.concatenate(part) for part in zip(*self._flows, strict=True)] or [
            np.empty(0, np.int64)
        ] * 5
        return Gathered(
            Events.of(self.names.texts, others, **columns),
            process,
            thread,
            drawn,
            tuple(self._lanes.texts),
            Flows(*flows),
        )

    @property
    def dropped_columns(self) -> list[str]:
        """Arguments that are not kept, since nearly every event has its own."""
        return [key for key, texts in self._device.others.items() if texts.overfull]

    @property
    def many_columns(self) -> bool:
        """Whether there were more arguments than are kept."""
        return self._device.arguments.full


def _whole_column(group: _Group, name: str) -> np.ndarray:
    """Of all the group's events; ABSENT where it does not tell that."""
    if name in group.columns:
        return np.concatenate(group.columns[name])
    shape = (group.number, 3) if name in (_GRID, _BLOCK) else (group.number,)
    return np.full(shape, ABSENT, np.int64)


def _other(group: _Group, key: str) -> Column | None:
    """Of all the group's events; None where it does not tell that, or too many values of it."""
    texts = group.others.get(key)
    return None if texts is None or texts.overfull else texts.column(group.number)


_GROUPS = {
    kind + chrome_kinds.A_FORM * form: 0 if kind <= Kind.SET else 2 if kind in _OPERATORS else 1
    for kind in Kind
    for form in range(len(chrome_kinds.FORMS))
}
