"""What readers of tables share: names by number, and events that are sound and numbered apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from ...errors import Refusal
from .events import ABSENT, Column, Events, joined

_APART = 60 * 10**9  # ns without any process that one run may have
_LARGEST_NS = 1 << 62  # 146 years
LONGEST_NS = 366 * 86_400 * 10**9  # of an event
_LARGEST_NUMBER = 1 << 40  # of a correlation; sums of as many as there are processes fit
MOST_DEVICES = 1024  # of a machine; each is looked at on its own
MOST_EVENTS = 30_000_000  # that a table is made of: some 10 GB


def sound(events: Events) -> tuple[Events, tuple[str, ...]]:
    """In order, without those whose times cannot be; and what was left out, a sentence each."""
    # A profiler writes 0 where it took no time.
    timeless = (events.start == ABSENT) | (events.end == ABSENT)
    timeless |= (events.start == 0) & (events.end == 0)
    backwards = ~timeless & (events.end < events.start)
    beyond = ~timeless & ~backwards & _beyond(events.start, events.end)
    notes = []
    if number := int(beyond.sum()):
        notes.append(
            f"Of {number:,} events the times cannot be: a century from the clock's beginning, or "
            "longer than a year; they are left out"
        )
    if number := int(backwards.sum()):
        notes.append(f"Of {number:,} events the end is before the start; they are left out")
    if number := int(timeless.sum()):
        notes.append(f"Of {number:,} events the times were not recorded; they are left out")
    if notes:
        events = events[~(backwards | timeless | beyond)]
    return events.in_order(), tuple(notes)


def _beyond(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Which are of no clock: sums and differences of the others do not overflow."""
    far = (start <= -_LARGEST_NS) | (end >= _LARGEST_NS)
    # The length is not asked of those that are far: it would overflow.
    return far | (np.where(far, 0, end) - np.where(far, 0, start) > LONGEST_NS)


def together(processes: Iterable[Events]) -> Events:
    """Of several processes: each counts its own correlations, so they are numbered apart."""
    parts, first = [], 0
    for events in processes:
        there = events.correlation != ABSENT
        if there.any():
            numbers = events.correlation
            if numbers.max() > _LARGEST_NUMBER:
                numbers = np.unique(numbers, return_inverse=True)[1]
            moved = np.where(there, numbers + first, ABSENT)
            first = int(moved.max()) + 1
            events = replace(events, correlation=moved)
        parts.append(events)
    return joined(parts)


def check_one_run(path: Path, parts: Iterable[Events]) -> None:
    """A Refusal where most of the time is between processes: then they are of several runs.

    A profiler adds to a folder that it wrote before, and a clock begins anew with the machine.
    """
    spans = [
        (int(events.start[whole].min()), int(events.end[whole].max()))
        for events in parts
        if (whole := (events.start > 0) & (events.end >= events.start)).any()
    ]
    between = longest = until = 0
    for start, end in sorted(spans):
        if until and start > until:
            between, longest = between + start - until, max(longest, start - until)
        until = max(until, end)
    covered = until - min(spans)[0] - between if spans else 0
    if between > max(covered, _APART):
        raise Refusal(
            f"{path} holds several runs: between their processes nothing was recorded for up to "
            f"{longest / 1e9:,.0f} s. Give the files of one run, in a folder of their own."
        )


def fitting(numbers: np.ndarray, kind: type = np.int32) -> np.ndarray:
    """Whole numbers in a narrower column; ABSENT for those that do not fit."""
    limits = np.iinfo(kind)
    fits = (numbers >= limits.min) & (numbers <= limits.max)
    return np.where(fits, numbers, ABSENT).astype(kind)


def named(
    keys: np.ndarray, texts: Mapping[int, str], unknown: str = "unnamed"
) -> tuple[tuple[str, ...], np.ndarray]:
    """Names, each once, and for each key the number of its name among them."""
    found, codes = np.unique(keys, return_inverse=True)
    names: dict[str, int] = {}
    numbers = [names.setdefault(texts.get(key, unknown), len(names)) for key in found.tolist()]
    return tuple(names), np.array(numbers, np.int32)[codes]


def as_texts(numbers: np.ndarray) -> Column:
    """Whole numbers as an attribute that only one format knows."""
    found, codes = np.unique(numbers, return_inverse=True)
    codes = np.where(numbers == ABSENT, ABSENT, codes)
    return Column(codes.astype(np.int32), tuple(map(str, found.tolist())))
