"""rocprofv3's CSV: a folder with files of kernels, copies and calls, or one such file.

Columns are found by name, since versions differ: to ROCm 6.2 agents are numbers and a kernel has
Private_ and Group_Segment_Size; later agents are 'Agent 4' (or 'GPU 0'), and Stream_Id,
LDS_Block_Size, Scratch_Size and register counts come in. What `rocpd convert` writes has a Guid of
each process, other capitals, and all calls in *_regions_trace.csv. Allocations, scratch memory and
counters are not read: they are no work and no calls.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import Refusal
from . import rocm
from .csv_file import Sheet, header_in, sheet
from .events import ABSENT, Column, Events, Kind, joined
from .sound import check_one_run, fitting, sound, together
from .source import beginning
from .trace import Device, Trace

FORM = "rocprofv3 CSV"
_TIMES = ("Start_Timestamp", "End_Timestamp")
_AXES = ("X", "Y", "Z")
_WHOLE = (
    *_TIMES, "Correlation_Id", "Thread_Id", "Process_Id", "Stream_Id",
    *(f"Workgroup_Size_{axis}" for axis in _AXES), *(f"Grid_Size_{axis}" for axis in _AXES),
    "Private_Segment_Size", "Scratch_Size", "Group_Segment_Size", "LDS_Block_Size",
    "Lds_Block_Size", "VGPR_Count", "Vgpr_Count",
)  # fmt: skip
# Numbers of the record itself: the name says which kernel it was, and the start in which order.
_WITHOUT = ("Kind", "Dispatch_Id", "Kernel_Id", "Duration")
_TRACES = ("kernels", "copies", "calls")
_MOST_FILES = 4096
_ADVICE = "Write them with rocprofv3 --runtime-trace --output-format csv."


# Files of rocprofv3's that are no traces, and what they are instead.
_NO_TRACES = {
    "agents": "describes the devices and no more",
    "totals": "has totals, without times; give the *_trace.csv beside it, or their folder",
    "counters": "has counters, which kuroshio perf roofline --counters takes",
}


def kind_of(header: Sequence[str]) -> str | None:
    """'kernels', 'copies' or 'calls', or one of those that are no traces; None of other files."""
    names = set(header)
    if {"Node_Id", "Agent_Type"} <= names:
        return "agents"
    if {"Calls", "TotalDurationNs"} <= names:
        return "totals"
    if {"Counter_Name", "Counter_Value"} <= names:
        return "counters"
    if not names.issuperset(_TIMES):
        return None
    if {"Kernel_Name", "Agent_Id"} <= names:
        return "kernels"
    if "Direction" in names:
        return "copies"
    return "calls" if {"Domain", "Function"} <= names else None


def recognise(path: Path, head: bytes) -> bool:
    """Whether this is a folder with traces, or one file of rocprofv3's, a trace or none."""
    if path.is_dir():
        return any(_kind(file) in _TRACES for file in _files(path))
    return kind_of(header_in(head)) is not None


def read(path: Path) -> Trace:
    """A Refusal where there are no events, or a file is damaged."""
    groups = _groups(path)
    if not groups:
        raise Refusal(
            f"{path} {_instead(path)}. {_ADVICE} Traces are *_kernel_trace.csv, "
            "*_memory_copy_trace.csv and *_api_trace.csv."
        )
    processes = [_process(group) for group in groups]
    parts = [events for process in processes for events in process.events]
    check_one_run(path, parts)
    events, notes = sound(together(parts))
    if not len(events):
        raise Refusal(f"{path}: the files have headers and no events. {_ADVICE}")
    devices = rocm.described(
        events, {key: device for process in processes for key, device in process.devices.items()}
    )
    lacks = [note for process in processes for note in process.notes]
    kinds = {kind for process in processes for kind in process.kinds}
    return Trace(
        path, FORM, events, devices=devices,
        cannot_tell=(*dict.fromkeys([*lacks, *_lacks(kinds, events), *notes]),),
        facts={"files": str(sum(process.files for process in processes))},
    )  # fmt: skip


def _instead(path: Path) -> str:
    if path.is_dir():
        return "is a folder without a trace of rocprofv3's"
    return _NO_TRACES.get(_kind(path) or "", "is no trace of rocprofv3's")


