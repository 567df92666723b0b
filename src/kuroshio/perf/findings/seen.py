"""What rules look at, and the few questions that several of them ask of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ..roofline import Judgement
from ..timeline.analysis import Analysis
from ..timeline.groups import alike, computing, during
from ..timeline.holes import CAUSES, Cause, Gaps
from ..timeline.intervals import Intervals
from ..timeline.kernels import Kernel
from ..traces.events import ABSENT, Kind
from .finding import MOST_PLACES, Place

# A change that saves less of the whole is not worth one: removing all of it would make the program
# 1.05 times as fast, which a measurement on a shared machine barely tells from none. Profilers'
# own advisers say the same of data loading.
WORTH = 0.05
_NO_ROWS = np.empty(0, np.int64)
_NAMES = 5


@dataclass(frozen=True)
class Exposed:
    """Of one device: when it was at some work, and when no computation of its own covered that.

    whose  of several devices which one, as a sentence begins; nothing of one
    """

    whose: str
    when: Intervals
    bare: Intervals
    compute: Intervals

    @property
    def covered(self) -> int:
        """ns"""
        return self.when.total - self.bare.total

    def most(self, span: int) -> int:
        """ns of a span that doing without all of it could save: computation remains."""
        return min(self.when.total, span - self.compute.total)

    @property
    def room(self) -> int:
        """ns of it that computation which covers none yet could cover."""
        return min(self.bare.total, self.compute.total - self.covered)


@dataclass(frozen=True)
class Seen:
    """One trace's analysis, what else is known of its kernels, and which of the traces it is.

    judged  kernels held to the roofs of a device, by name; empty without counters or ceilings
    """

    analysis: Analysis
    trace: int = 0
    judged: Mapping[str, Judgement] = field(default_factory=dict)

    @property
    def span(self) -> int:
        """ns from the first to the last work of devices; 0 of none."""
        return self.analysis.work.span if self.analysis.work else 0

    def worth(self, time: int) -> bool:
        """Whether it could save as much of the span as is worth a change."""
        return time > WORTH * self.span

    def caused(self, *causes: Cause) -> np.ndarray:
        """Numbers of the holes with one of these causes."""
        holes = self.analysis.holes
        if holes is None:
            return _NO_ROWS
        return np.flatnonzero(np.isin(holes.cause, [CAUSES.index(each) for each in causes]))

    def idle(self, holes: np.ndarray) -> int:
        """ns in these holes; see `idle_in`."""
        table = self.analysis.holes
        return self.idle_in(table.gaps[holes]) if table else 0

    def idle_in(self, gaps: Gaps) -> int:
        """ns in these, of the device that has most: devices idle at once, not in turn.

        No more than `room`: what the busiest device has to do remains.
        """
        if not len(gaps):
            return 0
        _, device = np.unique(gaps.device, return_inverse=True)
        total = np.zeros(device.max() + 1, np.int64)
        np.add.at(total, device, gaps.end - gaps.start)
        return min(int(total.max()), self.room())

    def room(self, activity: np.ndarray | None = None, copies: bool = True) -> int:
        """ns that a change on the host could save at the most, with other holes that shrink.

        What streams do remains, one after the other. Where the change is to an activity (a mask of
        events), no more than the time at which any of it is under way: on the way of waits from the
        first work to the last there is no more of it.

        copies  False: they are moved to a stream of their own
        """
        rest = self.span - self._busiest[copies]
        if activity is None:
            return rest
        return min(rest, during(self.analysis.trace.events, activity).total)

    @cached_property
    def _busiest(self) -> tuple[int, int]:
        """ns of the work of the stream that has most, without copies and with them.

        Kinds of work whose stream is not told are of one each: they may be under way at once.
        """
        events = self.analysis.trace.events
        without = with_copies = 0
        for of_device in alike(events.device, np.flatnonzero(events.on_device)):
            for rows in alike(events.stream, of_device):
                told = events.stream[rows[0]] != ABSENT
                for mine in [rows] if told else alike(events.kind, rows):
                    others = mine[events.kind[mine] != Kind.COPY]
                    with_copies = max(with_copies, during(events, mine).total)
                    without = max(without, during(events, others).total)
        return without, with_copies

    def saved(self, rows: np.ndarray, time: np.ndarray) -> int:
        """ns that these events, each its `time` shorter, could save: of the device that has most.

        Devices work at once, and so do streams: no more than the time at which any of them runs.
        """
        events = self.analysis.trace.events
        each = np.zeros(len(events), np.float64)
        each[rows] = time
        return max(
            (
                min(int(each[mine].sum()), during(events, mine).total)
                for mine in alike(events.device, rows)
            ),
            default=0,
        )

    def exposed(self, chosen: np.ndarray) -> Exposed | None:
        """Of these events, a mask, on the device where most is exposed; None without computation.

        What another device computes hides nothing. Where it is not told whose the events are, or
        theirs computes nothing, any computation may be theirs.
        """
        events = self.analysis.trace.events
        computes = np.flatnonzero(computing(events))
        if not len(computes) or not chosen.any():
            return None
        of_device = {int(events.device[rows[0]]): rows for rows in alike(events.device, computes)}
        several = len(self.analysis.devices) > 1
        found = []
        for rows in alike(events.device, np.flatnonzero(chosen)):
            device = int(events.device[rows[0]])
            mine = computes if device == ABSENT else of_device.get(device, computes)
            when, compute = during(events, rows), during(events, mine)
            whose = f"On device {device}: " if several and device != ABSENT else ""
            found.append(Exposed(whose, when, when - compute, compute))
        return max(found, key=lambda each: each.bare.total)

    def stretches(self, moments: Intervals, what: str) -> tuple[Place, ...]:
        """The longest of these."""
        order = np.argsort(moments.starts - moments.ends, kind="stable")[:MOST_PLACES]
        starts, ends = moments.starts[order].tolist(), moments.ends[order].tolist()
        return tuple(
            Place(start, end, what, None, self.trace)
            for start, end in zip(starts, ends, strict=True)
        )

    def runs(self, rows: np.ndarray, what: Sequence[str]) -> tuple[Place, ...]:
        """The longest of these events, each with what there is to say of it."""
        events = self.analysis.trace.events
        order = np.argsort(-events.duration[rows], kind="stable")[:MOST_PLACES].tolist()
        return tuple(
            Place(
                int(events.start[rows[at]]), int(events.end[rows[at]]), what[at],
                int(events.device[rows[at]]), self.trace,
            )
            for at in order
        )  # fmt: skip

    def named(self, kernel: Kernel) -> np.ndarray:
        """The events that are runs of a kernel."""
        events = self.analysis.trace.events
        number = events.names.index(kernel.name)
        return np.flatnonzero((events.kind == Kind.KERNEL) & (events.name == number))

    def places(self, holes: np.ndarray) -> tuple[Place, ...]:
        """The longest of these holes."""
        table = self.analysis.holes
        if table is None:
            return ()
        order = np.argsort((table.gaps.start - table.gaps.end)[holes], kind="stable")[:MOST_PLACES]
        found = [table[at] for at in holes[order].tolist()]
        return tuple(
            Place(h.start, h.end, f"idle: {h.who or h.cause}", h.device, self.trace) for h in found
        )

    def who(self, holes: np.ndarray) -> tuple[str, ...]:
        """What the host was at in these holes, the most time first."""
        table = self.analysis.holes
        if table is None or not table.names:
            return ()
        told = holes[table.who[holes] >= 0]
        total = np.zeros(len(table.names), np.int64)
        np.add.at(total, table.who[told], (table.gaps.end - table.gaps.start)[told])
        order = np.argsort(-total, kind="stable")[:_NAMES]
        return tuple(table.names[at] for at in order.tolist() if total[at])
