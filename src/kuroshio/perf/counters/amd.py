"""Counters of AMD's devices: rocprofiler-compute (omniperf), rocprof and rocprofv3.

Bytes are requests of the L2 to memory: 64 a request, 32 where it says so, and from gfx942 on
128 for those that TCC_BUBBLE counts. Operations are 64 lanes an instruction, masked ones
included, and 512 a unit of a matrix instruction: gfx906 and gfx908 do not count them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from ...errors import Refusal
from .counted import Counted, merged
from .table import FORMATS, Table, number

_LANES, _MATRIX = 64, 512
_NAMES = ("Kernel_Name", "KernelName")
_DISPATCHES = ("Dispatch_ID", "Dispatch_Id", "Index")
_SPANS = (("Start_Timestamp", "End_Timestamp"), ("BeginNs", "EndNs"))
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
    _require(table.path, _counter_names(table.columns))
    launches = []
    for row in table.rows:

        def counter(name: str, row: tuple[str, ...] = row) -> float | None:
            return _wide_counter(table, row, name)

        launches.append(_launch(table.path, row[name_at], counter, _wide_seconds(table, row)))
    return merged(launches)


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
    _require(table.path, {name for counters in by_dispatch.values() for name in counters})
    return merged(
        _launch(table.path, name, _long_counter(counters), seconds[dispatch, name])
        for (dispatch, name), counters in by_dispatch.items()
    )


def _launch(path: Path, name: str, counter: Counter, seconds: float | None) -> Counted:
    flops, operations = _operations(counter)
    notes = ["operations are counted for masked lanes, too"] if flops else []
    if seconds:
        notes.append("seconds are those of a run that was profiled")
    return Counted(
        kind="hip", name=name.removesuffix(" [clone .kd]").removesuffix(" (.kd)"),
        bytes=_bytes(path, counter), flops=flops, operations=operations, seconds=seconds,
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
        small = 32 * read_32 + 32 * (writes - write_64)
        return small + 64 * (reads - read_128 - read_32) + 128 * read_128 + 64 * write_64
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


def _wide_counter(table: Table, row: tuple[str, ...], name: str) -> float | None:
    """Of the sum over all channels; where only channels are there, of each of them."""
    for whole in (f"{name}_sum", name):
        at = table.where(whole)
        if at is not None:
            return number(table.path, whole, row[at])
    channel = re.compile(rf"{re.escape(name)}\[\d+\]")
    parts = {c: i for i, c in reversed(list(enumerate(table.columns))) if channel.fullmatch(c)}
    if not parts:
        return None
    return sum(number(table.path, column, row[at]) for column, at in parts.items())


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


def _counter_names(columns: tuple[str, ...]) -> Iterator[str]:
    return (re.sub(r"\[\d+\]$", "", column) for column in columns)


def _require(path: Path, names: object) -> None:
    found = {str(name).removesuffix("_sum") for name in names}  # type: ignore[attr-defined]
    wanted = ("TCC_EA_RDREQ", "TCC_EA0_RDREQ", "FETCH_SIZE")
    if not found.intersection(wanted) and not any(n.startswith("SQ_INSTS_VALU_") for n in found):
        raise Refusal(
            f"{path} has none of the counters that bytes or operations follow from "
            f"({', '.join(wanted)} with their writes, SQ_INSTS_VALU_*); it has "
            f"{', '.join(sorted(found)[:4])}. Count those. Files that can be read: {FORMATS}."
        )
