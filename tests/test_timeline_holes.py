"""Each cause of a hole on its own, and its twin of another cause."""

from __future__ import annotations

import pytest

from kuroshio.perf.timeline.causes import holes_of
from kuroshio.perf.timeline.holes import THRESHOLD, Cause
from kuroshio.perf.traces.events import Direction, Kind
from timelines import analysed
from traces_made import MS, US, Made


def only_hole(made: Made):
    analysis = analysed(made)
    assert len(analysis.holes) == 1, list(analysis.holes)
    hole = analysis.holes[0]
    assert sum(each.time for each in analysis.holes.by_cause.values()) == hole.duration
    return hole, analysis.trace.events


def two_kernels(pause: int = 2 * MS) -> tuple[Made, int, int]:
    """One launched so long after the other had ended; the made trace, and when the host is free.

    The host's events of between are still to be added.
    """
    made = Made()
    end = made.launch("first", 0, 100 * US)
    made.launch("second", end + pause, 100 * US)
    return made, end, end + pause


def test_back_to_back_kernels_leave_none():
    made = Made()
    for at in range(10):
        made.launch("k", at * 10 * US, 100 * US)
    holes = analysed(made).holes
    assert len(holes) == 0
    assert (holes.brief.count, holes.brief.time) == (0, 0)
    assert holes.by_cause == {}


def test_a_hole_of_the_threshold_is_brief():
    made = Made()
    end = made.launch("first", 0, 100 * US)
    made.launch("second", 20 * US, 100 * US, begins=end + THRESHOLD)
    end += THRESHOLD + 100 * US
    made.launch("third", 30 * US, 100 * US, begins=end + THRESHOLD + 1)
    holes = analysed(made).holes
    assert (holes.brief.count, holes.brief.time) == (1, THRESHOLD)
    assert [hole.duration for hole in holes] == [THRESHOLD + 1]


def test_the_host_launched_late():
    made, end, free = two_kernels()
    made.operator("forward", 0, free + 50 * US)
    made.operator("tokenize", end + 100 * US, free - 100 * US)
    made.operator("regex", end + 100 * US, end + 300 * US)
    hole, events = only_hole(made)
    assert (hole.cause, hole.who) == (Cause.HOST, "tokenize")
    assert (hole.start, hole.end, hole.device) == (end, free + made.delay, 0)
    assert events.named(hole.before) == "first"
    assert events.named(hole.after) == "second"
    assert events.start[hole.call] == free
    assert events.named(hole.culprit) == "tokenize"


def test_what_a_host_that_is_late_did_may_be_unknown():
    made, *_ = two_kernels()
    hole, _ = only_hole(made)
    assert (hole.cause, hole.who, hole.culprit) == (Cause.HOST, None, None)


def test_a_launch_that_came_shortly_before_the_hole_is_late_too():
    """It takes the launch's own latency to arrive, which nothing hid."""
    made = Made(delay=20 * US)
    end = made.launch("first", 0, 100 * US)
    made.launch("second", end - 2 * US, 100 * US)
    hole, _ = only_hole(made)
    assert (hole.cause, hole.duration) == (Cause.HOST, 18 * US)


def test_a_launching_call_that_takes_the_whole_hole_is_the_hosts():
    """The first launch of a kernel loads its code."""
    made = Made()
    end = made.launch("first", 0, 100 * US)
    made.launching = 3 * MS
    made.launch("second", end - 10 * US, 100 * US, begins=end + 3 * MS)
    hole, _ = only_hole(made)
    assert (hole.cause, hole.who) == (Cause.HOST, "cudaLaunchKernel")


LOADERS = [
    "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
    "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
    "## load_batch ##",
    "data_loading",
    "next_batch",
    "read",
]


@pytest.mark.parametrize("name", LOADERS)
def test_data_loading_is_known_by_its_name(name):
    made, end, free = two_kernels()
    made.operator(name, end + 100 * US, free - 100 * US)
    made.operator("decode_jpeg", end + 200 * US, free - 200 * US)
    hole, _ = only_hole(made)
    assert (hole.cause, hole.who) == (Cause.READING, name)


@pytest.mark.parametrize("name", ["spread", "thread_pool", "reader", "upload_data", "target_batch"])
def test_other_names_are_no_data_loading(name):
    made, end, free = two_kernels()
    made.operator(name, end + 100 * US, free - 100 * US)
    hole, _ = only_hole(made)
    assert (hole.cause, hole.who) == (Cause.HOST, name)


def test_a_call_that_prefetches_on_a_device_loads_no_data():
    made, end, free = two_kernels()
    made.call("cudaMemPrefetchAsync", end + 100 * US, free - 100 * US)
    hole, _ = only_hole(made)
    assert hole.cause is Cause.HOST


def test_many_short_reads_are_data_loading_together():
    made, end, free = two_kernels()
    for at in range(end, free - 100 * US, 100 * US):
        made.operator("read", at, at + 90 * US, thread=2)
    hole, _ = only_hole(made)
    assert (hole.cause, hole.who) == (Cause.READING, "read")


