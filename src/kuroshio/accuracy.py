"""How far a threshold is from another: an estimate from the exact one, or one year's from the next.

Day by day, so that two global files fit any memory.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from .errors import Refusal
from .output import cell_dims, date_text, open_climatology, with_one_percentile

LIMITS = (0.1, 0.3, 0.5)
# What else may differ between two files, by their attributes: then not all is the estimate's doing.
_FACTS = {
    "source_variable": "variable", "baseline": "baseline", "baseline_years": "years",
    "half_width_days": "half width", "smooth_width_days": "smoothing", "feb29": "29 February",
    "min_valid_share": "least valid share", "max_pad_days": "filling of gaps",
}  # fmt: skip
_BINS = 200  # of the histogram
_SPAN = 3.0  # of it, in root mean squares of the first day, or to beyond the last limit


@dataclass(frozen=True)
class Accuracy:
    """Differences, estimate less exact, in the unit of the files.

    values     pairs of a cell and a day of year that both files have
    share      of limits: of values that are as near as that
    of_cells   of limits: of cells that are as near on the mean of their days' absolute differences
    always     of limits: of cells that are as near on every day
    bias, mean_abs, worst  (*cell) float64: the mean, the mean absolute and the largest absolute
    edges, counts  of the histogram; the outermost bins hold what lies beyond, too
    unlike  what else differs by what the files say of themselves: 'half width 5 and 1'
    """

    exact: str
    estimate: str
    percentile: float
    units: str
    limits: tuple[float, ...]
    values: int
    cells: int
    mean: float
    mean_absolute: float
    root_mean_square: float
    largest: float
    largest_on: str
    share: tuple[float, ...]
    of_cells: tuple[float, ...]
    always: tuple[float, ...]
    bias: np.ndarray
    mean_abs: np.ndarray
    worst: np.ndarray
    edges: np.ndarray
    counts: np.ndarray
    unlike: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        shares = [
            {"within": limit, "values": a, "cells_on_the_mean": b, "cells_on_every_day": c}
            for limit, a, b, c in zip(
                self.limits, self.share, self.of_cells, self.always, strict=True
            )
        ]
        return {
            "schema": "kuroshio.accuracy/1", "exact": self.exact, "estimate": self.estimate,
            "percentile": self.percentile, "units": self.units, "values": self.values,
            "cells": self.cells, "mean": self.mean, "mean_absolute": self.mean_absolute,
            "root_mean_square": self.root_mean_square, "largest": self.largest,
            "largest_on": self.largest_on, "shares": shares, "unlike": list(self.unlike),
            "histogram": {"edges": self.edges.tolist(), "counts": self.counts.tolist()},
        }  # fmt: skip


def percent(share: float) -> str:
    """'95.2%'; 100 % means all."""
    text = f"{share:.1%}"
    return ">99.9%" if share < 1 and text == "100.0%" else text


def compare(
    exact: str | os.PathLike[str],
    estimate: str | os.PathLike[str],
    limits: Sequence[float] = LIMITS,
    percentile: float | None = None,
) -> Accuracy:
    """Hold the threshold of one climatology to that of another of the same cells and days.

    percentile  which one, where the files hold several; None: 90 if there, else the highest

    Raises Refusal where a file is no climatology, the cells, days of year, units or percentiles
    differ, or no cell has values in both.
    """
    if not limits or not all(np.isfinite(limit) and limit > 0 for limit in limits):
        raise Refusal("A limit of the difference is a number above 0, such as 0.3.")
    with open_climatology(exact) as one, open_climatology(estimate) as other:
        for dataset, path in ((one, exact), (other, estimate)):
            absent = [n for n in ("percentile", "month", "day_of_month") if n not in dataset.coords]
            if absent:
                raise Refusal(
                    f"{path} has no {' and no '.join(absent)}, which climatologies of kuroshio "
                    "have. Give the file as `kuroshio climatology` made it."
                )
        first = with_one_percentile(one, percentile)
        second = with_one_percentile(other, percentile)
        try:
            _check(first, second, str(exact), str(estimate))
            return _compared(first, second, str(exact), str(estimate), tuple(sorted(limits)))
        except (OSError, RuntimeError) as error:  # of the libraries, which do not name the file
            raise Refusal(
                f"{exact} or {estimate} is damaged, values cannot be read: {error}. Make it anew."
            ) from error


def _check(first: xr.Dataset, second: xr.Dataset, exact: str, estimate: str) -> None:
    for what, one, other in (
        ("percentile", float(first.percentile), float(second.percentile)),
        ("unit", str(first.thresh.attrs.get("units")), str(second.thresh.attrs.get("units"))),
        ("grid", _sizes(first), _sizes(second)),
    ):
        if one != other:
            raise Refusal(
                f"The {what} of {exact} is {one} and that of {estimate} is {other}. Give two "
                "climatologies of the same cells, unit and percentile."
            )
    if not np.array_equal(first.dayofyear, second.dayofyear):
        raise Refusal(
            f"{exact} holds {first.sizes['dayofyear']} days of year and {estimate} "
            f"{second.sizes['dayofyear']}, or others. Give two of the same days."
        )
    cells = {*cell_dims(first)}
    for name in sorted({*map(str, first.coords)} & {*map(str, second.coords)}):
        a, b = first[name], second[name]
        if not a.dims or not {*a.dims} <= cells:
            continue
        if {*a.dims} != {*b.dims} or not _alike(a.values, b.transpose(*a.dims)):
            raise Refusal(f"The {name} of {exact} and of {estimate} differ: two grids.")


def _unlike(one: Mapping[str, Any], other: Mapping[str, Any]) -> tuple[str, ...]:
    """Of what both say; a file that was edited may lack some of it."""
    return tuple(
        f"{what} {_said(one[name])} and {_said(other[name])}"
        for name, what in _FACTS.items()
        if name in one and name in other and not np.array_equal(one[name], other[name])
    )


def _said(value: Any) -> str:
    """Of an attribute; of a baseline '1991 to 2020'."""
    if isinstance(value, str):
        return value
    return " to ".join(f"{number:g}" for number in np.atleast_1d(value))


def _alike(one: np.ndarray, other: xr.DataArray) -> bool:
    """Coordinates but for what float32 leaves of them."""
    if one.dtype.kind in "fiu" and other.dtype.kind in "fiu":
        return np.allclose(one, other.values, atol=1e-4, equal_nan=True)
    return np.array_equal(one, other.values)


def _sizes(dataset: xr.Dataset) -> str:
    return ", ".join(f"{dim} {dataset.sizes[dim]}" for dim in cell_dims(dataset)) or "one cell"


def _compared(
    first: xr.Dataset, second: xr.Dataset, exact: str, estimate: str, limits: tuple[float, ...]
) -> Accuracy:
    shape = tuple(first.sizes[dim] for dim in cell_dims(first))
    days, total, absolute, worst = (np.zeros(shape) for _ in range(4))
    within = np.zeros(len(limits), np.int64)
    squares, largest, largest_on = 0.0, 0.0, 0
    edges, counts = None, np.zeros(_BINS, np.int64)
    for day in range(first.sizes["dayofyear"]):
        a, b = (each.thresh.isel(dayofyear=day) for each in (first, second))
        difference = b.transpose(*a.dims).values.astype(np.float64) - a.values
        there = np.isfinite(difference)
        found = difference[there]
        if not found.size:
            continue
        days += there
        clean = np.where(there, difference, 0.0)
        total += clean
        absolute += np.abs(clean)
        worst = np.maximum(worst, np.abs(clean))
        squares += float(np.square(found).sum())
        within += [int((np.abs(found) <= limit).sum()) for limit in limits]
        if np.abs(found).max() > largest:
            largest, largest_on = float(np.abs(found).max()), day
        if edges is None:
            span = max(_SPAN * float(np.sqrt(np.mean(found**2))), 1.05 * limits[-1])
            edges = np.linspace(-span, span, _BINS + 1)
        counts += np.histogram(np.clip(found, edges[0], edges[-1]), edges)[0]
    if edges is None:
        raise Refusal(f"No cell has a threshold in both {exact} and {estimate}.")
    there = days > 0
    days[~there] = np.nan
    values, cells = int(np.nansum(days)), int(there.sum())
    on_mean, on_all = (absolute / days)[there], worst[there]
    return Accuracy(
        exact=exact, estimate=estimate, percentile=float(first.percentile),
        units=str(first.thresh.attrs.get("units", "")), limits=limits, values=values, cells=cells,
        mean=float(total.sum() / values), mean_absolute=float(absolute.sum() / values),
        root_mean_square=float(np.sqrt(squares / values)), largest=largest,
        largest_on=date_text(int(first.month[largest_on]), int(first.day_of_month[largest_on])),
        share=tuple(float(n / values) for n in within),
        of_cells=tuple(float(np.mean(on_mean <= limit)) for limit in limits),
        always=tuple(float(np.mean(on_all <= limit)) for limit in limits),
        bias=total / days, mean_abs=absolute / days, worst=np.where(there, worst, np.nan),
        edges=edges, counts=counts, unlike=_unlike(first.attrs, second.attrs),
    )  # fmt: skip
