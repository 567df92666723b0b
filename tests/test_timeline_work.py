"""Work, idleness and overlaps against a count of nanoseconds; the depth of the queue, too."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kuroshio.perf.timeline.analysis import analyse
from kuroshio.perf.timeline.causes import gaps_of
from kuroshio.perf.timeline.intervals import union
from kuroshio.perf.timeline.launches import launches_of, link
from kuroshio.perf.timeline.work import by_device, work_of
from kuroshio.perf.traces.events import Direction, Kind
from timelines import analysed, device_events, moments, rows_where
from traces_made import US, Made


def assert_counted(work, events):
    """Of these events, all of one device or of all."""
    kernels = rows_where(events, lambda row: events.kind[row] == Kind.KERNEL)
    sends = {row for row in kernels if "nccl" in events.named(row)}
    compute = moments(events, [row for row in kernels if row not in sends])
    communication = moments(events, sends)
    copies = rows_where(events, lambda row: events.kind[row] == Kind.COPY)
    sets = rows_where(events, lambda row: events.kind[row] == Kind.SET)
    copying, setting = moments(events, copies), moments(events, sets)
    assert (work.kernels, work.copies, work.sets) == (len(kernels), len(copies), len(sets))
    assert work.start == events.start.min()
    assert work.end == events.end.max()
    assert work.span == work.end - work.start
    assert work.busy == len(compute | communication | copying | setting)
    assert work.idle == work.span - work.busy
    assert (work.compute, work.communication) == (len(compute), len(communication))
    assert (work.copying, work.setting) == (len(copying), len(setting))
    assert work.communication_covered == len(communication & compute)
    assert work.copying_covered == len(copying & compute)


@given(device_events())
def test_work_is_what_a_count_of_nanoseconds_says(events):
    work = work_of(events)
    if work is None:
        assert not len(events)
        return
    assert_counted(work, events)
    devices = by_device(events)
    assert [each.device for each in devices] == sorted(set(events.device.tolist()))
    for each in devices:
        assert_counted(each, events[events.device == each.device])


@given(device_events())
def test_holes_lie_where_a_device_has_no_work(events):
    gaps = gaps_of(events)
    for device in (0, 1):
        mine = rows_where(events, lambda row, device=device: events.device[row] == device)
        busy = moments(events, mine)
        found = gaps.device == device
        holes = set()
        for start, end, before, after in zip(
            gaps.start[found], gaps.end[found], gaps.before[found], gaps.after[found], strict=True
        ):
            assert events.end[before] == start
            assert events.start[after] == end
            assert events.device[before] == events.device[after] == device
            holes |= set(range(start, end))
        # Work of no length has no moment, but ends one hole and begins the next.
        if mine:
            first = min(int(events.start[row]) for row in mine)
            last = max(int(events.end[row]) for row in mine)
            assert holes == set(range(first, last)) - busy


PAIRS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 12)), max_size=10)


@given(PAIRS, st.integers(-5, 80), st.integers(0, 30))
def test_what_lies_within_an_interval(pairs, start, length):
    starts = np.array([at for at, _ in pairs], np.int64)
    set_of = union(starts, starts + np.array([length for _, length in pairs], np.int64))
    told = {at for a, b in zip(set_of.starts, set_of.ends, strict=True) for at in range(a, b)}
    within = set_of.within(np.array([start]), np.array([start + length]))
    assert within.tolist() == [len(told & set(range(start, start + length)))]


LAUNCHES = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 20)), min_size=1, max_size=10)


@given(LAUNCHES)
def test_the_queue_is_as_deep_as_what_was_launched_and_has_not_begun(pairs):
    made = Made(launching=1)
    for at, later in pairs:
        made.launch("k", at, 3, begins=at + later)
    events = made.events()
    depth = launches_of(events, link(events)).depth
    brute = {at: sum(launch <= at < launch + later for launch, later in pairs) for at in range(70)}
    for at in range(70):
        step = np.searchsorted(depth.moments, at, side="right") - 1
        assert (depth.at[step] if step >= 0 else 0) == brute[at]
    assert depth.most == max(brute.values())
    inside = sorted(brute[at] for at in range(depth.moments[0], depth.moments[-1]))
    if inside:
        assert depth.median == inside[(len(inside) - 1) // 2]


def test_bytes_of_copies_are_a_sum_only_if_all_are_told():
    made = Made()
    made.copy(Direction.TO_DEVICE, 0, 10 * US, bytes=5)
    made.copy(Direction.TO_DEVICE, 50 * US, 10 * US, bytes=6)
    made.copy(Direction.TO_HOST, 90 * US, 7 * US, bytes=-1)
    to_device, to_host = analysed(made).work.by_direction
    assert (to_device.direction, to_device.count, to_device.bytes) == ("to device", 2, 11)
    assert (to_host.direction, to_host.time, to_host.bytes) == ("to host", 7 * US, None)


def test_without_device_work_nothing_is_said_of_devices():
    made = Made()
    made.operator("aten::mm", 0, 50 * US)
    analysis = analysed(made)
    assert analysis.work is None
    assert analysis.devices == ()
    assert analysis.launches is analysis.holes is analysis.kernels is None
    assert any("no device work" in limit for limit in analysis.limits)
    analysis.as_json()


def test_an_empty_trace_has_nothing():
    analysis = analyse(Made().trace())
    assert analysis.work is analysis.steps is analysis.waits is analysis.pipeline is None
    assert analysis.as_json()["trace"]["events"] == 0
