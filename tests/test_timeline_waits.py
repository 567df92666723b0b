"""Explicit and implicit synchronisations, and the operators that caused them."""

from __future__ import annotations

import pytest

from kuroshio.perf.timeline.waits import How
from kuroshio.perf.traces.events import Direction
from timelines import analysed
from traces_made import MS, US, Made, healthy


def only_wait(made: Made):
    waits = analysed(made).waits
    assert len(waits.waits) == 1, waits.waits
    return waits.waits[0], waits


EXPLICIT = [
    "cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize", "cuCtxSynchronize",
    "cuStreamSynchronize", "hipDeviceSynchronize", "hipStreamSynchronize", "hipEventSynchronize",
    "cudaStreamSynchronize_v3020",
]  # fmt: skip


@pytest.mark.parametrize("name", EXPLICIT)
def test_explicit_ones(name):
    made = Made()
    end = made.launch("k", 0, 1 * MS)
    until = made.wait(name, 10 * US, after=4 * US)
    wait, waits = only_wait(made)
    assert (wait.how, wait.call, wait.cause, wait.operator) == (How.EXPLICIT, name, name, None)
    assert (wait.start, wait.end) == (10 * US, until) == (10 * US, end + 4 * US)
    assert (wait.idle, waits.idle) == (4 * US, 4 * US)
    assert waits.time == until - 10 * US
    assert waits.at_end == 1


@pytest.mark.parametrize("name", ["cudaEventQuery", "cudaStreamWaitEvent", "cudaEventRecord"])
def test_calls_that_do_not_wait(name):
    made = Made()
    made.launch("k", 0, 1 * MS)
    made.call(name, 10 * US, 12 * US)
    assert analysed(made).waits.waits == ()


@pytest.mark.parametrize("name", ["aten::item", "aten::is_nonzero", "aten::nonzero"])
def test_a_scalar_read_back_is_one_wait_of_several_calls(name):
    made = Made()
    end = made.launch("loss", 0, 1 * MS)
    made.operator(name, 20 * US, end + 50 * US)
    made.operator("aten::_local_scalar_dense", 22 * US, end + 48 * US)
    made.copy(Direction.TO_HOST, 25 * US, 2 * US, bytes=4, blocks=True, call="cudaMemcpyAsync")
    made.wait("cudaStreamSynchronize", end + 30 * US, until=end + 40 * US)
    wait, waits = only_wait(made)
    assert (wait.how, wait.cause) == (How.READ_BACK, name)
    assert wait.operator == "aten::_local_scalar_dense"
    assert wait.call == "cudaMemcpyAsync"
    assert (wait.start, wait.end) == (25 * US, end + 40 * US)
    (group,) = waits.groups
    assert (group.how, group.cause, group.count) == (How.READ_BACK, name, 1)


@pytest.mark.parametrize(
    "call", ["cudaMemcpy", "hipMemcpyWithStream", "hipMemcpy", "cuMemcpyDtoH_v2"]
)
def test_blocking_copies_by_name(call):
    made = Made()
    made.copy(Direction.TO_HOST, 0, 500 * US, blocks=True, call=call)
    wait, _ = only_wait(made)
    assert (wait.how, wait.call, wait.cause) == (How.COPY, call, call)


def test_a_copy_of_pageable_memory_blocks_whatever_it_is_called():
    made = Made()
    made.operator("aten::copy_", 0, 600 * US)
    made.copy(Direction.TO_DEVICE, 5 * US, 500 * US, blocks=True, call="cudaMemcpyAsync")
    wait, _ = only_wait(made)
    assert (wait.how, wait.call, wait.cause) == (How.COPY, "cudaMemcpyAsync", "aten::copy_")


@pytest.mark.parametrize("launching", [2 * US, 50 * US])
def test_a_copy_of_pinned_memory_does_not(launching):
    made = Made(launching=launching)
    made.operator("aten::copy_", 0, 20 * US)
    made.copy(Direction.TO_DEVICE, 5 * US, 500 * US)
    assert analysed(made).waits.waits == ()


