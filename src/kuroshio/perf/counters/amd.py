"""Counters of AMD's devices: rocprofiler-compute (omniperf), rocprof and rocprofv3.

Bytes are requests of the L2 to memory: 64 a request, 32 where it says so, and from gfx942 on
128 for those that TCC_BUBBLE counts. Operations are 64 lanes an instruction, masked ones
included, and 512 a unit of a matrix instruction: gfx906 and gfx908 do not count them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from pathlib import Path

from ...errors import Refusal
from .counted import Counted, merged
from .table import FORMATS, Table, number

_LANES, _MATRIX = 64, 512
_NAMES = ("Kernel_Name", "KernelName")
_DISPATCHES = ("Dispatch_ID", "Dispatch_Id", "Index")
_SPANS = (("Start_Timestamp", "End_Timestamp"), ("BeginNs", "EndNs"))
# Bytes follow from all of a group.
_TOGETHER = (
    *({f"{ea}_{n}" for n in ("RDREQ", "RDREQ_32B", "WRREQ", "WRREQ_64B")}
      for ea in ("TCC_EA0", "TCC_EA")),
    {"FETCH_SIZE", "WRITE_SIZE"},
)  # fmt: skip
Counter = Callable[[str], float | None]


def is_wide(columns: tuple[str, ...]) -> bool:
    """A row a dispatch and a column a counter."""
    return any(n in columns for n in _NAMES) and "Counter_Name" not in columns


def is_long(columns: tuple[str, ...]) -> bool:
    """A row a counter."""
    return "Counter_Name" in columns and "Counter_Value" in columns


def wide(table: Table) -> list[Counted]:
    """Of pmc_perf.csv or results.csv."""
    name_at = next(at for n in _NAMES if (at := table.where(n)) is not None)
    places = _places(table.columns)
    names = set(map(_base, places))
    _require(table.path, names)
    launches = []
    for row in table.rows:

        def counter(name: str, row: tuple[str, ...] = row) -> float | None:
            found = [number(table.path, table.columns[at], row[at]) for at in places.get(name, ())]
            return sum(found) if found else None

        launches.append(_launch(table.path, row[name_at], counter, _wide_seconds(table, row)))
    return _useful(table.path, launches, names)


def long(table: Table) -> list[Counted]:
    """Of counter_collection.csv."""
    by_dispatch: dict[tuple[str, str], dict[str, float]] = {}
    seconds: dict[tuple[str, str], float | None] = {}
    for row in table.dicts():
        dispatch = next((row[n] for n in _DISPATCHES if n in row), "")
        key = dispatch, next((row[n] for n in _NAMES if n in row), "")
        counters = by_dispatch.setdefault(key, {})
        name = row["Counter_Name"]
        value = number(table.path, name, row["Counter_Value"])
        counters[name] = counters.get(name, 0.0) + value
        seconds.setdefault(key, _seconds(table.path, row.get))
    names = {_base(name) for counters in by_dispatch.values() for name in counters}
    _require(table.path, names)
    launches = [
        _launch(table.path, name, _long_counter(counters), seconds[dispatch, name])
        for (dispatch, name), counters in by_dispatch.items()
    ]
    return _useful(table.path, launches, names)


def _useful(path: Path, launches: list[Counted], names: Collection[str]) -> list[Counted]:
    """A kernel each; Refusal where neither bytes nor operations of any are known."""
    if all(each.bytes is None and each.flops is None for each in launches):
        lacks = [
            f"with {', '.join(sorted(there))} also {', '.join(sorted(group - there))}"
            for group in _TOGETHER if (there := group.intersection(names))
        ]  # fmt: skip
        raise Refusal(
            f"{path} has a part only of the counters that bytes or operations follow from. Count "
            f"{'; '.join(lacks) or 'SQ_INSTS_VALU_ADD, MUL, TRANS and FMA of one precision'}."
        )
    return merged(launches)


def _launch(path: Path, name: str, counter: Counter, seconds: float | None) -> Counted:
    flops, operations = _operations(counter)
    lanes = counter("VALUUtilization")  # rocprof's, per cent
    notes = ["operations are counted for masked lanes, too"] if flops else []
    if seconds:
        notes.append("seconds are those of a run that was profiled")
    return Counted(
        kind="hip", name=name.removesuffix(" [clone .kd]").removesuffix(" (.kd)"),
        bytes=_bytes(path, counter), flops=flops, operations=operations,
        lanes=None if lanes is None else lanes / 100, seconds=seconds,
        notes=tuple(notes),
    )  # fmt: skip


def _bytes(path: Path, counter: Counter) -> float | None:
    """Reads and writes between L2 and memory."""
    for ea in ("TCC_EA0", "TCC_EA"):
        reads, read_32 = counter(f"{ea}_RDREQ"), counter(f"{ea}_RDREQ_32B")
        writes, write_64 = counter(f"{ea}_WRREQ"), counter(f"{ea}_WRREQ_64B")
        if reads is None or read_32 is None or writes is None or write_64 is None:
            continue
        read_128 = 0.0
        if ea == "TCC_EA0":
            found = counter("TCC_BUBBLE")
            if found is None:
                raise Refusal(
                    f"{path} lacks TCC_BUBBLE, the requests of 128 bytes, without which the bytes "
                    "of this device cannot be told. Count it, too."
                )
            read_128 = found
        # Of counters from different runs a part may be a little more than the whole.
        read_64, write_32 = max(reads - read_128 - read_32, 0.0), max(writes - write_64, 0.0)
        return 32 * (read_32 + write_32) + 64 * (read_64 + write_64) + 128 * read_128
    fetched, written = counter("FETCH_SIZE"), counter("WRITE_SIZE")
    if fetched is not None and written is not None:
        return 1024 * (fetched + written)
    return None


def _operations(counter: Counter) -> tuple[float | None, str | None]:
    """All floating-point operations, and the kind that most of them are of."""
    by_kind: dict[str, float] = {}
    for bits in ("16", "32", "64"):
        parts = [counter(f"SQ_INSTS_VALU_{op}_F{bits}") for op in ("ADD", "MUL", "TRANS", "FMA")]
        if None not in parts:
            add, mul, trans, fma = (part or 0.0 for part in parts)
            by_kind[f"float{bits} fma"] = _LANES * (add + mul + trans + 2 * fma)
    for kind in ("F16", "BF16", "F32", "F64"):
        units = counter(f"SQ_INSTS_VALU_MFMA_MOPS_{kind}")
        if units is not None:
            by_kind[f"matrix {kind.lower().replace('f', 'float')}"] = _MATRIX * units
    if not by_kind:
        return None, None
    total = sum(by_kind.values())
    return total, max(by_kind, key=lambda kind: by_kind[kind]) if total else None


def _places(columns: tuple[str, ...]) -> dict[str, list[int]]:
    """The column of each counter: of its sum over all channels, or else that of every channel."""
    first: dict[str, int] = {}
    for at, column in enumerate(columns):
        first.setdefault(column, at)
    found: dict[str, list[int]] = {}
    for column, at in first.items():
        if column.endswith("]"):
            found.setdefault(_base(column), []).append(at)
    for suffix in ("", "_sum"):
        for column, at in first.items():
            if column.endswith(suffix):
                found[column.removesuffix(suffix)] = [at]
    return found


def _long_counter(counters: dict[str, float]) -> Counter:
    return lambda name: counters.get(f"{name}_sum", counters.get(name))


def _wide_seconds(table: Table, row: tuple[str, ...]) -> float | None:
    def get(name: str) -> str | None:
        at = table.where(name)
        return None if at is None else row[at]

    return _seconds(table.path, get)


def _seconds(path: Path, get: Callable[[str], str | None]) -> float | None:
    """Between the two times of a dispatch; None where they were rounded to one."""
    for first, last in _SPANS:
        start, stop = get(first), get(last)
        if start and stop:
            took = 1e-9 * (number(path, last, stop) - number(path, first, start))
            return took if took > 0 else None
    return None


def _base(name: str) -> str:
    """TCC_EA_RDREQ, of TCC_EA_RDREQ_sum and TCC_EA_RDREQ[3]."""
    return re.sub(r"(_sum|\[\d+\])$", "", name)


def _require(path: Path, names: Collection[str]) -> None:
    wanted = ("TCC_EA_RDREQ", "TCC_EA0_RDREQ", "FETCH_SIZE")
    if not set(wanted).intersection(names) and not any(
        name.startswith("SQ_INSTS_VALU_") for name in names
    ):
        raise Refusal(
            f"{path} has none of the counters that bytes or operations follow from "
            f"({', '.join(wanted)} with their writes, SQ_INSTS_VALU_*); it has "
            f"{', '.join(sorted(names)[:4])}. Count those. Files that can be read: {FORMATS}."
        )
