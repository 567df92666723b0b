"""CF time coordinates as whole seconds: the dates of an archive come from here, never from names.

A time is an int64 count of seconds since 1970-01-01 00:00 in its own calendar; its day is
`time // 86400`, the number that `calendar.day_number` gives for that date.
"""

from __future__ import annotations

import re

import numpy as np

from .. import calendar as cal
from ..errors import Refusal

DAY_S = 86_400
_UNIT_S = {
    **dict.fromkeys(("d", "day", "days"), DAY_S),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3_600),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), 60),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1),
}
_SUBSECOND = {
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds"), 1_000),
    **dict.fromkeys(("us", "microsecond", "microseconds"), 1_000_000),
    **dict.fromkeys(("ns", "nanosecond", "nanoseconds"), 1_000_000_000),
}
_SINCE = re.compile(r"^\s*([A-Za-z]+)\s+since\s+(\S.*?)\s*$", re.IGNORECASE)
_DATE = re.compile(
    r"^(\d{1,4})-(\d{1,2})-(\d{1,2})"
    r"(?:[T\s]+(\d{1,2})(?::(\d{1,2}))?(?::(\d{1,2})(?:\.\d*)?)?)?"
    r"\s*(?:Z|UTC|GMT|[+-]?0{1,2}(?::?0{1,2})?)?$",
    re.IGNORECASE,
)
_GREGORIAN_REFORM = 15821015
_LATEST_S = 1e15  # thirty million years: a fill value
_understood: dict[tuple[str, str | None], tuple[int, int, np.int64]] = {}  # time units met so far


def is_time_units(units: object) -> bool:
    """Whether an attribute reads like 'days since 1978-01-01 12:00:00'."""
    return isinstance(units, str) and _SINCE.match(units) is not None


def calendar_name(name: object, origin: str) -> str:
    """Our name for a CF calendar attribute (None: the CF default), or a refusal."""
    key = "standard" if name is None or name == "" else str(name).strip().lower()
    if key not in cal.CALENDARS:
        raise Refusal(
            f"The calendar of {origin} is {name!r}. Allowed are {', '.join(cal.CALENDARS)}. "
            "Convert the time coordinate, for example with xarray's convert_calendar or "
            "cdo setcalendar."
        )
    return cal.CALENDARS[key]


def seconds(values: np.ndarray, units: str, calendar: object, origin: str) -> np.ndarray:
    """Times as int64 seconds since 1970-01-01 in their calendar, fractions rounded.

    values  numbers in `units` ('days since ...'), any shape; flattened
    origin  what to call the source in a refusal: for missing values and units that are no date
    """
    values = np.asarray(values).reshape(-1)
    if values.dtype.kind not in "iuf":
        raise Refusal(f"The time coordinate of {origin} holds {values.dtype} and not numbers.")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise Refusal(
            f"The time coordinate of {origin} has missing values. "
            "Every step needs a date; repair the file or leave it out."
        )
    step, per_second, reference = _units(units, None if calendar is None else str(calendar), origin)
    if values.size == 1 and values.dtype.kind == "f":  # a file a day: no need of arrays
        number = float(values[0]) * step / per_second
        if abs(number) <= _LATEST_S:
            return reference + np.array([round(number)], np.int64)
    if values.dtype.kind == "f":
        offset = np.rint(values.astype(np.float64) * step / per_second)
        if np.abs(offset).max(initial=0) > _LATEST_S:
            worst = values[np.abs(offset).argmax()]
            raise Refusal(
                f"The time coordinate of {origin} has a value of {worst:g} {units}, "
                "which is no date. Repair the file or leave it out."
            )
        return reference + offset.astype(np.int64)
    whole = values.astype(np.int64)
    if np.abs(whole).max(initial=0) > 2**62 // max(step, 1):
        raise Refusal(
            f"The time coordinate of {origin} has values that are no dates. "
            "Repair the file or leave it out."
        )
    return reference + whole * step // per_second


