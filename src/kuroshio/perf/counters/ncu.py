"""Counters of NVIDIA's devices: ncu --csv, a row a kernel (--page raw) or a row a metric."""

from __future__ import annotations

import re
from pathlib import Path

from ...errors import Refusal
from .counted import Counted, merged
from .table import FORMATS, Table, number

_BYTES = {"byte": 1.0, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "Tbyte": 1e12,
          "B": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9, "Kibyte": 2.0**10, "Mibyte": 2.0**20,
          "Gibyte": 2.0**30}  # fmt: skip
_SECONDS = {"nsecond": 1e-9, "usecond": 1e-6, "msecond": 1e-3, "second": 1.0, "ns": 1e-9,
            "us": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "minute": 60.0}  # fmt: skip
_NONE = ("", "n/a", "N/A", "(!) n/a", "no data")
_COUNTS = {"": 1.0, "inst": 1.0, "Kinst": 1e3, "Minst": 1e6, "Ginst": 1e9}
_OP = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum"
_TWICE = "derived__smsp__sass_thread_inst_executed_op_{}_pred_on_x2"
_LETTERS = {"d": "float64 fma", "f": "float32 fma", "h": "float16 fma"}
_PIPE = "smsp__inst_executed_pipe_alu.sum"  # minima, maxima, logic, comparisons, conversions
_LANES = "smsp__thread_inst_executed_per_inst_executed.ratio"
_WARP = 32  # of every NVIDIA device that ncu knows
Metrics = dict[str, tuple[float, str]]  # name -> value, unit


def is_ncu(columns: tuple[str, ...]) -> bool:
    return "Kernel Name" in columns and ("ID" in columns or "Metric Name" in columns)


def begins(line: str) -> bool:
    """The header; what ncu and the program say stands before it."""
    return re.match(r'\s*"?ID"?,', line) is not None


def read(table: Table) -> list[Counted]:
    launches = _long(table) if "Metric Name" in table.columns else _wide(table)
    found = [_launch(table.path, name, metrics) for name, metrics in launches]
    if all(each.bytes is each.flops is each.integers is None for each in found):
        raise Refusal(
            f"{table.path} has neither dram__bytes.sum nor executed instructions. Collect them: "
            "ncu --csv --page raw --metrics dram__bytes.sum,gpu__time_duration.sum,"
            "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum (and fadd, fmul; d* for float64), "
            f"{_PIPE} for integers. Files that can be read: {FORMATS}."
        )
    return merged(found)


def _wide(table: Table) -> list[tuple[str, Metrics]]:
    """A row a kernel; the first row has units."""
    name_at, id_at = table.where("Kernel Name"), table.where("ID")
    if name_at is None or id_at is None:
        raise Refusal(f"{table.path} lacks ID or Kernel Name. Files that can be read: {FORMATS}.")
    units = table.rows[0]
    if units[id_at]:
        raise Refusal(
            f"{table.path} has no row of units below its header, so its numbers cannot be "
            "told. Write it with ncu --csv --page raw."
        )
    found = []
    for row in table.rows[1:]:
        metrics: Metrics = {}
        for column, unit, field in zip(table.columns, units, row, strict=True):
            if _known(column) and field not in _NONE:
                metrics.setdefault(column, (number(table.path, column, field), unit))
        found.append((row[name_at], metrics))
    if not found:
        raise Refusal(f"{table.path} has units and no kernels: cut off, or none was profiled.")
    return found


def _long(table: Table) -> list[tuple[str, Metrics]]:
    """A row a metric."""
    by_launch: dict[tuple[str, str, str], Metrics] = {}
    for row in table.dicts():
        launch = row.get("Process ID", ""), row.get("ID", ""), row["Kernel Name"]
        metrics = by_launch.setdefault(launch, {})
        column, field = row["Metric Name"], row.get("Metric Value", "")
        if _known(column) and field not in _NONE:
            metrics[column] = number(table.path, column, field), row.get("Metric Unit", "")
    return [(name, metrics) for (*_, name), metrics in by_launch.items()]


def _known(column: str) -> bool:
    return column.startswith(("dram__bytes", "gpu__time_duration", _PIPE, _LANES)) or (
        "sass_thread_inst_executed_op_" in column
    )


def _launch(path: Path, name: str, metrics: Metrics) -> Counted:
    nbytes = _value(path, metrics, "dram__bytes.sum", _BYTES)
    if nbytes is None:
        parts = [
            _value(path, metrics, f"dram__bytes_{way}.sum", _BYTES) for way in ("read", "write")
        ]
        nbytes = None if None in parts else sum(part or 0.0 for part in parts)
    by_kind = {}
    for letter, kind in _LETTERS.items():
        flops = _flops(path, metrics, letter)
        if flops is not None:
            by_kind[kind] = flops
    total = sum(by_kind.values()) if by_kind else None
    operations = max(by_kind, key=lambda k: by_kind[k]) if total else None
    seconds = _value(path, metrics, "gpu__time_duration.sum", _SECONDS)
    notes = ["seconds are those of a run that was profiled"] if seconds else []
    if by_kind.get("float16 fma"):
        notes.append("float16 instructions are counted as one operation (fma: two) a lane")
    if total is not None:
        notes += _left_uncounted(metrics)
    pipe = _value(path, metrics, _PIPE, _COUNTS)
    return Counted(
        kind="cuda", name=name, bytes=nbytes, flops=total,
        operations=operations, integers=None if pipe is None else _WARP * pipe,
        lanes=metrics[_LANES][0] / _WARP if _LANES in metrics else None,
        seconds=seconds, notes=tuple(notes),
    )  # fmt: skip


def _flops(path: Path, metrics: Metrics, letter: str) -> float | None:
    """Additions, products, and fused ones twice; None where none of them was collected."""
    parts = [_value(path, metrics, _OP.format(letter + op), _COUNTS) for op in ("add", "mul")]
    fused = _value(path, metrics, _OP.format(letter + "fma"), _COUNTS)
    twice = _value(path, metrics, _TWICE.format(letter + "fma"), _COUNTS)
    if fused is not None:
        parts.append(2 * fused)
    elif twice is not None:
        parts.append(twice)
    there = [part for part in parts if part is not None]
    return sum(there) if there else None


def _left_uncounted(metrics: Metrics) -> list[str]:
    """What was not collected of floats, and would be missed."""
    missing = [
        letter + op
        for letter in _LETTERS
        if any(_OP.format(letter + op) in metrics for op in ("add", "mul", "fma"))
        for op in ("add", "mul", "fma")
        if _OP.format(letter + op) not in metrics
        and not (op == "fma" and _TWICE.format(letter + op) in metrics)
    ]
    return [f"{', '.join(missing)} were not collected and do not count"] if missing else []


def _value(path: Path, metrics: Metrics, name: str, units: dict[str, float]) -> float | None:
    if name not in metrics:
        return None
    value, unit = metrics[name]
    if unit not in units:
        raise Refusal(
            f"{path}: {name} is in {unit!r}, which is not known; known are "
            f"{', '.join(u for u in units if u)}."
        )
    return value * units[unit]
