"""Counters of a processor: what Linux's perf stat -x, writes, a line an event."""

from __future__ import annotations

import re
from pathlib import Path

from ...errors import Refusal
from .counted import Counted
from .table import FORMATS, number

_LINE = 64  # bytes of a cache line
_UNITS = {"MiB": 1 << 20, "KiB": 1 << 10, "GiB": 1 << 30, "Bytes": 1, "": 1}
# Events of memory's controllers, in units that perf names; then cache misses, a line each.
_CONTROLLER = re.compile(r"(uncore_imc.*/)?(data_reads?|data_writes?|cas_count_(read|write))/?")
_MISSES = ("LLC-load-misses", "LLC-store-misses", "LLC-prefetch-misses")
# Operations an event stands for; Intel counts fused ones twice already.
_FLOPS = {
    "scalar_double": (1, "float64 fma"), "128b_packed_double": (2, "float64 fma"),
    "256b_packed_double": (4, "float64 fma"), "512b_packed_double": (8, "float64 fma"),
    "scalar_single": (1, "float32 fma"), "128b_packed_single": (4, "float32 fma"),
    "256b_packed_single": (8, "float32 fma"), "512b_packed_single": (16, "float32 fma"),
}  # fmt: skip
_NO_VALUE = ("<not counted>", "<not supported>")


def is_perf(text: str) -> bool:
    """value, unit, event, run time of the counter, share of the time it ran."""
    lines = (line for line in text.splitlines() if line.strip() and not line.startswith("#"))
    first = next(lines, "")
    fields = first.split(_separator(first))
    return len(fields) >= 5 and (
        fields[0] in _NO_VALUE or re.fullmatch(r"[\d.,]+", fields[0]) is not None
    )


def read(path: Path, text: str) -> list[Counted]:
    """One: perf stat counts a whole program."""
    values: dict[str, tuple[float, str]] = {}
    refused: list[str] = []
    shares: list[float] = []
    seen: set[str] = set()
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        separator = _separator(line)
        fields = line.split(separator)
        if len(fields) < 5:
            raise Refusal(
                f"{path}: the line {line[:60]!r} has {len(fields)} fields and not value, unit, "
                "event, run time and share, so the file is damaged or cut off. Make it again."
            )
        if not fields[0] and not fields[2]:  # a metric that perf derived
            continue
        if fields[3].endswith("%"):  # of perf stat -r: how its runs differ
            del fields[3]
        if len(fields) < 5 or fields[2] in seen:
            raise Refusal(
                f"{path}: the event {fields[2]!r} is there twice or without its run time. Write "
                "each run of perf stat into a file of its own, without --append."
            )
        seen.add(fields[2])
        event = _event(fields[2])
        if fields[0] in _NO_VALUE:
            refused.append(event)
            continue
        before, _ = values.get(event, (0.0, ""))
        values[event] = before + _number(path, event, fields[0], separator), fields[1]
        if fields[4]:
            shares.append(_number(path, event, fields[4], separator))
    nbytes, notes = _bytes(values)
    flops, operations, more = _flops(values)
    notes += more
    if nbytes is None and flops is None:
        because = (
            f"the machine does not count {', '.join(refused)} (virtual machines often have no "
            "counters)" if refused else f"it has {', '.join(values) or 'nothing'}"
        )  # fmt: skip
        raise Refusal(
            f"{path} has no event that bytes or operations follow from: {because}. Count "
            "LLC-load-misses, the memory controllers' data_reads and data_writes, or "
            f"fp_arith_inst_retired.*. Files that can be read: {FORMATS}."
        )
    if refused:
        notes.append(f"not counted here: {', '.join(refused)}")
    if shares and min(shares) < 99:
        notes.append(
            f"counters took turns (one ran {min(shares):.0f} % of the time): perf's estimates"
        )
    return [
        Counted(
            name=path.stem,
            bytes=nbytes,
            flops=flops,
            operations=operations,
            seconds=_seconds(values),
            notes=tuple(notes),
        )
    ]


def _bytes(values: dict[str, tuple[float, str]]) -> tuple[float | None, list[str]]:
    controllers = [
        value * _UNITS[unit]
        for event, (value, unit) in values.items()
        if _CONTROLLER.fullmatch(event) and unit in _UNITS and (unit or "cas_count" not in event)
    ]
    if controllers:
        return sum(controllers), ["bytes of the memory controllers: of all that ran meanwhile"]
    lines = [values[event][0] for event in _MISSES if event in values]
    if lines:
        return _LINE * sum(lines), ["bytes are 64 a miss of the last cache, without write-backs"]
    if "cache-misses" in values:
        return _LINE * values["cache-misses"][0], [
            "bytes are 64 a cache miss: a rough figure, without write-backs"
        ]
    return None, []


def _flops(values: dict[str, tuple[float, str]]) -> tuple[float | None, str | None, list[str]]:
    by_kind: dict[str, float] = {}
    for event, (value, _) in values.items():
        times, kind = _FLOPS.get(event.removeprefix("fp_arith_inst_retired."), (0, ""))
        if times:
            by_kind[kind] = by_kind.get(kind, 0.0) + times * value
    if by_kind:
        return sum(by_kind.values()), max(by_kind, key=lambda kind: by_kind[kind]), []
    if "fp_ret_sse_avx_ops.all" in values:
        return (
            values["fp_ret_sse_avx_ops.all"][0],
            None,
            ["operations of all precisions together: say which with the result's operations"],
        )
    return None, None, []


def _seconds(values: dict[str, tuple[float, str]]) -> float | None:
    if "duration_time" in values:
        return 1e-9 * values["duration_time"][0]
    return None


def _event(name: str) -> str:
    """Without whose it is: of users or the kernel, of which kind of core. Such are added up."""
    core = re.fullmatch(r"cpu_(?:core|atom)/([^/]+)/(?::?[a-zA-Z]+)?", name)
    return core[1] if core else re.sub(r":[a-zA-Z]+$", "", name)


def _number(path: Path, event: str, field: str, separator: str) -> float:
    """With a comma before the decimals where it does not separate the fields."""
    return number(path, event, field.replace(",", ".") if separator == ";" else field)


def _separator(line: str) -> str:
    return ";" if line.count(";") > line.count(",") else ","
