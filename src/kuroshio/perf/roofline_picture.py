"""A roofline as a picture (PNG or SVG); needs matplotlib, of `pip install 'kuroshio[plot]'`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from ..errors import Refusal
from .roofline import BANDWIDTH_BOUND, COMPUTE_BOUND, Judgement, Roofs
from .roofline_axes import axes, mark, peaks_of
from .roofline_labels import Circle, Line, label, near

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
    _roofs(plot, [each for _, each in shown], under)
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


def _roofs(plot, shown, under: Roofs) -> None:  # type: ignore[no-untyped-def]
    """A slope a level and a flat roof a kind of operation, with their names in them."""
    area, peaks = axes(shown, under), peaks_of(shown, under)
    highest = peaks[0].value if peaks else area.right * under.best("memory").value
    names: list[tuple[Line, str, str]] = []
    for level in under.bandwidths:
        value = under.best(level).value
        start = max(area.left, area.bottom / value)
        stop = min(highest / value, area.right)
        line = (start, start * value), (stop, stop * value)
        colour, width = (_ROOF, 1.8) if level == "memory" else (_NEARER, 1.0)
        plot.plot(*zip(*line, strict=True), color=colour, lw=width)
        names.append((line, f"{level} {_short(value)} GB/s", colour))
    memory = under.best("memory").value
    if peaks and len(under.bandwidths) > 1:
        nearest = max(under.best(level).value for level in under.bandwidths)
        plot.plot([highest / nearest, highest / memory], [highest] * 2, color=_NEARER, lw=1.0)
    for group in near(peaks):
        for peak in group:
            plot.plot([peak.value / memory, area.right], [peak.value] * 2, color=_ROOF, lw=1.8)
        text = ", ".join(f"{peak.name} {_short(peak.value)}" for peak in group) + " Gop/s"
        middle = (group[0].value * group[-1].value) ** 0.5
        names.append((((area.right, middle), (middle / memory, middle)), text, _ROOF))
    circles = [_circle(plot, each) for each in shown]
    for line, text, colour in sorted(names, key=lambda name: -len(name[1])):  # the longest first
        label(plot, *line, text, colour, circles, [each for each, _, _ in names])


def _size(each: Judgement) -> float:
    """Of a circle, in points squared."""
    return _LEAST + (_MOST - _LEAST) * each.point.share


def _circle(plot, each: Judgement) -> Circle:  # type: ignore[no-untyped-def]
    x, y = plot.transData.transform((each.intensity, each.rate))
    return Circle(x, y, _size(each) ** 0.5 / 2 * plot.figure.dpi / 72)


def _point(plot, number: int, each: Judgement) -> None:  # type: ignore[no-untyped-def]
    colour = _COLOURS.get(each.kind, _NEITHER)
    declared = each.declared_intensity
    if declared and each.intensity and abs(declared / each.intensity - 1) > 0.02:
        plot.plot([declared, each.intensity], [each.rate] * 2, color=colour, lw=1.0, zorder=3)
        plot.scatter([declared], [each.rate], s=40, facecolor="white", edgecolor=colour, zorder=4)
    plot.scatter(
        [each.intensity], [each.rate], s=_size(each), color=colour, edgecolor="white", lw=1.2,
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
        drawn = "" if each.intensity and each.rate else ", not drawn"
        said = f"{each.kind}{of_roof}{share}{drawn}"
        figure.text(0.694, y - 0.026, said, fontsize=8.5, color="0.4", va="top")
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
