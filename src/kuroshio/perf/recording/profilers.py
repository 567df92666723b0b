"""Profilers that are programs: how each is asked for a trace that can be read here.

To add one: a `Profiler`. They are tried in this order.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

TORCH = "torch"  # torch.profiler, in the program's own Python: see torch_hook
_PLACES = ("/usr/local/cuda/bin", "/opt/rocm/bin", "/opt/dtk/bin", "/opt/dtk/hip/bin")


@dataclass(frozen=True)
class Profiler:
    """command  from its path, the folder for its files and seconds (None: no limit): the words
    that come before the program's
    limited  whether it can end after some seconds
    source   where it comes from
    """

    name: str
    source: str
    limited: bool
    command: Callable[[str, Path, float | None], list[str]]

    def find(self) -> str | None:
        """Its path, None where it is not installed."""
        return shutil.which(self.name) or shutil.which(self.name, path=os.pathsep.join(_PLACES))


def _nsys(path: str, folder: Path, seconds: float | None) -> list[str]:
    # The program goes on after the seconds: it is waited for, and not ended.
    limit = [] if seconds is None else [f"--duration={seconds:g}", "--kill=none", "--wait=all"]
    return [
        path, "profile", "--trace=cuda,nvtx,osrt", "--sample=none", "--cpuctxsw=none",
        "--export=sqlite", "--force-overwrite=true", f"--output={folder / 'trace'}", *limit,
    ]  # fmt: skip


def _rocprofv3(path: str, folder: Path, seconds: float | None) -> list[str]:
    limit = (
        []
        if seconds is None
        else [
            "--collection-period",
            f"0:{seconds * 1000:.0f}:1",
            "--collection-period-unit",
            "msec",
        ]
    )
    return [
        path, "--runtime-trace", "--output-format", "csv", "--output-directory", str(folder),
        *limit, "--",
    ]  # fmt: skip


def _hipprof(path: str, folder: Path, _: float | None) -> list[str]:
    return [path, "--hip-trace", "--output-type", "0", "-o", str(folder / "trace")]


def _rocprof(path: str, folder: Path, _: float | None) -> list[str]:
    return [path, "--hip-trace", "-d", str(folder / "data"), "-o", str(folder / "trace.csv")]


PROFILERS = (
    Profiler("nsys", "NVIDIA Nsight Systems, part of the CUDA toolkit", True, _nsys),
    Profiler("rocprofv3", "rocprofiler-sdk, part of ROCm from 6.2 on", True, _rocprofv3),
    Profiler("hipprof", "part of Hygon's DTK", False, _hipprof),
    Profiler("rocprof", "part of ROCm up to 6", False, _rocprof),
)
NAMES = (TORCH, *(each.name for each in PROFILERS))


def named(name: str) -> Profiler:
    """The one of this name."""
    return next(each for each in PROFILERS if each.name == name)


def looked_for() -> str:
    """For people: which, and where."""
    return f"{', '.join(each.name for each in PROFILERS)} on the PATH and in {', '.join(_PLACES)}"


def sources() -> str:
    """For people: what there is to install."""
    return "; ".join(f"{each.name} is {each.source}" for each in PROFILERS)
