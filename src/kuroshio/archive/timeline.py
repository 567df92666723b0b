"""The parts of an archive put together: one grid, one list of days, every day once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from .. import calendar as cal
from ..errors import Refusal
from .layout import Layout
from .model import Archive, Piece
from .timeaxis import DAY_S

DUPLICATES = ("error", "last", "first")
_LONG_STEP_DAYS = 5
_FEW_STEPS = 4
_AGGREGATE = (
    "A climatology per day of year needs one value a day: aggregate first, for example with "
    "xarray's ds.resample(time='1D').mean() or cdo daymean in.nc out.nc."
)


class Part(NamedTuple):
    """A file, a Zarr store or an object: its layout, its dates, and how it is cut into pieces.

    `pieces` takes the archive step of each of the part's time steps (-1: not wanted).
    """

    name: str
    layout: Layout
    seconds: np.ndarray
    pieces: Callable[[Sequence[int]], Iterable[Piece]]


def assemble(
    parts: Sequence[Part], duplicates: str = "error", skipped: Sequence[str] = ()
) -> Archive:
    """One archive of parts given in name order.

    duplicates  'error'; 'last' or 'first' keep the part that comes last or first by name, except
                that a file named *_preliminary gives way to any other
    Refused: differing grids, types, calendars or units; sub-daily, 5-daily and rarer, or no data.
    """
    if duplicates not in DUPLICATES:
        raise Refusal(f"duplicates is {duplicates!r}; it must be one of {', '.join(DUPLICATES)}.")
    parts = [part for part in parts if part.seconds.size]
    if not parts:
        raise Refusal("The archive has no time steps. Give files that hold at least one day.")
    layout = parts[0].layout
    _same_layouts(parts)
    calendar = layout.calendar
    seconds = np.concatenate([part.seconds for part in parts])
    part_of = np.repeat(np.arange(len(parts)), [part.seconds.size for part in parts])
    day_of = seconds // DAY_S
    notes = []
    kept = np.ones(seconds.size, bool)
    order = np.lexsort((part_of, day_of))
    repeated = np.flatnonzero(np.diff(day_of[order]) == 0)
    if repeated.size:
        _refuse_subdaily(parts, part_of, seconds, order, repeated, duplicates, calendar)
        kept = _resolve(parts, part_of, day_of, order, repeated, duplicates, calendar)
        dropped = int((~kept).sum())
        what = (
            "1 step with a duplicate date was"
            if dropped == 1
            else (f"{dropped:,} steps with duplicate dates were")
        )
        notes.append(
            f"{what} dropped: of each date the {duplicates} file by name was kept, preliminary "
            "files giving way to final ones."
        )
    days = np.unique(day_of)
    _refuse_rare(days, calendar)
    absent = int(days[-1] - days[0] + 1 - days.size)
    if absent:
        notes.append(
            f"{absent:,} of the {absent + days.size:,} days from {cal.iso_date(calendar, days[0])} "
            f"to {cal.iso_date(calendar, days[-1])} {'is' if absent == 1 else 'are'} absent and "
            f"count{'s' if absent == 1 else ''} as missing."
        )
    steps = np.where(kept, np.searchsorted(days, day_of), -1)
    bounds = np.cumsum([0, *(part.seconds.size for part in parts)]).tolist()
    ordered = np.argsort(day_of[bounds[:-1]], kind="stable").tolist()
    pieces: list[Piece] = []
    sources = []
    listed = steps.tolist()
    for i in ordered:
        mine = listed[bounds[i] : bounds[i + 1]]
        if max(mine) >= 0:
            sources.append(parts[i].name)
            pieces.extend(parts[i].pieces(mine))
    return Archive(
        layout.variable,
        layout.attrs,
        layout.dtype,
        layout.grid,
        calendar,
        days,
        tuple(pieces),
        tuple(sources),
        tuple(skipped),
        tuple(notes),
    )


def _refuse_subdaily(
    parts: Sequence[Part],
    part_of: np.ndarray,
    seconds: np.ndarray,
    order: np.ndarray,
    repeated: np.ndarray,
    duplicates: str,
    calendar: str,
) -> None:
    """Two times of one day in one file are sub-daily; in two files, if most days are so."""
    one, two = order[repeated], order[repeated + 1]
    differ = seconds[one] != seconds[two]
    inside = differ & (part_of[one] == part_of[two])
    most = np.unique(seconds[one][differ] // DAY_S).size * 2 > np.unique(seconds // DAY_S).size
    if not inside.any() and not (differ.any() and (duplicates == "error" or most)):
        return
    at = int(np.argmax(inside if inside.any() else differ))
    first, second = int(one[at]), int(two[at])
    date = cal.iso_date(calendar, seconds[first] // DAY_S)
    names = dict.fromkeys(parts[part_of[i]].name for i in (first, second))
    clocks = " and ".join(sorted(f"{_clock(seconds[i])}" for i in (first, second)))
    rule = (
        ""
        if inside.any() or most
        else (
            " If these are two versions of one daily mean, say which to keep with --duplicates "
            "last (or first)."
        )
    )
    raise Refusal(
        f"The data are sub-daily: {' and '.join(names)} hold {date} at {clocks}. {_AGGREGATE}{rule}"
    )


def _clock(seconds: np.int64) -> str:
    of_day = int(seconds) % DAY_S
    return f"{of_day // 3600:02d}:{of_day // 60 % 60:02d}"


def _resolve(
    parts: Sequence[Part],
    part_of: np.ndarray,
    day_of: np.ndarray,
    order: np.ndarray,
    repeated: np.ndarray,
    duplicates: str,
    calendar: str,
) -> np.ndarray:
    """Which steps are kept (bool) where dates repeat, or a refusal that names two files."""
    if duplicates == "error":
        first, second = (int(i) for i in (order[repeated[0]], order[repeated[0] + 1]))
        count = np.unique(day_of[order[repeated]]).size
        raise Refusal(
            f"{count} date{'s appear' if count > 1 else ' appears'} more than once, the first, "
            f"{cal.iso_date(calendar, day_of[first])}, in {parts[part_of[first]].name} and in "
            f"{parts[part_of[second]].name}. Remove one, or choose with --duplicates last (or "
            "first), which goes by the order of the file names; a file named *_preliminary always "
            "gives way to the final one."
        )
    final = np.array([not _preliminary(part.name) for part in parts])[part_of]
    rank = part_of if duplicates == "last" else -part_of
    step = np.arange(part_of.size) * (1 if duplicates == "last" else -1)
    by_day = np.lexsort((step, rank, final, day_of))  # the winner of each day comes last
    last = np.append(np.diff(day_of[by_day]) != 0, True)
    kept = np.zeros(part_of.size, bool)
    kept[by_day[last]] = True
    return kept


def _preliminary(name: str) -> bool:
    return os.path.splitext(os.path.basename(name))[0].endswith("_preliminary")


def _refuse_rare(days: np.ndarray, calendar: str) -> None:
    if days.size < _FEW_STEPS:
        return
    step = float(np.median(np.diff(days)))
    if step >= _LONG_STEP_DAYS:
        what = "monthly" if 28 <= step <= 31 else "yearly" if step >= 360 else f"{step:g}-daily"
        raise Refusal(
            f"The data are {what} and not daily: {days.size} dates from "
            f"{cal.iso_date(calendar, days[0])} to {cal.iso_date(calendar, days[-1])}, typically "
            f"{step:g} days apart. A climatology per day of year needs daily values; give the "
            "daily files, or interpolate to days first and say so in your methods "
            "(xarray's ds.resample(time='1D').interpolate() or cdo inttime)."
        )


def _same_layouts(parts: Sequence[Part]) -> None:
    first = parts[0]
    agreed = {first.layout.fingerprint}
    for part in parts:
        if part.layout.fingerprint in agreed:
            continue
        unlike = difference(first.layout, part.layout)
        if unlike:
            raise Refusal(
                f"{first.name} and {part.name} cannot form one archive: {unlike}. "
                f"Give files of one product, or bring them to one {_remedy(unlike)} first."
            )
        agreed.add(part.layout.fingerprint)


def difference(a: Layout | Archive, b: Layout | Archive) -> str:
    """What differs, both values named; '' where the difference is rounding of coordinates."""
    pairs = {
        "the variable is {} against {}": (a.variable, b.variable),
        "the dimensions are {} against {}": (a.grid.dims, b.grid.dims),
        "the grids have the shapes {} against {}": (a.grid.shape, b.grid.shape),
        "the stored types are {} against {}": (a.dtype.name, b.dtype.name),
        "the calendars are {} against {}": (a.calendar, b.calendar),
        "the units are {} against {}": (a.attrs.get("units"), b.attrs.get("units")),
    }
    for text, (one, two) in pairs.items():
        if one != two:
            return text.format(one, two)
    for name in sorted(set(a.grid.coords) & set(b.grid.coords)):
        one, two = a.grid.coords[name].values, b.grid.coords[name].values
        if one.shape != two.shape:
            return f"the coordinate {name} has the shapes {one.shape} against {two.shape}"
        if one.dtype.kind not in "iuf" or two.dtype.kind not in "iuf":
            if not np.array_equal(one, two):
                return f"the values of {name} differ"
        elif not np.allclose(one, two, rtol=1e-6, atol=_tolerance(one), equal_nan=True):
            at = int(np.argmax(np.abs(np.float64(one) - two).reshape(-1)))
            return (
                f"the coordinate {name} differs by value, "
                f"{one.reshape(-1)[at]:g} against {two.reshape(-1)[at]:g}"
            )
    return ""


def _remedy(difference: str) -> str:
    """What to bring to one: 'the units are K against Celsius' -> 'unit (...)'."""
    return next(
        (
            f"{what} ({how})"
            for words, what, how in (
                ("the variable is", "name of the variable", "ds.rename in xarray or cdo chname"),
                ("the stored types", "type", "ds.astype in xarray or cdo -b F32 copy"),
                ("the calendars", "calendar", "ds.convert_calendar in xarray or cdo setcalendar"),
                ("the units", "unit", "for kelvin to Celsius cdo subc,273.15 and cdo setunit"),
            )
            if difference.startswith(words)
        ),
        "grid (ds.interp_like in xarray or cdo remapbil)",
    )


def _tolerance(values: np.ndarray) -> float:
    """A thousandth of the smallest spacing of a coordinate axis."""
    if values.ndim != 1 or values.size < 2:
        return 1e-6
    spacing = np.abs(np.diff(np.asarray(values, np.float64)))
    return 1e-3 * float(spacing[spacing > 0].min(initial=1.0))