def _lacks(kinds: set[str], events: Events) -> Iterator[str]:
    if "kernels" not in kinds:
        yield rocm.NO_KERNELS
    elif not (events.of_kind(Kind.CALL) & (events.correlation != ABSENT)).any():
        yield rocm.NO_LAUNCHES
    if "copies" not in kinds:
        yield rocm.NO_COPIES
    else:
        yield "How many bytes a copy moved is not in this CSV (rocprofv3's JSON and rocpd tell it)"


@dataclass
class _Process:
    """What the files of one process tell; usually one table, and a table of each process else."""

    events: list[Events] = field(default_factory=list)
    devices: dict[int, Device] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    kinds: set[str] = field(default_factory=set)
    files: int = 0


def _files(path: Path) -> list[Path]:
    files = (file for file in path.rglob("*.csv") if file.is_file())
    found = sorted(islice(files, _MOST_FILES + 1))
    if len(found) > _MOST_FILES:
        raise Refusal(f"{path} has more than {_MOST_FILES} CSV files. Give the folder of one run.")
    return found


def _groups(path: Path) -> list[list[tuple[str | None, Path]]]:
    """Files that belong together, those of a process: they begin alike, with its number."""
    files = _files(path) if path.is_dir() else [path]
    groups: dict[tuple[Path, str], list[tuple[str | None, Path]]] = defaultdict(list)
    for file in files:
        kind = _kind(file)
        if kind in (*_TRACES, "agents"):
            groups[file.parent, _prefix(file)].append((kind, file))
    return [group for group in groups.values() if any(kind in _TRACES for kind, _ in group)]


def _kind(file: Path) -> str | None:
    """A file that cannot be read is none of ours, unless its name says that it should be."""
    try:
        return kind_of(header_in(beginning(file)))
    except Refusal:
        if file.name.endswith("_trace.csv"):
            raise
        return None


def _prefix(file: Path) -> str:
    """'4711', of 4711_hip_api_trace.csv."""
    return re.sub(
        r"_?((kernel|memory_copy|regions|[a-z]+_(api|runtime|compile|compiler))_trace|agent_info)$",
        "",
        file.stem,
    )  # fmt: skip


def _process(files: Sequence[tuple[str | None, Path]]) -> _Process:
    found = _Process(files=len(files), kinds={kind for kind, _ in files if kind})
    by_guid: dict[str | None, tuple[list[Events], list[Events]]] = defaultdict(lambda: ([], []))
    for kind, file in files:
        if kind == "agents":
            found.devices.update(_agents(file))
            continue
        table = sheet(file, _WHOLE, _WITHOUT)
        if table.cut:
            found.notes.append(
                f"{file.name} is cut off: what came after its last whole line is missing"
            )
        if kind_of(table.header) != kind:  # cut off in its first line
            continue
        events = {"kernels": _kernels, "copies": _copies, "calls": _calls}[kind or ""](table)
        for guid, part in _by_guid(table, events):
            by_guid[guid][kind == "calls"].append(part)
    number = _number_in(files[0][1])
    for on_device, on_host in by_guid.values():
        found.events += _of_one(on_device, on_host, number, found.notes)
    return found


def _by_guid(table: Sheet, events: Events) -> Iterator[tuple[str | None, Events]]:
    """Of each process, where a file has several: what rocpd makes of its databases."""
    guid = table.texts.get("Guid")
    if guid is None:
        yield None, events
        return
    for code in np.unique(guid.codes).tolist():
        yield guid.values[code] if code != ABSENT else None, events[guid.codes == code]


def _of_one(
    on_device: Sequence[Events], on_host: Sequence[Events], number: int, notes: list[str]
) -> list[Events]:
    """A table of one process; of several, whose files have one name, one each and their work's."""
    processes = sorted({each for part in on_host for each in np.unique(part.process).tolist()})
    if len(processes) < 2:
        process = processes[0] if processes else number
        whose = [replace(part, process=np.full(len(part), process)) for part in on_device]
        return [joined([*whose, *on_host])]
    # Their work cannot be told apart, since kernels and copies do not name their process.
    if any((part.correlation != ABSENT).any() for part in on_device):
        notes.append(
            "Files of several processes have one name, so that it is not told which call began "
            "which work"
        )
    nothing = [replace(part, correlation=np.full(len(part), ABSENT)) for part in on_device]
    apart = joined(on_host)
    return [*nothing, *(apart[apart.process == each] for each in processes)]


