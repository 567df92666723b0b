"""What every reader of a table does last: events without a sound time go, and processes part."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from .events import ABSENT, Events, joined

MOST_EVENTS = 30_000_000  # that a table is made of: some 10 GB


def sound(events: Events) -> tuple[Events, tuple[str, ...]]:
    """In order, without those whose times cannot be; and what was left out, a sentence each."""
    # A profiler writes 0 where it took no time.
    timeless = (events.start == ABSENT) | (events.end == ABSENT)
    timeless |= (events.start == 0) & (events.end == 0)
    backwards = ~timeless & (events.end < events.start)
    notes = []
    if number := int(backwards.sum()):
        notes.append(f"{number:,} events that end before they start; they are left out")
    if number := int(timeless.sum()):
        notes.append(f"when {number:,} events were, which have no times; they are left out")
    if notes:
        events = events[~(backwards | timeless)]
    return events.in_order(), tuple(notes)


def together(processes: Iterable[Events]) -> Events:
    """Of several processes: each counts its own correlations, so they are numbered apart."""
    parts, first = [], 0
    for events in processes:
        there = events.correlation != ABSENT
        if there.any():
            moved = np.where(there, events.correlation + first, ABSENT)
            first = int(moved.max()) + 1
            events = replace(events, correlation=moved)
        parts.append(events)
    return joined(parts)


def fitting(numbers: np.ndarray, kind: type = np.int32) -> np.ndarray:
    """Whole numbers in a narrower column; ABSENT for those that do not fit."""
    limits = np.iinfo(kind)
    fits = (numbers >= limits.min) & (numbers <= limits.max)
    return np.where(fits, numbers, ABSENT).astype(kind)
