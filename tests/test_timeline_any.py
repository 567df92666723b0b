"""Any table of events has an analysis, and its sums add up, whatever nonsense the file told."""

from __future__ import annotations

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kuroshio.perf.timeline.analysis import analyse
from kuroshio.perf.timeline.ranks import compare
from kuroshio.perf.timeline.spread import Spread
from kuroshio.perf.traces.events import Column, Events, Kind
from traces_made import Made

NAMES = ("", "gemm<", "ncclKernel", "cudaLaunchKernel", "cudaDeviceSynchronize", "hipFree",
         "read", "aten::item", "ProfilerStep#1", "cudaMemcpy", "Buffer Flush", "nccl:x",
         "\ud800\x00<b>")  # fmt: skip
ROW = st.tuples(
    st.sampled_from(list(Kind)),
    st.integers(0, len(NAMES) - 1),
    st.sampled_from([0, 5, 10_000, 40_000, 300_000, 5_000_000, 4 * 10**18]),
    st.sampled_from([0, 1, 7_000, 90_000, 3_000_000, 10**18]),
    st.integers(-1, 1),  # process, thread
    st.integers(-1, 1),  # device
    st.integers(-1, 2),  # correlation
    st.integers(-1, 2),  # operator
    st.integers(-1, 4),  # direction
)


@st.composite
def tables(draw) -> Events:
    rows = draw(st.lists(ROW, max_size=12))
    kind, name, start, length, place, device, correlation, operator, direction = (
        zip(*rows, strict=True) if rows else [()] * 9
    )
    return Events.of(
        NAMES,
        {"dtype": Column(np.arange(len(rows), dtype=np.int32) % 2 - 1, ("Float",))},
        kind=kind,
        name=name,
        start=start,
        end=[at + ns for at, ns in zip(start, length, strict=True)],
        process=place,
        thread=place,
        device=device,
        correlation=correlation,
        operator=operator,
        direction=direction,
    ).in_order()


@given(tables(), tables())
def test_sums_add_up(events, others):
    about = Made().trace()
    one, other = (analyse(type(about)(about.path, about.form, table)) for table in (events, others))
    json.dumps(one.as_json(), allow_nan=False)
    json.dumps(compare([one, other]).as_json(), allow_nan=False)
    if one.work is None:
        assert one.holes is one.launches is one.kernels is None
        return
    asked = sum(each.time for each in one.holes.by_cause.values())
    assert asked + one.holes.brief.time == sum(each.idle for each in one.devices)
    assert sum(each.count for each in one.holes.by_cause.values()) == len(one.holes)
    for hole in one.holes:
        assert hole.duration > one.holes.threshold
        assert events.on_device[hole.before]
        assert events.on_device[hole.after]
    for step in one.steps.steps:
        assert sum(step.parts.values()) == step.end - step.start
        assert all(ns >= 0 for ns in step.parts.values())
    if one.waits:
        assert one.waits.idle <= one.waits.time
        assert len(one.waits.waits) == sum(each.count for each in one.waits.groups)
        assert all(0 <= each.idle <= each.end - each.start for each in one.waits.waits)
    for each in (one.launches.calls, one.launches.delays):
        assert each is None or isinstance(each, Spread)
    if one.kernels:
        assert one.kernels.runs == sum(each.times.count for each in one.kernels.kernels)
        assert one.kernels.total == sum(each.times.total for each in one.kernels.kernels)
