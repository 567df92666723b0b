"""What is said of the files that moments were made of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..archive.model import Archive
from .changes import Series, missing
from .state import State


def missing_days(years: Iterable[int], series: Series, calendar: str) -> list[str]:
    lacking = missing(years, series, calendar)
    if not lacking:
        return []
    each = ", ".join(f"{year} {days}" for year, days in lacking.items())
    return [f"Days are missing, by year: {each}. The pools hold the days that there are."]


def sources_of(archive: Archive, sources: str) -> dict[str, Any]:
    """On the files of an archive, as a climatology has it."""
    found: dict[str, Any] = {"source_files": sources} if sources else {}
    found["source_file_count"] = np.int32(len(archive.sources))
    if archive.sources:
        found |= {"source_first_file": archive.sources[0], "source_last_file": archive.sources[-1]}
    if archive.skipped:
        found["skipped_files"] = "; ".join(archive.skipped)
    if archive.notes:
        found["notes"] = "; ".join(archive.notes)
    return found


def joined(before: State, archive: Archive, now: dict[str, Any]) -> dict[str, Any]:
    """Of an archive that holds all days of the state its own; else those of both."""
    then = dict(before.sources)
    if "skipped_files" in then and then["skipped_files"] not in now.get("skipped_files", ""):
        now["skipped_files"] = "; ".join(
            filter(None, [then["skipped_files"], now.get("skipped_files")])
        )
    if np.isin(before.series.days, archive.days).all():
        return now
    if archive.days[0] > before.series.days[0]:
        now["source_first_file"] = then.get("source_first_file", "")
    if archive.days[-1] < before.series.days[-1]:
        now["source_last_file"] = then.get("source_last_file", "")
    now["source_file_count"] = np.int32(then["source_file_count"] + now["source_file_count"])
    files = [str(part["source_files"]) for part in (then, now) if "source_files" in part]
    return {**now, **({"source_files": "; ".join(dict.fromkeys(files))} if files else {})}
