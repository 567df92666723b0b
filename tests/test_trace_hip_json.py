"""hipprof's and rocprof's JSON, and our own pipeline's: made here, as they are written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kuroshio.perf.traces.events import ABSENT, Direction, Kind
from kuroshio.perf.traces.read import read
from kuroshio.perf.traces.trace import Trace

BEGIN = 1_712_195_495_505_543_141  # ns; not even float64's


def traced(tmp_path: Path, events: list[Any], **more: Any) -> Trace:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events, **more}))
    return read(path)


def hip_op(category: str, name: str, start: int, end: int, **more: Any) -> dict[str, Any]:
    """hipprof's: drawn in us of the recording, and in args in ns of a clock."""
    tid = more.pop("tid", "Stream0" if category == "HIPOPS" else "Thread77")
    times = {"BeginNs": str(BEGIN + start), "EndNs": str(BEGIN + end)}
    pid = {"HIP": 1, "HIPCOPY": 2}.get(category, 3)
    return {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid,
            "ts": start / 1000, "dur": (end - start) / 1000,
            "args": {**times, "devId": 0, **more}}  # fmt: skip


def arrow(number: int, call_ns: int, work_ns: int, pid: int, tid: str) -> list[dict[str, Any]]:
    flow = {"cat": "DataFlow", "name": "dep", "id": number}
    return [
        {"ph": "s", "pid": 1, "tid": "Thread77", "ts": call_ns / 1000, **flow},
        {"ph": "t", "pid": pid, "tid": tid, "ts": work_ns / 1000 + 1e-4, **flow},
    ]


@pytest.fixture
def hipprof(tmp_path):
    return traced(tmp_path, [
        hip_op("HIP", "hipMemcpyAsync", 0, 4_000),
        hip_op("HIP", "hipLaunchKernel", 5_000, 9_001),
        hip_op("HIP", "hipLaunchKernel", 10_000, 14_000),
        hip_op("HIPCOPY", "CopyHostToDevice", 3_000, 8_007, tid="H2D", queueId="1", Bytes="4096"),
        hip_op("HIPOPS", "void scale<float>(float*)", 20_003, 30_001, queueId="0", index=1),
        hip_op("HIPOPS", "void scale<float>(float*)", 30_001, 35_000, queueId="0", index=2),
        hip_op("HIPCOPY", "Memset", 40_000, 41_000, tid="SET", queueId="1"),
        *arrow(11, 1_000, 3_000, 2, "H2D"),
        *arrow(12, 6_000, 20_003, 3, "Stream0"),
        *arrow(13, 14_000, 30_001, 3, "Stream0"),
    ])  # fmt: skip


def test_hipprof_is_read_to_the_nanosecond(hipprof):
    events = hipprof.events
    assert hipprof.form == "hipprof"
    assert events.start.tolist()[0] == BEGIN
    kernels = events[events.kind == Kind.KERNEL]
    assert (kernels.start - BEGIN).tolist() == [20_003, 30_001]
    assert (kernels.end - BEGIN).tolist() == [30_001, 35_000]
    assert hipprof.devices[0].maker == "Hygon"
    assert any("hipprof has a queued kernel begin where" in each for each in hipprof.cannot_tell)


def test_hipprofs_copies_and_sets(hipprof):
    events = hipprof.events
    (copy,) = events[events.kind == Kind.COPY].start.tolist()
    row = events.start.tolist().index(copy)
    assert (events.bytes[row], events.direction[row]) == (4096, Direction.TO_DEVICE)
    assert (events.stream[row], events.device[row]) == (1, 0)
    assert int((events.kind == Kind.SET).sum()) == 1


def test_arrows_link_calls_to_what_they_began(hipprof):
    events = hipprof.events
    pairs = set()
    for work in events[events.on_device].correlation.tolist():
        if work == ABSENT:
            continue
        call, began = (
            events.start[(events.correlation == work) & (of)] - BEGIN
            for of in (events.kind == Kind.CALL, events.on_device)
        )
        pairs.add((call.item(), began.item()))
    assert pairs == {(0, 3_000), (5_000, 20_003), (10_000, 30_001)}


