"""The annual cycle at a point: mean and threshold, and the values they were made of."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from .. import calendar
from ..output import MONTHS, nearest_cell
from . import style


def draw_cycle(
    dataset: xr.Dataset,
    point: tuple[float, float] | None,
    samples: tuple[np.ndarray, np.ndarray] | None,
    path: Path,
) -> None:
    """Write the picture of a cell's cycle; `samples` are days and values of that cell.

    No point is wanted of a file that holds a single series, without cells.
    """
    cell, where = ({}, "") if point is None else _place(dataset, point)
    here = dataset.isel(cell).load()
    cal = str(dataset.attrs.get("calendar", "standard"))
    x = unwrapped(here.dayofyear.values.astype(np.int64), calendar.template_length(cal))
    width, height = style.WIDTH, 0.72 * style.WIDTH
    title = style.quantity(here) + where
    figure = style.new_figure(width, height, title, style.made_how(here))
    figure.set_layout_engine(
        "constrained", rect=(0.05 / width, 0.05 / height, 1 - 0.15 / width, 1 - style.HEAD / height)
    )
    axes = figure.subplots()
    if samples is not None:
        _draw_samples(axes, here, x, cal, samples)
    # A line must not bridge days of year that the file leaves out.
    gaps = np.flatnonzero(np.diff(x) > 1) + 1
    days, mean, threshold = (
        np.insert(np.asarray(values, np.float64), gaps, np.nan)
        for values in (x, here.seas.values, here.thresh.values)
    )
    name = style.percentile_text(here)
    axes.fill_between(days, mean, threshold, color=style.THRESHOLD_COLOUR, alpha=0.18, lw=0)
    axes.plot(days, threshold, color=style.THRESHOLD_COLOUR, lw=2.4, label=name)
    axes.plot(days, mean, color=style.MEAN_COLOUR, lw=2.4, label="Climatological mean")
    alone = np.diff(x, prepend=-np.inf, append=np.inf)
    alone = (alone[:-1] > 1) & (alone[1:] > 1)  # days that no line shows
    series = ((here.thresh, style.THRESHOLD_COLOUR), (here.seas, style.MEAN_COLOUR))
    for values, colour in series if alone.any() else ():
        axes.scatter(x[alone], values.values[alone], s=14, color=colour, zorder=3)
    _label_months(axes, here, x)
    axes.set_ylabel(style.units_of(here), fontsize=style.LABEL)
    axes.tick_params(labelsize=style.TICK)
    axes.grid(axis="y", color="0.9")
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    legend = figure.legend(
        loc="outside lower left", ncols=3, fontsize=style.TICK, frameon=False, handlelength=1.5,
        markerscale=2.5,
    )  # fmt: skip
    for handle in legend.legend_handles:
        if handle is not None:
            handle.set_alpha(1)
    style.save(figure, path)


def _place(dataset: xr.Dataset, point: tuple[float, float]) -> tuple[dict[str, int], str]:
    """The cell's index, and ' at 29.4°S 112.6°E'."""
    cell, (lat, lon) = nearest_cell(dataset, point)
    east = (lon + 180) % 360 - 180
    at = f"{style.degrees(round(lat, 2), 'N', 'S')} {style.degrees(round(east, 2), 'E', 'W')}"
    return cell, f" at {at}"


def unwrapped(doys: np.ndarray, length: int) -> np.ndarray:
    """Days of year in the file's order as rising numbers, over the year's end too."""
    steps = np.diff(doys) % length
    return doys[0] + np.concatenate([[0], np.cumsum(steps)])


def _draw_samples(
    axes: Axes,
    here: xr.Dataset,
    x: np.ndarray,
    cal: str,
    samples: tuple[np.ndarray, np.ndarray],
) -> None:
    """Dots for the baseline's values, each on its own day of year."""
    days, values = np.asarray(samples[0], np.int64), np.asarray(samples[1], np.float64)
    year, doy = calendar.year_and_dayofyear(cal, days)
    place = np.full(calendar.template_length(cal) + 1, np.nan)
    place[here.dayofyear.values.astype(np.int64)] = x
    inside = np.isfinite(place[doy])
    if "baseline" in here.attrs:
        first, last = np.asarray(here.attrs["baseline"]).tolist()
        inside &= (year >= first) & (year <= last)
    axes.scatter(
        place[doy[inside]], values[inside], s=5, color="0.45", alpha=0.25, linewidths=0,
        label="Daily values", rasterized=True,
    )  # fmt: skip


def _label_months(axes: Axes, here: xr.Dataset, x: np.ndarray) -> None:
    """Months between their first days; for a short season, some dates."""
    month, day = here.month.values, here.day_of_month.values
    axes.set_xlim(x[0] - 0.5, x[-1] + 0.5)
    firsts = np.flatnonzero(day == 1)
    if len(x) < 75:
        wanted = np.linspace(x[0], x[-1], 6)
        at = np.unique(np.abs(x[:, None] - wanted).argmin(axis=0))
        roomy = np.diff(x[at], prepend=-np.inf) > (x[-1] - x[0]) / 12  # labels must not overlap
        at = at[roomy]
        names = [f"{day[i]} {MONTHS[month[i] - 1][:3]}" for i in at]
        axes.set_xticks(x[at], names)
        return
    axes.set_xticks(x[firsts])
    axes.set_xticklabels([])
    starts = np.unique([0, *firsts])
    ends = [*starts[1:], len(x)]
    middles = [(x[a] + x[b - 1]) / 2 for a, b in zip(starts, ends, strict=True) if b - a >= 12]
    names = [MONTHS[month[a] - 1][:3] for a, b in zip(starts, ends, strict=True) if b - a >= 12]
    axes.set_xticks(middles, names, minor=True)
    axes.tick_params(axis="x", which="minor", length=0, labelsize=style.TICK, pad=6)
