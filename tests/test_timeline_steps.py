"""Steps, where they come from, and parts that add up to them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuroshio.perf.timeline.analysis import analyse
from kuroshio.perf.timeline.steps import Part, Source
from kuroshio.perf.traces.events import Direction, Events, Kind, joined
from timelines import DEVICE_NAMES, analysed, device_events, moments, rows_where
from traces_made import MS, US, Made, healthy

HOST_NAMES = (
    "ProfilerStep#1", "aten::mm", "DataLoader.__next__", "cudaStreamSynchronize", "gloo:all_reduce",
)  # fmt: skip
HOST_KINDS = (Kind.ANNOTATION, Kind.OPERATOR, Kind.OPERATOR, Kind.CALL, Kind.OPERATOR)


@st.composite
def whole_traces(draw) -> Events:
    """Device work, one step, and a host that computes, reads, waits and launches."""
    rows = draw(
        st.lists(st.tuples(st.integers(1, 4), st.integers(0, 45), st.integers(0, 15)), max_size=8)
    )
    rows.append((0, draw(st.integers(0, 20)), draw(st.integers(1, 40))))
    host = Events.of(
        HOST_NAMES,
        kind=[HOST_KINDS[name] for name, *_ in rows],
        name=[name for name, *_ in rows],
        start=[start for _, start, _ in rows],
        end=[start + length for _, start, length in rows],
        process=[1 for _ in rows],
        thread=[1 for _ in rows],
    )
    return joined([draw(device_events(most=8)), host]).in_order()


@given(whole_traces())
def test_parts_are_what_a_count_of_nanoseconds_says(events):
    made = analyse(Made().trace()).trace
    steps = analyse(type(made)(made.path, made.form, events)).steps
    (step,) = steps.steps
    within = set(range(step.start, step.end))
    if not events.on_device.any():
        assert step.parts == steps.bounds == {}
        return
    assert sum(step.parts.values()) == step.end - step.start

    def when(*names: str) -> set[int]:
        return moments(events, rows_where(events, lambda row: events.named(row) in names))

    left = set(within)
    host = rows_where(events, lambda row: events.kind[row] >= Kind.CALL)
    extent = set(
        range(min(int(events.start[r]) for r in host), max(int(events.end[r]) for r in host))
    )
    gemm, send, copy, fill = DEVICE_NAMES
    counted: Counter[Part] = Counter()
    for part, mine in (
        (Part.COMPUTE, when(gemm)),
        (Part.COMMUNICATION, when(send)),
        (Part.COPIES, when(copy, fill)),
        (Part.WAITING, when("cudaStreamSynchronize")),
        (Part.COMMUNICATION, when("gloo:all_reduce")),
        (Part.READING, when("DataLoader.__next__")),
        (Part.PREPARATION, extent),
        (Part.UNKNOWN, within),
    ):
        counted[part] += len(left & mine)
        left -= mine
    assert step.parts == {part: counted[part] for part in Part}


def test_a_profilers_steps_last_until_the_next_begins():
    steps = analysed(healthy(steps=4)).steps
    assert steps.source is Source.ANNOTATIONS
    assert [step.name for step in steps.steps] == [f"ProfilerStep#{n}" for n in range(4)]
    for step, following in zip(steps.steps, steps.steps[1:], strict=False):
        assert step.end == following.start
    assert steps.total == sum(step.end - step.start for step in steps.steps)
    # The last one lasts until its work has ended.
    assert steps.steps[-1].parts[Part.COMPUTE] > 4 * MS


def test_a_pause_that_is_longer_than_a_step_belongs_to_none():
    made = Made()
    for start in (0, 1 * MS, 50 * MS):
        made.annotation(f"ProfilerStep#{start}", start, start + 900 * US)
        made.launch("k", start, 800 * US)
    steps = analysed(made).steps
    assert [step.end - step.start for step in steps.steps] == [1 * MS, 900 * US, 900 * US]


def annotated(*names: str, count: int = 5, lasts: int = 900 * US) -> Made:
    made = Made()
    for number in range(count):
        start = number * MS
        each = lasts // len(names)
        for at, name in enumerate(names):
            begin = start + at * each
            made.annotation(name.replace("#", str(number)), begin, begin + each)
        made.launch("k", start, 800 * US)
    return made


@pytest.mark.parametrize("name", ["train_step", "epoch #", "iteration #/10"])
def test_ranges_that_follow_each_other_are_steps(name):
    steps = analysed(annotated(name)).steps
    assert steps.source is Source.ANNOTATIONS
    assert len(steps.steps) == 5


def test_phases_of_a_step_are_none():
    steps = analysed(annotated("forward", "backward")).steps
    assert steps.source is not Source.ANNOTATIONS


def test_ranges_that_overlap_are_no_steps():
    made = annotated("train_step")
    made.annotation("train_step", 100 * US, 200 * US, thread=2)
    assert analysed(made).steps.source is not Source.ANNOTATIONS


def repeating(names: str, times: int = 6) -> Made:
    made, at = Made(), 0
    for _ in range(times):
        at += 300 * US
        for name in names:
            at = made.launch(name, at, 50 * US)
    return made


def test_periods_of_kernels_begin_after_the_longest_pause():
    analysis = analysed(repeating("aabcabd"))
    steps = analysis.steps
    assert steps.source is Source.PERIODS
    assert [step.start for step in steps.steps] == [
        number * (300 * US + 7 * 55 * US) + 300 * US + 5 * US for number in range(5)
    ]
    assert len(steps.steps) == 5  # where the last one ends is not known
    assert {step.end - step.start for step in steps.steps} == {300 * US + 7 * 55 * US}
    assert all(step.row is not None for step in steps.steps)
    for step in steps.steps:
        assert step.parts[Part.PREPARATION] >= 290 * US


def test_the_period_is_of_the_step_and_not_of_its_layers():
    steps = analysed(repeating("e" + "abc" * 8 + "f")).steps
    assert steps.source is Source.PERIODS
    assert len(steps.steps) == 5


@pytest.mark.parametrize("names", ["a", "abcdefghij"])
def test_one_kernel_again_and_again_or_never_again_is_no_step(names):
    steps = analysed(repeating(names, times=40 if names == "a" else 1)).steps
    assert steps.source is Source.WHOLE
    (step,) = steps.steps
    assert sum(step.parts.values()) == step.end - step.start == steps.total


def test_two_repeats_are_no_rule():
    assert analysed(repeating("abcd", times=2)).steps.source is Source.WHOLE


def test_random_kernels_are_no_period():
    random = np.random.default_rng(3)
    made, at = Made(), 0
    for _ in range(300):
        at = made.launch("abcdefgh"[random.integers(8)], at, 50 * US)
    assert analysed(made).steps.source is Source.WHOLE


def test_bounds_are_amdahls():
    made = Made()
    made.annotation("ProfilerStep#1", 0, 4 * MS)
    made.operator("DataLoader.__next__", 0, 3 * MS)
    made.launch("k", 3 * MS - made.delay, 1 * MS)
    bounds = analysed(made).steps.bounds
    reading, compute = bounds[Part.READING], bounds[Part.COMPUTE]
    assert compute.time == 1 * MS
    # The launch's latency is no reading: once the call has returned, the work is queued.
    assert reading.time == 3 * MS - made.delay + made.launching
    assert compute.vanished == pytest.approx(4 / 3)
    assert compute.halved == pytest.approx(4 / 3.5)
    assert compute.faster(2) == pytest.approx(compute.halved)
    assert compute.faster(float("inf")) == pytest.approx(compute.vanished)
    assert bounds[Part.COPIES].vanished == bounds[Part.COPIES].halved == 1.0


def test_a_part_that_is_all_has_no_bound():
    made = Made()
    made.annotation("ProfilerStep#1", 0, 1 * MS)
    made.kernel("k", 0, 1 * MS)
    assert analysed(made).steps.bounds[Part.COMPUTE].vanished is None


def test_what_no_host_event_covers_is_not_recorded():
    made = Made()
    made.kernel("k", 0, 1 * MS)
    made.kernel("k", 3 * MS, 1 * MS)
    steps = analysed(made).steps
    assert steps.bounds[Part.UNKNOWN].time == 2 * MS
    assert steps.bounds[Part.PREPARATION].time == 0


def test_work_that_is_queued_on_an_idle_device_waits():
    made = Made()
    end = made.launch("k", 0, 1 * MS)
    made.launch("k", 100 * US, 1 * MS, begins=end + 500 * US)
    made.operator("DataLoader.__next__", 200 * US, 4 * MS)
    bounds = analysed(made).steps.bounds
    assert bounds[Part.WAITING].time == 500 * US
    assert bounds[Part.READING].time == 0


def test_a_launching_call_is_the_hosts_work():
    made = Made()
    end = made.launch("k", 0, 1 * MS)
    made.launching = 6 * MS
    made.launch("loaded at its first launch", end, 1 * MS, begins=end + 7 * MS)
    bounds = analysed(made).steps.bounds
    assert bounds[Part.PREPARATION].time == 6 * MS
    assert bounds[Part.WAITING].time == 1 * MS


def test_exposed_copies_only():
    made = Made()
    made.annotation("ProfilerStep#1", 0, 1 * MS)
    made.kernel("k", 0, 400 * US)
    made.copy(Direction.TO_DEVICE, 0, 600 * US, stream=9, begins=300 * US)
    assert analysed(made).steps.bounds[Part.COPIES].time == 500 * US


def test_a_trace_of_the_host_alone_has_steps_without_parts():
    made = Made()
    made.annotation("ProfilerStep#1", 0, 1 * MS)
    steps = analysed(made).steps
    assert (len(steps.steps), steps.bounds, steps.steps[0].parts) == (1, {}, {})
