"""torch.profiler put into a program from outside: which programs, and with what environment."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

_HOOK = Path(__file__).parent / "hook"
_ASKED = "import importlib.util as u, sys; sys.exit(u.find_spec('torch') is None)"
_PATIENCE_S = 60.0  # a Python on a cold network disk


@dataclass(frozen=True)
class Limits:
    """Of a recording: optimizer steps before it, and steps and seconds of it; 0: no limit."""

    skip: int = 0
    steps: int = 0
    seconds: float = 0.0


def python_of(program: Sequence[str]) -> str | None:
    """The Python that will run the program: itself, or the one its first line names.

    None where it is no Python program.
    """
    path = shutil.which(program[0])
    if path is None:
        return None
    if _is_python(path):
        return path
    words = _first_line(path)
    if words and Path(words[0]).name == "env":
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        words = [found] if words and (found := shutil.which(words[0])) else []
    return words[0] if words and _is_python(words[0]) else None


def has_torch(python: str) -> bool:
    """Whether that Python can import torch; it is asked, and does not import it."""
    try:
        return (
            subprocess.run(
                [python, "-c", _ASKED], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, timeout=_PATIENCE_S,
            ).returncode == 0
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return False


def environment(folder: Path, limits: Limits) -> dict[str, str]:
    """This process's, with the hook."""
    before = os.environ.get("PYTHONPATH")
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(_HOOK), *([before] if before else [])]),
        "KUROSHIO_RECORD": json.dumps({"folder": str(folder), **asdict(limits)}),
    }


def notes(folder: Path) -> list[str] | None:
    """What the hook had to say, and no longer lies there; None: no process imported torch."""
    files = sorted(folder.glob(".hook-*"))
    said = [file.read_text(encoding="utf-8", errors="replace").splitlines() for file in files]
    for file in files:
        file.unlink()
    return list(dict.fromkeys(line for lines in said for line in lines)) if files else None


def _is_python(path: str) -> bool:
    return re.fullmatch(r"(python|pypy)[\d.]*t?(\.exe)?", Path(path).name) is not None


def _first_line(path: str) -> list[str]:
    """The words after `#!`, none where there are none."""
    try:
        with open(path, "rb") as file:
            line = file.readline(512)
    except OSError:
        return []
    return line[2:].decode(errors="replace").split() if line.startswith(b"#!") else []
