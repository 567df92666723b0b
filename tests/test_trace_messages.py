"""How large messages are, as the host's records of collectives tell."""

from __future__ import annotations

import gzip
import json

import msgspec
import numpy as np
import pytest

from kuroshio.perf.timeline.collectives import Collective, collectives_of, matched
from kuroshio.perf.traces.chrome import Event
from kuroshio.perf.traces.chrome_messages import RECORD, messages
from kuroshio.perf.traces.read import read

NCCL = "ncclKernel_SendRecv_RING"


def told(name: str, **args: object) -> int:
    event = Event(name=name, args=msgspec.Raw(json.dumps(args).encode()))
    return int(messages([event], np.array([True]))[0][0])


@pytest.mark.parametrize(
    ("name", "shapes", "types", "expected"),
    [
        ("nccl:all_reduce", [[3, 5]], ["float"], 60),
        ("nccl:all_reduce", [[3], [4]], ["c10::Half", "c10::BFloat16"], 14),  # all are inputs
        ("c10d::_allgather_base_", [[64], [8], []], ["signed char", "signed char", ""], 64),
        ("record_param_comms", [[100], [], []], ["unsigned char", "Scalar", ""], 100),
        ("c10d::allreduce_", [[], []], ["TensorList", ""], -1),
        ("nccl:all_reduce", [[3, -5]], ["float"], -1),
        ("nccl:all_reduce", [[3, "5"]], ["float"], -1),
        ("nccl:all_reduce", [[2] * 65], ["float"], -1),
        ("nccl:all_reduce", [[1 << 60, 8]], ["float"], -1),
        ("nccl:all_reduce", [[3]], ["mystery"], -1),
        ("nccl:all_reduce", "none", 5, -1),
    ],
)
def test_shapes_and_types(name, shapes, types, expected):
    assert RECORD.match(name)
    assert told(name, **{"Input Dims": shapes, "Input type": types}) == expected


def test_numbers_of_elements_come_first():
    sides = {"In msg nelems": 10, "Out msg nelems": 80, "dtype": "Float", "Input Dims": [[7]],
             "Input type": ["long"]}  # fmt: skip
    assert told("record_param_comms", **sides) == 320
    assert told("record_param_comms", **(sides | {"dtype": "Mystery"})) == 56


def test_what_is_no_record_is_not_looked_at():
    assert not RECORD.match("aten::all_reduce")
    assert not RECORD.match("record_param_comms_of_mine")
    for text, asked in ((b"[1]", True), (b'{"In msg nelems": 3, "dtype": "Float"}', False)):
        sizes, groups = messages([Event(args=msgspec.Raw(text))], np.array([asked]))
        assert (sizes.tolist(), groups) == ([-1], {})


def trace(tmp_path, kernel_args: dict, records: list[tuple[str, dict]]):
    """One collective kernel, launched within records, the innermost last."""
    base = {"ph": "X", "pid": 1, "tid": 7}
    events = [
        {**base, "cat": "cpu_op", "name": name, "ts": 10 + i, "dur": 80 - 2 * i, "args": args}
        for i, (name, args) in enumerate(records)
    ]
    events += [
        {**base, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 40, "dur": 5,
         "args": {"correlation": 3}},
        {"ph": "X", "cat": "kernel", "name": NCCL, "pid": 0, "tid": 20, "ts": 50, "dur": 100,
         "args": {"device": 0, "stream": 20, "correlation": 3, **kernel_args}},
    ]  # fmt: skip
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    return read(path)


INPUT = {"Input Dims": [[8]], "Input type": ["float"]}
BOTH = {"Input Dims": [[32], [8]], "Input type": ["float", "float"]}


def test_a_kernel_is_what_the_records_around_its_call_say(tmp_path):
    found = trace(
        tmp_path, {}, [("c10d::_allgather_base_", BOTH), ("nccl:_all_gather_base", INPUT)]
    )
    (only,) = collectives_of(found.events)
    assert (only.kind, only.bytes) == ("all-gather", 128)  # the larger side


def test_what_a_kernel_says_itself_counts(tmp_path):
    said = {"Collective name": "allreduce", "In msg nelems": 10, "dtype": "Double"}
    found = trace(tmp_path, said, [("nccl:_all_gather_base", INPUT)])
    (only,) = collectives_of(found.events)
    assert (only.kind, only.bytes) == ("all-reduce", 80)


