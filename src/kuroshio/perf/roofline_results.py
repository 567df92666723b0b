"""Points of a roofline from result files, joined with what counters saw of the same work."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import Refusal
from .counters.counted import Counted
from .json_file import read_json
from .results import Row, load_results
from .roofline import Point

_SECONDS, _COUNT = (1e-12, 1e12), 1e30  # beyond these a figure is a mistake


def document(path: Path) -> dict[str, Any]:
    """A JSON object from a file; Refusal where it is none."""
    said = read_json(
        path,
        "Give a result of kuroshio perf bench --json, or the account that kuroshio climatology "
        "--json prints.",
    )
    if not isinstance(said, dict):
        raise Refusal(f"{path} holds a {type(said).__name__}, not a result or an account.")
    return said


def points(path: Path, device: str | None = None) -> tuple[str, list[Point]]:
    """The device of a result file and its rows as points; of several devices one must be given."""
    rows = load_results(path).rows
    if not rows:
        raise Refusal(f"{path} holds no rows: nothing was measured. Run the bench again.")
    devices = sorted({str(row.device) for row in rows})
    if device is None:
        if len(devices) != 1:
            raise Refusal(
                f"{path} has rows of several devices ({', '.join(devices)}), and a roofline is of "
                "one. Give it with --device."
            )
        device = devices[0]
    found = [_point(path, row) for row in rows if row.device == device]
    if not found:
        raise Refusal(f"{path} has no rows of {device}; there are rows of {', '.join(devices)}.")
    return device, found


def with_shares(found: Sequence[Point]) -> list[Point]:
    """Each with its share of the time of all."""
    times = [point.all_seconds or point.seconds or 0.0 for point in found]
    total = sum(times) or 1.0
    return [replace(point, share=time / total) for point, time in zip(found, times, strict=True)]


def joined(
    found: Sequence[Point], counted: Sequence[Counted], pairs: Sequence[tuple[str, str]] = ()
) -> list[Point]:
    """Points with what counters saw of them; kernels that belong to no point become points.

    pairs  (case, part of a kernel's name) that were given; else names are compared, and where there
           is one point and one kernel they are the same
    """
    for case, part in pairs:
        if case not in {point.name for point in found}:
            raise Refusal(
                f"--match names the case {case!r}, and there is none; there are "
                f"{', '.join(point.name for point in found)}."
            )
        if not _named(part, counted):
            raise Refusal(
                f"--match names the kernel {part!r}, and none was counted; there are "
                f"{', '.join(each.name for each in counted)}."
            )
    given = [each for _, part in pairs for each in _named(part, counted)]
    owners: dict[int, str] = {}  # of kernels, by their place
    points: list[Point] = []
    for point in found:
        mine = [
            each for case, part in pairs if case == point.name for each in _named(part, counted)
        ]
        if not mine and not pairs and len(found) == len(counted) == 1:
            mine = list(counted)
        elif not mine:
            mine = _alike(point.name, [each for each in counted if each not in given])
        if len(mine) > 1:
            raise Refusal(
                f"Several counted kernels could be {point.name!r}: "
                f"{', '.join(each.name for each in mine)}. Say which: "
                f"--match '{point.name}={mine[0].name}'"
            )
        if not mine:
            points.append(point)
            continue
        seen = mine[0]
        other = owners.setdefault(counted.index(seen), point.name)
        if other is not point.name:
            raise Refusal(
                f"The counted kernel {seen.name} could be {other!r} and {point.name!r}. Say which: "
                f"--match '{other}={seen.name}', or give the results of one of them."
            )
        points.append(
            replace(
                point,
                counted_bytes=seen.bytes,
                counted_flops=seen.flops,
                counted_integers=seen.integers,
                operations=point.operations or seen.operations,
                notes=(*point.notes, *seen.notes),
            )
        )
    left = [each for place, each in enumerate(counted) if place not in owners]
    return points + [from_counters(each) for each in left]


def from_counters(each: Counted) -> Point:
    """A kernel that only counters know."""
    return Point(
        name=each.name, seconds=each.seconds, counted_bytes=each.bytes, counted_flops=each.flops,
        counted_integers=each.integers, operations=each.operations, all_seconds=each.all_seconds,
        notes=each.notes,
    )  # fmt: skip


def _named(part: str, counted: Sequence[Counted]) -> list[Counted]:
    """The kernels of that name, or else those with it in their names."""
    exact = [each for each in counted if each.name == part]
    return exact or [each for each in counted if part in each.name]


def _alike(case: str, counted: Sequence[Counted]) -> list[Counted]:
    """The kernels that may be the case: of its name, or else one name is within the other."""
    case = case.lower()
    exact = [each for each in counted if case in (each.name.lower(), _base(each.name))]
    return exact or [
        each
        for each in counted
        if case in each.name.lower() or re.search(rf"\b{re.escape(_base(each.name))}\b", case)
    ]


def _base(kernel: str) -> str:
    """copy, of void ns::copy<float>(float*, int)."""
    found = re.search(r"(\w+)(?:[<(]|$)", kernel)
    return (found[1] if found else kernel).lower()


def _point(path: Path, row: Row) -> Point:
    try:
        seconds = float(row.time_s["median"])
        nbytes, flops = (None if n is None else float(n) for n in (row.bytes, row.flops))
        possible = _SECONDS[0] < seconds < _SECONDS[1] and all(
            each is None or each == 0 or 1 <= each < _COUNT for each in (nbytes, flops)
        )
    except (KeyError, OverflowError, TypeError, ValueError) as problem:
        raise Refusal(
            f"{path} has a row that cannot be used ({type(problem).__name__}: {problem}). Run the "
            "bench again."
        ) from problem
    if not possible:
        raise Refusal(
            f"{path}: {row.label} took {seconds} s for {nbytes} bytes and {flops} operations, "
            "which cannot be. Run the bench again."
        )
    notes = []
    if not row.stable:
        notes.append(f"unstable: {row.unstable_because or 'no reason was kept'}")
    if row.bytes is None and row.flops is None:
        notes.append("declares neither bytes nor operations: give bytes= or flops= to the bench")
    operations = row.operations
    if operations is None and flops and row.dtype:
        operations = f"{row.dtype} fma"
    return Point(
        name=row.label, seconds=seconds, bytes=nbytes, flops=flops, operations=operations,
        processors=row.watched.get("processors") if row.device == "cpu" else None,
        notes=tuple(notes),
    )  # fmt: skip
