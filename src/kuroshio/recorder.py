"""What each thread and each stream of a device was doing, and when: the spans of an account, kept.

A span takes 40 bytes. Beyond MOST_SPANS and the few that came last they are merged: time is cut
into windows, wide enough that half as many are left, and what a lane did of a stage in a window
becomes one span. Seconds and bytes stay as they were; only the order within a window is lost.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

import numpy as np

MOST_SPANS = 500_000
_FIRST_WINDOW_NS = 1_000_000
_TOGETHER = 10_000  # are packed at a time; until then a span takes 200 bytes


@dataclass(frozen=True)
class Lane:
    """A thread, or what one device does of one stage; `device` is empty for threads."""

    name: str
    device: str = ""
    main: bool = False  # the thread that began the run


@dataclass(frozen=True)
class Spans:
    """Columns with a row a span, in order of lane and start; times are ns since the beginning.

    lane, stage   int64, of the recorder's `lanes` and `stages`
    start, stop   int64; those of a lane do not overlap
    amount        int64, as it was reported: bytes, or values of stages that count those
    """

    lane: np.ndarray
    stage: np.ndarray
    start: np.ndarray
    stop: np.ndarray
    amount: np.ndarray

    def __len__(self) -> int:
        return len(self.lane)


class Recorder:
    """Not safe from several threads: the account has a lock.

    begun_s, begun_ns  when it began: by perf_counter, and nanoseconds of the epoch
    window_ns          of the windows that spans were merged in; 0: none were
    """

    def __init__(self, most: int = MOST_SPANS) -> None:
        self.begun_s, self.begun_ns = time.perf_counter(), time.time_ns()
        self.most, self.window_ns = max(most, 2), 0
        self._together = min(_TOGETHER, self.most // 2)
        self._main = threading.get_ident()
        self.lanes: list[Lane] = []
        self.stages: list[str] = []
        self._lane_of: dict[object, int] = {}
        self._stage_of: dict[str, int] = {}
        self._new: list[tuple[int, str, float, float, int]] = []
        self._columns = np.empty((0, 5), np.int64)

    def add(
        self, stage: str, start_s: float, stop_s: float, amount: int, device: str = "",
        stream: int = 0,
    ) -> None:  # fmt: skip
        """A span of the calling thread, or of a device; seconds by perf_counter."""
        key: object = (device, stage, stream) if device else threading.get_ident()
        if key not in self._lane_of:
            self._begin_lane(key, stage, device, stream)
        self._new.append((self._lane_of[key], stage, start_s, stop_s, amount))
        if len(self._new) == self._together:
            self._pack()
            if len(self._columns) > self.most:
                self._merge()

    @property
    def elapsed_ns(self) -> int:
        """Since the beginning."""
        return round((time.perf_counter() - self.begun_s) * 1e9)

    def spans(self) -> Spans:
        """All that was kept.

        A lane is never at two things at once. What several threads ask of one stream lies between
        events of theirs that overlap: then the later span begins when the earlier one has ended,
        so that a lane is as long at work as anything of it was under way, and never beyond.
        """
        self._pack()
        lane, stage, start, stop, amount = self._columns.T
        order = np.lexsort((stop, start, lane))
        lane, start, stop = lane[order], start[order], stop[order]
        for each in range(len(self.lanes)):
            mine = slice(*np.searchsorted(lane, [each, each + 1]))
            stop[mine] = np.maximum.accumulate(stop[mine])
            start[mine][1:] = np.maximum(start[mine][1:], stop[mine][:-1])
        return Spans(lane, stage[order], start, stop, amount[order])

    def _begin_lane(self, key: object, stage: str, device: str, stream: int) -> None:
        self._lane_of[key] = len(self.lanes)
        name = stage if device else threading.current_thread().name
        name += f" {stream + 1}" if stream else ""
        self.lanes.append(Lane(name, device, main=key == self._main))

    def _pack(self) -> None:
        """What was added last, to the columns: many at a time, since threads wait meanwhile."""
        if not self._new:
            return
        lane, stages, start_s, stop_s, amount = zip(*self._new, strict=True)
        for each in stages:
            if each not in self._stage_of:
                self._stage_of[each] = len(self.stages)
                self.stages.append(each)
        start, stop = (
            np.round((np.array(at) - self.begun_s) * 1e9).astype(np.int64)
            for at in (start_s, stop_s)
        )
        stage = [self._stage_of[each] for each in stages]
        rows = np.stack([lane, stage, start, np.maximum(start, stop), amount], axis=1)
        self._columns = np.concatenate([self._columns, rows])
        self._new.clear()

    def _merge(self) -> None:
        """Windows of twice the width, and again, until there is room for as many as there are."""
        spans, left = self.spans(), len(self._columns)
        while left > self.most // 2:
            self.window_ns = 2 * self.window_ns or _FIRST_WINDOW_NS
            merged = _merged(spans, self.window_ns)
            if len(merged) == left and merged.start.size and np.ptp(merged.start) < self.window_ns:
                break  # as many lanes and stages as there may be spans
            left = len(merged)
        self._columns = np.stack(
            [merged.lane, merged.stage, merged.start, merged.stop, merged.amount], axis=1
        )


def _merged(spans: Spans, window_ns: int) -> Spans:
    """One span of each lane and stage in each window; a window's lie one after the other."""
    window = spans.start // window_ns
    key = np.stack([spans.lane, window, spans.stage])
    groups, first, which = np.unique(key, axis=1, return_index=True, return_inverse=True)
    which = which.reshape(-1)
    took, amount = (np.zeros(len(first), np.int64) for _ in range(2))
    np.add.at(took, which, spans.stop - spans.start)
    np.add.at(amount, which, spans.amount)
    order = np.argsort(first)  # spans are in order, so groups come as they began
    lane, window, stage = groups[:, order]
    took, amount, start = took[order], amount[order], spans.start[first[order]]
    opens = np.concatenate([[True], (np.diff(lane) != 0) | (np.diff(window) != 0)])
    before = np.cumsum(took) - took
    start = (start - before)[np.maximum.accumulate(np.where(opens, np.arange(len(opens)), 0))]
    start += before
    return Spans(lane, stage, start, start + took, amount)
