"""A pipeline's spans: the role with the most time, and whom it starves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuroshio.perf.timeline.stages import Role
from kuroshio.perf.traces.events import Direction
from timelines import analysed
from traces_made import MS, Made


def with_device(read: int, copy: int, compute: int, blocks: int = 5) -> Made:
    """Each block is read, copied and computed, and nothing of it overlaps."""
    made, at = Made(), 0
    for _ in range(blocks):
        made.stage("read", at, at + read)
        at += read
        made.copy(Direction.TO_DEVICE, 0, copy, begins=at, name="device copy")
        at += copy
        made.kernel("device compute", at, compute)
        at += compute
    return made


@pytest.mark.parametrize(
    ("times", "bound_by", "starves"),
    [
        ((5, 2, 1), Role.READING, Role.LINK),
        ((2, 5, 1), Role.LINK, Role.KERNEL),
        ((1, 2, 5), Role.KERNEL, None),
    ],
)
def test_who_starves_whom(times, bound_by, starves):
    pipeline = analysed(with_device(*(time * MS for time in times))).pipeline
    assert pipeline.on_device
    assert (pipeline.bound_by, pipeline.starves) == (bound_by, starves)
    assert pipeline.of == pipeline.total == 5 * sum(times) * MS
    assert sum(pipeline.parts.values()) == pipeline.of
    assert [pipeline.parts[role] for role in (Role.READING, Role.LINK, Role.KERNEL)] == [
        5 * time * MS for time in times
    ]


def test_what_a_kernel_covers_starves_nobody():
    made = Made()
    made.kernel("device compute", 0, 10 * MS)
    made.stage("read", 0, 10 * MS)
    made.stage("inflate", 2 * MS, 12 * MS, thread=2)
    pipeline = analysed(made).pipeline
    assert pipeline.bound_by is Role.KERNEL
    assert pipeline.parts[Role.READING] == 2 * MS


def test_threads_that_compute_are_no_kernel_where_a_device_computes():
    made = Made()
    made.kernel("device compute", 0, 2 * MS)
    made.stage("compute", 0, 9 * MS)
    made.stage("read", 5 * MS, 10 * MS, thread=2)
    pipeline = analysed(made).pipeline
    assert pipeline.parts[Role.KERNEL] == 2 * MS
    assert pipeline.bound_by is Role.READING


@pytest.mark.parametrize(
    ("stage", "role"),
    [("inflate", Role.READING), ("decode", Role.PREPARATION), ("compute", Role.KERNEL),
     ("compress", Role.OUTPUT), ("polish", Role.OTHER)],
)  # fmt: skip
def test_on_threads_it_is_their_time(stage, role):
    made = Made()
    for thread in (1, 2):
        made.stage("read", 0, 2 * MS, thread=thread)
        made.stage(stage, 2 * MS, 9 * MS, thread=thread)
    made.stage("write", 9 * MS, 10 * MS, thread=1)
    pipeline = analysed(made).pipeline
    assert not pipeline.on_device
    assert (pipeline.threads, pipeline.total, pipeline.of) == (2, 10 * MS, 20 * MS)
    assert pipeline.bound_by is role
    assert pipeline.parts[Role.WAITING] == 1 * MS
    assert sum(pipeline.parts.values()) == pipeline.of
    first = pipeline.stages[0]
    assert (first.name, first.spans, first.work, first.busy, first.lanes) == (
        stage, 2, 14 * MS, 7 * MS, 2,
    )  # fmt: skip


def test_threads_that_have_nothing_to_do_wait():
    made = Made()
    made.stage("read", 0, 10 * MS)
    for thread in (2, 3, 4):
        made.stage("compute", 9 * MS, 10 * MS, thread=thread)
    pipeline = analysed(made).pipeline
    assert (pipeline.bound_by, pipeline.starves) == (Role.WAITING, None)


@pytest.mark.parametrize(
    ("stage", "role"),
    [("compile", Role.COMPILING), ("start", Role.START), ("index", Role.READING)],
)
def test_while_one_thread_does_what_must_come_first_the_others_wait_for_that(stage, role):
    made = Made()
    made.stage(stage, 0, 10 * MS, thread=1)
    made.stage("decode", 8 * MS, 12 * MS, thread=2)
    made.stage("decode", 8 * MS, 9 * MS, thread=3)
    pipeline = analysed(made).pipeline
    assert (pipeline.threads, pipeline.total) == (3, 12 * MS)
    assert pipeline.parts[role] == (10 + 8 + 9) * MS
    assert pipeline.parts[Role.PREPARATION] == 5 * MS
    assert pipeline.parts[Role.WAITING] == 4 * MS
    assert (pipeline.bound_by, sum(pipeline.parts.values())) == (role, pipeline.of)


def test_moments_of_two_such_stages_count_once():
    made = Made()
    made.stage("start", 0, 10 * MS, thread=1)
    made.stage("compile", 5 * MS, 15 * MS, thread=2)
    pipeline = analysed(made).pipeline
    assert pipeline.parts[Role.START] == 10 * MS + 5 * MS
    assert pipeline.parts[Role.COMPILING] == 10 * MS + 5 * MS
    assert pipeline.parts[Role.WAITING] == 0


def test_other_traces_have_no_pipeline():
    made = Made()
    made.launch("k", 0, 1 * MS)
    assert analysed(made).pipeline is None


SPANS = st.lists(
    st.tuples(st.sampled_from(["read", "decode", "compute", "compile", "start", "x"]),
              st.integers(0, 9), st.integers(1, 9)), min_size=1, max_size=8,
)  # fmt: skip


@given(SPANS, st.lists(st.tuples(st.booleans(), st.integers(0, 9), st.integers(1, 9)), max_size=6))
def test_parts_always_add_up(spans, works):
    made = Made()
    at = 0
    for name, pause, length in spans:  # one thread does one thing at a time
        made.stage(name, at + pause, at + pause + length)
        at += pause + length
    for is_copy, start, length in works:
        if is_copy:
            made.copy(Direction.TO_DEVICE, 0, length, begins=start)
        else:
            made.kernel("device compute", start, length)
    pipeline = analysed(made).pipeline
    assert sum(pipeline.parts.values()) == pipeline.of
    assert all(time >= 0 for time in pipeline.parts.values())
