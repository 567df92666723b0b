"""Maps of one day of year: the mean, the threshold, and how far apart they are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import Collection
from matplotlib.ticker import FuncFormatter, MaxNLocator

from ..output import cell_dims, date_text, latitude_longitude
from . import style

MARKER_POINTS = 120_000  # square points that the markers of unstructured cells cover together


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
    tall = plane.ratio > 1.15
    if tall:
        width, height = 1.7 * style.WIDTH, 0.5 * style.WIDTH * plane.ratio + 2.2
    else:
        width, height = style.WIDTH, 3 * (0.8 * style.WIDTH * plane.ratio + 0.75) + 0.8
    figure = style.new_figure(width, height)
    axes = figure.subplots(*((1, 3) if tall else (3, 1)), sharex=True, sharey=True)
    both = np.concatenate([mean.ravel(), threshold.ravel()])
    panels = (
        (mean, "Climatological mean", limits(both), style.MEAN_MAP),
        (threshold, name, limits(both), style.MEAN_MAP),
        (threshold - mean, f"{name} minus mean", *difference_colours(threshold - mean)),
    )
    for at, (values, title, (low, high), colours) in enumerate(panels):
        drawn = _draw(axes[at], plane, values, low, high, colours)
        axes[at].set_title(title, loc="left", fontsize=style.LABEL + 1)
        if tall and at:
            axes[at].set_ylabel("")
        elif not tall and at < 2:
            axes[at].set_xlabel("")
        finite = values[np.isfinite(values)]
        below, above = bool((finite < low).any()), bool((finite > high).any())
        extend = {(0, 0): "neither", (1, 0): "min", (0, 1): "max", (1, 1): "both"}
        bar = figure.colorbar(
            drawn, ax=axes[at], pad=0.015, aspect=18, extend=extend[below, above],
            orientation="horizontal" if tall else "vertical",
        )  # fmt: skip
        bar.ax.tick_params(labelsize=style.TICK)
        bar.set_label(style.units_of(day), fontsize=style.LABEL)
    date = date_text(int(day.month), int(day.day_of_month))
    at_depth = "".join(f", {_level(day, dim)}" for dim in others)
    style.set_title(figure, f"{style.quantity(day)}, {date}{at_depth}", style.made_how(day))
    style.save(figure, path)


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


def _draw(
    axes: Axes, plane: Plane, values: np.ndarray, low: float, high: float, colours: str
) -> Collection:
    axes.set_facecolor(style.LAND)
    drawn: Collection
    if len(plane.dims) == 1:
        known = np.isfinite(values)
        size = float(np.clip(MARKER_POINTS * plane.ratio / max(len(values), 1), 1, 200))
        drawn = axes.scatter(
            plane.x[known], plane.y[known], c=values[known], s=size, vmin=low, vmax=high,
            cmap=colours, marker="o", linewidths=0,
        )  # fmt: skip
    else:
        drawn = axes.pcolormesh(
            plane.x, plane.y, np.ma.masked_invalid(values), vmin=low, vmax=high, cmap=colours,
            shading="nearest", rasterized=True,
        )  # fmt: skip
    _dress(axes, plane)
    return drawn


def _dress(axes: Axes, plane: Plane) -> None:
    """Ticks, labels, aspect, and the graticule over a projected grid."""
    axes.tick_params(labelsize=style.TICK)
    steps = [1, 1.5, 3, 4.5, 6, 9, 10] if plane.degrees else [1, 2, 5, 10]
    axes.xaxis.set_major_locator(MaxNLocator(6, steps=steps))
    axes.yaxis.set_major_locator(MaxNLocator(5, steps=steps))
    if plane.degrees:
        axes.xaxis.set_major_formatter(
            FuncFormatter(lambda x, _: style.degrees((x + 180) % 360 - 180 if x != 180 else x,
                                                     "E", "W"))
        )  # fmt: skip
        axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: style.degrees(y, "N", "S")))
    axes.set_xlabel(plane.labels[0], fontsize=style.LABEL)
    axes.set_ylabel(plane.labels[1], fontsize=style.LABEL)
    span_x, span_y = max(float(np.ptp(plane.x)), 1e-9), max(float(np.ptp(plane.y)), 1e-9)
    axes.set_aspect(plane.ratio * span_x / span_y)
    if plane.graticule is not None:
        _draw_graticule(axes, plane)


def _draw_graticule(axes: Axes, plane: Plane) -> None:
    """Lines of equal latitude and longitude; not across the seam where longitude jumps."""
    assert plane.graticule is not None
    latitude, longitude = plane.graticule
    line = {"colors": "0.25", "linewidths": 0.7, "alpha": 0.7}
    drawn = [axes.contour(plane.x, plane.y, latitude, levels=_nice_levels(latitude), **line)]
    for lon in ((longitude + 180) % 360 - 180, longitude % 360):
        jump = np.zeros(lon.shape, bool)
        jump[:, 1:] |= np.abs(np.diff(lon, axis=1)) > 90
        jump[1:] |= np.abs(np.diff(lon, axis=0)) > 90
        smooth = np.ma.masked_array(lon, jump)
        levels = _nice_levels(lon)
        inner = levels[np.abs(levels) < 90] if lon.min() < 0 else levels[np.abs(levels - 180) <= 90]
        if inner.size:
            drawn.append(axes.contour(plane.x, plane.y, smooth, levels=inner, **line))
    for at, contours in enumerate(drawn):
        letters = ("N", "S") if at == 0 else ("E", "W")
        axes.clabel(
            contours, fontsize=style.TICK - 3,
            fmt=lambda v, letters=letters: style.degrees(
                v if letters == ("N", "S") or v <= 180 else v - 360, *letters
            ),
        )  # fmt: skip


def _nice_levels(values: np.ndarray) -> np.ndarray:
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    return np.asarray(MaxNLocator(6, steps=[1, 1.5, 2, 3, 5, 10]).tick_values(low, high))


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
