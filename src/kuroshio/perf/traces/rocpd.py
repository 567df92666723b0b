"""rocpd: the SQLite of rocprofv3 (its default from ROCm 7) and of ROCm's Systems Profiler.

A file has a set of tables rocpd_*_{uuid} for each process, and views without the uuid over them.
Three layouts are known: 3.0 with start, end, pid, agent_id and stream_id in each row; 4.0 with
start_id and end_id of rocpd_timestamp, and the others in rocpd_track by track_id; 4.1 with
rocpd_track, but start and end in the row again. Each is told by its columns.

A call and the work that it began have the same stack_id; correlation_id is the user's own.
Samples, counters, allocations and the arguments of calls are not read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import Refusal
from . import rocm
from .events import ABSENT, Events, Kind, joined
from .processes import of_one_job, process_ranks
from .sound import as_texts, fitting, named, sound, together
from .sqlite_file import MAGIC, Database, opened, tables_of
from .trace import Device, Trace

FORM = "rocpd SQLite"
_ADVICE = "Write it with rocprofv3 --runtime-trace."
_WORK = ("rocpd_kernel_dispatch", "rocpd_memory_copy", "rocpd_region")
# Of torchrun, Open MPI, MPICH and Slurm.
_RANKS = (
    ("RANK", "WORLD_SIZE"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"), ("SLURM_PROCID", "SLURM_NTASKS"),
)  # fmt: skip
_OTHERS = ("queue_id", "graph_exec_id", "graph_node_id")
_AXES = ("x", "y", "z")


def recognise(path: Path, head: bytes) -> bool:
    return head.startswith(MAGIC) and bool(_suffixes(tables_of(path)))


def read(path: Path) -> Trace:
    """A Refusal where there are no events, or the file is damaged, locked or of another program."""
    with opened(path, _ADVICE) as database:
        suffixes = _suffixes(database.tables)
        if not suffixes:
            raise Refusal(f"{path} has no tables of rocpd's. {_ADVICE}")
        processes = [_Process(database, suffix) for suffix in suffixes]
        parts = [process.events() for process in processes]
        devices = {
            number: device for process in processes for number, device in process.devices().items()
        }
        facts = {key: value for process in processes for key, value in process.facts().items()}
        packed = [note for process in processes for note in process.notes]
        told = [process.rank() for process in processes]
    events, notes = sound(together(parts))
    if not len(events):
        raise Refusal(f"{path} has rocpd's tables and no events in them. {_ADVICE}")
    return Trace(
        path,
        FORM,
        events,
        devices=rocm.described(events, devices),
        rank=told[0][0] if len(told) == 1 else None,
        ranks=of_one_job(ranks for _, ranks in told),
        cannot_tell=(*rocm.lacks(events), *dict.fromkeys(packed), *notes),
        facts=facts,
        process_ranks=process_ranks(zip(parts, (rank for rank, _ in told), strict=True)),
    )


def _suffixes(tables: frozenset[str]) -> list[str]:
    """What each process's tables end in; '' where they have no uuid."""
    found = {name.removeprefix(stem) for name in tables for stem in _WORK if name.startswith(stem)}
    return sorted(suffix for suffix in found if not suffix or suffix.startswith("_"))


@dataclass(frozen=True)
class _Rows:
    """What every kind of event has, whichever the layout: int64, ABSENT where it is not told."""

    columns: dict[str, np.ndarray]
    start: np.ndarray
    end: np.ndarray
    process: np.ndarray
    thread: np.ndarray
    agent: np.ndarray
    stream: np.ndarray
    correlation: np.ndarray
    event: np.ndarray

    def column(self, name: str) -> np.ndarray:
        found = self.columns.get(name)
        return np.full(len(self.start), ABSENT) if found is None else found

    def triple(self, stem: str) -> np.ndarray:
        return np.stack([self.column(f"{stem}_{axis}") for axis in _AXES], axis=1)


