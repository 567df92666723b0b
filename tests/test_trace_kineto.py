"""torch.profiler's files, real ones, against Python's json and decimal arithmetic."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kuroshio.perf.timeline.intervals import union
from kuroshio.perf.traces import chrome
from kuroshio.perf.traces.events import ABSENT, Direction, Kind
from kuroshio.perf.traces.read import read

NAMES = (
    "cpu_only_rank", "event_sync", "h100_vit_inference", "mi210_gpu_only", "mi250_toy_training",
    "mi300_vit_inference", "ns_resolution", "rank0_sampled", "rank1_sampled",
    "v100_resnet50_workers0",
)  # fmt: skip
KINDS = {
    "kernel": Kind.KERNEL, "Kernel": Kind.KERNEL, "gpu_memcpy": Kind.COPY, "Memcpy": Kind.COPY,
    "gpu_memset": Kind.SET, "Memset": Kind.SET, "cuda_runtime": Kind.CALL, "Runtime": Kind.CALL,
    "cuda_driver": Kind.CALL, "cpu_op": Kind.OPERATOR, "Operator": Kind.OPERATOR,
    "user_annotation": Kind.ANNOTATION, "cuda_sync": Kind.WAIT,
}  # fmt: skip


@cache
def plain(path: Path) -> Any:
    return json.loads(gzip.decompress(path.read_bytes()), parse_float=Decimal)


def path_of(shared: Path, name: str) -> Path:
    return shared / "traces" / "kineto" / f"{name}.json.gz"


def ns(value: Any) -> int:
    number = Decimal(value) * 1000
    assert number == int(number)
    return int(number)


@pytest.mark.parametrize("name", NAMES)
def test_every_event_is_there_to_the_nanosecond(shared, name):
    path = path_of(shared, name)
    content = plain(path)
    events = read(path).events
    base = int(content.get("baseTimeNanoseconds", 0))
    expected = Counter(
        (each["name"], ns(each["ts"]) + base, ns(each["dur"]))
        for each in content["traceEvents"]
        if each["ph"] == "X" and each["cat"] in KINDS
    )
    found = Counter(
        zip(
            [events.names[code] for code in events.name],
            events.start.tolist(),
            events.duration.tolist(),
            strict=True,
        )
    )
    assert found == expected
    assert (np.diff(events.start) >= 0).all()


@pytest.mark.parametrize("name", NAMES)
def test_kinds_are_those_of_the_categories(shared, name):
    events = read(path_of(shared, name)).events
    expected: Counter[Kind] = Counter()
    for each in plain(path_of(shared, name))["traceEvents"]:
        if each["ph"] == "X" and each["cat"] in KINDS:
            kind = KINDS[each["cat"]]
            if kind == Kind.OPERATOR and "#" in each["name"]:  # as they were until 2021
                kind = Kind.ANNOTATION
            expected[kind] += 1
    assert Counter(map(Kind, events.kind.tolist())) == expected


@pytest.mark.parametrize("name", NAMES)
def test_what_device_events_tell_of_themselves(shared, name):
    events = read(path_of(shared, name)).events
    work = events[events.on_device]
    by_place = {
        (int(device), int(stream), int(correlation), int(start)): row
        for row, (device, stream, correlation, start) in enumerate(
            zip(work.device, work.stream, work.correlation, work.start, strict=True)
        )
    }
    content = plain(path_of(shared, name))
    base, seen = int(content.get("baseTimeNanoseconds", 0)), 0
    for each in content["traceEvents"]:
        if each.get("cat") not in KINDS or KINDS[each["cat"]] > Kind.SET:
            continue
        told = each["args"]
        place = (told["device"], told["stream"], told["correlation"], ns(each["ts"]) + base)
        row = by_place[place]
        seen += 1
        for key, column in (("registers per thread", work.registers), ("bytes", work.bytes)):
            if key in told:
                assert column[row] == told[key]
        if "block" in told:
            assert work.block[row].tolist() == told["block"]
        for key in told.keys() & work.others.keys():
            column = work.others[key]
            value = told[key]
            found = column.values[column.codes[row]]
            assert found == value if isinstance(value, str) else Decimal(found) == value
    assert seen == len(work)


@pytest.mark.parametrize(
    ("name", "devices", "rank", "ranks"),
    [
        ("h100_vit_inference", {"NVIDIA": "sm_90"}, None, None),
        ("v100_resnet50_workers0", {"NVIDIA": "sm_70"}, None, None),
        ("mi210_gpu_only", {"AMD": None}, None, None),
        ("rank1_sampled", {None: None}, 1, 128),
        ("ns_resolution", {"NVIDIA": "sm_70"}, 0, 1),
        ("cpu_only_rank", {}, 0, None),
    ],
)
def test_devices_and_ranks(shared, name, devices, rank, ranks):
    trace = read(path_of(shared, name))
    assert {each.maker: each.architecture for each in trace.devices.values()} == devices
    assert (trace.rank, trace.ranks) == (rank, ranks)
    assert trace.form == "torch.profiler (Kineto)"


def test_of_a_device_more_is_known_than_its_maker(shared):
    device = read(path_of(shared, "h100_vit_inference")).devices[0]
    assert device.name == "NVIDIA H100 80GB HBM3"
    assert (device.multiprocessors, device.memory_bytes) == (132, 85_018_279_936)


def test_bytes_of_rocm_copies_are_those_of_their_calls(shared):
    events = read(path_of(shared, "mi250_toy_training")).events
    copies = events[events.kind == Kind.COPY]
    calls = [
        int(each["args"]["size"])
        for each in plain(path_of(shared, "mi250_toy_training"))["traceEvents"]
        if each["name"] == "hipMemcpyWithStream"
    ]
    assert sorted(copies.bytes.tolist()) == sorted(calls)
    assert set(copies.direction.tolist()) == {Direction.TO_DEVICE}


def test_grids_are_workgroups_where_rocm_counts_work_items(shared):
    """hipExtModuleLaunchKernel's grid is in work-items, hipLaunchKernel's in workgroups."""
    trace = read(path_of(shared, "mi300_vit_inference"))
    kernels = trace.events[trace.events.kind == Kind.KERNEL]
    by_name = {kernels.named(row): row for row in range(len(kernels))}
    assert kernels.grid[by_name["SubTensorOpWithScalar1d"]].tolist() == [256, 1, 1]
    assert kernels.grid[by_name["attn_fwd"]].tolist() == [2, 12, 4]


def test_what_a_call_was_asked_for_is_told_of_its_work_alone(shared):
    events = read(path_of(shared, "mi250_toy_training")).events
    calls = events[events.kind == Kind.CALL]
    assert (calls.bytes == ABSENT).all()
    assert (calls.grid == ABSENT).all()
    kernels = events[events.kind == Kind.KERNEL]
    assert (kernels.grid > 0).all()


def test_operators_link_calls_and_work_where_the_file_tells_them(shared):
    events = read(path_of(shared, "h100_vit_inference")).events
    operators = set(events.operator[events.of_kind(Kind.OPERATOR, Kind.ANNOTATION)].tolist())
    assert set(events.operator[events.on_device].tolist()) <= operators


@pytest.mark.parametrize("name", ["event_sync", "rank0_sampled"])
def test_a_calls_own_number_is_no_operator(shared, name):
    """Kineto wrote the correlation as External id where it knew no operator."""
    events = read(path_of(shared, name)).events
    assert (events.operator[events.on_device] == ABSENT).all()
    assert (events.operator[events.kind == Kind.OPERATOR] != ABSENT).all()


@pytest.mark.parametrize("name", ["h100_vit_inference", "v100_resnet50_workers0"])
def test_the_size_of_pieces_changes_nothing(shared, name):
    path = path_of(shared, name)
    whole, pieces = read(path), chrome.read(path, 200_000)
    assert [pieces.events.named(row) for row in range(len(pieces.events))] == [
        whole.events.named(row) for row in range(len(whole.events))
    ]
    for column in ("kind", "start", "end", "correlation", "operator", "grid", "stream"):
        assert (getattr(pieces.events, column) == getattr(whole.events, column)).all()
    for key, column in whole.events.others.items():
        mine = pieces.events.others[key]
        assert [mine.values[code] if code >= 0 else None for code in mine.codes] == [
            column.values[code] if code >= 0 else None for code in column.codes
        ]


def test_the_busy_time_that_floats_lose(shared):
    """In float64 its times are multiples of 0.25 us, and the busy time 8 us longer."""
    events = read(path_of(shared, "ns_resolution")).events
    work = events[events.on_device]
    busy = union(work.start, work.end)
    assert (busy.span, busy.total) == (480_029_179, 472_454_441)


def test_no_device_work_is_no_error(shared):
    trace = read(path_of(shared, "cpu_only_rank"))
    assert not trace.events.on_device.any()
    assert trace.devices == {}


def test_python_functions_are_counted_and_not_kept(shared):
    said = read(path_of(shared, "h100_vit_inference")).cannot_tell
    assert any("2,117 calls of Python functions" in each for each in said)
