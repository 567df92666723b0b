"""What a file of moments says of itself: which years, of which archive, in which kind of sums."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..archive.describe import (
    OutputVariable,
    Schema,
    calendar_coords,
    cleaned,
    links,
    lower,
    package_version,
    storable,
)
from ..archive.model import Archive, Field, Grid
from ..archive.stored import Stored
from ..calendar import iso_date, template_length
from ..errors import Refusal
from ..kernels import kept_codes, kept_values
from ..keys import AFFINE16, Keys
from .changes import Series, Totals
from .lost import lost

FORMAT = 1
KIND = "kuroshio_moments"  # the attribute that tells such a file, with FORMAT as its value
DAYS = "source_day"
CARRIED = ("long_name", "standard_name", "units", "cell_methods", "grid_mapping")
# Names in the file, of the arrays of Kept in their order.
OF_CODES = ("count", "mean", "sum1", "sum2", "sum3", "sum4", "sum4_high")
OF_VALUES = ("count", "mean", "sum2", "sum3", "sum4")
EXACT = "integers, exact: what is added and taken away again leaves the same bits"
ROUNDED = "64-bit floats: what is added and taken away again leaves rounding"


@dataclass(frozen=True)
class State:
    """The facts of a file of moments.

    archive     what it is of: variable, attributes, grid, calendar, days; without pieces
    keys        of which sums are exact; None: moments are kept in floats
    totals      of each year's pools, by which files that have changed are noticed
    sources     attributes on the files read, as a climatology has them
    """

    archive: Archive
    keys: Keys | None
    half_width: int
    series: Series
    totals: Totals
    sources: Mapping[str, Any] = field(default_factory=dict)
    history: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        return OF_CODES if self.keys else OF_VALUES

    @property
    def years(self) -> tuple[int, ...]:
        return self.series.years

    @property
    def contiguous(self) -> bool:
        return self.years[-1] - self.years[0] + 1 == len(self.years)


def years_text(years: tuple[int, ...]) -> str:
    """'1991-2000, 2002'."""
    runs: list[list[int]] = []
    for year in years:
        if runs and year == runs[-1][-1] + 1:
            runs[-1].append(year)
        else:
            runs.append([year])
    return ", ".join(f"{r[0]}-{r[-1]}" if len(r) > 1 else f"{r[0]}" for r in runs)


def totals_text(totals: Totals) -> str:
    """As an attribute, in JSON."""
    return json.dumps({str(year): list(pair) for year, pair in sorted(totals.items())})


def describe(state: State) -> Schema:
    """The file of a state, all but `year_totals`, which are known when the files have been read.

    Raises Refusal where the grid uses a name that the file needs.
    """
    archive, grid = state.archive, state.archive.grid
    taken = {*OF_CODES, "dayofyear", "month", "day_of_month", DAYS}
    for name in (*grid.dims, *grid.coords):
        if name in taken:
            raise Refusal(
                f"The grid has a dimension or coordinate called {name!r}, which is the name of "
                "something in the file of moments. Rename it in the input."
            )
    doys = range(1, template_length(archive.calendar) + 1)
    coords = calendar_coords(archive.calendar, doys)
    coords |= {name: cleaned(f) for name, f in grid.coords.items()}
    sizes = {"dayofyear": len(doys)} | dict(zip(grid.dims, grid.shape, strict=True))
    for coordinate in grid.coords.values():
        sizes |= dict(zip(coordinate.dims, coordinate.values.shape, strict=True))
    variables = _variables(state, coords)
    days = {"long_name": "days of the data", "units": "days since 1970-01-01",
            "calendar": archive.calendar}  # fmt: skip
    coords[DAYS] = Field((DAYS,), state.series.days.astype(np.int32), days)
    sizes[DAYS] = state.series.days.size
    attrs = {k: storable(v) if isinstance(v, str) else v for k, v in _attrs(state).items()}
    return Schema(sizes, grid.dims, coords, variables, attrs)


def _variables(state: State, coords: Mapping[str, Field]) -> dict[str, OutputVariable]:
    archive = state.archive
    dims = ("dayofyear", *archive.grid.dims)
    what = lower(str(archive.attrs.get("long_name") or archive.variable).strip())
    units = {k: archive.attrs[k] for k in ("standard_name", "units") if k in archive.attrs}
    pool = f"pool of {2 * state.half_width + 1} days in {years_text(state.years)}"
    steps = "steps of scale_factor of mean" if state.keys else "the unit of mean"
    about = "the mean" if not state.keys else "the rounded mean"
    integers = {"sum1": np.int32, "sum2": np.int64, "sum3": np.int64, "sum4": np.int64}
    made = {}
    attrs: dict[str, Any]
    for name in state.names:
        fill: float | None = None
        dtype: Any = integers.get(name, np.int32) if state.keys else np.float64
        if name == "count":
            dtype = np.int32
            attrs = {"long_name": f"number of valid values in the {pool}", "units": "1",
                     "standard_name": "number_of_observations"}  # fmt: skip
        elif name == "mean" and state.keys:
            dtype, fill = np.int16, kept_codes.NOTHING
            attrs = {"long_name": f"mean of {what} in the {pool}, rounded to a step", **units,
                     "scale_factor": np.float64(state.keys.scale),
                     "add_offset": np.float64(state.keys.offset),
                     "missing_value": np.int16(kept_codes.NOTHING)}  # fmt: skip
        elif name == "mean":
            fill = float("nan")
            attrs = {"long_name": f"mean of {what} in the {pool}", **units}
        elif name == "sum4_high":
            attrs = {"long_name": "what sum4 lacks, in 2^64", "units": "1"}
        else:
            power = {"1": "", "2": "squared ", "3": "cubed ", "4": "fourth powers of "}[name[3]]
            attrs = {"long_name": f"sum of {power}departures from {about}",
                     "comment": f"departures in {steps}"}  # fmt: skip
            if state.keys:
                attrs["units"] = "1"
        attrs |= links(archive, dims, coords, percentile=False)
        made[name] = OutputVariable(name, dims, np.dtype(dtype), attrs, fill)
    return made


def _attrs(state: State) -> dict[str, Any]:
    archive, first, last = state.archive, *state.series.span
    what = lower(str(archive.attrs.get("long_name") or archive.variable).strip())
    attrs: dict[str, Any] = {
        "Conventions": "CF-1.11",
        "title": f"Moments of {what} by day of year, {years_text(state.years)}",
        "history": state.history,
        KIND: np.int32(FORMAT),
        "sums": EXACT if state.keys else ROUNDED,
        "years": np.array(state.years, np.int32),
        "half_width_days": np.int32(state.half_width),
        "window_days": np.int32(2 * state.half_width + 1),
        "calendar": archive.calendar,
        "series_first_day": iso_date(archive.calendar, first),
        "series_last_day": iso_date(archive.calendar, last),
        "series_days": np.array(state.series.span, np.int32),
        "source_variable": archive.variable,
        "source_type": archive.dtype.name,
        "source_attributes": json.dumps(
            {name: str(archive.attrs[name]) for name in CARRIED if name in archive.attrs}
        ),
        **state.sources,
        "kuroshio_version": package_version(),
    }
    if state.keys:
        attrs |= {"scale": np.float64(state.keys.scale), "offset": np.float64(state.keys.offset)}
    return attrs


def read_state(path: str | os.PathLike[str]) -> tuple[State, Stored]:
    """A file of moments, opened; the caller closes it. Raises Refusal where it is none."""
    stored = Stored(path, OF_CODES)
    try:
        return _state_of(stored), stored
    except BaseException:
        stored.close()
        raise


def _state_of(stored: Stored) -> State:
    attrs = stored.attrs
    if KIND not in attrs:
        raise Refusal(
            f"{stored.path} holds no moments. Give a file made by `kuroshio moments new`."
        )
    if str(attrs[KIND]) != str(FORMAT):
        raise Refusal(
            f"{stored.path} is in format {attrs[KIND]} of moments, and this version of kuroshio "
            f"reads {FORMAT}. Make it anew with `kuroshio moments new`."
        )
    try:
        state = _facts_of(stored)
        wrong = _wrong(state, stored)
    except (KeyError, ValueError, TypeError, AttributeError, IndexError) as error:
        wrong = f"{type(error).__name__}, {error}"
        raise _edited(stored, wrong) from error
    if wrong:
        raise _edited(stored, wrong)
    return state


def _edited(stored: Stored, wrong: str) -> Refusal:
    return Refusal(
        f"{stored.path} is not as kuroshio wrote it: {wrong}. It was damaged or edited; make it "
        "anew with `kuroshio moments new`."
    )


def _facts_of(stored: Stored) -> State:
    attrs = stored.attrs
    keys = None
    if attrs["sums"] == EXACT:
        keys = Keys(AFFINE16, float(attrs["scale"]), float(attrs["offset"]))
    ours = {"dayofyear", "month", "day_of_month", DAYS}
    dims = stored.dims("mean")[1:]
    names = [
        name for name in (*dims, *stored.coords) if name in stored.coords
    ]  # a store has no order
    coords = {name: stored.coords[name] for name in names if name not in ours}
    days = stored.coords[DAYS].values.astype(np.int64)
    archive = Archive(
        variable=str(attrs["source_variable"]),
        attrs=json.loads(attrs["source_attributes"]),
        dtype=np.dtype(str(attrs["source_type"])),
        grid=Grid(dims, stored.shape("mean")[1:], coords),
        calendar=str(attrs["calendar"]),
        days=days,
        pieces=(),
    )
    first, last = (int(day) for day in np.asarray(attrs["series_days"]))
    years = tuple(int(year) for year in np.atleast_1d(attrs["years"]))
    totals = {
        int(year): (int(number), total)
        for year, (number, total) in json.loads(attrs["year_totals"]).items()
    }
    return State(
        archive, keys, int(attrs["half_width_days"]), Series(days, (first, last), years), totals,
        {k: v for k, v in attrs.items() if k in SOURCES}, str(attrs["history"]),
    )  # fmt: skip


def _wrong(state: State, stored: Stored) -> str:
    """What of a file contradicts the rest of it, in words; '' where nothing does."""
    length = template_length(state.archive.calendar)
    shape = length, *state.archive.grid.shape
    for name in state.names:
        if name not in stored.names:
            return f"there is no variable {name}"
        if stored.shape(name) != shape:
            return f"{name} has the shape {stored.shape(name)} and not {shape}"
    if not np.array_equal(stored.coords["dayofyear"].values, np.arange(1, length + 1)):
        return "dayofyear is not every day of a year"
    days, (first, last) = state.series.days, state.series.span
    if not days.size or (np.diff(days) <= 0).any() or first > days[0] or last < days[-1]:
        return f"{DAYS} does not rise, or has days outside series_days"
    if sorted({*state.years}) != [*state.years] or {*state.totals} != {*state.years}:
        return f"years are {years_text(state.years)} and year_totals has others"
    if state.half_width < 0:
        return f"half_width_days is {state.half_width}"
    return ""


# What is said of the files, as in archive.describe.
SOURCES = (
    "source_files", "source_file_count", "source_first_file", "source_last_file", "skipped_files",
    "notes",
)  # fmt: skip
Kept = kept_codes.Kept | kept_values.Kept


def empty(state: State, days: int, cells: int) -> Kept:
    """Pools of nothing."""
    shape = days, cells
    number = np.zeros(shape, np.int32)
    if state.keys is None:
        sums = [np.zeros(shape) for _ in range(3)]
        return kept_values.Kept._make([number, np.full(shape, np.nan), *sums])
    mean, first = np.full(shape, kept_codes.NOTHING, np.int16), np.zeros(shape, np.int32)
    sums = [np.zeros(shape, np.int64) for _ in range(3)]
    return kept_codes.Kept._make([number, mean, first, *sums, np.zeros(shape, np.int32)])


def read_pools(state: State, stored: Stored, days: slice, rows: slice) -> Kept:
    """(day of year, cell) of some rows of the grid.

    Raises Refusal where it is damaged: a chunk that is lost reads as if it had been left out, being
    fill, and only what the variables say of each other shows it.
    """
    make: Any = kept_codes.Kept if state.keys else kept_values.Kept
    arrays = (stored.read(name, days, rows) for name in state.names)
    kept: Kept = make(*(values.reshape(len(values), -1) for values in arrays))
    absent = {stored.absent(name, days, rows) for name in state.names if name != "sum4_high"}
    if absent not in ({0}, {None}) and (which := lost(kept)):
        raise Refusal(
            f"{stored.path} is damaged: {which} has lost a part. Make it anew with `kuroshio "
            "moments new`."
        )
    return kept
