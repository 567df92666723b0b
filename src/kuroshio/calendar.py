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
    return _days_before_year(year) - _days_before_year(np.int64(1970)) + ordinal - 1


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
