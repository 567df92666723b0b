"""Rows of results, as JSON with their environment and as a table."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..errors import Refusal
from ..messages import printable
from .json_file import read_json, write_json
from .output import fitting, left_out_says, wrapped

SCHEMA = "kuroshio.perf.result/1"
_TIMES = ("median", "p90", "min", "mad")


@dataclass(frozen=True)
class Row:
    """One case of one size and dtype; times in seconds a call.

    host_s, device_s  median, p90, min, mad; by the host's clock and, or None, the device's
    boundary          what the clocks enclosed
    correct           True, or None where there was no check; a wrong result has no row
    samples_s         of the host's clock, in the order taken; device_samples_s of the device's
    model             of the device, where its library tells
    """

    case: str
    size: int | None
    dtype: str | None
    device: str
    repeats: int
    host_s: dict[str, float]
    device_s: dict[str, float] | None
    boundary: str
    bytes: int | None
    flops: int | None
    operations: str | None
    correct: bool | None
    stable: bool
    unstable_because: str | None
    samples_s: list[float]
    device_samples_s: list[float] | None = None
    model: str | None = None
    about: str | None = None
    threshold: str | None = None
    checked: int = 0
    calls_a_sample: int = 1
    caches: str = ""
    uncertainty: float | None = None
    warm_up: dict[str, Any] = field(default_factory=dict)
    watched: dict[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        about = [str(each) for each in (self.size, self.dtype) if each is not None]
        return f"{self.case} ({', '.join(about)})" if about else self.case

    @property
    def time_s(self) -> dict[str, float]:
        """By the device's clock, or the host's where there is no other."""
        return self.device_s if self.device_s and self.device_s["min"] > 0 else self.host_s


@dataclass(frozen=True)
class Results:
    """Rows measured in one environment."""

    name: str
    environment: dict[str, Any]
    rows: list[Row]

    def to_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, **asdict(self)}

    def save(self, path: str | os.PathLike[str]) -> None:
        """As JSON; written beside and renamed, so that a file that is there is whole."""
        write_json(path, self.to_json())

    def __str__(self) -> str:
        return table(self.rows)


def load_results(path: str | os.PathLike[str]) -> Results:
    """Of a file that `save` wrote; refuses any other."""
    path = Path(path)
    stored = read_json(path, "Give a file that `kuroshio perf bench -o` wrote, or measure again.")
    if not isinstance(stored, dict) or stored.get("schema") != SCHEMA:
        found = stored.get("schema") if isinstance(stored, dict) else None
        raise Refusal(
            f"{path} holds {'no results' if found is None else found} and not {SCHEMA}. Give a "
            "file that `kuroshio perf bench -o` wrote."
        )
    try:
        rows = [_row(each) for each in stored["rows"]]
        if not isinstance(stored["environment"], dict):
            raise TypeError("environment")
        found = Results(stored["name"], stored["environment"], rows)
    except (KeyError, TypeError, AttributeError) as problem:
        raise Refusal(
            f"{path} cannot be used: it lacks something that results have ({problem}). Measure "
            "again with `kuroshio perf bench -o`."
        ) from problem
    if not rows:
        raise Refusal(
            f"{path} holds no rows: nothing was measured. Measure again with `kuroshio perf bench "
            "-o`."
        )
    return found


_GAP = "  "
_DISPENSABLE = ("mad", "min", "p90", "host median", "n", "dtype")  # in a narrow terminal


def _row(stored: dict[str, Any]) -> Row:
    """TypeError where it is none: somebody else may have written it."""
    row = Row(**{k: v for k, v in stored.items() if k in Row.__dataclass_fields__})
    for name in ("case", "device", "boundary"):
        if not isinstance(value := getattr(row, name), str):
            raise TypeError(f"{name} is {value!r}")
    if not isinstance(row.samples_s, list):
        raise TypeError("no samples")
    times = [row.host_s[key] for key in _TIMES] + row.samples_s
    if row.device_s is not None:
        times += [row.device_s[key] for key in _TIMES] + (row.device_samples_s or [])
    for value in times:
        if not isinstance(value, (int, float)) or not 0 <= value < math.inf:
            raise TypeError(f"{value!r} is no time")
    return row


def table(rows: list[Row], width: int | None = None) -> str:
    """A line a row, then why rows are unstable and what the clocks enclosed.

    width  of a terminal: columns that have no room are left out, and what is said is wrapped
    """
    lines = [["case", "size", "dtype", "device", "median", "p90", "min", "mad", "host median",
              "GB/s", "Gop/s", "n", "correct", "stable"]]  # fmt: skip
    for row in rows:
        by_host = "" if row.device_s is None else seconds_text(row.host_s["median"])
        times = [seconds_text(row.time_s[key]) for key in ("median", "p90", "min", "mad")]
        rates = [_rate(amount, row.time_s["median"]) for amount in (row.bytes, row.flops)]
        lines.append(
            [
                row.case, "" if row.size is None else str(row.size), row.dtype or "", row.device,
                *times, by_host, *rates, str(row.repeats),
                "not checked" if row.correct is None else "yes", "yes" if row.stable else "NO",
            ]
        )  # fmt: skip
    used = [i for i in range(len(lines[0])) if any(line[i] for line in lines[1:])]
    cells: dict[str, Sequence[str]] = {
        lines[0][i]: [printable(line[i]) for line in lines[1:]] for i in used
    }
    left_out: list[str] = []
    if width is not None:
        cells, left_out = fitting(cells, width + len(_GAP), len(_GAP), _DISPENSABLE)
    text = columns([list(cells), *(list(line) for line in zip(*cells.values(), strict=True))], 1)
    said = [f"{r.label} is unstable. {r.unstable_because}." for r in rows if r.unstable_because]
    about: dict[str, list[str]] = {}
    for row in rows:
        sentence = f"{row.boundary}. {row.caches}".strip()
        about.setdefault(sentence, []).append(row.label)
    for sentence, labels in about.items():
        whose = "" if len(about) == 1 else f" ({', '.join(labels)})"
        said.append(f"Clocks{whose}: {sentence}")
    if left_out:
        said.append(left_out_says(left_out))
    return "\n".join([text, *(wrapped(printable(each), width) for each in said)])


def columns(lines: list[list[str]], left: int = 0) -> str:
    """Aligned, the first `left` columns to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        _GAP.join(
            cell.ljust(width) if i < left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def seconds_text(seconds: float) -> str:
    """Three figures and a unit: 12.3 us."""
    units = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6))
    unit, size = next((each for each in units if seconds >= 0.9995 * each[1]), ("ns", 1e-9))
    value = seconds / size
    return f"{value:.{max(0, 3 - len(str(int(value))))}f} {unit}"


def _rate(amount: int | None, seconds: float) -> str:
    return "" if amount is None or seconds <= 0 else f"{amount / seconds / 1e9:.3g}"