ALLOCATING = ["cudaMalloc", "cudaFree", "cudaHostAlloc", "cudaFreeHost", "hipMalloc", "hipFree",
              "hipHostMalloc", "hipExtMallocWithFlags", "cudaMalloc_v3020",
              "cuMemAlloc_v2"]  # fmt: skip


@pytest.mark.parametrize("call", ALLOCATING)
def test_allocations(call):
    made = Made()
    made.launch("k", 0, 1 * MS)
    made.operator("aten::empty", 20 * US, 400 * US)
    made.call(call, 30 * US, 390 * US)
    wait, _ = only_wait(made)
    assert (wait.how, wait.call, wait.cause) == (How.ALLOCATION, call, call)
    assert (wait.operator, wait.idle) == ("aten::empty", 0)


def test_an_allocation_is_one_within_any_operator():
    made = Made()
    made.launch("k", 0, 1 * MS)
    made.operator("aten::nonzero", 20 * US, 400 * US)
    made.call("cudaMalloc", 30 * US, 390 * US)
    wait, _ = only_wait(made)
    assert (wait.how, wait.operator) == (How.ALLOCATION, "aten::nonzero")


def test_what_a_program_allocates_before_it_begins_costs_its_devices_nothing():
    made = Made()
    made.call("cudaMalloc", 0, 400 * US)
    end = made.launch("k", 1 * MS, 1 * MS)
    made.call("cudaFree", end + 10 * US, end + 20 * US)
    assert analysed(made).waits.waits == ()


@pytest.mark.parametrize("call", ["cudaMallocAsync", "cudaFreeAsync", "hipMallocAsync"])
def test_allocations_of_a_stream_wait_for_nothing(call):
    made = Made()
    made.launch("k", 0, 1 * MS)
    made.call(call, 30 * US, 33 * US)
    assert analysed(made).waits.waits == ()


def test_an_operator_of_another_thread_may_be_known_by_its_number():
    made = Made()
    end = made.launch("k", 0, 1 * MS)
    made.operator("MyBackward", 5 * US, end, operator=77)
    made.call("cudaStreamSynchronize", 20 * US, end, thread=2, operator=77)
    wait, _ = only_wait(made)
    assert wait.operator == "MyBackward"


def test_groups_are_by_time():
    made = Made()
    for number in range(3):
        made.launch("k", number * 10 * MS, 1 * MS + number * MS)
        made.wait("cudaStreamSynchronize", number * 10 * MS + 10 * US)
    made.call("cudaMalloc", 12_100 * US, 19 * MS)
    waits = analysed(made).waits
    assert [(each.how, each.count) for each in waits.groups] == [
        (How.ALLOCATION, 1), (How.EXPLICIT, 3),
    ]  # fmt: skip
    assert waits.time == sum(each.time for each in waits.groups)
    assert len(waits.groups[1].rows) == 3
    assert waits.at_end == 1


def test_a_healthy_loop_waits_once_a_step_and_at_its_end_while_the_device_works():
    waits = analysed(healthy(steps=4)).waits
    assert [(each.call, each.count) for each in waits.groups] == [
        ("cudaEventSynchronize", 4), ("cudaDeviceSynchronize", 1),
    ]  # fmt: skip
    assert waits.idle <= 2 * US


def test_without_calls_nothing_is_said_of_waits():
    made = Made()
    made.kernel("k", 0, 1 * MS)
    assert analysed(made).waits is None


@pytest.mark.parametrize(("lasts", "waits"), [(2 * US, 0), (3 * US, 1)])
def test_a_call_that_is_over_at_once_may_outlast_its_copy_by_chance(lasts, waits):
    made = Made(launching=lasts)
    made.copy(Direction.TO_DEVICE, 10 * US, 1 * US, begins=10 * US + 500)
    assert len(analysed(made).waits.waits) == waits
