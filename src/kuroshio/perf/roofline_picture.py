"""A roofline as a picture (PNG or SVG); needs matplotlib, of `pip install 'kuroshio[plot]'`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from ..errors import Refusal
from .roofline import BANDWIDTH_BOUND, COMPUTE_BOUND, Judgement, Roofs
from .roofline_axes import axes, mark, peaks_of, roof_at

# Okabe and Ito's colours, for every eye.
_COLOURS = {BANDWIDTH_BOUND: "#0072B2", COMPUTE_BOUND: "#D55E00"}
_NEITHER = "#7F7F7F"
_ROOF, _NEARER, _DPI = "0.15", "0.55", 150
_LEAST, _MOST = 110.0, 1100.0  # points squared of a circle


def draw(judged: Sequence[Judgement], under: Roofs, path: Path, title: str, subtitle: str) -> None:
    """Points under the roofs, as large as their share of time; hollow where bytes are declared."""
    if path.suffix.lower() not in (".png", ".svg"):
        raise Refusal(f"{path} is no picture that can be drawn. Name a .png or a .svg.")
    if find_spec("matplotlib") is None:
        raise Refusal(
            "A picture needs matplotlib, which is not installed: pip install 'kuroshio[plot]'. "
            "Without -o the plot is drawn in the terminal."
        )
    shown = [(i, each) for i, each in enumerate(judged) if each.intensity and each.rate]
    if not shown:
        raise Refusal(
            "No point has bytes, operations and seconds, so there is nothing to draw. Declare them "
            "(bytes=, flops=) or give --counters."
        )
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.6, 6.0), facecolor="white")
    FigureCanvasAgg(figure)
    area = axes([each for _, each in shown], under)
    plot = figure.add_axes((0.075, 0.105, 0.575, 0.745))
    plot.set(xscale="log", yscale="log", xlim=(area.left, area.right), ylim=(area.bottom, area.top))
    plot.set_xlabel("operations a byte", fontsize=11)
    plot.set_ylabel("Gop/s", fontsize=11)
    plot.grid(which="major", color="0.92", linewidth=0.8)
    plot.set_axisbelow(True)
    for side in ("top", "right"):
        plot.spines[side].set_visible(False)
    _roofs(figure, plot, [each for _, each in shown], under)
    for number, each in sorted(shown, key=lambda pair: -pair[1].point.share):
        _point(plot, number, each)
    figure.text(0.025, 0.965, title, fontsize=15, fontweight="bold", va="top")
    figure.text(0.025, 0.905, subtitle, fontsize=10, color="0.35", va="top")
    _legend(figure, judged)
    new = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        figure.savefig(new, dpi=_DPI, facecolor="white")
        new.replace(path)
    except OSError as problem:
        raise Refusal(f"{path} cannot be written: {problem.strerror}.") from problem
    finally:
        new.unlink(missing_ok=True)


def _roofs(figure, plot, shown, under: Roofs) -> None:  # type: ignore[no-untyped-def]
    """A slope a level with its name along it, and a flat roof a kind of operation."""
    area, peaks = axes(shown, under), peaks_of(shown, under)
    steps = 200
    xs = [area.left * (area.right / area.left) ** (i / steps) for i in range(steps + 1)]
    for level in under.bandwidths:
        best = under.best(level)
        ys = [roof_at(x, under, level, peaks) for x in xs]
        line = [(x, y) for x, y in zip(xs, ys, strict=True) if y is not None]
        if peaks:
            ridge = peaks[0].value / best.value
            line.append((ridge, peaks[0].value))
        colour = _ROOF if level == "memory" else _NEARER
        plot.plot(*zip(*line, strict=True), color=colour, lw=1.8 if level == "memory" else 1.0)
        along = len(under.bandwidths) - list(under.bandwidths).index(level)
        _along(figure, plot, area, best.value, f"{level} {best.value:,.3g} GB/s", colour, along)
    memory = under.best("memory").value
    for peak in peaks:
        plot.plot([peak.value / memory, area.right], [peak.value] * 2, color=_ROOF, lw=1.8)
        plot.text(
            area.right, peak.value * 1.06, f"{peak.name} {_short(peak.value)} Gop/s", ha="right",
            va="bottom", fontsize=9, color=_ROOF,
        )  # fmt: skip
    if peaks and len(under.bandwidths) > 1:
        nearest = max(under.best(level).value for level in under.bandwidths)
        plot.plot(
            [peaks[0].value / nearest, peaks[0].value / memory], [peaks[0].value] * 2,
            color=_NEARER, lw=1.0,
        )  # fmt: skip


def _along(figure, plot, area, bandwidth, text, colour, place: int) -> None:  # type: ignore[no-untyped-def]
    """A label in a slope near where it comes into the picture, turned as the slope is."""
    import math

    step = (area.right / area.left) ** 0.035
    x = max(area.left, area.bottom / bandwidth) * step**place
    box = plot.get_window_extent()
    wide = math.log(area.right / area.left) / box.width
    high = math.log(area.top / area.bottom) / box.height
    angle = math.degrees(math.atan2(1 / high, 1 / wide))
    plot.text(
        x, x * bandwidth, text, rotation=angle, rotation_mode="anchor", fontsize=9, color=colour,
        ha="left", va="center", bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0},
    )  # fmt: skip


def _point(plot, number: int, each: Judgement) -> None:  # type: ignore[no-untyped-def]
    colour = _COLOURS.get(each.kind, _NEITHER)
    declared = each.declared_intensity
    if declared and each.intensity and abs(declared / each.intensity - 1) > 0.02:
        plot.plot([declared, each.intensity], [each.rate] * 2, color=colour, lw=1.0, zorder=3)
        plot.scatter([declared], [each.rate], s=40, facecolor="white", edgecolor=colour, zorder=4)
    size = _LEAST + (_MOST - _LEAST) * each.point.share
    plot.scatter(
        [each.intensity], [each.rate], s=size, color=colour, edgecolor="white", linewidth=1.2,
        zorder=5, alpha=0.92, clip_on=False,
    )  # fmt: skip
    plot.text(
        each.intensity, each.rate, mark(number), color="white", fontsize=9, fontweight="bold",
        ha="center", va="center_baseline", zorder=6,
    )  # fmt: skip


def _legend(figure, judged: Sequence[Judgement]) -> None:  # type: ignore[no-untyped-def]
    """Beside the plot: which point is what."""
    top, step, most = 0.85, 0.062, 11
    for row, each in enumerate(judged[:most]):
        y = top - row * step
        colour = _COLOURS.get(each.kind, _NEITHER)
        figure.text(0.672, y, mark(row), fontsize=10, fontweight="bold", color=colour, va="top")
        figure.text(0.694, y, _clipped(each.point.name, 34), fontsize=9.5, va="top")
        of_roof = "" if each.of_roof is None else f", {each.of_roof:.0%} of roof"
        share = f", {each.point.share:.0%} of time" if len(judged) > 1 else ""
        figure.text(
            0.694, y - 0.026, f"{each.kind}{of_roof}{share}", fontsize=8.5, color="0.4", va="top"
        )
    if len(judged) > most:
        more = f"and {len(judged) - most} more"
        figure.text(0.694, top - most * step, more, fontsize=9, va="top")
    below = "area: share of time"
    if any(each.ratio is not None for each in judged):
        below += "; hollow: declared bytes, full: counted"
    figure.text(0.672, 0.06, below, fontsize=8, color="0.4", va="bottom")


def _clipped(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "\N{HORIZONTAL ELLIPSIS}"


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
