"""Random small archives and requests for property tests, and what the oracle says of them.

Hypothesis draws the shape of an example (calendar, length, kinds of cells, a seed) and NumPy
fills the arrays from the seed: drawing stays quick, and a failure shrinks to a short archive.

    @given(st.data())
    def test_engine(data):
        sample = data.draw(archives())
        request = data.draw(requests(sample))
        expected = oracle(sample, request)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import cftime
import numpy as np
import xarray as xr
from hypothesis import strategies as st

from kuroshio import calendar as cal
from kuroshio import reference
from kuroshio.request import EXTRAS, Request

CALENDARS = ("standard", "noleap", "all_leap", "360_day")
# How the values are stored: codes of a usual range, codes of all 16 bits, floats that are whole
# multiples of a scale (kelvin at 0.01), floats of any value.
STORAGES = ("int16", "int16_full", "float32_steps", "float32", "float64")
CELL_SHAPES = ((1,), (3,), (5,), (2, 2), (1, 3))
# What a cell holds: a seasonal cycle with noise, nothing, one value for ever, one valid value in
# all, a few levels (ties everywhere), a calm sea whose codes share their upper bits, ice for half
# of the year.
CELL_KINDS = ("ordinary", "land", "constant", "single", "ties", "calm", "ice")


@dataclass(frozen=True)
class Sample:
    """An archive small enough for the oracle.

    values   float64 (time, *cell), NaN is missing: what `stored` means
    days     int64 (time,), strictly increasing
    stored   (time, *cell) of `dtype`, as a file would hold it: codes or floats
    codes    `stored` if it is int16, else None; value = code * scale + offset, `fill` is missing
    kinds    of each cell in C order, one of CELL_KINDS
    """

    values: np.ndarray
    days: np.ndarray
    calendar: str
    stored: np.ndarray
    kinds: tuple[str, ...]
    scale: float = 1.0
    offset: float = 0.0
    fill: int | None = None

    @property
    def dtype(self) -> np.dtype:
        return self.stored.dtype

    @property
    def codes(self) -> np.ndarray | None:
        return self.stored if self.dtype == np.int16 else None

    @property
    def years(self) -> tuple[int, int]:
        """First and last year that have a day."""
        year, _ = cal.year_and_dayofyear(self.calendar, self.days[[0, -1]])
        return int(year[0]), int(year[1])

    def __repr__(self) -> str:
        span = " to ".join(cal.iso_date(self.calendar, int(d)) for d in self.days[[0, -1]])
        return (
            f"<Sample {self.calendar} {span}, {len(self.days)} days, {self.dtype} "
            f"{self.values.shape[1:]} scale {self.scale} offset {self.offset} fill {self.fill} "
            f"{', '.join(self.kinds)}; {np.isnan(self.values).mean():.0%} missing>"
        )

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Hypothesis would otherwise print every array whole."""
        printer.text(repr(self))


@st.composite
def archives(
    draw: st.DrawFn,
    *,
    calendars: Sequence[str] = CALENDARS,
    storages: Sequence[str] = STORAGES,
    cell_shapes: Sequence[tuple[int, ...]] = CELL_SHAPES,
    kinds: Sequence[str] = CELL_KINDS,
    max_years: int = 41,
    gaps: bool = True,
) -> Sample:
    """A daily archive that starts and ends on any day; `gaps`: whether days may be absent."""
    calendar = draw(st.sampled_from(calendars))
    length = cal.template_length(calendar)
    first_year = draw(st.integers(1895, 2060))  # 1900 has no 29 February, 2000 has
    start = int(cal.day_number(calendar, first_year, draw(st.integers(1, length))))
    if draw(st.integers(0, 9)) == 0:
        span = draw(st.integers(1, 40))  # too short for most windows
    else:
        years = draw(st.integers(1, min(4, max_years)) | st.integers(1, max_years))
        span = years * 365 - draw(st.integers(0, 364))
    days = start + np.arange(span)

    shape = draw(st.sampled_from(cell_shapes))
    cells = int(np.prod(shape))
    of_cells = draw(st.lists(st.sampled_from(kinds), min_size=cells, max_size=cells))
    storage = draw(st.sampled_from(storages))
    missing = draw(st.sampled_from((0.0, 0.001, 0.05, 0.5, 0.97)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))

    if gaps:
        days = days[_present(rng, len(days), draw(st.sampled_from((0.0, 0.01, 0.4))))]
    celsius = np.stack([_cell(rng, kind, days) for kind in of_cells], axis=1)
    celsius[_runs(rng, celsius.shape, missing)] = np.nan
    _keep_one_value(rng, celsius, of_cells)
    sample = _store(rng, storage, celsius)
    return replace(
        sample,
        values=sample.values.reshape(-1, *shape),
        stored=sample.stored.reshape(-1, *shape),
        days=days,
        calendar=calendar,
        kinds=tuple(of_cells),
    )


