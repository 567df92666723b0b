"""The traces among what a profiler has written, in a folder that was empty before."""

from __future__ import annotations

import shutil
from pathlib import Path

from ...errors import Refusal
from ..traces.source import beginning

RANK = "trace-rank"  # as the hook names traces of ranks
_FILES = {"torch": "trace*.json.gz", "nsys": "*.sqlite", "hipprof": "*.json", "rocprof": "*.json"}


def traces(profiler: str, folder: Path, started_at: float) -> list[Path]:
    """Files, or the folder of rocprofv3's tables; in order, none where nothing was recorded.

    started_at: seconds of the epoch; hipprof may have written beside the program instead.
    """
    if profiler == "rocprofv3":
        return [folder] if any(folder.rglob("*_trace.csv")) else []
    if profiler == "hipprof" and not any(folder.glob("*.json")):
        for path in Path.cwd().glob("result_*.json"):
            if path.stat().st_mtime >= started_at and _is_trace(path):
                shutil.move(path, folder / path.name)
    found = sorted(folder.glob(_FILES[profiler]))
    # What launches ranks imports torch, too, and is none.
    ranks = [path for path in found if path.name.startswith(RANK)]
    return ranks or found


def _is_trace(path: Path) -> bool:
    """Not a result of the program's own, which programs call so, too."""
    if not path.is_file() or path.is_symlink():
        return False
    try:
        return b'"traceEvents"' in beginning(path)
    except Refusal:
        return False
