"""A run's timeline as a file of trace events, which Perfetto and `kuroshio perf diagnose` open.

The format is Chrome's: JSON, with times in microseconds. What is ours in it:

    process 1             the run's threads, a lane each; event `climatology` of cat kuroshio.run is
                          the whole run
    process 2, 3, ...     a device each, with a lane a stage, or a stream of it
    cat kuroshio.stage    a span of a thread; its name is the stage's
    cat kuroshio.device   a span of a device; args `device`, its number, and `stream`. `device copy`
                          goes to the device and `device fetch` to the host; others are kernels
    args.bytes            of stages that handle bytes; args.values of those that handle values
    baseTimeNanoseconds   of ts 0: nanoseconds of the epoch
    otherData             facts of the run, all texts; `merged_ns` where there were too many spans:
                          the windows that they were merged in, see recorder.py
"""

from __future__ import annotations

import gzip
import io
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

import numpy as np

from .archive import part
from .archive.write import LONGEST_NAME
from .errors import Refusal
from .recorder import Lane, Recorder

STAGE, DEVICE, RUN = "kuroshio.stage", "kuroshio.device", "kuroshio.run"
_VALUES = ("compute", "smooth")  # count values, not bytes
_TOGETHER = 10_000  # spans that are made text at a time
_LEVEL = 3  # of gzip: higher ones take three times as long for a tenth


def check(path: str | os.PathLike[str], overwrite: bool) -> None:
    """A Refusal where the file could not be written: before any work is done."""
    target = Path(path)
    if len(os.fsencode(target.name)) > LONGEST_NAME or "\0" in os.fspath(path):
        raise Refusal(
            f"The trace's name {target.name!r} is no name of a file, or longer than {LONGEST_NAME} "
            "bytes. Call it trace.json.gz, for example."
        )
    if target.exists() and not target.is_file():
        raise Refusal(f"The trace {path} is no file, and is not replaced. Give the name of a file.")
    if (target.exists() or target.is_symlink()) and not overwrite:
        raise Refusal(
            f"The trace {path} exists. Choose another name, or pass --overwrite (overwrite=True) "
            "to replace it once the run is complete."
        )
    try:
        with tempfile.TemporaryFile(dir=target.parent):
            pass
    except OSError as problem:
        raise _not_writable(path, problem) from problem


def write(path: str | os.PathLike[str], recorder: Recorder, facts: Mapping[str, str]) -> None:
    """Beside the path, then renamed to it; compressed if the name ends in .gz.

    A Refusal where that cannot be; nothing is left of it then.
    """
    target = Path(path)
    unfinished = part.begin(target)
    try:
        with open(unfinished, "xb") as file:
            if target.suffix == ".gz":
                # No time and no name within: the same run makes the same bytes.
                with gzip.GzipFile("", "wb", _LEVEL, file, 0) as packed:
                    _write(packed, recorder, facts)
            else:
                _write(file, recorder, facts)
        part.rename(unfinished, target)
    except BaseException as problem:
        part.discard(unfinished)
        if isinstance(problem, OSError):
            raise _not_writable(path, problem) from problem
        raise


def _write(file: IO[bytes] | gzip.GzipFile, recorder: Recorder, facts: Mapping[str, str]) -> None:
    text = io.TextIOWrapper(file, encoding="ascii", write_through=True)
    merged = {"merged_ns": str(recorder.window_ns)} if recorder.window_ns else {}
    head = {
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": recorder.begun_ns,
        "otherData": {**facts, **merged},
    }
    text.write(json.dumps(head)[:-1] + ', "traceEvents": [\n')
    for number, piece in enumerate(_events(recorder)):
        text.write((",\n" if number else "") + piece)
    text.write("\n]}\n")
    text.detach()


def _events(recorder: Recorder) -> Iterator[str]:
    """Events as JSON, some thousand at a time."""
    whole_ns = recorder.elapsed_ns
    spans = recorder.spans()
    devices = list(dict.fromkeys(lane.device for lane in recorder.lanes if lane.device))
    places = [_place(lane, devices, i) for i, lane in enumerate(recorder.lanes)]
    yield ",\n".join(map(json.dumps, _names(recorder, devices, places)))
    mine = (place for place, lane in zip(places, recorder.lanes, strict=True) if lane.main)
    pid, tid = next(mine, (1, 0))
    yield (
        f'{{"ph": "X", "cat": "{RUN}", "name": "climatology", "pid": {pid}, "tid": {tid}, '
        f'"ts": 0.000, "dur": {_us(whole_ns)}}}'
    )
    heads = [
        [_head(stage, lane, *place) for stage in recorder.stages]
        for lane, place in zip(recorder.lanes, places, strict=True)
    ]
    table = np.stack([spans.lane, spans.stage, spans.start, spans.stop, spans.amount], axis=1)
    for at in range(0, len(table), _TOGETHER):
        lines = []
        for lane, stage, start, stop, amount in table[at : at + _TOGETHER].tolist():
            before, after = heads[lane][stage]
            known = f'"{_amount(recorder.stages[stage])}": {amount}' if amount > 0 else ""
            comma = ", " if known and not after.endswith("{") else ""
            lines.append(f'{before}"ts": {_us(start)}, "dur": {_us(stop - start)}{after}'
                         f"{comma}{known}}}}}")  # fmt: skip
        yield ",\n".join(lines)


def _place(lane: Lane, devices: list[str], number: int) -> tuple[int, int]:
    """Process and thread of the trace."""
    return (2 + devices.index(lane.device) if lane.device else 1), number + 1


def _names(
    recorder: Recorder, devices: list[str], places: list[tuple[int, int]]
) -> Iterator[dict[str, object]]:
    for pid, name in enumerate(["kuroshio climatology", *devices], 1):
        yield {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}}
        yield {"ph": "M", "name": "process_sort_index", "pid": pid, "args": {"sort_index": pid}}
    for (pid, tid), lane in zip(places, recorder.lanes, strict=True):
        here = {"ph": "M", "pid": pid, "tid": tid}
        yield {**here, "name": "thread_name", "args": {"name": lane.name}}
        yield {**here, "name": "thread_sort_index", "args": {"sort_index": tid}}


def _head(stage: str, lane: Lane, pid: int, tid: int) -> tuple[str, str]:
    """What stands before the times and after them, up to an amount."""
    cat, args = STAGE, ""
    if lane.device:
        cat, args = DEVICE, f'"device": {lane.device.rpartition(":")[2]}, "stream": {tid}'
    before = {"ph": "X", "cat": cat, "name": stage, "pid": pid, "tid": tid}
    return json.dumps(before)[:-1] + ", ", f', "args": {{{args}'


def _amount(stage: str) -> str:
    return "values" if stage in _VALUES else "bytes"


def _us(ns: int) -> str:
    return f"{ns // 1000}.{ns % 1000:03d}"


def _not_writable(path: str | os.PathLike[str], problem: OSError) -> Refusal:
    return Refusal(
        f"The trace {os.fspath(path)} cannot be written: {problem.strerror}. Give another name, in "
        "a folder that exists and may be written."
    )