def _number_in(file: Path) -> int:
    prefix = _prefix(file)
    return int(prefix) if re.fullmatch("[0-9]{1,9}", prefix) else ABSENT


def _kernels(table: Sheet) -> Events:
    name = _texts(table, "Kernel_Name")
    names = [rocm.kernel_name(value) for value in name.values]
    agent = _texts(table, "Agent_Id")
    block = table.triple(*(f"Workgroup_Size_{axis}" for axis in _AXES))
    items = table.triple(*(f"Grid_Size_{axis}" for axis in _AXES))
    return _events(
        table, names, name.codes, rocm.kernel_kinds(names, name.codes),
        device=fitting(rocm.last_number(agent)),
        block=None if block is None else fitting(block),
        grid=None if items is None or block is None else rocm.blocks(items, block),
        registers=_narrow(table, "VGPR_Count", "Vgpr_Count"),
        shared=_narrow(table, "LDS_Block_Size", "Lds_Block_Size", "Group_Segment_Size"),
        scratch=_narrow(table, "Scratch_Size", "Private_Segment_Size"),
        used=("Kernel_Name", "Agent_Id"),
    )  # fmt: skip


def _copies(table: Sheet) -> Events:
    way = _texts(table, "Direction")
    nowhere = Column(np.full(table.rows, ABSENT, np.int32), ())
    source, target = (
        rocm.last_number(table.texts.get(name, nowhere))
        for name in ("Source_Agent_Id", "Destination_Agent_Id")
    )
    direction, device = rocm.copied(way.values, way.codes, source, target)
    return _events(
        table, way.values, way.codes, Kind.COPY, direction=direction,
        device=fitting(device), used=("Direction",),
    )  # fmt: skip


def _calls(table: Sheet) -> Events:
    name, domain = _texts(table, "Function"), _texts(table, "Domain")
    kinds = np.array([*map(rocm.call_kind, domain.values), Kind.CALL], np.uint8)[domain.codes]
    return _events(table, name.values, name.codes, kinds, used=tuple(table.texts))


def _events(
    table: Sheet, names: Sequence[str], codes: np.ndarray, kind: np.ndarray | Kind, *,
    used: tuple[str, ...], **columns: Any,
) -> Events:  # fmt: skip
    texts: Mapping[str, Column] = table.texts
    correlation = table.whole("Correlation_Id")
    stream = table.whole("Stream_Id")
    if stream is None and "Queue_Id" in texts and "Queue_Id" not in used:
        stream, used = rocm.last_number(texts["Queue_Id"]), (*used, "Queue_Id")
    if (codes == ABSENT).any():
        codes, names = np.where(codes == ABSENT, len(names), codes), [*names, "unnamed"]
    return Events.of(
        names, {key: texts[key] for key in texts if key not in (*used, "Guid")},
        kind=kind, name=codes,
        start=table.integers[_TIMES[0]], end=table.integers[_TIMES[1]],
        process=table.whole("Process_Id"), thread=table.whole("Thread_Id"), stream=stream,
        correlation=None if correlation is None else rocm.no_zeros(correlation), **columns,
    )  # fmt: skip


def _texts(table: Sheet, name: str) -> Column:
    return table.texts[name]


def _narrow(table: Sheet, *names: str) -> np.ndarray | None:
    found = table.whole(*names)
    return None if found is None else fitting(found)


def _agents(path: Path) -> dict[int, Device]:
    """Devices by number: that which counts only visible nodes, as kernels have it, comes first."""
    table = sheet(path, ("Node_Id", "Logical_Node_Id", "Cu_Count"))
    cu = table.whole("Cu_Count")
    found: dict[int, Device] = {}
    for key in ("Node_Id", "Logical_Node_Id"):
        numbers = table.whole(key)
        if numbers is None:
            continue
        for row, number in enumerate(numbers.tolist()):
            if table.text("Agent_Type", row) == "GPU":
                found[number] = Device(
                    number,
                    name=table.text("Product_Name", row) or table.text("Model_Name", row),
                    maker=table.text("Vendor_Name", row) or "AMD",
                    architecture=table.text("Name", row),
                    multiprocessors=int(cu[row]) if cu is not None and cu[row] > 0 else None,
                )  # fmt: skip
    return found
