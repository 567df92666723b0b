"""The CSV of rocprof before version 3: a row a kernel.

Of rocprof (v1) results.csv has KernelName, gpu-id, grd, wgr, BeginNs and EndNs, and mostly
DispatchNs; rocprofv2 and rocprofiler-compute (timestamps.csv) call them Kernel_Name, GPU_ID,
Grid_Size, Workgroup_Size, Start_Timestamp and End_Timestamp. Grids and blocks are one number, all
axes together. Counters are kept by their names. Copies and calls are in rocprof's JSON alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ...errors import Refusal
from . import rocm
from .csv_file import Sheet, header_in, sheet
from .events import ABSENT, Column, Events, Kind, joined
from .sound import fitting, sound
from .trace import Trace

FORM = "rocprof CSV"
_TIMES = (("BeginNs", "EndNs"), ("Start_Timestamp", "End_Timestamp"))
_NAMES = ("KernelName", "Kernel_Name")
_DEVICES = ("gpu-id", "GPU_ID")
_QUEUES = ("queue-id", "Queue_ID")
_PROCESSES, _THREADS = ("pid", "PID"), ("tid", "TID")
_GRIDS, _BLOCKS = ("grd", "GRD", "Grid_Size"), ("wgr", "WGR", "Workgroup_Size")
_REGISTERS = ("arch_vgpr", "Arch_VGPR", "vgpr", "VGPR")
_SHARED = ("lds", "LDS", "LDS_Per_Workgroup")
_SCRATCH = ("scr", "SCR", "Scratch_Per_Workitem")
_DISPATCHED = "DispatchNs"
_WHOLE = {
    *(name for pair in _TIMES for name in pair), *_DEVICES, *_QUEUES, *_PROCESSES, *_THREADS,
    *_GRIDS, *_BLOCKS, *_REGISTERS, *_SHARED, *_SCRATCH, _DISPATCHED,
}  # fmt: skip
# Numbers of the record, addresses, what follows from two others, and a completion after the end.
_WITHOUT = (
    "Index", "Dispatch_ID", "Correlation_ID", "queue-index", "Queue_Index", "sig", "SIG", "obj",
    "OBJ", "DurationNs", "CompleteNs",
)  # fmt: skip


def recognise(path: Path, head: bytes) -> bool:
    names = set(header_in(head))
    return (
        any(names.issuperset(pair) for pair in _TIMES)
        and not names.isdisjoint(_NAMES)
        and not names.isdisjoint(_DEVICES)
    )


def read(path: Path) -> Trace:
    """A Refusal where there is no kernel, or the file is damaged."""
    table = sheet(path, _WHOLE, _WITHOUT)
    name = next((table.texts[each] for each in _NAMES if each in table.texts), None)
    times = next((pair for pair in _TIMES if table.integers.keys() >= set(pair)), None)
    if name is None or times is None:
        raise Refusal(
            f"{path} is no trace of rocprof's: it lacks KernelName, BeginNs or EndNs. Write it "
            "with rocprof --timestamp on."
        )
    start, end = (table.integers[each] for each in times)
    events, notes = sound(_events(table, name, start, end))
    if not len(events):
        raise Refusal(f"{path} has a header and no kernel with its times. Record it again.")
    return Trace(
        path, FORM, events, devices=rocm.described(events, {}), cannot_tell=(*_lacks(table), *notes)
    )


def _lacks(table: Sheet) -> Iterator[str]:
    if _DISPATCHED in table.integers:
        yield "When a kernel was dispatched is recorded, and not how long that took"
    else:
        yield (
            "Which call launched a kernel, and when, is not in this CSV (rocprof --hip-trace "
            "writes it as JSON)"
        )
    yield "Copies are not in this CSV, only kernels are"
    yield "Of grids and blocks the sizes are recorded, and not the shapes"
    if table.cut:
        yield "The file is cut off: what came after its last whole line is missing"


def _events(table: Sheet, name: Column, start: np.ndarray, end: np.ndarray) -> Events:
    names = [rocm.kernel_name(value) for value in name.values] + ["unnamed"]
    codes = np.where(name.codes == ABSENT, len(names) - 1, name.codes)
    items, size = table.whole(*_GRIDS), table.whole(*_BLOCKS)
    process, thread = table.whole(*_PROCESSES), table.whole(*_THREADS)
    number = np.arange(1, table.rows + 1)
    kernels = Events.of(
        names, {key: each for key, each in table.texts.items() if key not in _NAMES},
        kind=rocm.kernel_kinds(names, codes), name=codes, start=start, end=end, process=process,
        thread=thread, device=_narrow(table, *_DEVICES), stream=table.whole(*_QUEUES),
        correlation=number, block=None if size is None else fitting(_along_x(size)),
        grid=None if items is None or size is None else _along_x(rocm.blocks(items, size)),
        registers=_narrow(table, *_REGISTERS), shared=_narrow(table, *_SHARED),
        scratch=_narrow(table, *_SCRATCH),
    )  # fmt: skip
    dispatched = table.whole(_DISPATCHED)
    if dispatched is None:
        return kernels
    moments = Events.of(
        ["dispatch"], kind=Kind.CALL, name=np.zeros(table.rows, np.int32), start=dispatched,
        end=dispatched, process=process, thread=thread, correlation=number,
    )  # fmt: skip
    return joined([kernels, moments[dispatched > 0]])


def _along_x(numbers: np.ndarray) -> np.ndarray:
    """(row, 3) with the same product."""
    one = np.where(numbers == ABSENT, ABSENT, 1)
    return np.stack([numbers, one, one], axis=1)


def _narrow(table: Sheet, *names: str) -> np.ndarray | None:
    found = table.whole(*names)
    return None if found is None else fitting(found)
