"""What rocprofv3 writes as CSV (a folder) and as JSON, with any content."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from kuroshio.perf.traces.events import Direction
from trace_work import Process

_OPERATIONS = {
    Direction.TO_DEVICE: "MEMORY_COPY_HOST_TO_DEVICE",
    Direction.TO_HOST: "MEMORY_COPY_DEVICE_TO_HOST",
    Direction.ON_DEVICE: "MEMORY_COPY_DEVICE_TO_DEVICE",
}
_CPU = 9  # an agent that is no device
_SIZES = [f"{stem}_Size_{axis}" for stem in ("Workgroup", "Grid") for axis in "XYZ"]
_CALLS = """
Domain Function Process_Id Thread_Id Correlation_Id Start_Timestamp End_Timestamp
"""
_COPIES = """
Kind Direction Stream_Id Source_Agent_Id Destination_Agent_Id Correlation_Id Start_Timestamp
End_Timestamp
"""
# Kernels since ROCm 6.4, and to 6.2.
_NEW = f"""
Kind Agent_Id Queue_Id Stream_Id Thread_Id Dispatch_Id Kernel_Id Kernel_Name Correlation_Id
Start_Timestamp End_Timestamp LDS_Block_Size Scratch_Size VGPR_Count Accum_VGPR_Count SGPR_Count
{" ".join(_SIZES)}
"""
_OLD = f"""
Kind Agent_Id Queue_Id Thread_Id Dispatch_Id Kernel_Id Kernel_Name Correlation_Id Start_Timestamp
End_Timestamp Private_Segment_Size Group_Segment_Size {" ".join(_SIZES)}
"""


def write_csv(folder: Path, run: Sequence[Process], new: bool = True, order=list) -> None:
    """A folder as of `rocprofv3 --output-format csv`; `order` changes the columns'."""
    host = folder / "node01"
    host.mkdir(parents=True, exist_ok=True)
    for file in host.glob("*.csv"):
        file.unlink()
    agent = "Agent {}".format if new else str
    for process in run:
        stem = f"{host}/{process.number}"
        _sheet(Path(f"{stem}_kernel_trace.csv"), order((_NEW if new else _OLD).split()), (
            {
                "Kind": "KERNEL_DISPATCH", "Agent_Id": agent(each.device),
                "Queue_Id": 3 if new else each.stream, "Stream_Id": each.stream,
                "Thread_Id": process.number, "Dispatch_Id": at, "Kernel_Id": at,
                "Kernel_Name": each.name, "Correlation_Id": each.call,
                "Start_Timestamp": each.start, "End_Timestamp": each.end,
                "LDS_Block_Size": each.shared, "Group_Segment_Size": each.shared,
                "Scratch_Size": each.scratch, "Private_Segment_Size": each.scratch,
                "VGPR_Count": each.registers, "Accum_VGPR_Count": 4, "SGPR_Count": 16,
                **{f"Workgroup_Size_{a}": n for a, n in zip("XYZ", each.block, strict=True)},
                **{f"Grid_Size_{a}": blocks * threads for a, blocks, threads in
                   zip("XYZ", each.grid, each.block, strict=True)},
            }
            for at, each in enumerate(process.kernels, start=1)
        ))  # fmt: skip
        _sheet(Path(f"{stem}_memory_copy_trace.csv"), order(_COPIES.split()), (
            {
                "Kind": "MEMORY_COPY", "Direction": _OPERATIONS[each.direction],
                "Stream_Id": each.stream,
                "Source_Agent_Id": agent(_source(each)),
                "Destination_Agent_Id": agent(_target(each)), "Correlation_Id": each.call,
                "Start_Timestamp": each.start, "End_Timestamp": each.end,
            }
            for each in process.copies
        ))  # fmt: skip
        _sheet(Path(f"{stem}_hip_api_trace.csv"), order(_CALLS.split()), (
            {"Domain": "HIP_RUNTIME_API", "Function": each.name, "Process_Id": process.number,
             "Thread_Id": each.thread, "Correlation_Id": each.call,
             "Start_Timestamp": each.start, "End_Timestamp": each.end}
            for each in process.calls
        ))  # fmt: skip
        _sheet(Path(f"{stem}_marker_api_trace.csv"), order(_CALLS.split()), (
            {"Domain": "MARKER_CORE_API", "Function": each.name, "Process_Id": process.number,
             "Thread_Id": each.thread, "Correlation_Id": 10**6 + at,
             "Start_Timestamp": each.start, "End_Timestamp": each.end}
            for at, each in enumerate(process.ranges)
        ))  # fmt: skip


