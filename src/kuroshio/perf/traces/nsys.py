"""The SQLite that nsys exports: `nsys export --type sqlite`, or `nsys profile --export sqlite`.

A table is there only where something was written to it, and columns differ between versions: the
schema of 2018 has no globalPid, that of 2024 added greenContextId. Names are numbers of StringIds.
globalTid holds, from the top, 8 bits of hardware, 8 of virtual machine, 24 of process and 24 of
thread; globalPid is the same without thread. Times are ns since the session began. Samples, context
switches and calls of the operating system are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import Refusal
from .events import ABSENT, Column, Direction, Events, Kind, joined
from .sound import as_texts, fitting, named, sound, together
from .sqlite_file import MAGIC, Database, opened, tables_of
from .trace import Device, Trace

FORM = "nsys SQLite"
_ADVICE = "Export the report again: nsys export --type sqlite REPORT.nsys-rep."
_ACTIVITY = "CUPTI_ACTIVITY_KIND_"
_HOST_TABLES = (f"{_ACTIVITY}RUNTIME", f"{_ACTIVITY}DRIVER")
_OURS = (f"{_ACTIVITY}KERNEL", f"{_ACTIVITY}MEMCPY", f"{_ACTIVITY}MEMSET",
         f"{_ACTIVITY}GRAPH_TRACE", *_HOST_TABLES, "NVTX_EVENTS")  # fmt: skip
_TIMES = ("start", "end")
_OTHERS = ("contextId", "greenContextId", "graphNodeId")
_WHERE = ("deviceId", "streamId", "correlationId", "globalPid", *_OTHERS)
# CUPTI's copy kinds, from host, array, device or peer to one of them, and unified memory's.
_COPIES = {
    1: ("Memcpy HtoD", Direction.TO_DEVICE), 2: ("Memcpy DtoH", Direction.TO_HOST),
    3: ("Memcpy HtoA", Direction.TO_DEVICE), 4: ("Memcpy AtoH", Direction.TO_HOST),
    5: ("Memcpy AtoA", Direction.ON_DEVICE), 6: ("Memcpy AtoD", Direction.ON_DEVICE),
    7: ("Memcpy DtoA", Direction.ON_DEVICE), 8: ("Memcpy DtoD", Direction.ON_DEVICE),
    9: ("Memcpy HtoH", Direction.ON_HOST), 10: ("Memcpy PtoP", Direction.BETWEEN_DEVICES),
    11: ("Unified HtoD", Direction.TO_DEVICE), 12: ("Unified DtoH", Direction.TO_HOST),
    13: ("Unified DtoD", Direction.BETWEEN_DEVICES),
}  # fmt: skip
# As torch.profiler names them.
_WAITS = {1: "Event Sync", 2: "Stream Wait Event", 3: "Stream Sync", 4: "Context Sync"}
_MEMORIES = {0: "pageable", 1: "pinned", 2: "device", 3: "array", 4: "managed"}
_RANGES = "eventType IN (59, 60)"  # pushed and popped, and started and ended; 34 is a mark


def recognise(path: Path, head: bytes) -> bool:
    if not head.startswith(MAGIC):
        return False
    tables = tables_of(path)
    return "StringIds" in tables and bool(tables.intersection((*_OURS, "TARGET_INFO_GPU")))


def read(path: Path) -> Trace:
    """A Refusal where there are no events, or the file is damaged, locked or of another program."""
    with opened(path, _ADVICE) as database:
        if "StringIds" not in database.tables:
            raise Refusal(f"{path} is no export of nsys: it has no table StringIds. {_ADVICE}")
        reader = _Reader(database)
        parts = [reader.kernels(), reader.graphs(), reader.copies(), reader.sets(),
                 *map(reader.calls, _HOST_TABLES), reader.waits(), reader.ranges()]  # fmt: skip
        devices, ranks, facts = reader.devices(), reader.ranks(), reader.facts()
        open_ranges = database.count("NVTX_EVENTS", f"{_RANGES} AND end IS NULL")
    events, notes = sound(together(_processes(joined(parts))))
    if not len(events):
        raise Refusal(
            f"{path} is nsys's and has no kernels, copies, calls or ranges: only what else was "
            "sampled. Profile with --trace=cuda,nvtx."
        )
    told = np.unique(events.device)
    return Trace(
        path, FORM, events,
        devices={
            number: devices.get(number, Device(number, maker="NVIDIA"))
            for number in told[told != ABSENT].tolist()
        },
        rank=next(iter(ranks.values())) if len(ranks) == 1 else None,
        cannot_tell=(*_lacks(events, parts[1], open_ranges), *notes), facts=facts,
        process_ranks=ranks,
    )  # fmt: skip


def _lacks(events: Events, graphs: Events, open_ranges: int) -> Iterator[str]:
    if len(graphs):
        yield (
            "CUDA graphs were traced as one event each, without the kernels within (nsys profile "
            "--cuda-graph-trace=node tells them apart)"
        )
    if not events.on_device.any():
        yield "No kernels or copies were traced, or there were none (nsys profile --trace=cuda)"
    elif not events.of_kind(Kind.CALL).any():
        yield (
            "No calls of the runtime were traced, so it is not told which one launched a kernel, "
            "and when"
        )
    nobodys = events.on_device & (events.process == ABSENT)
    if nobodys.any() and len(np.unique(events.process)) > 2:
        yield (
            "This old export does not say which process work was of, so that it is not told which "
            "call began it"
        )
    if open_ranges:
        yield f"Of {open_ranges:,} NVTX ranges the end was not recorded; they are left out"


class _Reader:
    def __init__(self, database: Database) -> None:
        self._database = database
        # A process may see devices under other numbers than the machine has them.
        self._numbers = {
            (row["pid"], row["cudaId"]): row["gpuId"]
            for row in database.rows("TARGET_INFO_CUDA_DEVICE", ("pid", "cudaId", "gpuId"))
        }

    def kernels(self) -> Events:
        table = f"{_ACTIVITY}KERNEL"
        axes = [f"{stem}{axis}" for stem in ("grid", "block") for axis in "XYZ"]
        rows = self._rows(
            table, *_WHERE, *axes, "demangledName", "shortName", "mangledName",
            "registersPerThread", "staticSharedMemory", "dynamicSharedMemory",
            "localMemoryPerThread",
        )  # fmt: skip
        names, codes = self._strings(rows, "demangledName", "shortName", "mangledName")
        both = [rows[key] for key in ("staticSharedMemory", "dynamicSharedMemory") if key in rows]
        return self._on_device(
            rows, names, codes, Kind.KERNEL,
            grid=_triple(rows, "grid"), block=_triple(rows, "block"),
            registers=_narrow(rows, "registersPerThread"),
            shared=fitting(np.sum(both, axis=0)) if both else None,
            scratch=_narrow(rows, "localMemoryPerThread"),
        )  # fmt: skip

    def graphs(self) -> Events:
        """Launches of CUDA graphs, where nsys did not trace the kernels within: its default."""
        rows = self._rows(f"{_ACTIVITY}GRAPH_TRACE", *_WHERE, "graphId")
        graph = rows.get("graphId", np.empty(0, np.int64))
        texts = {number: f"CUDA graph {number}" for number in np.unique(graph).tolist()}
        return self._on_device(rows, *named(graph, texts), Kind.KERNEL)

    def copies(self) -> Events:
        rows = self._rows(f"{_ACTIVITY}MEMCPY", *_WHERE, "bytes", "copyKind", "srcKind", "dstKind")
        kinds = rows.get("copyKind", np.full(len(rows["start"]), ABSENT))
        names, codes = named(kinds, {key: name for key, (name, _) in _COPIES.items()}, "Memcpy")
        ways = dict(_COPIES.values())
        direction = np.array([ways.get(name, ABSENT) for name in names], np.int8)
        return self._on_device(
            rows, names, codes, Kind.COPY, bytes=rows.get("bytes"), direction=direction[codes],
            others={key: _memory(rows[key]) for key in ("srcKind", "dstKind") if key in rows},
        )  # fmt: skip

    def sets(self) -> Events:
        rows = self._rows(f"{_ACTIVITY}MEMSET", *_WHERE, "bytes")
        return self._on_device(rows, ("Memset",), _zeros(rows), Kind.SET, bytes=rows.get("bytes"))

    def calls(self, table: str) -> Events:
        rows = self._rows(table, "globalTid", "correlationId", "nameId")
        names, codes = self._strings(rows, "nameId")
        process, thread = _process_and_thread(rows.get("globalTid"))
        return Events.of(
            [_plain(name) for name in names], kind=Kind.CALL, name=codes, start=rows["start"],
            end=rows["end"], process=process, thread=thread,
            correlation=rows.get("correlationId"),
        )  # fmt: skip

    def waits(self) -> Events:
        rows = self._rows(f"{_ACTIVITY}SYNCHRONIZATION", *_WHERE, "syncType")
        names, codes = named(rows.get("syncType", _zeros(rows)), _WAITS, "Sync")
        return self._on_device(rows, names, codes, Kind.WAIT)

    def ranges(self) -> Events:
        self._check("NVTX_EVENTS")
        rows, text = self._database.with_text(
            "NVTX_EVENTS", (*_TIMES, "globalTid", "textId"), "text",
            where=f"{_RANGES} AND end IS NOT NULL",
        )  # fmt: skip
        if not rows:
            return Events.of((), start=())
        process, thread = _process_and_thread(rows.get("globalTid"))
        names, codes = self._strings(rows, "textId")
        own = text.codes != ABSENT
        return Events.of(
            [*names, *text.values], kind=Kind.ANNOTATION,
            name=np.where(own, text.codes + len(names), codes), start=rows["start"],
            end=rows["end"], process=process, thread=thread,
        )  # fmt: skip

    def devices(self) -> dict[int, Device]:
        columns = ("id", "name", "chipName", "smCount", "totalMemory", "computeMajor",
                   "computeMinor", "smMajor", "smMinor")  # fmt: skip
        found = {}
        for row in self._database.rows("TARGET_INFO_GPU", columns):
            number, name = row["id"], row["name"]
            major = row["computeMajor"] if row["computeMajor"] is not None else row["smMajor"]
            minor = row["computeMinor"] if row["computeMinor"] is not None else row["smMinor"]
            if isinstance(number, int):
                found[number] = Device(
                    number, name=name if isinstance(name, str) else None, maker="NVIDIA",
                    architecture=None if major is None or minor is None else f"sm_{major}{minor}",
                    multiprocessors=_count(row["smCount"]), memory_bytes=_count(row["totalMemory"]),
                )  # fmt: skip
        return found

    def ranks(self) -> dict[int, int]:
        """Of MPI, by process."""
        return {
            _process(whose): rank
            for row in self._database.rows("MPI_RANKS", ("globalPid", "globalTid", "rank"))
            if isinstance(rank := row["rank"], int) and rank >= 0
            and isinstance(whose := row["globalPid"] or row["globalTid"], int)
        }  # fmt: skip

    def facts(self) -> dict[str, str]:
        wanted = {"EXPORT_PRODUCT_VERSION": "nsys", "EXPORT_SCHEMA_VERSION": "schema"}
        return {
            wanted[row["name"]]: str(row["value"])
            for row in self._database.rows("META_DATA_EXPORT", ("name", "value"))
            if isinstance(row["name"], str) and row["name"] in wanted
        }

    def _rows(self, table: str, *names: str) -> dict[str, np.ndarray]:
        self._check(table)
        found = self._database.integers(table, (*_TIMES, *names))
        return found or {name: np.empty(0, np.int64) for name in _TIMES}

    def _check(self, table: str) -> None:
        """A Refusal where a table that is there has no times."""
        if table in self._database.tables:
            self._database.require(table, *_TIMES)

    def _strings(
        self, rows: dict[str, np.ndarray], *columns: str
    ) -> tuple[tuple[str, ...], np.ndarray]:
        """Names by the first of the columns that is there."""
        keys = next((rows[name] for name in columns if name in rows), _zeros(rows) + ABSENT)
        return named(keys, self._database.texts("StringIds", "id", "value", keys))

    def _on_device(
        self, rows: dict[str, np.ndarray], names: tuple[str, ...], codes: np.ndarray, kind: Kind,
        **columns: Any,
    ) -> Events:  # fmt: skip
        process = _process_and_thread(rows.get("globalPid"))[0]
        others = {key: as_texts(rows[key]) for key in _OTHERS if key in rows}
        return Events.of(
            names, others | columns.pop("others", {}), kind=kind, name=codes,
            start=rows["start"], end=rows["end"], process=process,
            device=self._device(rows.get("deviceId"), process), stream=rows.get("streamId"),
            correlation=rows.get("correlationId"), **columns,
        )  # fmt: skip

    def _device(self, device: np.ndarray | None, process: np.ndarray | None) -> np.ndarray | None:
        if device is None:
            return None
        if process is None or not self._numbers:
            return fitting(device)
        pairs, codes = np.unique(np.stack([process, device]), axis=1, return_inverse=True)
        numbers = [
            known if isinstance(known := self._numbers.get((pid, number)), int) else number
            for pid, number in pairs.T.tolist()
        ]
        return fitting(np.array(numbers, np.int64)[codes.reshape(-1)])


def _process(number: Any) -> Any:
    """Of globalTid or globalPid, one or many."""
    return (number >> 24) & 0xFFFFFF


def _process_and_thread(
    numbers: np.ndarray | None,
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Of globalTid, or of globalPid, which has no thread."""
    if numbers is None:
        return None, None
    there = numbers != ABSENT
    return (
        np.where(there, _process(numbers), ABSENT),
        np.where(there, numbers & 0xFFFFFF, ABSENT),
    )


