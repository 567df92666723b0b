"""A finding: what was observed, what shows it, what to verify next, and what it could save."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..timeline.plain import plain

MOST_PLACES = 200  # of a finding, the longest; a page shows them and a person looks at a few


@dataclass(frozen=True)
class Place:
    """A stretch of a trace's time that shows it, from start to end in ns.

    what    is there, in words
    device  where it is one's, None on the host
    trace   which of the traces, from 0
    """

    start: int
    end: int
    what: str
    device: int | None = None
    trace: int = 0

    @property
    def duration(self) -> int:
        return self.end - self.start


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One row of the decision table that holds of these traces. Text is plain, times are ns.

    key         a name for programs, of small letters and hyphens
    title       a few words
    summary     a sentence with the numbers observed
    places      the stretches that show it, the longest; `places_in_all` there are
    names       kernels, operators or calls that it is about, the most time first
    verify      what to look at before anything is changed
    directions  what usually helps
    saves       what is lost to it, of `of`; None where the trace does not tell
    at_most     where other waits may shrink with it: what no change of it saves more than; None
                where that is `saves`
    of          the time that findings are compared with: the span of the work
    how         how `saves` was computed
    cannot_tell what the trace leaves open about it
    figures     the numbers observed, by name
    """

    key: str
    title: str
    summary: str
    verify: tuple[str, ...]
    directions: tuple[str, ...]
    saves: int | None
    at_most: int | None = None
    of: int
    how: str
    places: tuple[Place, ...] = ()
    places_in_all: int = 0
    names: tuple[str, ...] = ()
    cannot_tell: tuple[str, ...] = ()
    figures: Mapping[str, Any] = field(default_factory=dict)

    @property
    def bound(self) -> int | None:
        """ns that it could save at the most."""
        return self.saves if self.at_most is None else self.at_most

    @property
    def speedup(self) -> float | None:
        """So many times as fast without it, at most (Amdahl)."""
        if self.bound is None or self.bound >= self.of:
            return None
        return self.of / (self.of - self.bound)

    def as_json(self) -> dict[str, Any]:
        """Everything, times in ns."""
        said: dict[str, Any] = plain(self)
        return {**said, "speedup_at_most": self.speedup}


def longest(places: Sequence[Place]) -> tuple[Place, ...]:
    """The longest first, at most MOST_PLACES."""
    return tuple(sorted(places, key=lambda each: -each.duration)[:MOST_PLACES])
