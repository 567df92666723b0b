"""Steps of a program, and each one's time as parts that add up to it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from ..traces.events import Events, Kind
from .groups import (
    COLLECTIVE,
    PROFILER_STEP,
    communicating,
    computing,
    during,
    named,
    on_host,
    reading,
)
from .intervals import NONE, Intervals, union
from .launches import Launches, Links
from .periods import period_starts
from .spread import Spread, spread
from .waits import Blocking

# Annotations of one name are steps if they follow each other: at least so much of the time from
# the first to the last is theirs. Phases of a step, such as forward, are less.
_COVER = 0.8
_FEWEST = 2


class Part(StrEnum):
    """What a moment is counted as: the first of these that is so."""

    COMPUTE = "compute"  # a kernel that is no communication runs
    COMMUNICATION = "communication"  # that no such kernel covers; on the host where no device works
    COPIES = "copies"  # copies and sets, exposed
    WAITING = "waiting"  # no device works; something is queued, or the host waits for a device
    READING = "reading"  # no device works, nothing is queued, and the host loads data
    PREPARATION = "host preparation"  # the same, and the host does something else
    UNKNOWN = "not recorded"  # no device works, and no host event is there to say why


class Source(StrEnum):
    """Where steps come from."""

    ANNOTATIONS = "annotations of the program"
    PERIODS = "repeating sequences of kernels"
    WHOLE = "the whole recording, since no steps were found"


@dataclass(frozen=True)
class Step:
    """From start to end, ns; the parts add up to it. No parts without device work."""

    name: str
    start: int
    end: int
    parts: Mapping[Part, int]
    row: int | None  # of the annotation, or of the kernel that opens it


@dataclass(frozen=True)
class Bound:
    """What a part gives if the others stay as they are (Amdahl): all steps' time over the rest."""

    time: int  # ns, of all steps
    share: float
    vanished: float | None  # as many times faster without the part; None where it is all
    halved: float  # with the part twice as fast

    def faster(self, times: float) -> float:
        """What the whole gains if the part becomes so many times faster, and nothing else."""
        return 1 / (1 - self.share + self.share / times)


@dataclass(frozen=True)
class Steps:
    """All steps, in order; total is their time in ns."""

    source: Source
    steps: tuple[Step, ...]
    total: int
    durations: Spread | None
    bounds: Mapping[Part, Bound]


def steps_of(
    events: Events, links: Links, launches: Launches | None, blocking: Blocking
) -> Steps | None:
    """None of a trace that has neither steps nor device work."""
    source, rows, starts, ends = _found(events, links)
    if not len(starts):
        return None
    parts = _parts(events, links, launches, blocking) if launches else {}
    spent = {part: when.within(starts, ends) for part, when in parts.items()}
    if parts:
        rest = ends - starts - sum(spent.values(), np.zeros(len(starts), np.int64))
        spent[Part.UNKNOWN] = rest
    steps = tuple(
        Step(
            _title(events, source, number, row),
            int(starts[number]),
            int(ends[number]),
            {part: int(ns[number]) for part, ns in spent.items()},
            None if row < 0 else row,
        )
        for number, row in enumerate(rows.tolist())
    )
    total = int((ends - starts).sum())
    bounds = {part: _bound(int(ns.sum()), total) for part, ns in spent.items()}
    return Steps(source, steps, total, spread(ends - starts), bounds)


def _title(events: Events, source: Source, number: int, row: int) -> str:
    if source is Source.ANNOTATIONS:
        return events.named(row)
    return f"period {number + 1}" if source is Source.PERIODS else "whole recording"


def _bound(time: int, total: int) -> Bound:
    share = time / total if total else 0.0
    vanished = total / (total - time) if time < total else None
    return Bound(time, share, vanished, total / (total - time / 2) if total else 1.0)


def _found(events: Events, links: Links) -> tuple[Source, np.ndarray, np.ndarray, np.ndarray]:
    """Where steps come from, their rows, starts and ends."""
    rows = _annotated(events)
    if len(rows):
        starts, ends = _until_the_next(events, links, rows)
        return Source.ANNOTATIONS, rows, starts, ends
    work = np.flatnonzero(events.on_device)
    if not len(work):
        return Source.WHOLE, work, work, work
    opens = period_starts(events)
    if opens is not None:
        # The last is left out: where it ends is not known.
        return Source.PERIODS, opens[:-1], events.start[opens[:-1]], events.start[opens[1:]]
    start, end = events.start[work].min(), events.end[work].max()
    return Source.WHOLE, np.array([-1]), np.array([start]), np.array([end])


