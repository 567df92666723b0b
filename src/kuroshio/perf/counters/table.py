"""CSV files of counters: whole and even, or a Refusal that says what is the matter."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import Refusal

FORMATS = (
    "ncu --csv --page raw; rocprofiler-compute's (omniperf's) pmc_perf.csv; rocprof's results.csv; "
    "rocprofv3's counter_collection.csv; perf stat -x,"
)


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
    """The whole text; Refusal where it ends within a line."""
    try:
        text = path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError as problem:
        raise Refusal(f"{path} cannot be read: {problem.strerror}.") from problem
    if not text.strip():
        raise Refusal(f"{path} is empty: the profiler wrote no counters. Run it again.")
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
                "file is damaged or cut off. Make it again."
            )
    if not rows:
        raise Refusal(f"{path} has a header and no rows: no kernel was counted. Make it again.")
    return Table(path, header, tuple(rows))


def number(path: Path, column: str, field: str) -> float:
    """A number, with or without separators of thousands."""
    try:
        return float(field.replace(",", "").replace("\u202f", ""))
    except ValueError:
        raise Refusal(
            f"{path}: {column} is {field!r}, which is no number; the counter was not taken, or the "
            "file is damaged."
        ) from None
