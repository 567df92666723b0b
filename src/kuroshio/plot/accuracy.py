"""How far a threshold is from another: two maps and a histogram."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from ..accuracy import Accuracy, percent
from ..output import cell_dims, units_text
from . import style
from .maps import Plane, draw_cells, limits, plane_of

_BAR, _GAP, _LEFT, _HISTOGRAM = 1.15, 0.75, 0.8, 2.6  # inches
_SPARED = 0.25  # of the first gap, above which no numbers are
_TALLEST = 4.5  # of a map


def draw_accuracy(found: Accuracy, dataset: xr.Dataset, path: Path) -> None:
    """Write the picture; `dataset` is one of the files, for where the cells lie."""
    plane = plane_of(dataset) if cell_dims(dataset) else None
    down = 0.0
    if plane is not None:
        across = min(style.WIDTH - _LEFT - _BAR, _TALLEST / plane.ratio)
        down = across * plane.ratio
    maps = 0 if plane is None else 2
    height = style.HEAD + maps * (_GAP + down) + _GAP + _HISTOGRAM + 0.7 - _SPARED
    units = units_text(found.units)
    title = f"{style.percentile_text(dataset)}: {_name(found.estimate)} less {_name(found.exact)}"
    figure = style.new_figure(
        style.WIDTH, height, title[:1].upper() + title[1:],
        f"mean absolute difference {found.mean_absolute:.3g} {units}, largest "
        f"{found.largest:.2g} {units} ({found.largest_on})",
    )  # fmt: skip
    if plane is not None:
        far = max(abs(end) for end in limits(found.bias))
        for at, (values, name, low, high, colours) in enumerate((
            (found.mean_abs, "Mean absolute difference of a cell", 0.0,
             limits(found.mean_abs)[1], style.ABOVE_MAP),
            (found.bias, "Mean difference of a cell", -far, far, style.BOTH_MAP),
        )):  # fmt: skip
            bottom = height + _SPARED - style.HEAD - (at + 1) * (_GAP + down)
            axes = figure.add_axes(_on_paper(height, _LEFT, bottom, across, down))
            drawn = draw_cells(axes, plane, _drawn(values, dataset, plane), low, high, colours)
            axes.set_title(name, loc="left", fontsize=style.LABEL + 1)
            place = _on_paper(height, _LEFT + across + 0.15, bottom, 0.2, down)
            bar = figure.colorbar(drawn, cax=figure.add_axes(place))
            bar.ax.tick_params(labelsize=style.TICK)
            bar.ax.set_title(units, fontsize=style.LABEL, loc="left")
    place = _on_paper(height, _LEFT, 0.7, style.WIDTH - _LEFT - 0.3, _HISTOGRAM)
    _histogram(figure.add_axes(place), found, units)
    drawn_whole = path.with_name(f".{path.name}.part.png")  # a picture that is there is not lost
    try:
        style.save(figure, drawn_whole)
        os.replace(drawn_whole, path)
    finally:
        drawn_whole.unlink(missing_ok=True)


def _on_paper(
    height: float, left: float, bottom: float, across: float, down: float
) -> tuple[float, float, float, float]:
    """Inches to shares of the picture."""
    return left / style.WIDTH, bottom / height, across / style.WIDTH, down / height


def _drawn(values: np.ndarray, dataset: xr.Dataset, plane: Plane) -> np.ndarray:
    """Of the cell dimensions that are not drawn the first place, as maps have it."""
    dims = cell_dims(dataset)
    field = xr.DataArray(values, dims=dims)
    others = {dim: 0 for dim in dims if dim not in plane.dims}
    return field.isel(others).transpose(*plane.dims).values


def _name(path: str) -> str:
    return Path(path).name


def _histogram(axes: Axes, found: Accuracy, units: str) -> None:
    """Shares of values, and where the limits lie."""
    shares = found.counts / max(found.values, 1)
    axes.stairs(shares, found.edges, fill=True, color=style.MEAN_COLOUR)
    axes.set_xlim(found.edges[0], found.edges[-1])
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.tick_params(labelsize=style.TICK)
    axes.set_xlabel(f"difference ({units})" if units else "difference", fontsize=style.LABEL)
    axes.set_title("All cells and days", loc="left", fontsize=style.LABEL + 1)
    lines = [
        f"within {limit:g}: {percent(share)}"
        for limit, share in zip(found.limits, found.share, strict=True)
    ]
    for limit in found.limits:
        for side in (-limit, limit):
            if found.edges[0] < side < found.edges[-1]:
                axes.axvline(side, color="0.35", linewidth=1, linestyle=(0, (4, 3)))
    axes.text(
        0.985, 0.95, "\n".join(lines), fontsize=style.LABEL, ha="right", va="top",
        transform=axes.transAxes, bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8},
    )  # fmt: skip
