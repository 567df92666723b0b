"""What each thread and each stream of a device was doing, and when: the spans of an account, kept.

A span takes 40 bytes. Beyond MOST_SPANS they are merged: time is cut into windows, wide enough that
half as many are left, and what a lane did of a stage in a window becomes one span. Seconds and
bytes stay as they were; only the order within a window is lost.
"""

from __future__ import annotations

import threading
import time
from array import array
from dataclasses import dataclass

import numpy as np

MOST_SPANS = 500_000
_FIRST_WINDOW_NS = 1_000_000


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
        self._main = threading.get_ident()
        self.lanes: list[Lane] = []
        self.stages: list[str] = []
        self._lane_of: dict[object, int] = {}
        self._stage_of: dict[str, int] = {}
        self._columns = tuple(array("q") for _ in range(5))

    def add(
        self, stage: str, start_s: float, stop_s: float, amount: int, device: str = "",
        stream: int = 0,
    ) -> None:  # fmt: skip
        """A span of the calling thread, or of a device; seconds by perf_counter."""
        start, stop = (round((at - self.begun_s) * 1e9) for at in (start_s, stop_s))
        row = (
            self._lane(stage, device, stream),
            self._stage(stage),
            start,
            max(stop, start),
            amount,
        )
        for column, value in zip(self._columns, row, strict=True):
            column.append(value)
        if len(self._columns[0]) > self.most:
            self._merge()

    @property
    def elapsed_ns(self) -> int:
        """Since the beginning."""
        return round((time.perf_counter() - self.begun_s) * 1e9)

    def spans(self) -> Spans:
        """All that was kept.

        A stream does one thing after the other. Where the few digits of its clock say otherwise,
        the later span begins when the earlier one has ended, and is as long as it was.
        """
        lane, stage, start, stop, amount = (np.array(column) for column in self._columns)
        order = np.lexsort((stop, start, lane))
        lane, start, took = lane[order], start[order], (stop - start)[order]
        for each in range(len(self.lanes)):
            mine = slice(*np.searchsorted(lane, [each, each + 1]))
            before = np.cumsum(took[mine]) - took[mine]
            start[mine] = np.maximum.accumulate(start[mine] - before) + before
        return Spans(lane, stage[order], start, start + took, amount[order])

    def _lane(self, stage: str, device: str, stream: int) -> int:
        key: object = (device, stage, stream) if device else threading.get_ident()
        if key not in self._lane_of:
            self._lane_of[key] = len(self.lanes)
            name = stage if device else threading.current_thread().name
            name += f" {stream + 1}" if stream else ""
            self.lanes.append(Lane(name, device, main=key == self._main))
        return self._lane_of[key]

    def _stage(self, stage: str) -> int:
        if stage not in self._stage_of:
            self._stage_of[stage] = len(self.stages)
            self.stages.append(stage)
        return self._stage_of[stage]

    def _merge(self) -> None:
        """Windows of twice the width, and again, until there is room for as many as there are."""
        spans, left = self.spans(), len(self._columns[0])
        while left > self.most // 2:
            self.window_ns = 2 * self.window_ns or _FIRST_WINDOW_NS
            merged = _merged(spans, self.window_ns)
            if len(merged) == left and merged.start.size and np.ptp(merged.start) < self.window_ns:
                break  # as many lanes and stages as there may be spans
            left = len(merged)
        columns = (merged.lane, merged.stage, merged.start, merged.stop, merged.amount)
        self._columns = tuple(array("q", column.tobytes()) for column in columns)


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