class _Process:
    """The tables with one suffix."""

    def __init__(self, database: Database, suffix: str) -> None:
        self._database, self._suffix = database, suffix
        self.notes: list[str] = []
        self._events = self._lookup("rocpd_event", ("stack_id", "category_id"))
        self._tracks = self._lookup(
            "rocpd_track", ("pid", "tid", "agent_id", "queue_id", "stream_id")
        )
        self._times = self._lookup("rocpd_timestamp", ("value",))
        # In the layout 3.0 rows name a process and a thread by the number of their row.
        self._pids = self._lookup("rocpd_info_process", ("pid",))
        self._tids = self._lookup("rocpd_info_thread", ("tid",))
        self._agents = {
            row["id"]: row
            for row in database.rows(
                self._table("rocpd_info_agent"),
                ("id", "type", "absolute_index", "logical_index", "name", "product_name",
                 "model_name", "vendor_name", "extdata"),
            )
        }  # fmt: skip

    def events(self) -> Events:
        return joined([self._kernels(), self._copies(), self._regions()])

    def devices(self) -> dict[int, Device]:
        found = {}
        for key, row in self._agents.items():
            number = self._number(key)
            if row["type"] == "GPU" and number != ABSENT:
                cu = _extra(row["extdata"]).get("cu_count")
                found[number] = Device(
                    number, name=_text(row["product_name"]) or _text(row["model_name"]),
                    maker=_text(row["vendor_name"]) or "AMD", architecture=_text(row["name"]),
                    multiprocessors=cu if isinstance(cu, int) and cu > 0 else None,
                )  # fmt: skip
        return found

    def facts(self) -> dict[str, str]:
        facts = {}
        for row in self._database.rows(self._table("rocpd_metadata"), ("tag", "value")):
            if row["tag"] == "schema_version":
                facts["schema"] = str(row["value"])
        for row in self._database.rows(self._table("rocpd_info_process"), ("command",), most=1):
            if command := _text(row["command"]):
                facts["command"] = command
        return facts

    def rank(self) -> tuple[int | None, int | None]:
        """Which of how many, as the launcher told the process in its environment."""
        for row in self._database.rows(self._table("rocpd_info_process"), ("environment",), 1):
            variables = _extra(row["environment"])
            for rank, ranks in _RANKS:
                found = _decimal(variables.get(rank)), _decimal(variables.get(ranks))
                if None not in found:
                    return found
        return None, None

    def _table(self, stem: str) -> str:
        return stem + self._suffix

    def _number(self, key: object) -> int:
        """A device's: as rocprofv3 counts those that a process sees, or of all."""
        row = self._agents.get(key, {})
        numbers = (row.get("logical_index"), row.get("absolute_index"), key)
        found = next((each for each in numbers if isinstance(each, int)), ABSENT)
        return found if 0 <= found < 2**31 else ABSENT

    def _kernels(self) -> Events:
        rows = self._rows(
            "rocpd_kernel_dispatch",
            ("kernel_id", "private_segment_size", "group_segment_size",
             *(f"workgroup_size_{axis}" for axis in _AXES),
             *(f"grid_size_{axis}" for axis in _AXES)),
            needed=("kernel_id",),
        )  # fmt: skip
        table = self._table("rocpd_info_kernel_symbol")
        kernels = rows.column("kernel_id")
        texts = self._database.texts(table, "id", "kernel_name", kernels)
        texts |= self._database.texts(table, "id", "display_name", kernels)
        symbols = self._lookup(
            "rocpd_info_kernel_symbol", ("arch_vgpr_count", "accum_vgpr_count", "sgpr_count")
        )
        names, codes = named(kernels, {key: rocm.kernel_name(text) for key, text in texts.items()})
        block = rows.triple("workgroup_size")
        return self._of(
            rows, names, codes, rocm.kernel_kinds(names, codes), device=self._devices(rows.agent),
            block=fitting(block), grid=rocm.blocks(rows.triple("grid_size"), block),
            registers=fitting(symbols.of(kernels, "arch_vgpr_count")),
            shared=fitting(rows.column("group_segment_size")),
            scratch=fitting(rows.column("private_segment_size")),
            others={
                name: as_texts(symbols.of(kernels, name))
                for name in ("accum_vgpr_count", "sgpr_count")
            },
        )  # fmt: skip

    def _copies(self) -> Events:
        rows = self._rows(
            "rocpd_memory_copy", ("name_id", "src_agent_id", "dst_agent_id", "size"),
            needed=("name_id",),
        )  # fmt: skip
        names, codes = self._strings(rows.column("name_id"))
        source, target = (
            self._devices(rows.column(name)) for name in ("src_agent_id", "dst_agent_id")
        )
        direction, device = rocm.copied(names, codes, source, target)
        return self._of(
            rows, names, codes, Kind.COPY, direction=direction, bytes=rows.column("size"),
            device=device,
        )  # fmt: skip

    def _regions(self) -> Events:
        rows = self._rows("rocpd_region", ("name_id",), needed=("name_id",))
        names, codes = self._strings(rows.column("name_id"))
        kinds = self._kinds(rows.event, names, codes)
        ranges = np.flatnonzero(kinds == Kind.ANNOTATION)
        if len(ranges):
            names, codes = self._messages(names, codes, ranges, rows.event[ranges])
        return self._of(rows, names, codes, kinds)

    def _kinds(self, events: np.ndarray, names: Sequence[str], codes: np.ndarray) -> np.ndarray:
        """By category, which is a string, or in the layout 4.1 has a table; else by name."""
        category = self._events.of(events, "category_id")
        own = self._table("rocpd_info_category")
        texts = (
            self._database.texts(own, "id", "name", category)
            if own in self._database.tables
            else self._database.texts(self._table("rocpd_string"), "id", "string", category)
        )
        domains, domain = named(category, texts, unknown="")
        by_domain = np.array([rocm.call_kind(each) for each in domains], np.uint8)[domain]
        by_name = np.array([rocm.call_kind(each) for each in names], np.uint8)[codes]
        told = np.array([bool(each) for each in domains])[domain]
        return np.where(told, by_domain, by_name)

    def _messages(
        self, names: tuple[str, ...], codes: np.ndarray, ranges: np.ndarray, events: np.ndarray
    ) -> tuple[tuple[str, ...], np.ndarray]:
        """Ranges by the text that the program gave, which is in an event's extra data."""
        extra = self._database.texts(self._table("rocpd_event"), "id", "extdata", events)
        if not extra:
            self.notes.append(
                "The texts of the program's ranges are packed (lz4), so that ranges have the names "
                "of the calls that made them"
            )
        known = {name: number for number, name in enumerate(names)}
        codes = codes.copy()
        for row, event in zip(ranges.tolist(), events.tolist(), strict=True):
            message = _extra(extra.get(event)).get("message")
            if isinstance(message, str) and message:
                codes[row] = known.setdefault(message, len(known))
        return tuple(known), codes

    def _strings(self, keys: np.ndarray) -> tuple[tuple[str, ...], np.ndarray]:
        return named(keys, self._database.texts(self._table("rocpd_string"), "id", "string", keys))

    def _devices(self, agents: np.ndarray) -> np.ndarray:
        found, codes = np.unique(agents, return_inverse=True)
        numbers = [self._number(key) if key != ABSENT else ABSENT for key in found.tolist()]
        return np.array(numbers, np.int64)[codes]

    def _of(
        self, rows: _Rows, names: Sequence[str], codes: np.ndarray, kind: np.ndarray | Kind,
        **columns: Any,
    ) -> Events:  # fmt: skip
        if "device" in columns:
            columns["stream"] = rows.stream
            others = {key: rows.columns[key] for key in _OTHERS if key in rows.columns}
            columns["others"] = columns.get("others", {}) | {
                key: as_texts(numbers) for key, numbers in others.items()
            }
        return Events.of(
            names, kind=kind, name=codes, start=rows.start, end=rows.end, process=rows.process,
            thread=rows.thread, correlation=rows.correlation, **columns,
        )  # fmt: skip

    def _rows(self, stem: str, names: Sequence[str], needed: Sequence[str]) -> _Rows:
        table, database = self._table(stem), self._database
        if table in database.tables:
            database.require(table, *needed)
        own = ("start", "end", "start_id", "end_id", "track_id", "event_id")
        where = ("pid", "tid", "agent_id", "stream_id", *_OTHERS)
        found = database.integers(table, (*names, *own, *where))
        number = len(next(iter(found.values()), ()))
        nothing = np.full(number, ABSENT)
        if table in database.tables and "start" not in found:
            database.require(table, "start_id", "end_id")
        track = found.get("track_id", nothing)

        def told(name: str) -> np.ndarray:
            return found[name] if name in found else self._tracks.of(track, name)

        def time(name: str) -> np.ndarray:
            return (
                found[name]
                if name in found
                else self._times.of(found.get(f"{name}_id", nothing), "value")
            )

        stream, queue = told("stream_id"), told("queue_id")
        event = found.get("event_id", nothing)
        process, thread = told("pid"), told("tid")
        return _Rows(
            found, start=time("start"), end=time("end"),
            process=self._pids.of(process, "pid", otherwise=process),
            thread=self._tids.of(thread, "tid", otherwise=thread),
            agent=told("agent_id"), stream=np.where(stream == ABSENT, queue, stream),
            correlation=rocm.no_zeros(self._events.of(event, "stack_id")), event=event,
        )  # fmt: skip

    def _lookup(self, stem: str, names: Sequence[str]) -> _Lookup:
        return _Lookup(self._database.integers(self._table(stem), ("id", *names)))


class _Lookup:
    """Columns of a table by the number of their row."""

    def __init__(self, columns: dict[str, np.ndarray]) -> None:
        ids = columns.get("id", np.empty(0, np.int64))
        order = np.argsort(ids, kind="stable")
        self._ids = ids[order]
        self._columns = {name: values[order] for name, values in columns.items()}

    def of(self, keys: np.ndarray, name: str, otherwise: np.ndarray | None = None) -> np.ndarray:
        """ABSENT, or what is given otherwise, where there is no such row or column."""
        nothing = np.full(len(keys), ABSENT) if otherwise is None else otherwise
        values = self._columns.get(name)
        if values is None or not len(values):
            return nothing
        at = np.minimum(np.searchsorted(self._ids, keys), len(values) - 1)
        return np.where(self._ids[at] == keys, values[at], nothing)


def _extra(text: object) -> dict[str, object]:
    """The JSON of extra data; nothing where it is none."""
    try:
        found = json.loads(text) if isinstance(text, str) else {}
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _decimal(text: object) -> int | None:
    return int(text) if isinstance(text, str) and re.fullmatch("[0-9]{1,6}", text) else None
