"""Kernels by name: how often, how long, how steadily."""

from __future__ import annotations

from dataclasses import dataclass

from .spread import Spread


@dataclass(frozen=True)
class Kernel:
    """All runs of one name. Times are ns; None where the trace does not tell.

    short      the name without arguments and template arguments
    share      of the time of all kernels, summed over their runs
    jitter     p90 over median; None of fewer runs than can tell
    registers, grid, block   of its runs when all are alike
    """

    name: str
    short: str
    communication: bool
    times: Spread
    share: float
    jitter: float | None
    registers: int | None
    grid: tuple[int, int, int] | None
    block: tuple[int, int, int] | None
    shared: int | None  # bytes


@dataclass(frozen=True)
class Kernels:
    """By name, the most time first.

    runs, total    of all kernels; total is the sum of their times, ns
    tiny_below     kernels shorter than this many ns are called tiny
    tiny_runs, tiny_time   of these; communication is none
    """

    kernels: tuple[Kernel, ...]
    runs: int
    total: int
    tiny_below: int
    tiny_runs: int
    tiny_time: int
