"""Days, years and days of year in integers, for every calendar, and who belongs to which window.

A *day* is one int64 that counts days in its calendar. A *day of year* (`dayofyear`) is a position
on the calendar's template year: for the standard calendar a leap year, so that 29 February is 60
and 1 March is 61 in every year (Hobday et al. 2016); 365, 360 and 366 fixed days for the others.

Membership of the climatology's windows is decided here, once, for all cells: `windows` turns
(days, baseline, half width) into a table of archive steps, and the kernels never see a calendar.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# Name in the CF time coordinate -> ours. Before 1582 the mixed Gregorian calendar differs from the
# proleptic one by days that no daily archive of observations or scenarios reaches.
CALENDARS = {
    "standard": "standard",
    "gregorian": "standard",
    "proleptic_gregorian": "standard",
    "noleap": "noleap",
    "365_day": "noleap",
    "all_leap": "all_leap",
    "366_day": "all_leap",
    "360_day": "360_day",
}

_LEAP = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_MONTHS = {
    "standard": _LEAP,
    "all_leap": _LEAP,
    "noleap": (31, 28, *_LEAP[2:]),
    "360_day": (30,) * 12,
}
LEAP_DAY = 60  # 29 February on the standard template
MISSING = -1  # a step that does not exist


_EPOCH = 719_162  # days from 1 January of year 1 to 1 January 1970


def template_length(calendar: str) -> int:
    """Days of the template year: 366, 366, 365 or 360."""
    return sum(_MONTHS[calendar])


def month_day(calendar: str, dayofyear: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Month and day of month, int64 each, of 1-based days of the template year."""
    ends = np.cumsum(_MONTHS[calendar])
    month = np.searchsorted(ends, np.asarray(dayofyear), side="left")
    starts = np.concatenate([[0], ends])[month]
    return month + 1, np.asarray(dayofyear) - starts


def is_leap(year: np.ndarray | int) -> np.ndarray:
    """Whether a year of the (proleptic) Gregorian calendar has a 29 February."""
    year = np.asarray(year)
    return (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))


def day_number(calendar: str, year: np.ndarray | int, dayofyear: np.ndarray | int) -> np.ndarray:
    """The day (int64) of a 1-based day of the template year, counted from 1 January 1970.

    Day 60 of a standard year that has no 29 February does not exist; asking for it is a defect of
    the caller and gives 1 March.
    """
    year = np.asarray(year, np.int64)
    dayofyear = np.asarray(dayofyear, np.int64)
    if calendar != "standard":
        return (year - 1970) * template_length(calendar) + dayofyear - 1
    ordinal = dayofyear - ((dayofyear > LEAP_DAY) & ~is_leap(year))
    return _days_before_year(year) - _EPOCH + ordinal - 1


def year_and_dayofyear(calendar: str, days: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The inverse of `day_number`: year and 1-based day of the template year, int64 each."""
    days = np.asarray(days, np.int64)
    if calendar != "standard":
        year, day = np.divmod(days, template_length(calendar))
        return year + 1970, day + 1
    dates = days.astype("datetime64[D]")
    year = dates.astype("datetime64[Y]").astype(np.int64) + 1970
    ordinal = (dates - dates.astype("datetime64[Y]")).astype(np.int64) + 1
    return year, ordinal + ((ordinal >= LEAP_DAY) & ~is_leap(year))


def iso_date(calendar: str, day: int) -> str:
    """YYYY-MM-DD of a day, for messages and attributes."""
    year, dayofyear = year_and_dayofyear(calendar, np.array([day]))
    month, dom = month_day(calendar, dayofyear)
    return f"{int(year[0]):04d}-{int(month[0]):02d}-{int(dom[0]):02d}"


def _days_before_year(year: np.ndarray) -> np.ndarray:
    """Days from 1 January of year 1 to 1 January of `year` (proleptic Gregorian)."""
    before = year - 1
    return before * 365 + before // 4 - before // 100 + before // 400


@dataclass(frozen=True)
class Windows:
    """Who belongs to the window of each day of year: the whole calendar in one table.

    `steps[i, w, b]` is the archive step of the b-th year of the w-th *word* of day `doys[i]`, or
    MISSING. A word is what one offset from the centre (or, with more years than a word holds, a
    share of its years) contributes; the words of a window rise in time, so that the next day's
    window is this one less its first offset and plus a new one. `size` counts the days that belong
    to the pool whether or not the archive has them.
    """

    doys: np.ndarray  # int64 (doy,)
    steps: np.ndarray  # int32 (doy, word, year)
    size: np.ndarray  # int64 (doy,)
    words_per_offset: int


def windows(
    days: np.ndarray,
    calendar: str,
    baseline: tuple[int, int],
    half_width: int,
    doys: np.ndarray,
    years_per_word: int,
) -> Windows:
    """The windows of `doys` (Hobday et al. 2016, as rules 1 and 2 of docs/conventions.md).

    Centres are the days of the baseline years with that day of year which lie within the series
    (first to last of `days`). A window is the consecutive calendar days within `half_width` of a
    centre that lie within the series, in the baseline or not.
    """
    doys = np.asarray(doys, np.int64)
    years = np.arange(baseline[0], baseline[1] + 1)
    words_per_offset = -(-years.size // years_per_word)
    per_word = -(-years.size // words_per_offset)

    centre = day_number(calendar, years, doys[:, None])  # (doy, year)
    exists = (centre >= days[0]) & (centre <= days[-1])
    if calendar == "standard":
        exists &= (doys[:, None] != LEAP_DAY) | is_leap(years)
    offsets = np.arange(-half_width, half_width + 1)
    day = centre[:, None, :] + offsets[:, None]  # (doy, offset, year)
    exists = exists[:, None, :] & (day >= days[0]) & (day <= days[-1])
    place = np.minimum(np.searchsorted(days, day), days.size - 1)
    steps = np.where(exists & (days[place] == day), place, MISSING).astype(np.int32)

    full = words_per_offset * per_word
    padded = np.full((doys.size, offsets.size, full), MISSING, np.int32)
    padded[:, :, : years.size] = steps
    words = padded.reshape(doys.size, offsets.size * words_per_offset, per_word)
    return Windows(doys, words, exists.sum(axis=(1, 2)), words_per_offset)
