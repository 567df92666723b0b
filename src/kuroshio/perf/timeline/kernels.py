"""Kernels by name: how often, how long, how steadily."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ..traces.events import ABSENT, Events, Kind
from .groups import communicating
from .launches import Links, distinct_rows
from .spread import Spread, spreads_of

# To launch one costs the host about 5 us, and a device some more to begin: less than twice that
# is hardly worth a launch.
TINY = 10_000  # ns
_FEWEST = 10  # runs whose 90th percentile is another than the longest


@dataclass(frozen=True)
class Kernel:
    """All runs of one name. Times are ns; None where the trace does not tell.

    share      of the time of all kernels, summed over their runs
    jitter     p90 over median; None of fewer runs than can tell
    registers, grid, block, shared   of its runs when all are alike
    rows       of its shortest, its middle and its longest run
    """

    name: str
    communication: bool
    times: Spread
    share: float
    jitter: float | None
    registers: int | None
    grid: tuple[int, ...] | None
    block: tuple[int, ...] | None
    shared: int | None  # bytes
    rows: tuple[int, int, int]

    @property
    def short(self) -> str:
        """The name without arguments and template arguments."""
        return short(self.name)  # when it is asked for, since few are, and there may be many


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
    sends = communicating(events)
    kernels = list(_by_name(events, rows, length[rows], total, sends[rows]))
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


def _by_name(
    events: Events, rows: np.ndarray, lengths: np.ndarray, total: int, sends: np.ndarray
) -> Iterator[Kernel]:
    """Of rows in order of name and length. All names at once: there may be as many as runs."""
    first = np.flatnonzero(np.append(True, np.diff(events.name[rows]) != 0))
    counts = np.diff(np.append(first, len(rows)))
    spreads = spreads_of(lengths, first)
    middle, last = rows[first + (counts - 1) // 2], rows[first + counts - 1]
    alike = [
        _alike(column[rows], first, counts)
        for column in (events.registers, events.grid, events.block, events.shared)
    ]
    columns = (rows[first], middle, last, sends[first])
    for row, half, end, communication, times, registers, grid, block, shared in zip(
        *(column.tolist() for column in columns), spreads, *alike, strict=True
    ):
        tells = times.count >= _FEWEST and times.median > 0
        yield Kernel(
            name=events.named(row),
            communication=communication,
            times=times,
            share=times.total / total if total else 0.0,
            jitter=times.p90 / times.median if tells else None,
            registers=registers,
            grid=tuple(grid) if grid else None,
            block=tuple(block) if block else None,
            shared=shared,
            rows=(row, half, end),
        )


def _alike(values: np.ndarray, first: np.ndarray, counts: np.ndarray) -> list[Any]:
    """Of each group of rows the value that all have; None where they differ or it is not told."""
    values = values.reshape(len(values), -1)
    heads = values[first]
    same = (values == np.repeat(heads, counts, axis=0)).all(axis=1)
    told = np.logical_and.reduceat(same, first) & (heads != ABSENT).all(axis=1)
    wanted = heads[:, 0] if heads.shape[1] == 1 else heads
    return [value if there else None for value, there in zip(wanted.tolist(), told, strict=True)]


@lru_cache(1024)  # collectives of few names are asked for one by one
def short(name: str) -> str:
    """Without arguments, template arguments and what it returns: at::native::copy_kernel."""
    depth, kept = 0, []
    for number, part in enumerate(re.split(r"([<(>)])", _without_arrows(name))):
        if number % 2:  # every second one is a bracket
            depth = max(depth + (1 if part in "<(" else -1), 0)
        elif not depth:
            kept.append(part)
    words = re.sub(r"::(?=::)", "", "".join(kept)).removesuffix(" const").split()
    return words[-1].strip(":") if words and words[-1].strip(":") else name


def _without_arrows(name: str) -> str:
    """Without what holds brackets that belong to no pair, and names of nameless namespaces."""
    return re.sub(r"\(anonymous namespace\)::|->|<<|operator[<>]+=?", "", name)
