"""Several processes in one file: ranks of a job, or one program's.

Databases and folders may hold what all processes of a node did. They are ranks if the file tells
their ranks, or if each has devices of its own and all work at the same time. Where they have one
device's number it is not told whether they share it, or each sees its own under that number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from .events import ABSENT, Events
from .trace import Trace

# Of the shortest process's time on devices, all work at once: ranks begin and end together.
_TOGETHER = 0.5


def ranks_of(trace: Trace) -> list[Trace]:
    """A trace a rank, in order of rank; the trace alone where its processes are none.

    In order of their devices, if ranks are not told. Processes without device work are left out.
    """
    events = trace.events
    whose = events.process[events.on_device]
    numbers = np.unique(whose).tolist()
    if len(numbers) < 2 or numbers[0] == ABSENT:
        return [trace]
    parts = _by_process(events, numbers)
    told = {number: trace.process_ranks.get(number) for number in numbers}
    if None not in told.values() and len(set(told.values())) == len(told):
        order = sorted(numbers, key=lambda number: told[number] or 0)
        how = "by the ranks that they were given"
    elif _devices_apart(list(parts.values())) and _at_once(list(parts.values())):
        order = sorted(numbers, key=lambda number: int(_working(parts[number]).device.min()))
        how = "for each has devices of its own"
    else:
        note = (
            f"The file has {len(numbers)} processes that worked on devices of the same numbers, or "
            "not at once: they are not told apart as ranks"
        )
        return [replace(trace, cannot_tell=(*trace.cannot_tell, note))]
    said = f"The {len(order)} processes of {trace.path.name} are taken for ranks, {how}"
    return [
        replace(
            trace,
            path=trace.path.with_name(f"{trace.path.name} (process {number})"),
            events=parts[number],
            devices={key: trace.devices[key] for key in _devices(parts[number], trace)},
            rank=told[number],
            cannot_tell=(*trace.cannot_tell, said) if number == order[0] else trace.cannot_tell,
        )
        for number in order
    ]


def process_ranks(told: Iterable[tuple[Events, int | None]]) -> dict[int, int]:
    """Of the processes that events are of: the ranks that were told with them."""
    return {
        number: rank
        for events, rank in told
        if rank is not None
        for number in np.unique(events.process).tolist()
        if number != ABSENT
    }


def of_one_job(ranks: Iterable[int | None]) -> int | None:
    """How many ranks there are, where all processes tell the same number."""
    told = set(ranks)
    return told.pop() if len(told) == 1 else None


def _by_process(events: Events, numbers: Sequence[int]) -> dict[int, Events]:
    """Each one's events, in order; sorted once, for a file may have thousands of processes."""
    order = np.argsort(events.process, kind="stable")
    edges = [
        np.searchsorted(events.process, numbers, side=side, sorter=order).tolist()
        for side in ("left", "right")
    ]
    return {
        number: events[order[first:last]]
        for number, first, last in zip(numbers, *edges, strict=True)
    }


def _working(events: Events) -> Events:
    return events[events.on_device]


def _devices(events: Events, trace: Trace) -> list[int]:
    return [key for key in np.unique(_working(events).device).tolist() if key in trace.devices]


def _devices_apart(parts: Sequence[Events]) -> bool:
    """Whether no two have a device's number in common."""
    mine = [np.unique(_working(part).device) for part in parts]
    every = np.concatenate(mine)
    return bool((every != ABSENT).all() and len(np.unique(every)) == len(every))


def _at_once(parts: Sequence[Events]) -> bool:
    working = [_working(part) for part in parts]
    spans = [(int(each.start.min()), int(each.end.max())) for each in working]
    common = min(end for _, end in spans) - max(start for start, _ in spans)
    return common >= _TOGETHER * min(end - start for start, end in spans)
