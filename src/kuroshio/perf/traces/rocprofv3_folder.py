"""A folder that rocprofv3 wrote: CSV, or of each process a database (rocpd) or JSON."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np

from ...errors import Refusal
from . import rocpd, rocprofv3_csv, rocprofv3_json
from .events import ABSENT
from .processes import of_one_job
from .sound import check_one_run, together
from .source import beginning
from .sqlite_file import MAGIC
from .trace import Trace

_MOST_FILES = 256


def recognise(path: Path, head: bytes) -> bool:
    return path.is_dir() and (
        rocprofv3_csv.recognise(path, head) or bool(_databases(path) or _documents(path))
    )


def read(path: Path) -> Trace:
    """Of files in several formats, which tell the same, one's: of a database most can be told."""
    if databases := _databases(path):
        return _together(path, map(rocpd.read, databases))
    if documents := _documents(path):
        return _together(path, map(rocprofv3_json.read, documents))
    return rocprofv3_csv.read(path)


def _databases(path: Path) -> list[Path]:
    return [
        file
        for file in _named(path, "*.db")
        # By this name it is one, or should be: one that is damaged is not passed over.
        if file.name.endswith("_results.db") or rocpd.recognise(file, beginning(file, len(MAGIC)))
    ]


def _documents(path: Path) -> list[Path]:
    return [
        file
        for file in _named(path, "*_results.json")
        if rocprofv3_json.recognise(file, beginning(file))
    ]


def _named(path: Path, pattern: str) -> list[Path]:
    files = (file for file in path.rglob(pattern) if file.is_file())
    found = sorted(islice(files, _MOST_FILES + 1))
    if len(found) > _MOST_FILES:
        raise Refusal(
            f"{path} has more than {_MOST_FILES} files {pattern}. Give the folder of one run."
        )
    return found


def _together(path: Path, each: Iterable[Trace]) -> Trace:
    traces = list(each)
    first = traces[0]
    if len(traces) == 1:
        return first
    traces, notes = _numbered_apart(traces)
    check_one_run(path, [trace.events for trace in traces])
    return Trace(
        path, first.form, together(trace.events for trace in traces).in_order(),
        devices={key: device for trace in traces for key, device in trace.devices.items()},
        cannot_tell=(
            *dict.fromkeys(note for trace in traces for note in trace.cannot_tell), *notes,
        ),
        facts={**first.facts, "files": str(len(traces))},
        ranks=of_one_job(trace.ranks for trace in traces),
        process_ranks={
            number: rank for trace in traces for number, rank in trace.process_ranks.items()
        },
    )  # fmt: skip


def _numbered_apart(traces: Iterable[Trace]) -> tuple[list[Trace], list[str]]:
    """Each file's processes as its own: on several hosts, or in containers, numbers come again."""
    apart: list[Trace] = []
    taken: set[int] = set()
    moved = 0
    for trace in traces:
        process = trace.events.process
        own = set(np.unique(process).tolist()) - {ABSENT}
        if own & taken:
            first, moved = max(taken) + 1 - min(own), moved + 1
            trace = replace(
                trace,
                events=replace(
                    trace.events, process=np.where(process == ABSENT, ABSENT, process + first)
                ),
                process_ranks={key + first: rank for key, rank in trace.process_ranks.items()},
            )
            own = {number + first for number in own}
        taken |= own
        apart.append(trace)
    note = (
        f"Processes of several files have the same numbers: those of {moved} of {len(apart)} files "
        "are numbered anew"
    )
    return apart, [note] if moved else []