def test_reading_is_no_cause_of_holes_before_work_that_was_launched_in_time():
    made = Made()
    end = made.launch("first", 0, 1 * MS)
    made.launch("second", 100 * US, 100 * US, begins=end + 2 * MS)
    made.operator("load_data", 150 * US, 4 * MS)
    hole, _ = only_hole(made)
    assert hole.cause is Cause.TRACER


@pytest.mark.parametrize("name", ["cudaStreamSynchronize", "hipDeviceSynchronize"])
def test_a_synchronisation(name):
    made = Made()
    end = made.launch("first", 0, 1 * MS)
    until = made.wait(name, 50 * US)
    made.launch("second", until + 20 * US, 100 * US)
    hole, _ = only_hole(made)
    assert (hole.cause, hole.who, hole.start) == (Cause.SYNCHRONISATION, name, end)


def test_a_synchronisation_is_named_by_what_needs_it():
    made = Made()
    end = made.launch("loss", 0, 1 * MS)
    made.operator("aten::item", 40 * US, end + 40 * US)
    made.operator("aten::_local_scalar_dense", 42 * US, end + 39 * US)
    made.wait("cudaStreamSynchronize", 50 * US, until=end + 30 * US)
    made.launch("second", end + 60 * US, 100 * US)
    hole, _ = only_hole(made)
    assert (hole.cause, hole.who) == (Cause.SYNCHRONISATION, "aten::item")


def test_what_the_host_does_long_after_a_synchronisation_is_not_its():
    made = Made()
    made.launch("first", 0, 1 * MS)
    until = made.wait("cudaDeviceSynchronize", 50 * US)
    made.operator("plot", until, until + 5 * MS)
    made.launch("second", until + 5 * MS, 100 * US)
    hole, _ = only_hole(made)
    assert (hole.cause, hole.who) == (Cause.HOST, "plot")


def test_a_synchronisation_of_another_thread_is_not_the_launching_threads():
    made = Made()
    made.launch("first", 0, 1 * MS)
    until = made.wait("cudaDeviceSynchronize", 50 * US, thread=2)
    made.launch("second", until + 20 * US, 100 * US, thread=1)
    hole, _ = only_hole(made)
    assert hole.cause is Cause.HOST


@pytest.mark.parametrize("call", ["hipMemcpyWithStream", "cudaMemcpy", "cudaMemcpyAsync"])
def test_after_a_blocking_copy_the_host_launches_late(call):
    """One of pageable memory blocks though its name ends in Async."""
    made = Made()
    made.launch("first", 0, 1 * MS)
    end = made.copy(Direction.TO_HOST, 50 * US, 100 * US, blocks=True, call=call)
    made.launch("second", end + 30 * US, 100 * US)
    hole, _ = only_hole(made)
    assert (hole.cause, hole.who) == (Cause.SYNCHRONISATION, call)


def test_an_allocation():
    made, end, free = two_kernels()
    made.operator("aten::empty", end + 90 * US, free - 90 * US)
    made.call("cudaMalloc", end + 100 * US, free - 100 * US)
    hole, _ = only_hole(made)
    assert (hole.cause, hole.who) == (Cause.ALLOCATION, "cudaMalloc")


def test_a_copy_that_the_host_stages():
    made = Made(launching=1500 * US)
    end = made.kernel("first", 0, 100 * US)
    made.copy(Direction.TO_DEVICE, end + 100 * US, 50 * US, begins=end + 1600 * US)
    hole, _ = only_hole(made)
    assert (hole.cause, hole.who) == (Cause.COPY, "cudaMemcpyAsync")


def test_a_copy_of_another_device():
    made = Made()
    end = made.launch("first", 0, 100 * US)
    made.copy(Direction.BETWEEN_DEVICES, 10 * US, 1 * MS, device=1, begins=end, name="Memcpy PtoP")
    made.launch("second", 20 * US, 100 * US, begins=end + 1 * MS + 5 * US)
    hole, _ = only_hole(made)
    assert (hole.cause, hole.who, hole.device) == (Cause.COPY, "Memcpy PtoP", 0)


def test_communication_of_another_device():
    made = Made()
    end = made.launch("first", 0, 100 * US)
    made.launch("ncclDevKernel_AllReduce", 10 * US, 1 * MS, device=1, begins=end)
    made.launch("second", 20 * US, 100 * US, begins=end + 1 * MS + 5 * US)
    hole, _ = only_hole(made)
    assert hole.cause is Cause.COMMUNICATION


@pytest.mark.parametrize("name", ["c10d::allreduce_", "gloo:all_gather", "nccl:all_to_all"])
def test_waiting_for_other_ranks(name):
    made, end, free = two_kernels()
    made.operator(name, end, free - 50 * US)
    hole, _ = only_hole(made)
    assert (hole.cause, hole.who) == (Cause.COMMUNICATION, name)