def test_an_arrow_to_nowhere_links_nothing(tmp_path):
    events = traced(tmp_path, [
        hip_op("HIP", "hipLaunchKernel", 5_000, 9_000),
        hip_op("HIPOPS", "scale", 20_000, 30_000),
        *arrow(1, 9_500, 20_000, 3, "Stream0"),
        *arrow(2, 6_000, 25_000, 3, "Stream0"),
        *arrow(3, 6_000, 20_000, 9, "Stream0"),
    ]).events  # fmt: skip
    work, call = events.on_device, events.kind == Kind.CALL
    assert events.correlation[work].tolist() == [1]
    assert events.correlation[call].tolist() != [1]


def rocprof_event(pid: int, name: str, start: int, end: int, **args: Any) -> dict[str, Any]:
    """Old rocprof's: all numbers are strings, and there are no categories."""
    return {"ph": "X", "name": name, "pid": str(pid), "tid": "2385", "ts": str(start // 1000),
            "dur": str((end - start) // 1000),
            "args": {"BeginNs": str(start), "EndNs": str(end), "Name": name,
                     "DurationNs": str(end - start), **args}}  # fmt: skip


@pytest.mark.parametrize("labelled", [True, False])
def test_rocprof_has_a_process_a_kind(tmp_path, labelled):
    labels = {1: "COPY", 2: "CPU HIP API", 6: "GPU0"} if labelled else {}
    trace = traced(tmp_path, [
        {},
        *({"ph": "M", "name": "process_name", "pid": str(pid), "args": {"name": label}}
          for pid, label in labels.items()),
        rocprof_event(2, "hipLaunchKernel", BEGIN, BEGIN + 3_003, args="( stream(0) )"),
        rocprof_event(1, "CopyHostToDevice", BEGIN + 10, BEGIN + 1_011),
        rocprof_event(6, "scale(float*)", BEGIN + 5_001, BEGIN + 9_000,
                      **{"dev-id": "0", "queue-id": "2"}),
    ])  # fmt: skip
    assert trace.form == "rocprof"
    events = trace.events
    assert [Kind(kind) for kind in events.kind] == [Kind.CALL, Kind.COPY, Kind.KERNEL]
    assert (events.start - BEGIN).tolist() == [0, 10, 5_001]
    assert events.duration.tolist() == [3_003, 1_001, 3_999]
    assert (events.device[2], events.stream[2]) == (0, 2)
    assert events.direction[1] == Direction.TO_DEVICE


def test_our_own_stages_and_device_work(tmp_path):
    span = {"ph": "X", "pid": 1, "tid": 4, "args": {}}
    device = {"ph": "X", "cat": "kuroshio.device", "pid": 2, "tid": 9,
              "args": {"device": 0, "stream": 9}}  # fmt: skip
    trace = traced(
        tmp_path,
        [
            {"ph": "M", "name": "process_name", "pid": 2, "args": {"name": "cuda:0"}},
            {**span, "cat": "kuroshio.run", "name": "climatology", "ts": 0.0, "dur": 100.001},
            {**span, "cat": "kuroshio.stage", "name": "read", "ts": 1.5, "dur": 20,
             "args": {"bytes": 1 << 20}},
            {**device, "name": "device copy", "ts": 21.5, "dur": 3.25},
            {**device, "name": "compute", "ts": 25, "dur": 40},
            {**device, "name": "device fetch", "ts": 70, "dur": 3},
        ],
        baseTimeNanoseconds=BEGIN,
        otherData={"version": "0.1", "merged_ns": "1000"},
    )  # fmt: skip
    events = trace.events
    assert trace.form == "Kuroshio"
    assert [Kind(kind) for kind in events.kind] == [
        Kind.ANNOTATION, Kind.STAGE, Kind.COPY, Kind.KERNEL, Kind.COPY,
    ]  # fmt: skip
    assert (events.start - BEGIN).tolist() == [0, 1_500, 21_500, 25_000, 70_000]
    assert events.bytes.tolist()[1] == 1 << 20
    assert events.direction.tolist()[2::2] == [Direction.TO_DEVICE, Direction.TO_HOST]
    assert events.thread.tolist() == [4, 4, ABSENT, ABSENT, ABSENT]
    assert trace.facts["merged_ns"] == "1000"