def _annotated(events: Events) -> np.ndarray:
    """Rows of steps: a profiler's own, else the program's ranges that follow each other."""
    host = on_host(events) & events.of_kind(Kind.ANNOTATION, Kind.OPERATOR)
    found = np.flatnonzero(named(events, PROFILER_STEP, host, whole=True))
    if len(found):
        return _apart(events, found)
    best, cover = np.empty(0, np.int64), 0.0
    rows = np.flatnonzero(host & (events.kind == Kind.ANNOTATION))
    for mine in _by_family(events, rows):
        apart = _apart(events, mine)
        if len(apart) < _FEWEST or len(apart) < len(mine):
            continue
        whole = int(events.end[apart[-1]] - events.start[apart[0]])
        share = int(events.duration[apart].sum()) / whole if whole else 0.0
        if share >= _COVER and (share > cover or len(apart) > 2 * len(best)):
            best, cover = apart, share
    return best


def _by_family(events: Events, rows: np.ndarray) -> list[np.ndarray]:
    """Rows of names that differ in figures only: 'epoch 3', 'step #12'."""
    used, at = np.unique(events.name[rows], return_inverse=True)
    numbers: dict[str, int] = {}
    plain = [re.sub(r"\d+", "#", events.names[name]) for name in used.tolist()]
    mine = np.array([numbers.setdefault(name, len(numbers)) for name in plain], np.int64)[at]
    order = np.argsort(mine, kind="stable")
    return np.split(rows[order], np.flatnonzero(np.diff(mine[order])) + 1)


def _apart(events: Events, rows: np.ndarray) -> np.ndarray:
    """Those, in order, that begin when the ones before have ended."""
    if not len(rows):
        return rows
    ended = np.maximum.accumulate(events.end[rows])
    return rows[np.append(True, events.start[rows][1:] >= ended[:-1])]


def _until_the_next(
    events: Events, links: Links, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Steps last until the next begins, unless a longer pause than a step lies between.

    The last one lasts until the work that it launched has ended.
    """
    starts, ends = events.start[rows], events.end[rows].copy()
    pause = starts[1:] - ends[:-1]
    follows = pause <= np.median(ends - starts)
    ends[:-1][follows] = starts[1:][follows]
    work = np.flatnonzero(links.call_of >= 0)
    launched = events.start[links.call_of[work]]
    last = work[(launched >= starts[-1]) & (launched <= ends[-1])]
    if len(last):
        ends[-1] = max(int(ends[-1]), int(events.end[last].max()))
    return starts, ends


def _parts(
    events: Events, links: Links, launches: Launches, blocking: Blocking
) -> dict[Part, Intervals]:
    """When each part is; no moment is in two."""
    compute = during(events, computing(events))
    communication = during(events, communicating(events))
    queued = NONE
    if not launches.clocks_disagree:
        work = np.flatnonzero(links.call_of >= 0)
        # Until its call returns it is the host that works, at a first launch for long.
        queued = union(events.end[links.call_of[work]], events.start[work])
    waits = during(events, blocking.waits_for_device)
    host = _extent(events)
    wanted: Sequence[tuple[Part, Intervals]] = (
        (Part.COMPUTE, compute),
        (Part.COMMUNICATION, communication),
        (Part.COPIES, during(events, events.of_kind(Kind.COPY, Kind.SET))),
        (Part.WAITING, queued | waits),
        (Part.COMMUNICATION, during(events, named(events, COLLECTIVE, on_host(events)))),
        (Part.READING, during(events, reading(events))),
        (Part.PREPARATION, host),
    )
    parts, taken = dict.fromkeys(Part, NONE), NONE
    for part, when in wanted:
        parts[part] = parts[part] | (when - taken)
        taken = taken | when
    return parts


def _extent(events: Events) -> Intervals:
    """From the first to the last event of the host.

    Between two of them it does what is not recorded, such as Python's own work.
    """
    host = on_host(events)
    if not host.any():
        return NONE
    first, last = events.start[host].min(), events.end[host].max()
    return union(np.array([first]), np.array([last]))
