"""Moments at which a device had nothing to do, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

# A launch takes about so long to arrive at an idle device: shorter holes cannot be told from that.
THRESHOLD = 5_000  # ns


class Cause(StrEnum):
    """By rule; see docs/design/diagnosis.md."""

    READING = "data loading"
    HOST = "host launched late"
    SYNCHRONISATION = "synchronisation"
    ALLOCATION = "allocation"
    COPY = "copy"
    COMMUNICATION = "communication"
    TRACER = "may be the tracer's"
    UNKNOWN = "unknown"


CAUSES = tuple(Cause)


@dataclass(frozen=True)
class Hole:
    """One, from start to end in ns. Rows are of the trace's events; None where there is none.

    who      what the host (or the device) was at: an operator's, a call's, an annotation's name
    before, after   work that ended at its start, and work that begins at its end
    call     that launched `after`
    culprit  the event that `who` names
    """

    device: int
    start: int
    end: int
    cause: Cause
    who: str | None
    before: int
    after: int
    call: int | None
    culprit: int | None

    @property
    def duration(self) -> int:
        return self.end - self.start


@dataclass(frozen=True)
class Sum:
    """So many holes, and their time in ns."""

    count: int
    time: int


@dataclass(frozen=True)
class Gaps:
    """Between a device's work, as columns in order of device and start; rows of events."""

    device: np.ndarray
    start: np.ndarray
    end: np.ndarray
    before: np.ndarray
    after: np.ndarray

    def __len__(self) -> int:
        return len(self.start)

    def __getitem__(self, chosen: np.ndarray) -> Gaps:
        return Gaps(*(getattr(self, name)[chosen] for name in self.__dataclass_fields__))


@dataclass(frozen=True)
class Holes(Sequence[Hole]):
    """All above the threshold; -1 for no row.

    threshold  ns
    brief      holes of the threshold or shorter, whose causes are not asked
    """

    threshold: int
    brief: Sum
    gaps: Gaps
    cause: np.ndarray  # int8, of CAUSES
    call: np.ndarray
    culprit: np.ndarray
    who: np.ndarray  # int32, of `names`
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.gaps)

    def __getitem__(self, at):  # type: ignore[no-untyped-def]
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        gaps, who = self.gaps, int(self.who[at])
        return Hole(
            int(gaps.device[at]), int(gaps.start[at]), int(gaps.end[at]),
            CAUSES[self.cause[at]], self.names[who] if who >= 0 else None,
            int(gaps.before[at]), int(gaps.after[at]), _row(self.call[at]),
            _row(self.culprit[at]),
        )  # fmt: skip

    def __iter__(self) -> Iterator[Hole]:
        return (self[at] for at in range(len(self)))

    def longest(self, most: int) -> list[Hole]:
        """The longest first, at most so many."""
        order = np.argsort(self.gaps.start - self.gaps.end, kind="stable")[:most]
        return [self[at] for at in order.tolist()]

    @property
    def by_cause(self) -> dict[Cause, Sum]:
        """Of each cause that occurs, the most time first."""
        length = self.gaps.end - self.gaps.start
        found = {
            cause: Sum(int(mine.sum()), int(length[mine].sum()))
            for number, cause in enumerate(CAUSES)
            if (mine := self.cause == number).any()
        }
        return dict(sorted(found.items(), key=lambda each: -each[1].time))


def _row(row: np.integer) -> int | None:
    return None if row < 0 else int(row)
