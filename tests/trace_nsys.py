"""Databases as nsys exports them (schema 3.16 of 2024.6), with any content."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from kuroshio.perf.traces.events import Direction
from trace_work import Process

_KINDS = {Direction.TO_DEVICE: 1, Direction.TO_HOST: 2, Direction.ON_DEVICE: 8}
_ON_DEVICE = (
    "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, "
    "contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, "
    "correlationId INTEGER, globalPid INTEGER"
)
_TABLES = {
    "CUPTI_ACTIVITY_KIND_KERNEL": f"{_ON_DEVICE}, demangledName INTEGER NOT NULL, "
    "shortName INTEGER NOT NULL, mangledName INTEGER, registersPerThread INTEGER, "
    "gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER, "
    "blockZ INTEGER, staticSharedMemory INTEGER, dynamicSharedMemory INTEGER, "
    "localMemoryPerThread INTEGER, graphNodeId INTEGER",
    "CUPTI_ACTIVITY_KIND_MEMCPY": f"{_ON_DEVICE}, bytes INTEGER, copyKind INTEGER, "
    "srcKind INTEGER, dstKind INTEGER",
    "CUPTI_ACTIVITY_KIND_MEMSET": f"{_ON_DEVICE}, value INTEGER, bytes INTEGER",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": f"{_ON_DEVICE}, graphId INTEGER",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": f"{_ON_DEVICE}, syncType INTEGER, eventId INTEGER",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start INTEGER, end INTEGER, eventClass INTEGER, "
    "globalTid INTEGER, correlationId INTEGER, nameId INTEGER, returnValue INTEGER",
    "NVTX_EVENTS": "start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, text TEXT, "
    "globalTid INTEGER, textId INTEGER, domainId INTEGER",
    "StringIds": "id INTEGER PRIMARY KEY, value TEXT NOT NULL",
    "TARGET_INFO_GPU": "id INTEGER, name TEXT, totalMemory INTEGER, smCount INTEGER, "
    "computeMajor INTEGER, computeMinor INTEGER",
    "TARGET_INFO_CUDA_DEVICE": "gpuId INTEGER, cudaId INTEGER, pid INTEGER",
    "META_DATA_EXPORT": "name TEXT, value TEXT",
    "MPI_RANKS": "globalPid INTEGER, rank INTEGER",
}


class NsysFile:
    """Tables are made when they are first used, as nsys does."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self.database = database
        self._strings: dict[str, int] = {}
        database.execute("PRAGMA synchronous = OFF")
        self._made = {"StringIds"}
        database.execute(f"CREATE TABLE StringIds ({_TABLES['StringIds']})")

    def insert(self, table: str, **columns) -> None:
        if table not in self._made:
            self.database.execute(f"CREATE TABLE {table} ({_TABLES[table]})")
            self._made.add(table)
        names, marks = ", ".join(columns), ", ".join("?" * len(columns))
        self.database.execute(
            f"INSERT INTO {table} ({names}) VALUES ({marks})", (*columns.values(),)
        )

    def string(self, text: str) -> int:
        if text not in self._strings:
            self._strings[text] = len(self._strings) + 10
            self.insert("StringIds", id=self._strings[text], value=text)
        return self._strings[text]

    def write(self, process: Process) -> None:
        whose = 1 << 56 | process.number << 24
        for call in process.calls:
            self.insert(
                "CUPTI_ACTIVITY_KIND_RUNTIME", start=call.start, end=call.end,
                globalTid=whose | call.thread, correlationId=call.call,
                nameId=self.string(f"{call.name}_v7000"), returnValue=0,
            )  # fmt: skip
        for at, each in enumerate(process.ranges):  # some are registered strings
            named = {"text": each.name} if at % 2 else {"textId": self.string(each.name)}
            self.insert(
                "NVTX_EVENTS", start=each.start, end=each.end, eventType=59 + at % 2,
                globalTid=whose | each.thread, **named,
            )  # fmt: skip
        for kernel in process.kernels:
            sizes = {f"grid{a}": n for a, n in zip("XYZ", kernel.grid, strict=True)}
            sizes |= {f"block{a}": n for a, n in zip("XYZ", kernel.block, strict=True)}
            self.insert(
                "CUPTI_ACTIVITY_KIND_KERNEL", **_on_device(kernel, whose),
                demangledName=self.string(kernel.name), shortName=self.string("short"),
                registersPerThread=kernel.registers, staticSharedMemory=kernel.shared // 2,
                dynamicSharedMemory=kernel.shared - kernel.shared // 2,
                localMemoryPerThread=kernel.scratch, **sizes,
            )  # fmt: skip
        for copy in process.copies:
            self.insert(
                "CUPTI_ACTIVITY_KIND_MEMCPY", **_on_device(copy, whose), bytes=copy.bytes,
                copyKind=_KINDS[copy.direction], srcKind=0, dstKind=2,
            )  # fmt: skip


def _on_device(work, whose: int) -> dict[str, int]:
    return {
        "start": work.start, "end": work.end, "deviceId": work.device, "contextId": 1,
        "streamId": work.stream, "correlationId": work.call or None, "globalPid": whose,
    }  # fmt: skip


def write_nsys(path: Path, run: Sequence[Process], more=lambda file: None) -> None:
    """And whatever else a test wants in it."""
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as database:
        file = NsysFile(database)
        for process in run:
            file.write(process)
        more(file)
        database.commit()
