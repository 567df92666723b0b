"""The traces among what a profiler has written, in a folder that was empty before."""

from __future__ import annotations

import os
import re
import shutil
from collections import defaultdict
from pathlib import Path

# Of rocprofv3: a process's tables are named alike up to what they hold.
_TABLE = re.compile(
    r"(?P<process>.*?)_?(?P<table>(kernel|memory_copy|memory_allocation|scratch_memory|marker_api|"
    r"hip_api|hip_runtime_api|hip_compiler_api|rccl_api)_trace|agent_info)\.csv"
)
_FULL = "kernel_trace"


def traces(profiler: str, folder: Path, started_at: float) -> list[Path]:
    """Files, or folders of rocprofv3, a process each; in order, none where nothing was recorded.

    started_at: seconds of the epoch; hipprof may have written beside the program instead.
    """
    if profiler == "rocprofv3":
        return _tables(folder)
    if profiler == "nsys":
        return sorted(folder.glob("*.sqlite"))
    if profiler == "hipprof":
        _bring(Path.cwd(), folder, started_at)
    pattern = "trace*.json.gz" if profiler == "torch" else "**/*.json"
    return sorted(path for path in folder.glob(pattern) if not path.name.startswith("."))


def _tables(folder: Path) -> list[Path]:
    """A folder for each process, with its tables alone; of those with kernels if there are any."""
    of_process: dict[tuple[Path, str], list[Path]] = defaultdict(list)
    for path in sorted(folder.rglob("*.csv")):
        if matched := _TABLE.fullmatch(path.name):
            of_process[path.parent, matched["process"]].append(path)
    alone = len({process for _, process in of_process}) == len({at for at, _ in of_process})
    found = {}
    for (at, process), paths in of_process.items():
        if not alone:
            own = folder / f"process-{process or at.name}"
            own.mkdir(exist_ok=True)
            paths = [Path(shutil.move(path, own / path.name)) for path in paths]
            at = own
        found[at] = any(_FULL in path.name for path in paths)
    return sorted(at for at, full in found.items() if full or not any(found.values()))


def _bring(here: Path, folder: Path, started_at: float) -> None:
    """Results that lie where the program ran, into the folder."""
    if any(folder.glob("*.json")):
        return
    for path in here.glob("result_*.json"):
        if path.stat().st_mtime >= started_at and not os.path.samefile(here, folder):
            shutil.move(path, folder / path.name)
