"""How the pictures look: sizes for a telephone's screen, colours for every eye."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from ..output import units_text

WIDTH = 8.0  # inches
DPI = 150
LAND = "0.78"
MEAN_COLOUR, THRESHOLD_COLOUR = "#0072B2", "#D55E00"  # Okabe and Ito
MEAN_MAP, ABOVE_MAP, BELOW_MAP, BOTH_MAP = "viridis", "magma_r", "magma", "PuOr_r"
TITLE, LABEL, TICK = 18, 14, 13  # points
HEAD = 0.85  # inches of the title's two lines


def new_figure(width: float, height: float, title: str, subtitle: str) -> Figure:
    """A figure (inches) headed by a bold line and a quiet one, HEAD high; without pyplot."""
    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    head = figure.text(
        0.15 / width, 1 - 0.12 / height, title, fontsize=TITLE, fontweight="bold", va="top"
    )
    # Long names of variables are common: smaller, rather than over the edge.
    too_wide = head.get_window_extent().width / figure.dpi / (width - 0.3)
    head.set_fontsize(TITLE / max(too_wide, 1))
    figure.text(0.15 / width, 1 - 0.5 / height, subtitle, fontsize=LABEL, color="0.35", va="top")
    return figure


def save(figure: Figure, path: Path) -> None:
    figure.savefig(path, dpi=DPI, facecolor="white")


def quantity(dataset: xr.Dataset) -> str:
    """'Daily sea surface temperature', from the mean's long name."""
    name = str(dataset.seas.attrs.get("long_name", "values"))
    name = name.removeprefix("climatological mean of ")
    return name[:1].upper() + name[1:]


def made_how(dataset: xr.Dataset) -> str:
    """'1991-2020, 11-day window, 31-day smoothing', from the attributes that are there."""
    attrs = dataset.attrs
    parts = []
    if "baseline" in attrs:
        first, last = np.asarray(attrs["baseline"]).tolist()
        parts.append(f"{first}\N{EN DASH}{last}" if first != last else str(first))
    if "window_days" in attrs:
        parts.append(f"{int(attrs['window_days'])}-day window")
    if int(attrs.get("smooth_width_days", 1)) > 1:
        parts.append(f"{int(attrs['smooth_width_days'])}-day smoothing")
    return ", ".join(parts)


def percentile_text(dataset: xr.Dataset) -> str:
    """'90th percentile'."""
    text = f"{float(dataset.percentile):g}"
    ending = {"1": "st", "2": "nd", "3": "rd"}.get(text[-1], "th")
    if "." in text or text.endswith(("11", "12", "13")):
        ending = "th"
    return f"{text}{ending} percentile"


def units_of(dataset: xr.Dataset) -> str:
    return units_text(dataset.seas.attrs.get("units"))


def degrees(value: float, positive: str, negative: str) -> str:
    """'30°N'; no letter at 0 and 180."""
    letter = positive if value > 0 else negative
    return f"{abs(value):g}°{'' if value == 0 or abs(value) == 180 else letter}"
