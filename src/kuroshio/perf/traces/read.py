"""A profiler's file or folder, of whichever format it is, as a Trace.

The format is told by content. To add one: a `Format`, before those that are less particular.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...errors import Refusal
from . import (
    chrome,
    nsys,
    rocpd,
    rocprof_csv,
    rocprofv3_csv,
    rocprofv3_folder,
    rocprofv3_json,
    sqlite_file,
)
from .sound import MOST_DEVICES
from .source import beginning
from .trace import Trace


class Format(NamedTuple):
    """How one is known, and read.

    name       for people
    recognise  from a path and how the file begins (64 KiB, unpacked); of a folder that is b""
    read       the whole; Refusal where it is damaged
    """

    name: str
    recognise: Callable[[Path, bytes], bool]
    read: Callable[[Path], Trace]


FORMATS = (
    Format("a folder of rocprofv3's", rocprofv3_folder.recognise, rocprofv3_folder.read),
    Format("CSV of rocprofv3", rocprofv3_csv.recognise, rocprofv3_csv.read),
    Format("CSV of rocprof", rocprof_csv.recognise, rocprof_csv.read),
    Format("rocpd (SQLite)", rocpd.recognise, rocpd.read),
    Format("SQLite of nsys", nsys.recognise, nsys.read),
    Format("JSON of rocprofv3", rocprofv3_json.recognise, rocprofv3_json.read),
    Format(
        "Chrome JSON of torch.profiler, hipprof, rocprof or Kuroshio", chrome.recognise, chrome.read
    ),
)

# Ends of names of files that are traces by themselves; to advise, not to recognise.
_SINGLE = (".json", ".json.gz", ".sqlite", ".db", ".csv")

# How files begin that people give instead, and what to do.
_FOREIGN = {
    b"PK\x03\x04": "a zip archive; unpack it first",
    b"\x28\xb5\x2f\xfd": "packed by zstd; unpack it first (unzstd)",
    b"BZh": "packed by bzip2; unpack it first",
    b"\xfd7zXZ": "packed by xz; unpack it first",
    b"\xff\xfe": "UTF-16 text; save it as UTF-8",
    b"\xfe\xff": "UTF-16 text; save it as UTF-8",
    b"NVR\0": "a report of ncu, which has counters and no timeline",
    b"PERFILE2": "perf record's, which samples and has no device's work",
}


def read(path: str | os.PathLike[str]) -> Trace:
    """The trace in a file or folder; Refusal where there is none that can be read."""
    path = Path(path)
    head = _head(path)
    for each in FORMATS:
        if each.recognise(path, head):
            return _checked(each.read(path))
    if head.startswith(sqlite_file.MAGIC):
        sqlite_file.refuse(path)
    raise Refusal(f"{path} {_instead(path, head)}. What can be read: {_readable()}.")


def _checked(trace: Trace) -> Trace:
    number = len(np.unique(trace.events.device[trace.events.on_device]))
    if number > MOST_DEVICES:
        raise Refusal(
            f"{trace.path} tells of work of {number:,} devices, and no machine has more than "
            f"{MOST_DEVICES:,}: it is damaged. Copy or record it again."
        )
    return trace


def _head(path: Path) -> bytes:
    try:
        if path.is_dir():
            return b""
        if not path.exists():
            raise Refusal(f"{path} cannot be read: there is no such file or folder.")
        if not path.is_file():
            raise Refusal(
                f"{path} is no file, but a device or a pipe, and is to be read twice. Write it "
                "into a file first."
            )
    except (OSError, ValueError) as problem:
        if isinstance(problem, Refusal):
            raise
        why = problem.strerror if isinstance(problem, OSError) else problem
        raise Refusal(f"{str(path)!r} cannot be read: {why}.") from problem
    head = beginning(path)
    if not head.strip():
        raise Refusal(
            f"{path} is empty: the profiler wrote nothing, or has not ended. Record it again."
        )
    return head


def _instead(path: Path, head: bytes) -> str:
    if not head:
        names = sorted(each.name for each in path.iterdir())
        held = (
            f"holds {', '.join(names[:5])}{' ...' if len(names) > 5 else ''}"
            if names
            else "is empty"
        )
        what = f"is a folder without files of rocprofv3; it {held}"
        single = [name for name in names if name.lower().endswith(_SINGLE)]
        if len(single) > 1:
            largest = max((path / name for name in single), key=lambda each: each.stat().st_size)
            return (
                f"{what}. Give one of its files, such as {largest}, the largest; several where "
                "they are ranks of one job"
            )
        return f"{what}. Give a file in it: {path / single[0]}" if single else what
    for begin, what in _FOREIGN.items():
        if head.startswith(begin):
            return f"is {what}"
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text[:1] == b"<":
        return (
            "is a page of HTML or XML, not a trace: perhaps the page about the file was saved, or "
            "a server's refusal. Download the file itself"
        )
    begins = text[:40].decode("utf-8", "replace")
    if "\ufffd" in begins[:-1] or "\0" in begins:  # a letter may be cut at the end
        return f"is of no format that is known, and no text; it begins with {text[:8].hex(' ')}"
    return f"is of no format that is known; it begins with {begins!r}"


def _readable() -> str:
    return "; ".join(each.name for each in FORMATS)
