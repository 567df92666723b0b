"""Where the holes are, and by which rule each has its cause."""

from __future__ import annotations

import numpy as np

from ..traces.events import Direction, Events, Kind
from .groups import (
    ALLOCATION,
    COLLECTIVE,
    PROFILER_STEP,
    TRACING,
    alike,
    by_device,
    calls,
    communicating,
    devices,
    during,
    named,
    on_host,
    reading,
)
from .holes import CAUSES, THRESHOLD, Cause, Gaps, Holes, Sum
from .launches import Launches, Links
from .nest import Nest
from .waits import Blocking

# After a synchronisation a host needs a moment to launch again: an operator's Python, dispatch,
# allocation and the call itself, 10 to 100 us. What takes longer is not the synchronisation's.
_AFTERWARDS = 100_000  # ns
# Launched so long before it began, and on an idle device, work was held up by something else.
_LATENCY = 100_000  # ns
_ROUNDING = 1000  # ns, of files in whole microseconds


def gaps_of(events: Events) -> Gaps:
    """All moments of a device's span at which it has no work."""
    parts: list[tuple[np.ndarray, ...]] = []
    for device, rows in by_device(events):
        starts, ends = events.start[rows], events.end[rows]
        until = np.maximum.accumulate(ends)
        # Which ended last so far: where the maximum grew, that one.
        grew = np.append(True, until[1:] > until[:-1])
        last = np.maximum.accumulate(np.where(grew, np.arange(len(rows)), 0))
        after = np.flatnonzero(starts[1:] > until[:-1]) + 1
        parts.append(
            (np.full(len(after), device, np.int64), until[after - 1], starts[after],
             rows[last[after - 1]], rows[after])
        )  # fmt: skip
    if not parts:
        parts = [tuple(np.empty(0, np.int64) for _ in range(5))]
    return Gaps(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def holes_of(
    events: Events, links: Links, nest: Nest, launches: Launches | None, blocking: Blocking, *,
    threshold: int = THRESHOLD,
) -> Holes | None:  # fmt: skip
    """All holes longer than the threshold (ns), with causes; None without device work."""
    if launches is None:
        return None
    gaps = gaps_of(events)
    length = gaps.end - gaps.start
    long = length > threshold
    brief = Sum(int((~long).sum()), int(length[~long].sum()))
    gaps = gaps[long]
    cause, culprit = _Ruling(events, links, nest, launches, blocking, gaps).rule()
    who = np.where(culprit >= 0, events.name[culprit], -1).astype(np.int32)
    call = links.call_of[gaps.after]
    return Holes(threshold, brief, gaps, cause, call, culprit, who, events.names)


class _Ruling:
    """The rules, each tried on all holes that have no cause yet."""

    def __init__(
        self, events: Events, links: Links, nest: Nest, launches: Launches, blocking: Blocking,
        gaps: Gaps,
    ) -> None:  # fmt: skip
        self.events, self.gaps, self.blocking = events, gaps, blocking
        self.length = gaps.end - gaps.start
        self.call = links.call_of[gaps.after]
        self.cause = np.full(len(gaps), -1, np.int8)
        self.culprit = np.full(len(gaps), -1, np.int64)
        # Clocks that differ by half a hole or more say nothing of who was late.
        trusted = 2 * launches.skew < self.length
        self.known = (self.call >= 0) & trusted
        launched = events.start[self.call]
        took = gaps.end - launched
        lingered = 2 * took > np.maximum(2 * _LATENCY, self.length)
        too_short = took <= 2 * (launches.delays.least if launches.delays else 0)
        within = np.minimum(events.end[self.call], gaps.end) - np.maximum(launched, gaps.start)
        self.launching = self.known & (2 * within > self.length)
        self.late = self.known & (((launched >= gaps.start) & ~lingered) | too_short)
        # The host's part ends with the launch; of work that was queued, all of the hole is asked.
        self.until = np.where(self.late, np.clip(launched, gaps.start, gaps.end), gaps.end)
        thread = np.where(self.call >= 0, self.call, nest.busiest())
        self.trusted = trusted & (thread >= 0)
        self.thread = np.where(self.trusted, thread, -1)
        self.nest = nest

    def rule(self) -> tuple[np.ndarray, np.ndarray]:
        events = self.events
        self._most_of(Cause.TRACER, named(events, TRACING, on_host(events)))
        host = on_host(events)
        sends, reads = named(events, COLLECTIVE, host), reading(events)
        allocates = calls(events, ALLOCATION)
        tells = host & ~named(events, PROFILER_STEP, host, whole=True)
        sending, loading, allocating, covering = self._covered_by(sends, reads, allocates, tells)
        self._give(Cause.COMMUNICATION, sending >= 0, sending)
        # What was launched before the hole was not kept from it by what the host did.
        in_time = self.known & ~self.late
        self._give(Cause.READING, (loading >= 0) & ~in_time, loading)
        self._most_of(Cause.READING, reads, unless=in_time)
        self._give(Cause.ALLOCATION, (allocating >= 0) & ~in_time, allocating)
        self._elsewhere()
        self._after_waiting()
        self._copying()
        self._give(Cause.HOST, self.launching, self.call)
        self._give(Cause.HOST, self.late, covering)
        self._give(Cause.TRACER, self.known, self.call)
        self._give(Cause.UNKNOWN, np.ones(len(self.gaps), bool), covering)
        return self.cause, self.culprit

    def _share(self, rows: np.ndarray) -> np.ndarray:
        """Whether an event covers more than half of the host's part of each hole."""
        there = rows >= 0
        start = np.maximum(self.events.start[rows], self.gaps.start)
        end = np.minimum(self.events.end[rows], self.until)
        return there & (2 * (end - start) > self.until - self.gaps.start)

    def _covered_by(self, *groups: np.ndarray) -> list[np.ndarray]:
        """Of each group of events the innermost that covers most of a hole, -1 of none.

        On the thread that launches; what covers more than half is under way in the middle.
        """
        found = [np.full(len(self.gaps), -1, np.int64) for _ in groups]
        middle = self.gaps.start + (self.until - self.gaps.start) // 2
        for rows in self.nest.upwards(self.nest.innermost(self.thread, middle)):
            share = self._share(rows)
            for at, group in enumerate(groups):
                new = share & group[rows] & (found[at] < 0)
                found[at][new] = rows[new]
        return found

    def _give(self, cause: Cause, holes: np.ndarray, culprit: np.ndarray) -> None:
        """To those of the holes that have none yet."""
        mine = holes & (self.cause < 0)
        self.cause[mine] = CAUSES.index(cause)
        self.culprit[mine] = culprit[mine]

    def _most_of(self, cause: Cause, rows: np.ndarray, unless: np.ndarray | bool = False) -> None:
        """Such events, on any thread, cover more than half of it together."""
        chosen = np.flatnonzero(rows)
        if not len(chosen):
            return
        covered = during(self.events, chosen).within(self.gaps.start, self.until)
        most = self.trusted & (2 * covered > self.until - self.gaps.start)
        begun = np.searchsorted(self.events.start[chosen], self.until) - 1
        self._give(cause, most & ~np.bool_(unless), chosen[np.maximum(begun, 0)])

    def _elsewhere(self) -> None:
        """Other devices copy, or communicate, for more than half of it."""
        events = self.events
        if len(devices(events)) < 2:
            return
        copies = events.kind == Kind.COPY
        sends = communicating(events)
        for cause, kind in ((Cause.COPY, copies), (Cause.COMMUNICATION, sends)):
            # Never its own: it has no work in a hole.
            chosen = np.flatnonzero(kind)
            if len(chosen):
                covered = during(events, chosen).within(self.gaps.start, self.gaps.end)
                begun = np.searchsorted(events.start[chosen], self.gaps.end) - 1
                self._give(cause, 2 * covered > self.length, chosen[np.maximum(begun, 0)])

    def _after_waiting(self) -> None:
        """The host waited for the device when its work ended, and launched soon after it."""
        events, until = self.events, self.until
        waits = np.flatnonzero(self.blocking.waits_for_device)
        asked = np.flatnonzero(self.late & (self.cause < 0))
        thread = _threads(events, np.concatenate([waits, self.thread[asked]]))
        waits = waits[np.argsort(events.end[waits], kind="stable")]
        by_thread = {int(thread[mine[0]]): mine for mine in alike(thread, waits)}
        found = np.full(len(self.gaps), -1, np.int64)
        for holes in alike(thread[self.thread], asked):
            mine = by_thread.get(int(thread[self.thread[holes[0]]]))
            if mine is not None:
                at = np.searchsorted(events.end[mine], until[holes], side="right") - 1
                found[holes] = np.where(at >= 0, mine[np.maximum(at, 0)], -1)
        ended = events.end[found]
        there = (found >= 0) & (ended >= self.gaps.start - _ROUNDING)
        cause = self.blocking.cause[found]
        soon = until - ended <= _AFTERWARDS
        self._give(Cause.SYNCHRONISATION, there & soon, np.where(cause >= 0, cause, found))

    def _copying(self) -> None:
        """What follows is a copy whose call the host was in for most of it: it stages the bytes."""
        ways = (Direction.TO_DEVICE, Direction.TO_HOST)
        staged = np.isin(self.events.direction[self.gaps.after], ways)
        self._give(Cause.COPY, self.launching & staged, self.call)


def _threads(events: Events, rows: np.ndarray) -> np.ndarray:
    """(event,) of these rows: a number of their thread."""
    number = np.full(len(events), -1, np.int64)
    pairs = np.stack([events.process[rows], events.thread[rows]], axis=1)
    number[rows] = np.unique(pairs, axis=0, return_inverse=True)[1].ravel()
    return number
