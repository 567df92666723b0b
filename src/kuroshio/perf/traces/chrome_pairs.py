"""Beginnings and ends that are events of their own (phases B and E), joined to whole events.

On one thread they nest, so an end belongs to the last beginning that is still open; the two may
lie far apart in the file, and nothing is held but what is open.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from .decimals import nanoseconds

if TYPE_CHECKING:
    from .chrome import Event

PHASES = frozenset("BE")
MOST_OPEN = 100_000  # at once; no program nests as deep on as many threads
_MOST_HELD = 64 << 20  # bytes of open ones' arguments
_MOST_DISORDERED = 10_000  # threads
_NOTHING = msgspec.Raw()


@dataclass
class _Thread:
    """What is open: beginnings with their time in ns, None where it is not told."""

    opened: list[tuple[Event, int | None]] = field(default_factory=list)
    names: Counter[object] = field(default_factory=Counter)
    last: int = 0  # ns


class Pairs:
    """Takes beginnings and ends in the file's order, gives whole events.

    alone        beginnings and ends without the other, up to now
    disordered   those of threads on which they are not in order of time: any pair may be wrong
    overfull     whether more than MOST_OPEN were open at once, after which none is taken
    """

    def __init__(self) -> None:
        self.disordered = 0
        self.overfull = False
        self._alone = self._open = self._held = 0
        self._threads: dict[tuple[object, object], _Thread] = {}
        self._in_disorder: set[tuple[object, object]] = set()

    @property
    def alone(self) -> int:
        return self._alone + self._open

    def joined(self, batch: Sequence[Event]) -> list[Event]:
        """Whole events (phase X) that end among these; other phases are passed over."""
        halves = [event for event in batch if event.ph in PHASES]
        at, known = nanoseconds([event.ts for event in halves])
        found: list[Event] = []
        for event, ns, told in zip(halves, at.tolist(), known.tolist(), strict=True):
            where = event.pid, event.tid
            if self.overfull:
                self._alone += 1
            elif where in self._in_disorder:
                self.disordered += 1
            elif told and where in self._threads and ns < self._threads[where].last:
                self._disorder(where)
            elif event.ph == "B":
                self._begin(where, event, ns if told else None)
            elif whole := self._end(where, event, ns if told else None):
                found.append(whole)
        return found

    def _begin(self, where: tuple[object, object], event: Event, ns: int | None) -> None:
        # What is decoded is a view of some megabytes of the file, which are not to be held.
        event = msgspec.structs.replace(event, ts=event.ts.copy(), args=event.args.copy())
        thread = self._threads.setdefault(where, _Thread())
        thread.opened.append((event, ns))
        thread.names[event.name] += 1
        thread.last = thread.last if ns is None else ns
        self._open += 1
        self._held += len(bytes(event.args))
        if self._open > MOST_OPEN or self._held > _MOST_HELD:
            self._stop()

    def _end(self, where: tuple[object, object], end: Event, ns: int | None) -> Event | None:
        thread = self._threads.get(where)
        if thread is None:
            self._alone += 1
            return None
        last = thread.opened[-1][0].name
        name = last if last is None else end.name or last  # an end need not tell it
        if name not in thread.names:
            self._alone += 1
            return None
        while (begun := self._pop(where, thread))[0].name != name:
            self._alone += 1  # within what ends, and never ended
        begin, began = begun
        thread.last = thread.last if ns is None else ns
        length = None if ns is None or began is None else ns - began
        return msgspec.structs.replace(
            begin,
            ph="X",
            cat=end.cat if begin.cat is None else begin.cat,
            name=end.name if begin.name is None else begin.name,
            dur=_NOTHING if length is None else _microseconds(length),
            args=_merged(begin.args, end.args),
        )

    def _pop(self, where: tuple[object, object], thread: _Thread) -> tuple[Event, int | None]:
        event, ns = thread.opened.pop()
        thread.names[event.name] -= 1
        if not thread.names[event.name]:
            del thread.names[event.name]
        if not thread.opened:
            del self._threads[where]
        self._open -= 1
        self._held -= len(bytes(event.args))
        return event, ns

    def _disorder(self, where: tuple[object, object]) -> None:
        thread = self._threads[where]
        self.disordered += len(thread.opened) + 1
        while thread.opened:
            self._pop(where, thread)
        self._in_disorder.add(where)
        if len(self._in_disorder) > _MOST_DISORDERED:
            self._stop()

    def _stop(self) -> None:
        self.overfull = True
        self._alone += self._open
        self._open = self._held = 0
        self._threads.clear()


def _microseconds(ns: int) -> msgspec.Raw:
    return msgspec.Raw(b"%d.%03d" % divmod(ns, 1000))


def _merged(begin: msgspec.Raw, end: msgspec.Raw) -> msgspec.Raw:
    """Both arguments, which are objects' text."""
    inner = [bytes(each).strip() for each in (begin, end)]
    inner = [each[1:-1].strip() for each in inner if each[:1] == b"{"]
    return msgspec.Raw(b"{%b}" % b",".join(filter(None, inner)))