def _source(copy) -> int:
    return _CPU if copy.direction == Direction.TO_DEVICE else copy.device


def _target(copy) -> int:
    return _CPU if copy.direction == Direction.TO_HOST else copy.device


def _sheet(path: Path, columns: Sequence[str], rows: Iterable[dict]) -> None:
    """rocprofv3 quotes texts and not numbers, and writes no file without rows."""
    rows = list(rows)
    if not rows:
        return
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([row[name] for name in columns] for row in rows)


def as_json(run: Sequence[Process], calls_first: bool = False) -> str:
    """The text of a results.json; agents and queues are handles there."""
    return json.dumps({"rocprofiler-sdk-tool": [_process(each, calls_first) for each in run]})


def _process(process: Process, calls_first: bool) -> dict:
    kinds = ["NONE", "HIP_RUNTIME_API", "MARKER_CORE_API", "KERNEL_DISPATCH", "MEMORY_COPY"]
    names = sorted({call.name for call in process.calls})
    operations = {
        "HIP_RUNTIME_API": names, "MARKER_CORE_API": ["roctxMarkA", "roctxRangePushA"],
        "MEMORY_COPY": list(_OPERATIONS.values()),
    }  # fmt: skip
    agents = [
        {"size": 280, "id": {"handle": 2**63 + number}, "type": kind, "node_id": number,
         "logical_node_id": number, "name": "gfx90a", "product_name": "AMD Instinct MI250X",
         "vendor_name": "AMD", "model_name": "", "cu_count": 110}
        for number, kind in ((0, 2), (1, 2), (_CPU, 1))
    ]  # fmt: skip

    def record(kind: str, operation: int, what, call: int) -> dict:
        return {
            "size": 64, "kind": kinds.index(kind), "operation": operation,
            "thread_id": getattr(what, "thread", process.number),
            "correlation_id": {"internal": call, "external": 0},
            "start_timestamp": what.start, "end_timestamp": what.end,
        }  # fmt: skip

    def handle(number: int) -> dict:
        return {"handle": number}

    def sizes(numbers) -> dict:
        return dict(zip("xyz", numbers, strict=True))

    records = {
        "kernel_dispatch": [
            record("KERNEL_DISPATCH", 1, each, each.call) | {"stream_id": handle(each.stream)} | {
                "dispatch_info": {
                    "size": 64, "agent_id": handle(2**63 + each.device), "queue_id": handle(77),
                    "kernel_id": at, "dispatch_id": at, "private_segment_size": each.scratch,
                    "group_segment_size": each.shared, "workgroup_size": sizes(each.block),
                    "grid_size": sizes(a * b for a, b in zip(each.grid, each.block, strict=True)),
                }
            }
            for at, each in enumerate(process.kernels, start=1)
        ],
        "hip_api": [
            record("HIP_RUNTIME_API", names.index(each.name), each, each.call)
            for each in process.calls
        ],
        "hsa_api": [],
        "marker_api": [
            record("MARKER_CORE_API", 1, each, 10**6 + at) for at, each in enumerate(process.ranges)
        ],
        "memory_copy": [
            record("MEMORY_COPY", list(_OPERATIONS).index(each.direction), each, each.call) | {
                "src_agent_id": handle(2**63 + _source(each)),
                "dst_agent_id": handle(2**63 + _target(each)),
                "bytes": each.bytes, "stream_id": handle(each.stream),
            }
            for each in process.copies
        ],
        "scratch_memory": [{"size": 1, "flags": 3}],
    }  # fmt: skip
    strings = {
        "buffer_records": [
            {"kind": kind, "operations": operations.get(kind, [])} for kind in kinds
        ],
        "marker_api": [
            {"key": 10**6 + at, "value": each.name} for at, each in enumerate(process.ranges)
        ],
        "correlation_id": {"external": []},
    }
    symbols = [{"size": 0, "kernel_id": 0, "kernel_name": ""}] + [
        {"kernel_id": at, "kernel_name": "_Z1k.kd", "formatted_kernel_name": each.name,
         "arch_vgpr_count": each.registers, "accum_vgpr_count": 4, "sgpr_count": 16}
        for at, each in enumerate(process.kernels, start=1)
    ]  # fmt: skip
    said = {
        "metadata": {"pid": process.number, "command": ["./a.out", "-n", "3"]}, "agents": agents,
        "counters": [], "strings": strings, "code_objects": [], "kernel_symbols": symbols,
        "callback_records": {"counter_collection": [{"thread_id": 1, "records": []}] * 3},
    }  # fmt: skip
    buffers = {"buffer_records": records}
    return buffers | said if calls_first else said | buffers
