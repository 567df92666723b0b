"""Calls linked to the device work they began, and what launching cost."""

from __future__ import annotations

import pytest

from kuroshio.perf.timeline.analysis import analyse
from kuroshio.perf.timeline.launches import link
from kuroshio.perf.traces.events import Direction, Events, Kind
from timelines import analysed
from traces_made import MS, US, Made, healthy

LAUNCHING = [
    "cudaLaunchKernel", "cudaLaunchKernel_v7000", "cudaLaunchKernelExC_v11060", "cuLaunchKernel",
    "cuLaunchKernelEx", "cudaLaunchCooperativeKernel", "cudaGraphLaunch", "hipLaunchKernel",
    "hipExtLaunchKernel", "hipExtModuleLaunchKernel", "hipModuleLaunchKernel", "hipGraphLaunch",
]  # fmt: skip


@pytest.mark.parametrize("call", LAUNCHING)
def test_launches_of_every_runtime(call):
    made = Made()
    made.launch("k", 0, 10 * US, call=call)
    made.call(call, 50 * US, 51 * US, correlation=99)
    launches = analysed(made).launches
    assert (launches.work, launches.linked, launches.launched) == (1, 1, 1)
    assert launches.empty_calls == 1


@pytest.mark.parametrize("call", ["cudaLaunchHostFunc", "cudaStreamSynchronize", "relaunch"])
def test_other_calls_launch_nothing(call):
    made = Made()
    made.launch("k", 0, 10 * US)
    made.call(call, 50 * US, 51 * US, correlation=99)
    assert analysed(made).launches.empty_calls == 0


def test_calls_and_delays():
    made = Made(delay=7 * US, launching=3 * US)
    for at in range(5):
        made.launch("k", at * MS, 10 * US)
    made.copy(Direction.TO_DEVICE, 6 * MS, 10 * US)
    launches = analysed(made).launches
    assert (launches.work, launches.linked, launches.launched) == (6, 6, 5)
    assert (launches.calls.count, launches.calls.median, launches.calls.total) == (
        5, 3 * US, 15 * US,
    )  # fmt: skip
    assert (launches.delays.least, launches.delays.most) == (7 * US, 7 * US)
    # All but the first came when the device had long run out of work.
    assert (launches.late, launches.late_share) == (4, 1.0)


def test_a_host_that_is_ahead_is_never_late():
    launches = analysed(healthy()).launches
    assert launches.late == 0
    assert launches.depth.most > 10
    assert not launches.clocks_disagree


@pytest.mark.parametrize(("after", "late"), [(-1, 0), (0, 1), (1, 1)])
def test_late_is_a_call_that_begins_when_all_earlier_work_has_ended(after, late):
    made = Made()
    made.launch("long", 0, 1 * MS)
    made.launch("short", 1 * US, 10 * US, stream=8)
    made.launch("k", made.delay + 1 * MS + after, 10 * US, stream=8)
    assert analysed(made).launches.late == late


def test_a_graph_launches_many_with_one_call():
    made = Made()
    made.launch("a", 0, 10 * US, call="cudaGraphLaunch")
    for number in range(3):
        made.kernel("b", 20 * US + number * 10 * US, 10 * US, correlation=1)
    events = made.events()
    links = link(events)
    call = int((events.kind == Kind.CALL).argmax())
    assert set(links.call_of[events.on_device].tolist()) == {call}
    assert events.named(links.work_of[call]) == "a"
    launches = analyse(made.trace()).launches
    assert (launches.linked, launches.calls.count, launches.delays.count) == (4, 1, 1)


def test_of_calls_with_one_number_the_launch_counts_then_the_innermost():
    made = Made()
    made.call("hipLaunchKernel", 0, 20 * US, correlation=5)
    made.call("hipModuleLaunchKernel", 2 * US, 18 * US, correlation=5)
    made.call("hsa_signal_store", 4 * US, 5 * US, correlation=5)
    made.kernel("k", 30 * US, 10 * US, correlation=5)
    events = made.events()
    links = link(events)
    assert events.named(links.call_of[events.on_device][0]) == "hipModuleLaunchKernel"


def test_numbers_of_several_processes_are_told_apart():
    events = Events.of(
        ("cudaLaunchKernel", "k"),
        kind=[Kind.CALL, Kind.CALL, Kind.KERNEL, Kind.KERNEL],
        name=[0, 0, 1, 1],
        start=[0, 1, 10, 20],
        end=[2, 3, 15, 25],
        process=[1, 2, 2, 1],
        thread=[1, 1, -1, -1],
        device=[-1, -1, 0, 0],
        correlation=[7, 7, 7, 7],
    )
    assert link(events).call_of.tolist() == [-1, -1, 1, 0]


def test_no_number_links_nothing():
    made = Made()
    made.call("cudaLaunchKernel", 0, 2 * US, correlation=0)
    made.kernel("k", 5 * US, 10 * US, correlation=0)
    made.kernel("k", 25 * US, 10 * US)
    analysis = analysed(made)
    assert (analysis.launches.work, analysis.launches.linked) == (2, 0)
    assert analysis.launches.calls is analysis.launches.delays is analysis.launches.late is None
    assert analysis.launches.depth is None
    assert any("No call is linked" in limit for limit in analysis.limits)


def test_device_work_without_its_call_is_counted():
    made = Made()
    made.launch("k", 0, 10 * US)
    made.kernel("k", 50 * US, 10 * US)
    analysis = analysed(made)
    assert (analysis.launches.work, analysis.launches.linked) == (2, 1)
    assert any("Of 1 of 2 pieces" in limit for limit in analysis.limits)


def test_clocks_that_disagree_are_stated_and_delays_are_not():
    made = Made()
    for at in range(10):
        made.launch("k", at * MS, 10 * US, begins=at * MS - 40 * US)
    analysis = analysed(made)
    launches = analysis.launches
    assert launches.clocks_disagree
    assert (launches.early, launches.skew) == (10, 40 * US)
    assert launches.delays is launches.late is launches.late_share is launches.depth is None
    assert launches.calls.count == 10
    assert any("clocks of host and device differ" in limit for limit in analysis.limits)


def test_a_few_early_ones_spoil_nothing_and_are_stated():
    made = Made()
    made.launch("k", 0, 10 * US, begins=-40 * US)
    for at in range(1, 200):
        made.launch("k", at * MS, 10 * US)
    analysis = analysed(made)
    assert not analysis.launches.clocks_disagree
    assert analysis.launches.delays.count == 199
    assert any("1 of 200" in limit for limit in analysis.limits)


def test_whole_microseconds_are_no_disagreement():
    made = Made()
    for at in range(10):
        made.launch("k", at * MS, 10 * US, begins=at * MS - 1 * US)
    launches = analysed(made).launches
    assert (launches.early, launches.delays.least) == (0, 0)


@pytest.mark.parametrize("early", [1, 2])
def test_clocks_disagree_where_more_than_one_in_a_hundred_is_early(early):
    made = Made()
    for number in range(100):
        at = (1 + number) * MS
        made.launch("k", at, 100 * US, begins=at - 50 * US if number < early else at + 5 * US)
    launches = analysed(made).launches
    assert (launches.early, launches.skew) == (early, 50 * US)
    assert launches.clocks_disagree == (early > 1)
