"""Spans that are kept: bounded, without losing a second or a byte, and never one over another."""

from __future__ import annotations

import threading
from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kuroshio.recorder import Recorder

STAGES = ("read", "inflate", "smooth")
# Of one thread, one after the other: how long nothing, then how long which stage; microseconds.
SPAN = st.tuples(st.integers(0, 5000), st.integers(0, 900), st.sampled_from(STAGES))
WORK = st.lists(SPAN, max_size=9) | st.lists(SPAN, min_size=50, max_size=90)


def filled(work, most: int) -> Recorder:
    recorder = Recorder(most)
    at = recorder.begun_s
    for pause, length, stage in work:
        at += pause * 1e-6
        recorder.add(stage, at, at + length * 1e-6, length)
        at += length * 1e-6
    return recorder


def sums(recorder: Recorder) -> tuple[dict, dict]:
    """Nanoseconds and amounts by stage."""
    spans = recorder.spans()
    took, amounts = Counter(), Counter()
    for stage, ns, amount in zip(spans.stage, spans.stop - spans.start, spans.amount, strict=True):
        took[recorder.stages[stage]] += int(ns)
        amounts[recorder.stages[stage]] += int(amount)
    return dict(took), dict(amounts)


def assert_apart(recorder: Recorder) -> None:
    spans = recorder.spans()
    same = np.diff(spans.lane) == 0
    assert (spans.start[1:] >= spans.stop[:-1])[same].all()
    assert (spans.stop >= spans.start).all()


@given(WORK, st.integers(10, 30))
def test_merging_loses_no_time_and_no_bytes(work, most):
    whole, merged = filled(work, 1000), filled(work, most)
    # Their beginnings differ, and with them how the last digit of a float is rounded.
    took, amounts = sums(whole)
    took_merged, amounts_merged = sums(merged)
    assert amounts_merged == amounts
    assert took_merged.keys() == took.keys()
    assert all(abs(took[each] - took_merged[each]) <= 2 * len(work) for each in took)
    assert len(merged.spans()) <= most + most // 2
    assert (merged.window_ns > 0) == (len(work) > 10)
    assert whole.window_ns == 0
    assert_apart(merged)
    if work:
        first, last = (
            np.array([s.start.min(), s.stop.max()]) for s in map(Recorder.spans, (whole, merged))
        )
        assert abs(first[0] - last[0]) < 1000
        assert last[1] <= first[1] + 1000


def test_spans_are_as_they_were_reported():
    recorder = Recorder()
    recorder.add("read", recorder.begun_s + 0.001, recorder.begun_s + 0.002, 7)
    recorder.add("device copy", recorder.begun_s + 1, recorder.begun_s + 2, 8, "cuda:1")
    recorder.add("device copy", recorder.begun_s + 1, recorder.begun_s + 2, 9, "cuda:0")
    recorder.add("device inflate", recorder.begun_s + 1, recorder.begun_s + 2, 9, "cuda:0", 1)
    spans = recorder.spans()
    assert [lane.name for lane in recorder.lanes][1:] == [
        "device copy", "device copy", "device inflate 2",
    ]  # fmt: skip
    assert [lane.device for lane in recorder.lanes] == ["", "cuda:1", "cuda:0", "cuda:0"]
    assert [lane.main for lane in recorder.lanes] == [True, False, False, False]
    assert abs(spans.start[0] - 1_000_000) < 100
    assert abs(spans.stop[0] - 2_000_000) < 100
    assert spans.amount.tolist() == [7, 8, 9, 9]


def test_threads_have_lanes_of_their_own():
    recorder = Recorder()
    recorder.add("read", 1.0, 2.0, 0)
    other = threading.Thread(target=recorder.add, args=("read", 1.0, 2.0, 0), name="other")
    other.start()
    other.join()
    recorder.add("read", 2.0, 3.0, 0)
    assert [lane.name for lane in recorder.lanes] == [threading.current_thread().name, "other"]
    assert recorder.spans().lane.tolist() == [0, 0, 1]


@given(st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 900)), min_size=1, max_size=30))
def test_a_lane_is_at_work_whenever_anything_of_it_is_under_way(spans):
    """Copies that threads ask of one stream lie between events that overlap."""
    recorder = Recorder()
    for start, length in spans:
        at = recorder.begun_s + start * 1e-6
        recorder.add("device copy", at, at + length * 1e-6, 1, "cuda:0")
    kept = recorder.spans()
    assert_apart(recorder)
    moments = {us for start, length in spans for us in range(start, start + length)}
    assert abs((kept.stop - kept.start).sum() - 1000 * len(moments)) <= 4 * len(spans)
    assert abs(kept.stop.max() - 1000 * max(map(sum, spans))) <= 2
    assert kept.amount.sum() == len(spans)
