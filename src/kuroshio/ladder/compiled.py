"""What compilers make of the rungs' kernels for devices that are not at hand: compiled.json.

`benchmarks/ladder_compiled.py` makes the file; a test says whether it is what compilers say now.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .problem import SCALES
from .rungs import heap, registers
from .rungs.sums import CORRECTED, PUBLISHED

FILE = Path(__file__).with_name("compiled.json")
_PROBLEM = SCALES["season"]
_LIST = registers.macros(_PROBLEM)

# By what they show: the module, and the macros of its text.
TEXTS: Mapping[str, tuple[str, Mapping[str, int | str]]] = {
    "heap": (heap.NAME, heap.macros(_PROBLEM)),
    "registers": (registers.NAME, _LIST),
    "registers, with a branch": (registers.NAME, registers.macros(_PROBLEM, branchy=True)),
    "registers, bounds 256, 4": (registers.NAME, {**_LIST, "BOUNDS": "256, 4"}),
    "registers, list of 67": (registers.NAME, {**_LIST, "LARGEST": 67}),
    "registers, list of 67, bounds 256, 4": (
        registers.NAME, {**_LIST, "LARGEST": 67, "BOUNDS": "256, 4"}
    ),
    "direct, as published": ("direct", PUBLISHED.macros()),
    "direct, corrected": ("direct", CORRECTED.macros()),
    "sliding, as published": ("sliding", PUBLISHED.macros()),
    "sliding, corrected": ("sliding", CORRECTED.macros()),
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Row:
    """A kernel on an architecture, in blocks of 256 threads."""

    text: str  # of TEXTS
    kernel: str
    architecture: str
    compiler: str
    registers: int  # a thread
    scalar_registers: int  # AMD: a wavefront
    stack_bytes: int  # a thread: scratch, stack frame
    spills: int  # NVIDIA: bytes stored and loaded; AMD: registers
    shared_bytes: int  # a block
    waves: int  # resident on a multiprocessor, by device.occupancy
    waves_a_simd: float
    occupancy: float  # waves, of the most there can be
    limited_by: str


def rows() -> list[Row]:
    """All that the file has, texts in the order of TEXTS."""
    return [Row(**each) for each in _read()["kernels"]]


def versions() -> dict[str, str]:
    """Of the compilers that the file was made with."""
    return dict(_read()["compilers"])


def _read() -> dict:
    found: dict = json.loads(FILE.read_text(encoding="utf-8"))
    return found