@st.composite
def requests(
    draw: st.DrawFn,
    sample: Sample,
    *,
    beyond: int = 0,
    pools: Sequence[tuple[int, int]] = (),
) -> Request:
    """A request that the sample can serve.

    Its baseline lies in the years of the sample, or up to `beyond` years outside on either side.
    With `pools`, pairs of a half width and a number of years, it is as long as one of them says and
    shares a year with the sample: each pair means a kernel to compile, a second or so.
    """
    first, last = sample.years
    if pools:
        half_width, years = draw(st.sampled_from(pools))
        begin = draw(st.integers(first - years + 1, last))
        end = begin + years - 1
    else:
        half_width = draw(st.just(5) | st.integers(0, 20))
        begin = draw(st.integers(first - beyond, last + beyond))
        end = draw(st.integers(begin, last + beyond))
    usual = st.sampled_from((0.0, 10.0, 50.0, 90.0, 99.0, 100.0))
    fine = st.integers(0, 100_000).map(lambda thousandths: thousandths / 1000)
    method = draw(st.sampled_from(("exact", "exact", "moments")))
    percentile = (usual | fine).filter(lambda p: method == "exact" or 0 < p < 100)
    length = cal.template_length(sample.calendar)
    return Request(
        baseline=(begin, end),
        percentiles=tuple(draw(st.lists(percentile, min_size=1, max_size=3, unique=True))),
        half_width=half_width,
        doys=draw(st.none() | _doys(length)),
        smooth_width=draw(st.sampled_from((1, 3, 31, 61))),
        feb29=draw(st.sampled_from(("mean", "pool"))),
        min_valid=draw(st.sampled_from((0.0, 0.5, 0.8, 1.0)) | st.floats(0, 1, width=16)),
        max_pad=draw(st.sampled_from((0, 0, 1, 2, 7, 366))),
        extras=tuple(draw(st.lists(st.sampled_from(EXTRAS), unique=True))),
        method=method,
    )


def oracle(sample: Sample, request: Request) -> dict[str, np.ndarray]:
    """What `kuroshio.reference` gives: seas, thresh and every extra, asked for or not."""
    return reference.climatology(
        sample.values,
        sample.days,
        sample.calendar,
        baseline=request.baseline,
        percentiles=request.percentiles,
        half_width=request.half_width,
        smooth_width=request.smooth_width,
        feb29=request.feb29,
        min_valid=request.min_valid,
        max_pad=request.max_pad,
        doys=request.doys,
        method=request.method,
    )


def dataarray(sample: Sample, name: str = "sst") -> xr.DataArray:
    """The sample as users hold it: decoded values, a time coordinate (cftime for odd calendars)."""
    if sample.calendar == "standard":
        time = sample.days.astype("datetime64[D]").astype("datetime64[ns]")
    else:
        time = cftime.num2date(sample.days, "days since 1970-01-01", sample.calendar)
    values = sample.values
    if sample.codes is None:
        values = values.astype(sample.dtype)
    dims = ("lat", "lon") if values.ndim == 3 else ("cell",)
    return xr.DataArray(values, {"time": time}, ("time", *dims), name, {"units": "Celsius"})


