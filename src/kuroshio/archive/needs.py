"""Which days a request needs, and from which batch to which they must be in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from .. import calendar as cal
from ..errors import Refusal
from ..request import SHORT_BASELINE_YEARS, Request
from .model import Archive

OUTPUTS_TOGETHER = 24  # days of year smoothed in one go, about
NEVER = np.iinfo(np.int64).max // 2


class Needs:
    """The windows of a request on an archive, and the lifetimes that follow for a batch size.

    doys       days of year of the output
    order      days of year to compute, in the order of the walk
    averaged   (output, width) template days whose mean an output is
    axis       day numbers: the archive's, or with gap filling every day of the series
    windows    calendar.Windows of `order`, with steps on the axis
    entry_*    a time index of a piece each: its piece, and its step on the axis (-1: not wanted)
    boxes      (piece, dimension, 2) first and last-plus-one index in every cell dimension
    """

    def __init__(
        self, archive: Archive, request: Request, years_per_word: int,
        windows: Callable[[np.ndarray, np.ndarray], cal.Windows] | None = None,
    ) -> None:  # fmt: skip
        """windows(axis, order) makes other windows than those of the request, maybe of no day."""
        self.archive, self.request = archive, request
        if windows is None:
            _check_baseline(archive, request)
        length = cal.template_length(archive.calendar)
        self.doys = request.doys or tuple(range(1, length + 1))
        self.averaged = days_averaged(self.doys, request.smooth_width, length)
        needed = np.unique(self.averaged)
        leap_day_from_neighbours = archive.calendar == "standard" and request.feb29 == "mean"
        self.leap_day = leap_day_from_neighbours and cal.LEAP_DAY in needed
        if self.leap_day:
            neighbours = [cal.LEAP_DAY - 1, cal.LEAP_DAY + 1]
            needed = np.setdiff1d(np.union1d(needed, neighbours), [cal.LEAP_DAY])
        self.order = _walk(needed, length)

        days = archive.days
        # With gap filling a missing day is a row like any other, so the axis has no holes.
        self.axis = np.arange(days[0], days[-1] + 1) if request.max_pad else days
        self.windows = (
            windows(self.axis, self.order)
            if windows
            else cal.windows(
                self.axis,
                archive.calendar,
                _years_with_data(archive, request),
                request.half_width,
                self.order,
                years_per_word,
            )
        )
        if windows is None:
            self._check_overlap()
        self._first, self._last = self._positions()
        self._place = self._places(length)

        sizes = np.fromiter((len(p.steps) for p in archive.pieces), np.int64, len(archive.pieces))
        steps = np.fromiter(
            (s for p in archive.pieces for s in p.steps), np.int64, int(sizes.sum())
        )
        self.entry_piece = np.repeat(np.arange(sizes.size), sizes)
        self.entry_edges = np.concatenate([[0], sizes.cumsum()])
        self.entry_step = np.where(steps >= 0, np.searchsorted(self.axis, days)[steps], cal.MISSING)
        self.present = np.zeros(self.axis.size, bool)
        self.present[self.entry_step[self.entry_step >= 0]] = True

        shape = archive.grid.shape
        ends = (end for p in archive.pieces for s in p.box for end in (s.start, s.stop))
        self.boxes = np.fromiter(ends, np.int64).reshape(sizes.size, len(shape), 2)
        if not shape:
            self.boxes = np.tile([0, 1], (sizes.size, 1, 1))

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What the user should know of the years that there are."""
        return _warnings_of(self.archive, self.request)

    @cached_property
    def days_missing(self) -> int:
        """Days within the windows, counted for each, that the archive lacks."""
        return int(self.windows.size.sum() - (self.windows.steps >= 0).sum())

    # -- batches, and the lifetimes that follow from them ------------------------------------------

    def batches(self, days: int, output_days: int) -> np.ndarray:
        """The batch of each place of the walk: runs of at most `days` days of year.

        Where they can, batches end with what completes a chunk of `output_days` outputs, so that
        chunks need not be kept half done.
        """
        chunks = np.arange(len(self.doys)) // output_days
        finished = self._place[self.averaged].max(axis=1)
        completing = np.full(int(chunks[-1]) + 1, -1)
        np.maximum.at(completing, chunks, finished)
        starts = np.zeros(self.order.size + 1, bool)
        starts[completing + 1] = True
        edge = self.order.size
        batch = np.zeros(self.order.size, np.int64)
        while edge > 0:
            earliest = max(edge - days, 0)
            good = np.flatnonzero(starts[earliest:edge])
            edge = earliest + (int(good[0]) if good.size else 0)
            batch[edge] = 1
        return batch.cumsum() - 1

    def of_steps(self, batch: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """First and last batch that needs each step in memory (NEVER and -1: none)."""
        first = self.of_members(batch)
        last = np.where(self._last >= 0, batch[self._last], -1)
        pad = self.request.max_pad
        if pad:
            # A day is filled when first needed, from neighbours that must be there by then.
            member = first.copy()
            for shift in range(-pad, pad + 1):
                source = np.arange(self.axis.size) + shift
                good = (source >= 0) & (source < self.axis.size)
                there = good & (member < NEVER)
                np.maximum.at(last, source[there], member[there])
                np.minimum.at(first, source[good], member[good])
        return first, last

    def of_members(self, batch: np.ndarray) -> np.ndarray:
        """First batch in which each step belongs to a window."""
        inside = self._last >= 0
        return np.where(inside, batch[np.where(inside, self._first, 0)], NEVER)

    def of_pieces(self, first: np.ndarray) -> np.ndarray:
        """The batch that loads each piece, given the first of each step."""
        result = np.full(len(self.archive.pieces), NEVER)
        good = self.entry_step >= 0
        np.minimum.at(result, self.entry_piece[good], first[self.entry_step[good]])
        return result

    def arrival(self, piece_first: np.ndarray, first: np.ndarray) -> np.ndarray:
        """The batch from which on each step is in memory: a piece brings all its steps along."""
        result = first.copy()
        good = self.entry_step >= 0
        np.minimum.at(result, self.entry_step[good], piece_first[self.entry_piece[good]])
        return result

    def of_results(
        self, batch: np.ndarray, output_days: int
    ) -> tuple[dict[int, int], dict[int, int], np.ndarray]:
        """First and last batch of each template day's result, and when each output is handed over.

        That is some batches after it is complete, with the outputs of others: whole chunks of
        `output_days`, and with smoothing more, for longer runs read less of what is around them.
        The outputs of a chunk are then never parted: their sums depend on each other.
        """
        days = np.flatnonzero(self._place >= 0)
        ready = np.where(self._place >= 0, batch[self._place], -1)
        run = OUTPUTS_TOGETHER if self.request.smooth_width > 1 else output_days
        together = max(run // int(np.bincount(batch).max()), 1)
        complete = ready[self.averaged].max(axis=1)
        if self.request.smooth_width > 1:
            chunk = np.arange(complete.size) // output_days
            complete = np.maximum.reduceat(complete, np.flatnonzero(np.diff(chunk, prepend=-1)))[
                chunk
            ]
        finished = np.minimum((complete // together + 1) * together - 1, batch[-1])
        end = ready.copy()
        if self.leap_day:
            end[[cal.LEAP_DAY - 1, cal.LEAP_DAY + 1]] = ready[cal.LEAP_DAY]
        np.maximum.at(end, self.averaged, finished[:, None])
        return {int(d): int(ready[d]) for d in days}, {int(d): int(end[d]) for d in days}, finished

    def _places(self, length: int) -> np.ndarray:
        """Place in the walk at which each template day's result is known; -1: not needed."""
        place = np.full(length + 1, -1)
        place[self.order] = np.arange(self.order.size)
        if self.leap_day:
            place[cal.LEAP_DAY] = max(place[cal.LEAP_DAY - 1], place[cal.LEAP_DAY + 1])
        return place

    def _positions(self) -> tuple[np.ndarray, np.ndarray]:
        """First and last place in the walk of the windows that hold each step; none: last is -1."""
        flat = self.windows.steps.reshape(self.order.size, -1)
        place = np.broadcast_to(np.arange(self.order.size)[:, None], flat.shape)
        inside = flat >= 0
        first = np.full(self.axis.size, NEVER)
        last = np.full(self.axis.size, -1)
        np.minimum.at(first, flat[inside], place[inside])
        np.maximum.at(last, flat[inside], place[inside])
        return first, last

    def _check_overlap(self) -> None:
        if (self.windows.steps >= 0).any():
            return
        name, days = self.archive.calendar, self.archive.days
        first, last = (cal.iso_date(name, int(days[i])) for i in (0, -1))
        raise Refusal(
            f"No day of the baseline {self.request.baseline[0]}-{self.request.baseline[1]} and the "
            f"days of year asked for is in the data, which runs from {first} to {last}. Choose "
            "another baseline or other days."
        )


def days_averaged(doys: Sequence[int], width: int, length: int) -> np.ndarray:
    """(doy, width) the template days whose mean each day of year is, of a year of `length`."""
    if width > length:
        raise Refusal(f"The smoothing width {width} is longer than the year ({length} days).")
    half = (width - 1) // 2
    return (np.asarray(doys)[:, None] - 1 + np.arange(-half, half + 1)) % length + 1


def _walk(doys: np.ndarray, length: int) -> np.ndarray:
    """The days in circular order, starting after the longest stretch that is not needed."""
    if doys.size == length:
        return doys
    gaps = np.diff(doys, append=doys[0] + length)
    return np.roll(doys, -(int(np.argmax(gaps)) + 1))


def _years_of(archive: Archive) -> tuple[int, int]:
    """First and last year of the data."""
    years, _ = cal.year_and_dayofyear(archive.calendar, archive.days[[0, -1]])
    return int(years[0]), int(years[1])


def _years_with_data(archive: Archive, request: Request) -> tuple[int, int]:
    """The baseline without years that lie before or after the data: they have no centres."""
    first, last = _years_of(archive)
    return max(request.baseline[0], first), min(request.baseline[1], last)


def _check_baseline(archive: Archive, request: Request) -> None:
    first, last = _years_of(archive)
    if request.baseline[1] < first or request.baseline[0] > last:
        raise Refusal(
            f"The baseline {request.baseline[0]}-{request.baseline[1]} is not in the data, which "
            f"covers the years {first} to {last}. Give --baseline FIRST LAST within them."
        )


def _warnings_of(archive: Archive, request: Request) -> tuple[str, ...]:
    found: list[str] = []
    years, _ = cal.year_and_dayofyear(archive.calendar, archive.days)
    inside = np.unique(years[(years >= request.baseline[0]) & (years <= request.baseline[1])])
    if inside.size < request.years:
        found.append(
            f"The data covers {inside.size} of the {request.years} baseline years "
            f"{request.baseline[0]}-{request.baseline[1]}; "
            "the pools hold the days of those only."
        )
    if inside.size < SHORT_BASELINE_YEARS:
        years_text = "1 year" if inside.size == 1 else f"{inside.size} years"
        found.append(
            f"A baseline of {years_text} is short: thresholds need about 30 "
            f"(at least {SHORT_BASELINE_YEARS}) to be steady."
        )
    return tuple(found)
