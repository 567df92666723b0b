"""Maps of one day of year: the mean, the threshold, and how far apart they are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import Collection
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, Locator, MaxNLocator, MultipleLocator

from ..output import cell_dims, date_text, latitude_longitude
from . import style

MAP_POINTS = 430  # width of a map
DEGREES = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 20, 30, 45, 60, 90)  # between ticks


@dataclass(frozen=True)
class Plane:
    """Where the cells lie on paper.

    dims   the cell dimensions drawn, in the order of the arrays
    x, y   1-D, along columns and rows of a mesh; or both along the one dimension of loose cells
    ratio  height over width of the map
    """

    dims: tuple[str, ...]
    x: np.ndarray
    y: np.ndarray
    ratio: float
    degrees: bool = False
    labels: tuple[str, str] = ("", "")
    graticule: tuple[np.ndarray, np.ndarray] | None = None  # 2-D latitude and longitude


def draw_maps(day: xr.Dataset, path: Path) -> None:
    """Write the picture of one day of year; `day` has the cell dimensions only."""
    plane = plane_of(day)
    others = [dim for dim in cell_dims(day) if dim not in plane.dims]
    day = day.isel(dict.fromkeys(others, 0))
    mean, threshold = (
        day[name].transpose(*plane.dims).values.astype(np.float64) for name in ("seas", "thresh")
    )
    name = style.percentile_text(day)
    both = limits(np.concatenate([mean.ravel(), threshold.ravel()]))
    panels = (
        (mean, "Climatological mean", both, style.MEAN_MAP),
        (threshold, name, both, style.MEAN_MAP),
        (threshold - mean, f"{name} minus mean", *difference_colours(threshold - mean)),
    )
    date = date_text(int(day.month), int(day.day_of_month))
    at_depth = "".join(f", {_level(day, dim)}" for dim in others)
    title = f"{style.quantity(day)}, {date}{at_depth}"
    figure, places = _paper(plane, title, style.made_how(day))
    for at, ((values, title, (low, high), colours), place) in enumerate(
        zip(panels, places, strict=True)
    ):
        axes = figure.add_axes(place.map)
        drawn = draw_cells(axes, plane, values, low, high, colours)
        axes.set_title(title, loc="left", fontsize=style.LABEL + 1)
        if place.tall and at:
            axes.tick_params(labelleft=False)
            axes.set_ylabel("")
        elif not place.tall and at < 2:
            axes.tick_params(labelbottom=False)
            axes.set_xlabel("")
        finite = values[np.isfinite(values)]
        below, above = bool((finite < low).any()), bool((finite > high).any())
        extend = {(0, 0): "neither", (1, 0): "min", (0, 1): "max", (1, 1): "both"}
        bar = figure.colorbar(
            drawn,
            cax=figure.add_axes(place.bar),
            extend=extend[below, above],
            orientation="horizontal" if place.tall else "vertical",
        )
        bar.locator = MaxNLocator(4 if place.tall else 6, steps=[1, 2, 5, 10])
        bar.ax.tick_params(labelsize=style.TICK)
        if place.tall:
            bar.set_label(style.units_of(day), fontsize=style.LABEL)
        else:
            bar.ax.set_title(style.units_of(day), fontsize=style.LABEL, loc="left")
    style.save(figure, path)


@dataclass(frozen=True)
class _Place:
    """Where a map and its colour bar go, as fractions of the figure (left, bottom, w, h)."""

    map: tuple[float, float, float, float]
    bar: tuple[float, float, float, float]
    tall: bool


def _paper(plane: Plane, title: str, subtitle: str) -> tuple[Figure, list[_Place]]:
    """The figure and three places of the map's own shape: stacked, or abreast where tall."""
    left, above = (1.1 if plane.labels[1] else 0.8), 0.45  # inches; above a map is its title
    below = 0.8 if plane.labels[0] else 0.5
    tall = plane.ratio > 1.15
    places = []
    if tall:
        across, gap, bars = 3.2, 0.35, 0.95
        width, down = left + 3 * across + 2 * gap + 0.3, across * plane.ratio
        height = style.HEAD + above + down + below + bars
        for at in range(3):
            x = left + at * (across + gap)
            boxes = (x, below + bars, across, down), (x, bars - 0.25, across, 0.18)
            places.append(boxes)
    else:
        width, beside = style.WIDTH, 1.15
        across = width - left - beside
        down = across * plane.ratio
        height = style.HEAD + 3 * (above + down) + below
        for at in range(3):
            y = below + (2 - at) * (above + down)
            places.append(((left, y, across, down), (left + across + 0.15, y, 0.2, down)))
    figure = style.new_figure(width, height, title, subtitle)
    scale = np.array([width, height, width, height])
    return figure, [
        _Place(tuple(np.array(map_) / scale), tuple(np.array(bar) / scale), tall)
        for map_, bar in places
    ]