def test_the_tracers_own_work():
    made, end, free = two_kernels()
    made.annotation("Activity Buffer Request", end + 50 * US, free - 50 * US)
    hole, _ = only_hole(made)
    assert (hole.cause, hole.who) == (Cause.TRACER, "Activity Buffer Request")


def test_work_that_was_queued_and_that_nothing_held_up():
    made = Made()
    end = made.launch("first", 0, 1 * MS)
    made.launch("second", 100 * US, 100 * US, begins=end + 50 * US)
    hole, events = only_hole(made)
    assert hole.cause is Cause.TRACER
    assert events.start[hole.culprit] == 100 * US


def test_without_calls_no_cause_is_known():
    made = Made()
    end = made.kernel("first", 0, 100 * US)
    made.kernel("second", end + 1 * MS, 100 * US)
    hole, _ = only_hole(made)
    assert (hole.cause, hole.call, hole.culprit) == (Cause.UNKNOWN, None, None)


def test_clocks_that_differ_say_nothing_of_holes_that_are_not_much_longer():
    made = Made()
    end = made.launch("first", 300 * US, 100 * US, begins=0)
    end = made.launch("second", end + 500 * US, 100 * US, begins=end + 200 * US)
    made.launch("third", end + 5 * MS, 100 * US)
    short, long = analysed(made).holes
    assert (short.cause, long.cause) == (Cause.UNKNOWN, Cause.HOST)


def test_each_device_has_its_own_holes_and_causes():
    made, *_ = two_kernels()
    made.launch("other", 10 * US, 3 * MS, device=1)
    hole, _ = only_hole(made)
    assert (hole.device, hole.cause) == (0, Cause.HOST)


def test_the_longest_first_and_the_threshold_as_asked():
    made = Made()
    at = 0
    for pause in (30 * US, 10 * US, 20 * US):
        at = made.launch("k", at, 100 * US) + pause
    made.launch("k", at, 100 * US)
    analysis = analysed(made)
    pauses = [hole.duration for hole in analysis.holes.longest(2)]
    assert pauses == [35 * US, 25 * US]
    assert [hole.duration for hole in analysis.holes[0:2]] == [35 * US, 15 * US]
    said = analysis.as_json()["holes"]
    assert (said["count"], said["by_cause"]["host launched late"]["count"]) == (3, 3)
    assert holes_of.__kwdefaults__["threshold"] == said["threshold"] == THRESHOLD


def test_a_pipelines_stages_tell_why_its_device_is_idle():
    made = Made()
    end = made.kernel("device compute", 0, 1 * MS)
    made.stage("inflate", 100 * US, end + 2 * MS)
    made.kernel("device compute", end + 2 * MS, 1 * MS)
    hole, events = only_hole(made)
    assert (hole.cause, hole.who) == (Cause.READING, "inflate")
    assert events.kind[hole.culprit] == Kind.STAGE


def test_a_launch_in_the_hole_that_took_most_of_it_to_arrive_is_not_late():
    made = Made()
    end = made.launch("first", 0, 100 * US)
    made.launch("second", end + 10 * US, 100 * US, begins=end + 3 * MS)
    hole, _ = only_hole(made)
    assert hole.cause is Cause.TRACER


def test_a_synchronisation_that_ended_before_the_work_did_left_no_hole():
    made = Made()
    end = made.launch("first", 0, 1 * MS)
    made.wait("cudaEventSynchronize", 10 * US, until=end - 50 * US)
    made.launch("second", end + 30 * US, 100 * US)
    hole, _ = only_hole(made)
    assert hole.cause is Cause.HOST


def test_a_copy_that_nobody_stages_is_launched_late_as_any_other_work():
    made, end, free = Made(), 105 * US, 2 * MS
    made.launch("first", 0, 100 * US)
    made.copy(Direction.TO_DEVICE, free, 100 * US)
    hole, _ = only_hole(made)
    assert (hole.cause, hole.start) == (Cause.HOST, end)


def test_what_is_short_against_the_hole_is_not_its_cause():
    """An operator in its middle, and a copy of another device."""
    made, end, free = two_kernels()
    middle = (end + free) // 2
    made.operator("short", middle - 50 * US, middle + 50 * US)
    made.copy(Direction.BETWEEN_DEVICES, 10 * US, 200 * US, device=1, begins=middle)
    hole, _ = only_hole(made)
    assert (hole.cause, hole.who) == (Cause.HOST, None)


@pytest.mark.parametrize(
    ("after", "cause"), [(80 * US, Cause.SYNCHRONISATION), (150 * US, Cause.HOST)]
)
def test_what_comes_long_after_a_synchronisation_is_not_its_doing(after, cause):
    made = Made()
    made.launch("first", 0, 100 * US)
    until = made.wait("cudaDeviceSynchronize", 50 * US)
    made.launch("second", until + after, 100 * US)
    assert only_hole(made)[0].cause == cause
