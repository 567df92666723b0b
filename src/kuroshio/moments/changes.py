"""What a change of the years means in days: which days enter which pool, and which leave it.

A year brings to a day of year the pool of the baseline that is this year alone: the days about its
centre, as far as the series has them, over the year's ends too. The series of a state are the days
from its first to its last; where an update lengthens it, years near its old ends get the days that
their windows lacked. So a state is at any time what one made at once of its days would be.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from .. import calendar as cal
from ..errors import Refusal

CHUNK_DOYS = 24  # days of year changed, and lying in the file, together: as many as a batch has
Span = tuple[int, int]  # first and last day, both included
Totals = dict[int, tuple[int, float]]  # year -> number and sum of the values in its pools


@dataclass(frozen=True)
class Entry:
    """A year's days within `span`, less those it has within `but`, to be added or taken away."""

    year: int
    sign: int
    span: Span
    but: Span | None = None


@dataclass(frozen=True)
class Series:
    """The days of a state: those from `span` that there are, and the years pooled."""

    days: np.ndarray  # int64, rising
    span: Span
    years: tuple[int, ...] = ()


def lengthened(before: Series, days: np.ndarray, calendar: str, half_width: int) -> Series:
    """The series once an archive of these `days` is known, years as they are.

    What a day was to a year that is pooled it stays: one that was missing is missing from now on.
    """
    span = min(before.span[0], int(days[0])), max(before.span[1], int(days[-1]))
    old, outside = before.days, (before.days < days[0]) | (before.days > days[-1])
    kept = old[_settled(old, before, calendar, half_width) | outside]
    new = days[~_settled(days, before, calendar, half_width)]
    return Series(np.union1d(kept, new), span, before.years)


def _settled(days: np.ndarray, series: Series, calendar: str, half_width: int) -> np.ndarray:
    """Which days a pooled year reaches and had its chance to get."""
    found = np.zeros(days.size, bool)
    for year in series.years:
        first, last = reach(year, calendar, half_width)
        found |= (days >= first) & (days <= last)
    return found & (days >= series.span[0]) & (days <= series.span[1])


def reach(year: int, calendar: str, half_width: int) -> Span:
    """The days that the windows of a year reach to."""
    first, after = (int(cal.day_number(calendar, y, 1)) for y in (year, year + 1))
    return first - half_width, after - 1 + half_width


def entries(
    before: Series, after: Series, add: Iterable[int], remove: Iterable[int],
    calendar: str, half_width: int,
) -> list[Entry]:  # fmt: skip
    """All that has to be added and taken away, for `after` with other years."""
    gone = tuple(sorted(remove))
    made = [Entry(year, 1, after.span) for year in sorted(add)]
    for year in before.years:
        first, last = reach(year, calendar, half_width)
        cut = first < before.span[0] or last > before.span[1]
        if year not in gone and cut and before.span != after.span:
            made.append(Entry(year, 1, after.span, but=before.span))
    return [*made, *(Entry(year, -1, before.span) for year in gone)]


@dataclass(frozen=True)
class Tables:
    """The steps of an archive that a change takes, laid out as kernels want them.

    windows   a word an offset for the days added, and one for those taken away
    signs     (word,) of a window's words
    """

    entries: tuple[Entry, ...]
    windows: cal.Windows
    signs: np.ndarray
    places: tuple[tuple[int, int], ...]  # of each entry: its word, its place in the word

    def totals(self, number: np.ndarray, total: np.ndarray) -> list[tuple[int, float]]:
        """Number and sum of the values of each entry, from those of each step."""
        steps = self.windows.steps
        words = self.windows.words_per_offset
        shaped = steps.reshape(steps.shape[0], -1, words, steps.shape[2])
        found = []
        for word, place in self.places:
            mine = shaped[:, :, word, place]
            mine = mine[mine >= 0]
            found.append((int(number[mine].sum()), total[mine].sum().item()))
        return found


def tables(
    wanted: list[Entry], series: Series, axis: np.ndarray, calendar: str, half_width: int,
    order: np.ndarray,
) -> Tables:  # fmt: skip
    """Steps on `axis` (the archive's days) of the windows of `order`.

    Raises Refusal where the series has a day that the archive lacks.
    """
    offsets = np.arange(-half_width, half_width + 1)
    groups = {sign: [e for e in wanted if e.sign == sign] for sign in (1, -1)}
    groups = {sign: group for sign, group in groups.items() if group}
    longest = max(len(group) for group in groups.values())
    shape = order.size, offsets.size, len(groups), longest
    steps = np.full(shape, cal.MISSING, np.int32)
    places = {}
    for word, group in enumerate(groups.values()):
        for place, entry in enumerate(group):
            steps[:, :, word, place] = _steps(entry, series, axis, calendar, order, offsets)
            places[entry] = word, place
    signs = np.tile(np.array(list(groups), np.int64), offsets.size)
    windows = cal.Windows(
        order,
        steps.reshape(order.size, offsets.size * len(groups), longest),
        (steps >= 0).sum(axis=(1, 2, 3)),
        len(groups),
    )
    return Tables(tuple(wanted), windows, signs, tuple(places[entry] for entry in wanted))


def _steps(
    entry: Entry, series: Series, axis: np.ndarray, calendar: str, order: np.ndarray,
    offsets: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """(doy, offset) steps of the days that an entry brings, MISSING where there are none."""
    centre = cal.day_number(calendar, entry.year, order)[:, None]
    day = centre + offsets
    wanted = _within(centre, entry.span) & _within(day, entry.span)
    if entry.but:
        wanted &= ~(_within(centre, entry.but) & _within(day, entry.but))
    if calendar == "standard" and not cal.is_leap(entry.year):
        wanted[order == cal.LEAP_DAY] = False
    wanted &= np.isin(day, series.days)
    place = np.minimum(np.searchsorted(axis, day), axis.size - 1)
    there = axis[place] == day
    if (wanted & ~there).any():
        _refuse(entry.year, day[wanted & ~there], calendar)
    return np.where(wanted, place, cal.MISSING)


def _within(day: np.ndarray, span: Span) -> np.ndarray:
    return (day >= span[0]) & (day <= span[1])


def _refuse(year: int, absent: np.ndarray, calendar: str) -> None:
    absent = np.unique(absent)
    days = "1 day" if absent.size == 1 else f"{absent.size} days"
    raise Refusal(
        f"The windows of {year} reach to {days} of which the state knows and the data given hold "
        f"nothing, the first {cal.iso_date(calendar, int(absent[0]))}. Give the files of these "
        "days as well; all files may be named, only those that are needed are read."
    )


def sizes(series: Series, calendar: str, half_width: int, order: np.ndarray) -> np.ndarray:
    """int64 (doy,): calendar days that belong to each pool, whether or not there is data."""
    ends = np.array(series.span)
    found = np.zeros(order.size, np.int64)
    for year in series.years:
        found += cal.windows(ends, calendar, (year, year), half_width, order, 1).size
    return found


def missing(years: Iterable[int], series: Series, calendar: str) -> Mapping[int, int]:
    """Days of each year that the series lacks, of years that lack any."""
    found = {}
    for year in years:
        first, last = reach(year, calendar, 0)
        inside = int(np.count_nonzero(_within(series.days, (first, last))))
        if inside < last - first + 1:
            found[year] = last - first + 1 - inside
    return found