def plane_of(dataset: xr.Dataset) -> Plane:
    """Latitude and longitude where they are the axes; else projected or plain axes; else dots."""
    dims = cell_dims(dataset)
    found = latitude_longitude(dataset)
    if found is not None and found[0].ndim == found[1].ndim == 1:
        lat, lon = (c.values.astype(np.float64) for c in found)
        if found[0].dims != found[1].dims:
            horizontal = (str(found[0].dims[0]), str(found[1].dims[0]))
            lon = np.unwrap(lon, period=360)
            return Plane(horizontal, lon, lat, _ratio(lon, lat), degrees=True)
        lon = _together(lon)
        return Plane((str(found[0].dims[0]),), lon, lat, _ratio(lon, lat), degrees=True)
    if len(dims) == 1:
        x = np.arange(dataset.sizes[dims[0]], dtype=np.float64)
        return Plane(dims, x, np.zeros_like(x), 0.3, labels=(dims[0], ""))
    rows, columns = dims[-2:] if found is None else tuple(str(dim) for dim in found[0].dims)
    (y, y_label), (x, x_label) = _axis(dataset, rows), _axis(dataset, columns)
    ratio = float(np.clip(np.ptp(y) / max(np.ptp(x), 1e-9), 0.3, 2.5))
    graticule = None
    if found is not None:
        graticule = (found[0].values, found[1].transpose(*found[0].dims).values)
    return Plane((rows, columns), x, y, ratio, labels=(x_label, y_label), graticule=graticule)


def limits(values: np.ndarray) -> tuple[float, float]:
    """The colours' ends: all but the outermost half percent on either side."""
    finite = values[np.isfinite(values)]
    if not finite.size:
        return 0.0, 1.0
    low, high = np.percentile(finite, [0.5, 99.5])
    return (float(low), float(high)) if high > low else (float(low) - 0.5, float(low) + 0.5)


def difference_colours(values: np.ndarray) -> tuple[tuple[float, float], str]:
    """Ends and colour map for threshold minus mean: one-sided where it has one sign."""
    low, high = limits(values)
    if low >= -0.02 * abs(high):
        return (0.0, high), style.ABOVE_MAP
    if high <= 0.02 * abs(low):
        return (low, 0.0), style.BELOW_MAP
    far = max(-low, high)
    return (-far, far), style.BOTH_MAP


def draw_cells(
    axes: Axes, plane: Plane, values: np.ndarray, low: float, high: float, colours: str
) -> Collection:
    """Values of `plane.dims` on a map, with its axes; returns what a colour bar needs."""
    axes.set_facecolor(style.LAND)
    drawn: Collection
    if len(plane.dims) == 1:
        known = np.isfinite(values)
        # Markers that would just cover the map if the cells were spread evenly.
        size = float(np.clip(1.6 * MAP_POINTS**2 * plane.ratio / max(len(values), 1), 1, 300))
        drawn = axes.scatter(
            plane.x[known], plane.y[known], c=values[known], s=size, vmin=low, vmax=high,
            cmap=colours, marker="o", linewidths=0,
        )  # fmt: skip
    else:
        drawn = axes.pcolormesh(
            edges(plane.x), edges(plane.y), np.ma.masked_invalid(values), vmin=low, vmax=high,
            cmap=colours, shading="flat", rasterized=True,
        )  # fmt: skip
    _dress(axes, plane)
    if not np.isfinite(values).any():
        axes.text(
            0.5, 0.5, "no values on this day of year", fontsize=style.LABEL, color="0.25",
            ha="center", va="center", transform=axes.transAxes,
        )  # fmt: skip
    return drawn


def _dress(axes: Axes, plane: Plane) -> None:
    """Ticks, labels, aspect, and the graticule over a projected grid."""
    axes.tick_params(labelsize=style.TICK)
    few, more = (3, 7) if plane.ratio > 1.15 else (6, 5)
    if plane.degrees:
        axes.xaxis.set_major_locator(_degree_ticks(plane.x, few, inside=plane.ratio > 1.15))
        axes.yaxis.set_major_locator(_degree_ticks(plane.y, more))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: _meridian(x)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: style.degrees(y, "N", "S")))
    else:
        axes.xaxis.set_major_locator(MaxNLocator(few))
        axes.yaxis.set_major_locator(MaxNLocator(more))
    axes.set_xlabel(plane.labels[0], fontsize=style.LABEL)
    axes.set_ylabel(plane.labels[1], fontsize=style.LABEL)
    axes.margins(0.01 if len(plane.dims) == 1 else 0)
    if plane.graticule is not None:
        _draw_graticule(axes, plane)


