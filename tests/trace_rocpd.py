"""rocpd databases as rocprofv3 writes them: the documented tables, with any content."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from kuroshio.perf.traces.events import Direction
from trace_work import Process

# Columns of the layout 3.0 that another has in its tracks, or in its table of times.
_ROCPD_WHERE = {
    "3.0": "nid INTEGER, pid INTEGER, tid INTEGER, {more} start BIGINT, end BIGINT",
    "4.0": "track_id INTEGER, start_id INTEGER, end_id INTEGER",
    "4.1": "track_id INTEGER, start BIGINT, end BIGINT",
}
LAYOUTS = tuple(_ROCPD_WHERE)
_ID = "id INTEGER PRIMARY KEY AUTOINCREMENT, guid TEXT"
_GPU, _CPU = 5, 1  # rows of the first device and of the host
_OPERATIONS = {
    Direction.TO_DEVICE: "MEMORY_COPY_HOST_TO_DEVICE",
    Direction.TO_HOST: "MEMORY_COPY_DEVICE_TO_HOST",
    Direction.ON_DEVICE: "MEMORY_COPY_DEVICE_TO_DEVICE",
}


def write_rocpd(path: Path, run: Sequence[Process], layout: str, uuid: bool = True) -> None:
    """A set of tables for each process, as of files that were merged."""
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA synchronous = OFF")
        for process in run:
            _Rocpd(database, f"_{process.number:032x}" if uuid else "", layout).write(process)
        database.commit()


class _Rocpd:
    def __init__(self, database: sqlite3.Connection, suffix: str, layout: str) -> None:
        self._database, self._suffix, self._layout = database, suffix, layout
        self._strings: dict[str, int] = {}
        self._categories: dict[str, int] = {}
        self._tracks: dict[tuple, int] = {}
        where = _ROCPD_WHERE[layout]
        sizes = ", ".join(f"{s}_size_{a} INTEGER" for s in ("workgroup", "grid") for a in "xyz")
        category = ", rocpd_info_category" if layout == "4.1" else ""
        for table, columns in {
            "rocpd_metadata": "id INTEGER PRIMARY KEY, tag TEXT, value TEXT",
            "rocpd_string": f"{_ID}, string TEXT UNIQUE",
            "rocpd_info_process": f"{_ID}, nid INTEGER, pid INTEGER, command TEXT",
            "rocpd_info_thread": f"{_ID}, nid INTEGER, pid INTEGER, tid INTEGER",
            "rocpd_info_agent": f"{_ID}, nid INTEGER, pid INTEGER, type TEXT, "
            "absolute_index INTEGER, logical_index INTEGER, name TEXT, model_name TEXT, "
            "vendor_name TEXT, product_name TEXT, extdata TEXT",
            "rocpd_info_kernel_symbol": f"{_ID}, kernel_name TEXT, display_name TEXT, "
            "sgpr_count INTEGER, arch_vgpr_count INTEGER, accum_vgpr_count INTEGER",
            "rocpd_event": f"{_ID}, category_id INTEGER, stack_id INTEGER, "
            "parent_stack_id INTEGER, correlation_id INTEGER, extdata TEXT",
            "rocpd_region": f"{_ID}, {where.format(more='')}, name_id INTEGER, event_id INTEGER",
            "rocpd_kernel_dispatch": f"{_ID}, "
            + where.format(more="agent_id INTEGER, queue_id INTEGER, stream_id INTEGER,")
            + f", kernel_id INTEGER, dispatch_id INTEGER, private_segment_size INTEGER, "
            f"group_segment_size INTEGER, {sizes}, event_id INTEGER",
            "rocpd_memory_copy": f"{_ID}, "
            + where.format(more="queue_id INTEGER, stream_id INTEGER,")
            + ", name_id INTEGER, dst_agent_id INTEGER, src_agent_id INTEGER, size INTEGER, "
            "event_id INTEGER",
            **({"rocpd_info_category": f"{_ID}, name TEXT"} if category else {}),
            **(
                {}
                if layout == "3.0"
                else {
                    "rocpd_track": f"{_ID}, nid INTEGER, pid INTEGER, tid INTEGER, "
                    "agent_id INTEGER, queue_id INTEGER, stream_id INTEGER"
                }
            ),
            **({"rocpd_timestamp": f"{_ID}, value BIGINT"} if layout == "4.0" else {}),
        }.items():
            database.execute(f'CREATE TABLE "{table}{suffix}" ({columns})')
            if suffix:
                database.execute(f'CREATE VIEW IF NOT EXISTS "{table}" AS SELECT * FROM '
                                 f'"{table}{suffix}"')  # fmt: skip

    def write(self, process: Process) -> None:
        number = process.number
        self._insert("rocpd_metadata", tag="schema_version", value=self._layout)
        # Rows of processes and threads do not have the numbers of the processes and threads.
        self._insert("rocpd_info_process", id=7, nid=1, pid=number, command="./a.out")
        for thread in range(number, number + 3):
            self._insert("rocpd_info_thread", id=thread - number + 1, pid=7, tid=thread)
        self._insert("rocpd_info_agent", id=_CPU, type="CPU", absolute_index=9, logical_index=9)
        for device in (0, 1):
            self._insert(
                "rocpd_info_agent", id=_GPU + device, type="GPU", absolute_index=_GPU + device,
                logical_index=device, name="gfx90a", model_name="", vendor_name="AMD",
                product_name="AMD Instinct MI250X", extdata=json.dumps({"cu_count": 110}),
            )  # fmt: skip
        for call in process.calls:
            self._row("rocpd_region", process, call, "HIP_RUNTIME_API",
                      name_id=self._string(call.name))  # fmt: skip
        for each in process.ranges:
            self._row("rocpd_region", process, each, "MARKER_CORE_RANGE_API",
                      name_id=self._string("roctxThreadRangeA"),
                      extdata=json.dumps({"message": each.name}))  # fmt: skip
        for at, kernel in enumerate(process.kernels, start=1):
            self._insert("rocpd_info_kernel_symbol", id=100 + at, kernel_name="_Z1k.kd",
                         display_name=kernel.name, arch_vgpr_count=kernel.registers,
                         accum_vgpr_count=4, sgpr_count=16)  # fmt: skip
            sizes = {f"workgroup_size_{a}": n for a, n in zip("xyz", kernel.block, strict=True)}
            # AMD counts work-items.
            sizes |= {f"grid_size_{a}": blocks * threads for a, blocks, threads in
                      zip("xyz", kernel.grid, kernel.block, strict=True)}  # fmt: skip
            self._row("rocpd_kernel_dispatch", process, kernel, "KERNEL_DISPATCH",
                      agent_id=_GPU + kernel.device, queue_id=3, stream_id=kernel.stream,
                      kernel_id=100 + at, dispatch_id=at, private_segment_size=kernel.scratch,
                      group_segment_size=kernel.shared, **sizes)  # fmt: skip
        for copy in process.copies:
            device = _GPU + copy.device
            self._row("rocpd_memory_copy", process, copy, "MEMORY_COPY",
                      name_id=self._string(_OPERATIONS[copy.direction]), size=copy.bytes,
                      stream_id=copy.stream,
                      src_agent_id=_CPU if copy.direction == Direction.TO_DEVICE else device,
                      dst_agent_id=_CPU if copy.direction == Direction.TO_HOST else device,
                      )  # fmt: skip

    def _row(self, table, process, what, category, extdata="{}", **columns) -> None:
        event = self._insert(
            "rocpd_event", category_id=self._category(category), stack_id=getattr(what, "call", 0),
            correlation_id=0, extdata=extdata,
        )  # fmt: skip
        thread = getattr(what, "thread", process.number) - process.number + 1
        track = {key: columns.pop(key, None) for key in ("agent_id", "queue_id", "stream_id")}
        if self._layout == "3.0":
            columns |= {"nid": 1, "pid": 7, "tid": thread}
            columns |= {key: value for key, value in track.items() if value is not None}
        else:
            columns["track_id"] = self._track(pid=7, tid=thread, **track)
        for key in ("start", "end"):
            time = getattr(what, key)
            if self._layout == "4.0":
                columns[f"{key}_id"] = self._insert("rocpd_timestamp", value=time)
            else:
                columns[key] = time
        self._insert(table, event_id=event, **columns)

    def _track(self, **columns) -> int:
        key = tuple(columns.items())
        if key not in self._tracks:
            self._tracks[key] = self._insert("rocpd_track", **columns)
        return self._tracks[key]

    def _category(self, name: str) -> int:
        if self._layout != "4.1":
            return self._string(name)
        if name not in self._categories:
            self._categories[name] = self._insert("rocpd_info_category", name=name)
        return self._categories[name]

    def _string(self, text: str) -> int:
        if text not in self._strings:
            self._strings[text] = self._insert("rocpd_string", string=text)
        return self._strings[text]

    def _insert(self, table: str, **columns) -> int:
        names = ", ".join(f'"{name}"' for name in columns)
        marks = ", ".join("?" * len(columns))
        done = self._database.execute(
            f'INSERT INTO "{table}{self._suffix}" ({names}) VALUES ({marks})', (*columns.values(),)
        )
        return done.lastrowid
