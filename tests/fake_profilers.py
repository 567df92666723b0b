"""nsys, rocprofv3, hipprof and rocprof as far as a recording knows them.

Each takes the options of the real one, runs the program and writes a trace as it does, of a kernel
a millisecond. They are scripts that this module writes into a folder for the PATH.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

KERNELS = 5
_SCRIPT = """#!{python}
import sys
sys.path.insert(0, {here!r})
sys.dont_write_bytecode = True
import fake_profilers
fake_profilers.{name}(sys.argv[1:])
"""
NAMES = ("nsys", "rocprofv3", "hipprof", "rocprof")


def install(folder: Path, *names: str) -> None:
    folder.mkdir(exist_ok=True)
    for name in names:
        script = folder / name
        script.write_text(
            _SCRIPT.format(python=sys.executable, here=str(Path(__file__).parent), name=name)
        )
        script.chmod(0o755)


def nsys(words: list[str]) -> None:
    assert words.pop(0) == "profile"
    options, program = _split(words)
    told = dict(each.lstrip("-").split("=") for each in options)
    assert told["export"] == "sqlite"
    if "duration" in told:
        assert float(told["duration"]) > 0
        assert (told["kill"], told["wait"]) == ("none", "all")
    status = _run(program)
    path = Path(told["output"] + ".sqlite")
    Path(told["output"] + ".nsys-rep").write_bytes(b"report")
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL)")
        database.execute("INSERT INTO StringIds VALUES (1, 'saxpy')")
        database.execute(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL,"
            " deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, streamId INTEGER NOT NULL,"
            " correlationId INTEGER, globalPid INTEGER, demangledName INTEGER NOT NULL,"
            " shortName INTEGER NOT NULL)"
        )
        for at in _starts():
            database.execute(
                "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, 0, 1, 7, ?, 1, 1, 1)",
                (at, at + 900_000, at // 1_000_000),
            )
    sys.exit(status)


def rocprofv3(words: list[str]) -> None:
    at = words.index("--")
    options, program = words[:at], words[at + 1 :]
    assert "--runtime-trace" in options
    assert options[options.index("--output-format") + 1] == "csv"
    if "--collection-period" in options:
        delay, length, repeat = options[options.index("--collection-period") + 1].split(":")
        assert (delay, repeat) == ("0", "1")
        assert int(length) > 0
    status = _run(program)
    folder = _no_option(options[options.index("--output-directory") + 1]) / "host"
    folder.mkdir()
    head = (
        "Kind,Agent_Id,Queue_Id,Thread_Id,Dispatch_Id,Kernel_Id,Kernel_Name,Correlation_Id,"
        "Start_Timestamp,End_Timestamp,Private_Segment_Size,Group_Segment_Size,Workgroup_Size_X,"
        "Workgroup_Size_Y,Workgroup_Size_Z,Grid_Size_X,Grid_Size_Y,Grid_Size_Z"
    )
    rows = [
        f'KERNEL_DISPATCH,1,1,69,{i},16,"saxpy",{i},{at},{at + 900_000},0,0,64,1,1,1024,1,1'
        for i, at in enumerate(_starts())
    ]
    (folder / "123_kernel_trace.csv").write_text("\n".join([head, *rows, ""]))
    sys.exit(status)


def hipprof(words: list[str]) -> None:
    assert words[:3] == ["--hip-trace", "--output-type", "0"]
    assert words[3] == "-o"
    status = _run(words[5:])
    events = [
        {"ph": "X", "cat": "HIPOPS", "name": "saxpy", "pid": 1, "tid": "Stream0", "ts": at / 1000,
         "dur": 900.0, "args": {"BeginNs": str(at), "EndNs": str(at + 900_000), "devId": "0",
                                "queueId": "0", "index": str(i), "procId": "1"}}
        for i, at in enumerate(_starts())
    ]  # fmt: skip
    beside = os.environ.get("FAKE_HIPPROF") == "beside"
    path = Path("result_18861_copy.json") if beside else _no_option(f"{words[4]}_18861.json")
    path.write_text(json.dumps({"traceEvents": events}))
    sys.exit(status)


def rocprof(words: list[str]) -> None:
    assert words[:2] == ["--hip-trace", "-d"]
    assert words[3] == "-o"
    status = _run(words[5:])
    events = [
        {"ph": "X", "name": "saxpy", "pid": 6, "tid": 0, "ts": str(at // 1000), "dur": "900",
         "args": {"BeginNs": str(at), "EndNs": str(at + 900_000), "dev-id": "0", "queue-id": "0",
                  "stream-id": "0", "Name": "saxpy", "pid": "1", "tid": "1",
                  "DurationNs": "900000"}}
        for at in _starts()
    ]  # fmt: skip
    names = [{"args": {"name": "GPU0"}, "ph": "M", "pid": 6, "name": "process_name"}]
    _no_option(words[4]).with_suffix(".json").write_text(
        json.dumps({"traceEvents": names + events})
    )
    sys.exit(status)


def _no_option(path: str) -> Path:
    """A name that begins with a hyphen would be an option to some."""
    assert os.path.isabs(path), path
    return Path(path)


def _split(words: list[str]) -> tuple[list[str], list[str]]:
    """Options, and from the first word that is none the program."""
    at = next(i for i, word in enumerate(words) if not word.startswith("-"))
    return words[:at], words[at:]


def _run(program: list[str]) -> int:
    return 0 if os.environ.get("FAKE_PROFILER") == "idle" else subprocess.run(program).returncode


def _starts() -> list[int]:
    return [1_000_000_000 + 1_000_000 * i for i in range(KERNELS)]