def edges(centres: np.ndarray) -> np.ndarray:
    """Where cells begin and end: halfway between centres; a single one is a unit wide."""
    if centres.size == 1:
        return centres[0] + np.array([-0.5, 0.5])
    halfway = (centres[:-1] + centres[1:]) / 2
    first, last = 2 * centres[0] - halfway[0], 2 * centres[-1] - halfway[-1]
    return np.concatenate([[first], halfway, [last]])


def _degree_ticks(values: np.ndarray, most: int, inside: bool = False) -> Locator:
    """Round degrees; where all cells lie on one, that one.

    `inside`: not near the ends, where labels would meet those of the map abreast.
    """
    if np.ptp(values) == 0:
        return FixedLocator([float(values[0])])
    step = _degree_step(values, most)
    if not inside:
        return MultipleLocator(step)
    low, high = float(values.min()), float(values.max())
    margin = 0.1 * (high - low)
    ticks = step * np.arange(math.ceil((low + margin) / step), (high - margin) / step + 1e-9)
    return FixedLocator(ticks.tolist() if ticks.size else [float(values[values.size // 2])])


def _degree_step(values: np.ndarray, most: int) -> float:
    """The narrowest round spacing that makes no more than so many ticks."""
    span = float(np.ptp(values))
    return next((step for step in DEGREES if span / step <= most), DEGREES[-1])


def _meridian(longitude: float) -> str:
    east = round((longitude + 180) % 360 - 180, 6)
    return style.degrees(east, "E", "W")


def _draw_graticule(axes: Axes, plane: Plane) -> None:
    """Lines of equal latitude and longitude; not across the seam where longitude jumps."""
    assert plane.graticule is not None
    latitude, longitude = plane.graticule
    line: dict[str, Any] = {"colors": "0.6", "linewidths": 0.8, "linestyles": "solid"}
    drawn = [axes.contour(plane.x, plane.y, latitude, levels=_round_levels(latitude, 5), **line)]
    # Near Greenwich in longitudes from -180, near the date line in those from 0.
    for lon, middle in (((longitude + 180) % 360 - 180, 0), (longitude % 360, 180)):
        jump = np.zeros(lon.shape, bool)
        jump[:, 1:] |= np.abs(np.diff(lon, axis=1)) > 90
        jump[1:] |= np.abs(np.diff(lon, axis=0)) > 90
        levels = _round_levels(lon, 12)
        levels = levels[(levels > middle - 90) & (levels <= middle + 90)]
        if levels.size:
            smooth = np.ma.masked_array(lon, jump)
            drawn.append(axes.contour(plane.x, plane.y, smooth, levels=levels, **line))
    for at, contours in enumerate(drawn):
        axes.clabel(
            contours,
            fontsize=style.TICK - 2,
            fmt=_meridian if at else lambda v: style.degrees(v, "N", "S"),
        )


def _round_levels(values: np.ndarray, most: int) -> np.ndarray:
    """Round degrees inside the values' span; at least one."""
    step = _degree_step(values, most)
    first, last = math.ceil(np.nanmin(values) / step), math.floor(np.nanmax(values) / step)
    return step * np.arange(first, max(last, first) + 1)


def _axis(dataset: xr.Dataset, dim: str) -> tuple[np.ndarray, str]:
    """A dimension's own coordinate with its label, metres as kilometres; else cell numbers."""
    if dim not in dataset.coords:
        return np.arange(dataset.sizes[dim], dtype=np.float64), f"{dim} (cell)"
    values = dataset[dim].values.astype(np.float64)
    units = str(dataset[dim].attrs.get("units", ""))
    if units in ("m", "metre", "meter", "metres", "meters"):
        values, units = values / 1000, "km"
    return values, f"{dim} ({units})" if units else dim


def _together(lon: np.ndarray) -> np.ndarray:
    """Longitudes of loose cells on the side of the seam where they span least."""
    sides = ((lon + 180) % 360 - 180, lon % 360)
    return min(sides, key=lambda side: float(np.ptp(side)))


def _ratio(lon: np.ndarray, lat: np.ndarray) -> float:
    """Height over width of a map in degrees, true in its middle (not stretched beyond 60)."""
    middle = min(abs(float(lat.min() + lat.max())) / 2, 60)
    width = max(float(np.ptp(lon)), 1e-9) * math.cos(math.radians(middle))
    return float(np.clip(np.ptp(lat) / width, 0.3, 2.5))


def _level(day: xr.Dataset, dim: str) -> str:
    if dim not in day.coords:
        return f"first {dim}"
    return f"{dim} {float(day[dim]):g} {day[dim].attrs.get('units', '')}".strip()
