"""Kernels by name: how often, how long, how steadily."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from ..traces.events import ABSENT, Events, Kind
from .groups import communicating
from .launches import Links, distinct_rows
from .spread import Spread, spread

# To launch one costs the host about 5 us, and a device some more to begin: less than twice that
# is hardly worth a launch.
TINY = 10_000  # ns
_FEWEST = 10  # runs whose 90th percentile is another than the longest


@dataclass(frozen=True)
class Kernel:
    """All runs of one name. Times are ns; None where the trace does not tell.

    short      the name without arguments and template arguments
    share      of the time of all kernels, summed over their runs
    jitter     p90 over median; None of fewer runs than can tell
    registers, grid, block, shared   of its runs when all are alike
    rows       of its shortest, its middle and its longest run
    """

    name: str
    short: str
    communication: bool
    times: Spread
    share: float
    jitter: float | None
    registers: int | None
    grid: tuple[int, ...] | None
    block: tuple[int, ...] | None
    shared: int | None  # bytes
    rows: tuple[int, int, int]


@dataclass(frozen=True)
class Kernels:
    """By name, the most time first.

    runs, total    of all kernels; total is the sum of their times, ns
    tiny_below     kernels shorter than this many ns are called tiny; communication never is
    tiny_runs, tiny_time   of these
    tiny_launching what their calls took on the host, ns; None where no call is recorded
    """

    kernels: tuple[Kernel, ...]
    runs: int
    total: int
    tiny_below: int
    tiny_runs: int
    tiny_time: int
    tiny_launching: int | None


def kernels_of(events: Events, links: Links) -> Kernels | None:
    """None without kernels."""
    rows = np.flatnonzero(events.kind == Kind.KERNEL)
    if not len(rows):
        return None
    length = events.duration
    rows = rows[np.lexsort((length[rows], events.name[rows]))]
    total = int(length[rows].sum())
    cuts = np.flatnonzero(np.diff(events.name[rows])) + 1
    sends = communicating(events)
    kernels = [
        _kernel(events, mine, length[mine], total, bool(sends[mine[0]]))
        for mine in np.split(rows, cuts)
    ]
    tiny = rows[(length[rows] < TINY) & ~sends[rows]]
    calls = distinct_rows(links.call_of[tiny], len(events))
    return Kernels(
        kernels=tuple(sorted(kernels, key=lambda each: (-each.times.total, each.name))),
        runs=len(rows),
        total=total,
        tiny_below=TINY,
        tiny_runs=len(tiny),
        tiny_time=int(length[tiny].sum()),
        tiny_launching=int(length[calls].sum()) if len(calls) else None,
    )


def _kernel(
    events: Events, rows: np.ndarray, lengths: np.ndarray, total: int, communication: bool
) -> Kernel:
    name = events.named(int(rows[0]))
    times = spread(lengths)
    assert times is not None
    tells = len(rows) >= _FEWEST and times.median > 0
    return Kernel(
        name=name,
        short=short(name),
        communication=communication,
        times=times,
        share=times.total / total if total else 0.0,
        jitter=times.p90 / times.median if tells else None,
        registers=_alike(events.registers[rows]),
        grid=_triple(events.grid[rows]),
        block=_triple(events.block[rows]),
        shared=_alike(events.shared[rows]),
        rows=(int(rows[0]), int(rows[(len(rows) - 1) // 2]), int(rows[-1])),
    )


def _alike(values: np.ndarray) -> int | None:
    first = int(values[0])
    return first if first != ABSENT and (values == first).all() else None


def _triple(values: np.ndarray) -> tuple[int, ...] | None:
    alike = (values == values[0]).all() and (values[0] != ABSENT).all()
    return tuple(values[0].tolist()) if alike else None


def short(name: str) -> str:
    """Without arguments, template arguments and what it returns: at::native::copy_kernel."""
    depth, kept = 0, []
    for letter in _without_arrows(name):
        if letter in "<(":
            depth += 1
        elif letter in ">)":
            depth -= 1
        elif depth <= 0:
            kept.append(letter)
        depth = max(depth, 0)
    words = re.sub(r"::(?=::)", "", "".join(kept)).removesuffix(" const").split()
    return words[-1].strip(":") if words and words[-1].strip(":") else name


def _without_arrows(name: str) -> str:
    """Without what holds brackets that belong to no pair, and names of nameless namespaces."""
    return re.sub(r"\(anonymous namespace\)::|->|<<|operator[<>]+=?", "", name)
