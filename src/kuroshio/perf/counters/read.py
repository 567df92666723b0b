"""A file of counters, of whichever kind it is."""

from __future__ import annotations

from pathlib import Path

from ...errors import Refusal
from . import amd, linux_perf, ncu
from .counted import Counted
from .table import FORMATS, table, text_of


def read(path: Path) -> list[Counted]:
    """A kernel each; Refusal where the file is cut off or of no known kind."""
    text = text_of(path)
    lines = text.splitlines()
    for start, line in enumerate(lines):
        if ncu.begins(line):
            return _ncu(path, lines[start:])
    if linux_perf.is_perf(text):
        return linux_perf.read(path, text)
    found = table(path, lines)
    if amd.is_long(found.columns):
        return amd.long(found)
    if amd.is_wide(found.columns):
        return amd.wide(found)
    raise Refusal(
        f"{path} is of no kind that is known; its columns begin with "
        f"{', '.join(repr(column) for column in found.columns[:5])}. Files that can be read: "
        f"{FORMATS}."
    )


def _ncu(path: Path, lines: list[str]) -> list[Counted]:
    # Between the rows, which are quoted as the header is, stands what the program wrote.
    quote = '"' if lines[0].lstrip().startswith('"') else ""
    rows = [line for line in lines if line.startswith(quote) and not line.startswith("==")]
    found = table(path, rows)
    if not ncu.is_ncu(found.columns):
        raise Refusal(
            f"{path} looks like ncu's, but has no column Kernel Name. Write it with ncu --csv "
            "--page raw."
        )
    return ncu.read(found)