def _processes(events: Events) -> Iterator[Events]:
    """Of each process; of an export that does not say whose work is there can be but one."""
    numbers = np.unique(events.process).tolist()
    if len([number for number in numbers if number != ABSENT]) < 2:
        yield events
        return
    for number in numbers:
        yield events[events.process == number]


def _plain(name: str) -> str:
    """cudaLaunchKernel, of cudaLaunchKernel_v7000 and of cudaLaunchKernel_ptsz_v7000.

    The suffix is the version of CUDA that the call came with; _v2 of a driver's call is its name.
    """
    return re.sub(r"(_pt[sd][sz])?_v[0-9]{4,}$", "", name)


def _memory(kinds: np.ndarray) -> Column:
    names, codes = named(kinds, _MEMORIES, "other")
    return Column(np.where(kinds == ABSENT, ABSENT, codes).astype(np.int32), names)


def _triple(rows: dict[str, np.ndarray], stem: str) -> np.ndarray | None:
    names = [f"{stem}{axis}" for axis in "XYZ"]
    if any(name not in rows for name in names):
        return None
    return np.stack([rows[name] for name in names], axis=1)


def _narrow(rows: dict[str, np.ndarray], name: str) -> np.ndarray | None:
    return fitting(rows[name]) if name in rows else None


def _zeros(rows: dict[str, np.ndarray]) -> np.ndarray:
    return np.zeros(len(rows["start"]), np.int32)


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and value > 0 else None
