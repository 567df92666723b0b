"""The command line in this process (fast) or as a real one (for signals, pipes and exit codes)."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from archive_files import FILL, write_series
from kuroshio.cli import main

YEARS = ("--baseline", "1991", "1993")  # of the fixture `archive`


@dataclass
class Result:
    status: int
    out: str
    err: str


def run_here(*arguments: object) -> Result:
    """main() with its streams caught."""
    out, err = io.StringIO(), io.StringIO()
    status = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main([str(a) for a in arguments])
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else int(end.code is not None)
    return Result(status, out.getvalue(), err.getvalue())


def start(*arguments: object, code: str = "", **options: Any) -> subprocess.Popen:
    """`kuroshio` as a process, leader of its own session; `code` runs in it first."""
    code = f"import sys\nsys.argv[0] = 'kuroshio'\n{code}\nfrom kuroshio.cli import main\nmain()\n"
    paths = os.pathsep.join(p or os.getcwd() for p in sys.path)
    env = {**os.environ, "PYTHONPATH": paths, **options.pop("env", {})}
    env.pop("PYTHONUNBUFFERED", None)  # with it, streams that cannot be flushed go unnoticed
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, env=env, start_new_session=True, **pipes)


def run(*arguments: object, **options: Any) -> Result:
    process = start(*arguments, **options)
    out, err = process.communicate(timeout=100)
    return Result(process.returncode, (out or b"").decode(), (err or b"").decode())


def assert_refused(result: Result, *words: str) -> None:
    """Status 2, one paragraph on standard error that holds the words, and nothing else."""
    assert result.status == 2, result
    assert result.out == ""
    assert result.err.startswith("kuroshio: ")
    assert result.err.endswith("\n")
    assert result.err.count("\n") == 1
    assert "\x1b" not in result.err
    assert len(result.err) > 50  # what came, what is allowed, what to do
    for word in words:
        assert word in result.err


def left_over(folder: Path) -> list[str]:
    """Names in a folder, hidden ones too."""
    return sorted(os.listdir(folder))


def daily_codes(days: int, shape: tuple[int, ...] = (2, 3), seed: int | None = None) -> np.ndarray:
    """Packed temperatures of `days` days with a yearly cycle; the first cell is land."""
    rng = np.random.default_rng(seed)
    cycle = 1500 + 500 * np.cos(np.arange(days) * 2 * np.pi / 365.25)
    values = cycle.reshape(-1, *[1] * len(shape)) + rng.normal(0, 80, (days, *shape))
    values = values.astype("i2")
    values[(slice(None), *[0] * len(shape))] = FILL
    return values


def write_years(path: Path, years: int = 2, **options: Any) -> np.ndarray:
    """So many years of packed days from 1 January 2001 in one file, and its codes."""
    values = daily_codes(years * 365 + years // 4, seed=1)
    write_series(path, values, fill_value=FILL, zlib=True, chunksizes=(50, 2, 3), **options)
    return values


def climatology(source: object, output: Path, *options: object) -> Result:
    """`kuroshio climatology` of the two years that `write_years` makes."""
    return run_here("climatology", source, "--baseline", 2001, 2002, *options, "-o", output)
