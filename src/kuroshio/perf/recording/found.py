"""The traces among what a profiler has written, in a folder that was empty before."""

from __future__ import annotations

import shutil
from pathlib import Path

_FILES = {"torch": "trace*.json.gz", "nsys": "*.sqlite", "hipprof": "*.json", "rocprof": "*.json"}


def traces(profiler: str, folder: Path, started_at: float) -> list[Path]:
    """Files, or the folder of rocprofv3's tables; in order, none where nothing was recorded.

    started_at: seconds of the epoch; hipprof may have written beside the program instead.
    """
    if profiler == "rocprofv3":
        return [folder] if any(folder.rglob("*_trace.csv")) else []
    if profiler == "hipprof" and not any(folder.glob("*.json")):
        for path in Path.cwd().glob("result_*.json"):
            if path.stat().st_mtime >= started_at:
                shutil.move(path, folder / path.name)
    return sorted(folder.glob(_FILES[profiler]))