@st.composite
def _doys(draw: st.DrawFn, length: int) -> tuple[int, ...]:
    """One day, a season (over the year's end, too), or scattered days in any order."""
    if draw(st.booleans()):
        scattered = st.lists(st.integers(1, length), min_size=1, max_size=6, unique=True)
        return tuple(draw(scattered))
    first, size = draw(st.integers(1, length)), draw(st.integers(1, length))
    return tuple((first - 1 + k) % length + 1 for k in range(size))


def _present(rng: np.random.Generator, n: int, share: float) -> np.ndarray:
    """Which of n days have a file: scattered days and one long stretch are absent."""
    present = rng.random(n) >= share
    if share and n > 1:
        begin = rng.integers(n)
        present[begin : begin + rng.integers(min(n, 500))] = False
    if not present.any():
        present[rng.integers(n)] = True
    return present


def _runs(rng: np.random.Generator, shape: tuple[int, int], share: float) -> np.ndarray:
    """About `share` of (time, cell) in runs of 1 to 9 steps: cloud, ice, a broken sensor."""
    starts = rng.random(shape) < share / 3
    lengths = rng.integers(1, 10, shape)
    missing = np.zeros(shape, bool)
    for k in range(9):
        missing[k:] |= (starts & (lengths > k))[: max(0, len(missing) - k)]
    return missing


def _cell(rng: np.random.Generator, kind: str, days: np.ndarray) -> np.ndarray:
    """A series in degrees Celsius."""
    n = len(days)
    phase = 2 * np.pi * days / 365.25
    cycle = rng.uniform(0, 25) + rng.uniform(0, 8) * np.cos(phase - rng.uniform(0, 7))
    match kind:
        case "land":
            return np.full(n, np.nan)
        case "constant":
            return np.full(n, -1.8)
        case "ties":
            return rng.integers(0, rng.integers(2, 6), n).astype(float)
        case "calm":
            return 28 + 0.05 * rng.standard_normal(n)
        case "ice":
            return np.where(np.cos(phase) > 0, -1.8, cycle)
    return cycle + rng.uniform(0.1, 2) * rng.standard_normal(n)


def _keep_one_value(rng: np.random.Generator, celsius: np.ndarray, kinds: Sequence[str]) -> None:
    for cell, kind in enumerate(kinds):
        if kind == "single":
            step, value = rng.integers(len(celsius)), rng.uniform(-2, 30)
            celsius[:, cell] = np.nan
            celsius[step, cell] = value


def _store(rng: np.random.Generator, storage: str, celsius: np.ndarray) -> Sample:
    """As a file holds it, and the values that this means; days and calendar are yet to come."""
    scale, offset, fill = 1.0, 0.0, None
    missing = np.isnan(celsius)
    match storage:
        case "int16" | "int16_full":
            scale = float(rng.choice([0.01, 0.001, 1.0, 0.0005]))
            offset = float(rng.choice([0.0, 0.0, 25.0, 273.15]))
            fill = int(rng.choice([-999, -32768, 32767]))
            steps = np.nan_to_num(celsius) * 100
            if storage == "int16_full":  # stretch to all that 16 bits can hold
                steps = (steps - 1400) * 20
            stored = np.clip(np.rint(steps), -32768, 32767).astype(np.int16)
            stored[stored == fill] = -998  # a neighbour of no fill value
            stored[missing] = fill
            values = np.where(missing, np.nan, stored.astype(np.float64) * scale + offset)
        case "float32_steps":
            offset_k = float(rng.choice([0.0, 273.15]))
            stored = (np.rint(celsius * 100) / 100 + offset_k).astype(np.float32)
            values = stored.astype(np.float64)
        case _:
            stored = celsius.astype(storage)
            values = stored.astype(np.float64)
    nothing = np.zeros(0, np.int64)
    return Sample(values, nothing, "", stored, (), scale, offset, fill)
