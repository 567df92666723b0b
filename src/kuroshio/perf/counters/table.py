"""CSV files of counters: whole and even, or a Refusal that says what is the matter."""

from __future__ import annotations

import codecs
import csv
import io
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import Refusal
from ..whole_file import read_bytes

FORMATS = (
    "ncu --csv --page raw; rocprofiler-compute's (omniperf's) pmc_perf.csv; rocprof's results.csv; "
    "rocprofv3's counter_collection.csv; perf stat -x,"
)

_LARGEST = 256 << 20  # bytes; as many rows take some times that in memory
# How files begin that people give instead, and what to do.
_FOREIGN = {
    b"NVR\0": "a report of ncu; print it: ncu --import FILE --csv --page raw > ncu.csv",
    b"SQLite format 3\0": "a database; write CSV instead: rocprofv3 --output-format csv",
    b"PERFILE2": "perf record's, which samples; count instead: perf stat -x,",
    b"\x1f\x8b": "compressed; gunzip it first",
    b"PK\x03\x04": "compressed; unzip it first",
    b"{": "JSON; have the profiler write CSV",
}
_SEPARATOR = "[,'_ \u00a0\u202f\u2019]"  # of thousands
_PLAIN = re.compile(r"[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?")
_GROUPED = re.compile(rf"[0-9]{{1,3}}({_SEPARATOR}[0-9]{{3}})+(\.[0-9]*)?")
_FOREIGN_NUMBER = re.compile(rf"[0-9]+((\.|{_SEPARATOR})[0-9]+)+")


@dataclass(frozen=True)
class Table:
    """Columns as they are named, a name perhaps more than once, and rows of as many fields."""

    path: Path
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def where(self, name: str) -> int | None:
        """The first column of that name."""
        return self.columns.index(name) if name in self.columns else None

    def dicts(self) -> Iterable[dict[str, str]]:
        """Rows by name; of columns with one name the first counts."""
        for row in self.rows:
            yield dict(zip(self.columns[::-1], row[::-1], strict=True))


def text_of(path: Path) -> str:
    """The whole text; Refusal where it is none, or ends within a line."""
    data = read_bytes(path, _LARGEST, f"Files that can be read: {FORMATS}.")
    for begin, what in _FOREIGN.items():
        if data.startswith(begin):
            raise Refusal(f"{path} is {what}. Files that can be read: {FORMATS}.")
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):  # as PowerShell's > writes
        text = data.decode("utf-16", errors="replace")
    else:
        text = data.decode("utf-8-sig", errors="replace")
    if not text.strip():
        raise Refusal(f"{path} is empty: the profiler wrote no counters. Run it again.")
    if "\0" in text:
        raise Refusal(f"{path} is no text. Files that can be read: {FORMATS}.")
    if not text.endswith("\n"):
        last = text.splitlines()[-1]
        raise Refusal(
            f"{path} ends in the middle of a line ({last[-40:]!r}), so it is cut off and its last "
            "numbers may be wrong. Copy or make it again (or, if it is whole, end its last line)."
        )
    return text


def table(path: Path, lines: Sequence[str]) -> Table:
    """A header and rows; Refusal where a row has other than the header's number of fields."""
    reader = csv.reader(io.StringIO("\n".join(lines) + "\n"), strict=True)
    try:
        read = [tuple(field.strip() for field in row) for row in reader if row]
    except csv.Error as problem:
        raise Refusal(f"{path} is no whole CSV ({problem}): it is damaged or cut off.") from problem
    header, rows = read[0], read[1:]
    for number, row in enumerate(rows, start=2):
        if len(row) != len(header):
            raise Refusal(
                f"{path}: row {number} has {len(row)} fields and the header {len(header)}, so the "
                "file is damaged or cut off, or something else was printed into it (ncu --log-file "
                "keeps that out). Make it again."
            )
    if not rows:
        raise Refusal(f"{path} has a header and no rows: no kernel was counted. Make it again.")
    return Table(path, header, tuple(rows))


def number(path: Path, column: str, field: str) -> float:
    """A count or a rate, 0 or more, with or without separators of thousands."""
    if _PLAIN.fullmatch(field):
        value = float(field)
    elif _GROUPED.fullmatch(field):
        value = float(re.sub("[^0-9.]", "", field))
    elif _FOREIGN_NUMBER.fullmatch(field):
        raise Refusal(
            f"{path}: {column} is {field!r}, a number as another language writes it. Set "
            "LC_ALL=C for the profiler and run it again."
        )
    else:
        raise Refusal(
            f"{path}: {column} is {field!r}, which is no number that a counter can have; it was "
            "not taken, or the file is damaged."
        )
    if not math.isfinite(value):
        raise Refusal(f"{path}: {column} is {field!r}, more than any counter holds: damaged.")
    return value