def test_records_elsewhere_say_nothing_of_it(tmp_path):
    found = trace(tmp_path, {}, [("aten::all_reduce", INPUT | {"Group size": 2})])
    (only,) = collectives_of(found.events)
    assert (only.kind, only.bytes, only.group) == ("send-receive", None, None)


def test_a_kind_needs_no_size(tmp_path):
    """As where shapes were not recorded."""
    silent = {"Input Dims": [[]], "Input type": ["TensorList"]}
    (only,) = collectives_of(trace(tmp_path, {}, [("c10d::alltoall_base_", silent)]).events)
    assert (only.kind, only.bytes) == ("all-to-all", None)


NUMBERS = {"Collective name": "allreduce", "In msg nelems": 9, "Out msg nelems": 9,
           "dtype": "Float"}  # fmt: skip


@pytest.mark.parametrize(
    ("kernel", "record", "group"),
    [
        ({}, 8, 8),
        ({}, "8", 8),
        ({"Group size": 4}, 8, 4),
        ({"Group size": 4}, None, 4),
        ({}, "all", None),
        ({}, 0, None),
        ({}, None, None),
    ],
)
def test_how_many_take_part(tmp_path, kernel, record, group):
    said = NUMBERS | ({} if record is None else {"Group size": record})
    around = [("c10d::allreduce_", {}), ("record_param_comms", said), ("nccl:all_reduce", {})]
    (only,) = collectives_of(trace(tmp_path, kernel, around).events)
    assert (only.kind, only.bytes, only.group) == ("all-reduce", 36, group)


def test_messages_of_real_ranks(shared):
    """Against the file itself: what encloses the launching call on its thread."""
    for rank in range(2):
        path = shared / "traces" / "kineto" / f"rank{rank}_sampled.json.gz"
        raw = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
        calls = {e["args"]["correlation"]: e for e in raw if e.get("cat") == "cuda_runtime"
                 and e["name"] == "cudaLaunchKernel"}  # fmt: skip
        records = [e for e in raw if str(e.get("name", "")).startswith("nccl:")]
        expected = []
        for kernel in sorted((e for e in raw if e.get("cat") == "kernel"), key=lambda e: e["ts"]):
            if "nccl" not in kernel["name"]:
                continue
            call = calls[kernel["args"]["correlation"]]
            (record,) = (
                e for e in records if (e["pid"], e["tid"]) == (call["pid"], call["tid"])
                and e["ts"] <= call["ts"] and call["ts"] + call["dur"] <= e["ts"] + e["dur"]
            )  # fmt: skip
            kind = record["name"].removeprefix("nccl:").strip("_").replace("_base", "")
            expected.append((kind.replace("_", "-"), record["args"]["Input Dims"][0]))
        found = collectives_of(read(path).events)
        assert [each.kind for each in found] == [kind for kind, _ in expected]
        assert {each.kind for each in found} == {"all-reduce", "all-gather", "all-to-all"}
        for each, (kind, shape) in zip(found, expected, strict=True):
            if kind == "all-reduce":
                assert each.bytes == 4 * shape[0]  # of float
            assert each.bytes >= shape[0]


def sent(kind: str, size: int | None, row: int = 0) -> Collective:
    return Collective(row, kind, NCCL, 5, size, None)


def test_ranks_messages_are_matched_by_kind_and_size():
    first = [sent("all-reduce", 8, 1), sent("all-to-all", 9, 2), sent("all-reduce", 4, 3)]
    second = [sent("all-reduce", 4, 4), sent("all-reduce", 8, 5), sent("all-to-all", 20, 6)]
    together, differ = matched([first, second])
    assert sorted(tuple(each.row for each in pair) for pair in together) == [(1, 5), (2, 6), (3, 4)]
    assert not differ


def test_sizes_that_cannot_be_of_one_collective_are_not_matched():
    together, differ = matched([[sent("all-to-all", 10)], [sent("all-to-all", 81)]])
    assert (together, differ) == ([], {NCCL})
    assert matched([[sent("all-to-all", 10)], [sent("all-to-all", 80)]])[0]
    assert matched([[sent("all-to-all", None)], [sent("all-to-all", 80)]])[0]
