"""CSV files of a row an event: whole numbers as arrays, and all else as texts by number."""

from __future__ import annotations

import csv
import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from ...errors import Refusal
from .events import ABSENT, Column

_ROWS = 1 << 14  # at a time
_FIRST_LINE = 1 << 16  # characters at most


@dataclass(frozen=True)
class Sheet:
    """Columns by name.

    integers   int64; ABSENT where a field is empty
    texts      all other columns
    cut        whether the last line was cut off; it is left out
    """

    path: Path
    header: tuple[str, ...]
    rows: int
    integers: dict[str, np.ndarray]
    texts: dict[str, Column]
    cut: bool

    def whole(self, *names: str) -> np.ndarray | None:
        """The first of these columns of whole numbers that is there."""
        return next((self.integers[name] for name in names if name in self.integers), None)

    def triple(self, *names: str) -> np.ndarray | None:
        """(row, 3) of three columns; None where one is not there."""
        if any(name not in self.integers for name in names):
            return None
        return np.stack([self.integers[name] for name in names], axis=1)


def header_of(path: Path) -> tuple[str, ...]:
    """The names in the first line that is not empty; none where it is no text."""
    try:
        with open(path, encoding="utf-8-sig", errors="replace", newline="") as file:
            return header_in(file.read(_FIRST_LINE))
    except (OSError, ValueError):  # a NUL in its name
        return ()


def header_in(text: str) -> tuple[str, ...]:
    """The names in the first line of a text."""
    line = next((line for line in text.splitlines() if line.strip()), "")
    if "\0" in line:
        return ()
    try:
        return tuple(field.strip() for field in next(csv.reader([line])))
    except (csv.Error, StopIteration):
        return ()


def sheet(path: Path, whole: Collection[str], without: Collection[str] = ()) -> Sheet:
    """All of a file: these columns as whole numbers, and none of those that are not wanted.

    A Refusal where a row within it is of another length than the header, or where a whole number
    is none. The last line may be cut off, as where a profiled program was killed.
    """
    try:
        with open(path, encoding="utf-8-sig", errors="replace", newline="") as file:
            return _sheet(path, csv.reader(file, strict=True), whole, without, _is_cut(path))
    except OSError as problem:
        raise Refusal(f"{path} cannot be read: {problem.strerror}.") from problem


def _sheet(
    path: Path, lines: Iterator[list[str]], whole: Collection[str], without: Collection[str],
    cut: bool,
) -> Sheet:  # fmt: skip
    rows = _rows(path, lines, cut)
    header = tuple(field.strip() for field in next(rows, ()))
    at: dict[str, int] = {}
    for number, name in enumerate(header):
        at.setdefault(name, number)  # of columns with one name the first counts
    numbers: dict[str, list[np.ndarray]] = {name: [] for name in at if name in whole}
    codes: dict[str, list[np.ndarray]] = {
        name: [] for name in at if name not in whole and name not in without
    }
    values: dict[str, dict[str, int]] = {name: {} for name in codes}
    total = 0
    while batch := list(islice(rows, _ROWS)):
        if any(len(row) != len(header) for row in batch):
            _refuse_uneven(path, batch, header, total)
        columns = list(zip(*batch, strict=True))
        for name, parts in numbers.items():
            parts.append(_whole_numbers(path, name, columns[at[name]]))
        for name, parts in codes.items():
            known = values[name]
            found = (known.setdefault(field, len(known)) for field in columns[at[name]])
            parts.append(np.fromiter(found, np.int32, len(batch)))
        total += len(batch)
    return Sheet(
        path, header, total,
        {name: _joined(parts, np.int64) for name, parts in numbers.items()},
        {name: _column(_joined(codes[name], np.int32), values[name]) for name in codes},
        cut,
    )  # fmt: skip


def _rows(path: Path, lines: Iterator[list[str]], cut: bool) -> Iterator[list[str]]:
    """Rows that are not empty, but for the last where it is cut off."""
    last: list[str] | None = None
    try:
        for row in lines:
            if not row:
                continue
            if last is not None:
                yield last
            last = row
    except csv.Error as problem:
        if cut and "unexpected end" in str(problem):  # within quotes
            if last is not None:
                yield last
            return
        raise Refusal(
            f"{path} is no whole CSV ({problem}): it is damaged, or something else was printed "
            "into it. Make it again."
        ) from problem
    if last is not None and not cut:
        yield last


def _is_cut(path: Path) -> bool:
    """Whether the file ends within a line."""
    with open(path, "rb") as file:
        if not file.seek(0, os.SEEK_END):
            return False
        file.seek(-1, os.SEEK_END)
        return file.read(1) not in (b"\n", b"\r")


def _whole_numbers(path: Path, name: str, fields: tuple[str, ...]) -> np.ndarray:
    try:
        return np.fromiter(map(int, fields), np.int64, len(fields))
    except (ValueError, OverflowError):
        return np.array([_whole_number(path, name, field) for field in fields], np.int64)


def _whole_number(path: Path, name: str, field: str) -> int:
    if not field.strip():
        return ABSENT
    try:
        value = int(field)
    except ValueError:
        hint = " It looks like a number that a spreadsheet has rounded." if "E+" in field else ""
        raise Refusal(
            f"{path}: {name} is {field[:40]!r}, which is no whole number.{hint} Give the file as "
            "the profiler wrote it."
        ) from None
    if not -(2**63) <= value < 2**63:
        raise Refusal(f"{path}: {name} is {field[:40]!r}, more than any clock holds: damaged.")
    return value


def _refuse_uneven(
    path: Path, batch: list[list[str]], header: tuple[str, ...], before: int
) -> None:
    row, fields = next(
        (number, len(row)) for number, row in enumerate(batch) if len(row) != len(header)
    )
    raise Refusal(
        f"{path}: row {before + row + 2} has {fields} fields and the header {len(header)}, so the "
        "file is damaged, or something else was printed into it. Make it again."
    )


def _joined(parts: list[np.ndarray], kind: type) -> np.ndarray:
    return np.concatenate(parts) if parts else np.empty(0, kind)


def _column(codes: np.ndarray, values: dict[str, int]) -> Column:
    """An empty field is no value."""
    nothing = values.get("")
    if nothing is not None:
        codes = np.where(codes == nothing, np.int32(ABSENT), codes)
    return Column(codes, tuple(values))