def _units(units: str, calendar: str | None, origin: str) -> tuple[int, int, np.int64]:
    """(seconds a unit, units a second for finer ones, reference in seconds)."""
    known = _understood.get((units, calendar))
    if known is None:
        if len(_understood) > 4096:  # files that each count from their own date
            _understood.clear()
        known = _understood[units, calendar] = _understand(units, calendar, origin)
    return known


def _understand(units: str, calendar: str | None, origin: str) -> tuple[int, int, np.int64]:
    ours = calendar_name(calendar, origin)
    match = _SINCE.match(units)
    if match is None:
        raise Refusal(
            f"The time coordinate of {origin} has the units {units!r}. "
            "They must read like 'days since 1970-01-01'."
        )
    unit, reference = match[1].lower(), match[2]
    if unit not in _UNIT_S and unit not in _SUBSECOND:
        raise Refusal(
            f"The time coordinate of {origin} counts in {unit!r} (units {units!r}), "
            "which have no fixed length. Allowed are days, hours, minutes and seconds; "
            "rewrite the time coordinate first, for example with cdo settunits,days."
        )
    start = _reference(reference, calendar, ours, units, origin)
    return _UNIT_S.get(unit, 1), _SUBSECOND.get(unit, 1), start


def _reference(text: str, calendar: str | None, ours: str, units: str, origin: str) -> np.int64:
    """The date after 'since' in seconds."""
    match = _DATE.match(text)
    if match is not None:
        year, month, dom, hour, minute, second = (int(part or 0) for part in match.groups())
        mixed = calendar is None or str(calendar).strip().lower() in ("standard", "gregorian", "")
        early = year * 10_000 + month * 100 + dom < _GREGORIAN_REFORM
        if 1 <= month <= 12 and 1 <= dom <= 31 and not (mixed and early):
            return _days([(year, month, dom)], ours)[0] * DAY_S + hour * 3600 + minute * 60 + second
    return _reference_by_cftime(calendar, units, origin)


def _reference_by_cftime(calendar: str | None, units: str, origin: str) -> np.int64:
    """For dates before the Gregorian reform, time zones, and spellings we do not know."""
    import cftime

    unit = units.split()[0]
    try:
        # Far enough from the reference to be past the reform of 1582, and a whole number of days.
        per_day = cftime.date2num(
            cftime.datetime(2001, 1, 2, calendar="standard"), f"{unit} since 2001-01-01", "standard"
        )
        late = 2_000 * 366 * per_day
        date = cftime.num2date(late, units, str(calendar or "standard").strip().lower())
    except Exception as error:
        raise Refusal(
            f"The time units {units!r} of {origin} could not be understood ({error}). "
            "They must read like 'days since 1970-01-01'."
        ) from error
    return from_dates(np.array([date]), origin)[0][0] - np.int64(2_000 * 366 * DAY_S)


def from_dates(values: np.ndarray, origin: str) -> tuple[np.ndarray, str]:
    """Seconds (int64) and calendar of decoded times: datetime64 or cftime objects."""
    values = np.asarray(values).reshape(-1)
    if values.dtype.kind == "M":
        if np.isnat(values).any():
            raise Refusal(
                f"The time coordinate of {origin} has missing values. Drop these steps first."
            )
        return values.astype("datetime64[s]").astype(np.int64), "standard"
    try:
        calendar = calendar_name(getattr(values[0], "calendar", None), origin)
        days = _days([(v.year, v.month, v.day) for v in values], calendar)
        of_day = np.array([v.hour * 3600 + v.minute * 60 + v.second for v in values], np.int64)
    except (AttributeError, IndexError) as error:
        raise Refusal(
            f"The time coordinate of {origin} holds {values.dtype} and not dates."
        ) from error
    return days * DAY_S + of_day, calendar


def _days(dates: list[tuple[int, int, int]], calendar: str) -> np.ndarray:
    """Day numbers (int64) of (year, month, day of month)."""
    year, month, dom = np.array(dates, np.int64).T
    template = np.arange(1, cal.template_length(calendar) + 1)
    months, _ = cal.month_day(calendar, template)
    first = np.searchsorted(months, month)
    return cal.day_number(calendar, year, first + dom)
