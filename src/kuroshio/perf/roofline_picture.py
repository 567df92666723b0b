"""A roofline as a picture (PNG or SVG); needs matplotlib, of `pip install 'kuroshio[plot]'`."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from ..errors import Refusal
from ..messages import printable
from .roofline import BANDWIDTH_BOUND, COMPUTE_BOUND, Judgement, Roofs, short
from .roofline_axes import axes, mark, peaks_of
from .roofline_labels import FONT, Circle, Line, label, marks, near
from .roofline_text import brief

# Okabe and Ito's colours, for every eye.
_COLOURS = {BANDWIDTH_BOUND: "#0072B2", COMPUTE_BOUND: "#D55E00"}
_NEITHER = "#7F7F7F"
_ROOF, _NEARER, _DPI = "0.15", "0.55", 150
_LEAST, _MOST = 110.0, 1100.0  # points squared of a circle
_MOST_LISTED = 30


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
    shown.sort(key=lambda pair: -pair[1].point.share)  # the small ones lie on the large ones
    circles = [_circle(plot, each) for _, each in shown]
    places = marks(circles, FONT * figure.dpi / 72)
    in_the_way = [*circles, *(place for place in places if place)]
    _roofs(plot, [each for _, each in shown], under, in_the_way)
    for height, ((number, each), place) in enumerate(zip(shown, places, strict=True)):
        _point(plot, number, each, place, height)
    figure.text(0.025, 0.965, title, fontsize=15, fontweight="bold", va="top")
    figure.text(0.025, 0.905, subtitle, fontsize=10, color="0.35", va="top", parse_math=False)
    _legend(figure, judged)
    new = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph")  # a name in letters that the font lacks
            figure.savefig(new, dpi=_DPI, facecolor="white")
        new.replace(path)
    except OSError as problem:
        raise Refusal(f"{path} cannot be written: {problem.strerror}.") from problem
    finally:
        with contextlib.suppress(OSError):  # it is not there, or nothing can be written there
            new.unlink()


def _roofs(plot, shown, under: Roofs, circles: list[Circle]) -> None:  # type: ignore[no-untyped-def]
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
        names.append((line, f"{level} {short(value)} GB/s", colour))
    memory = under.best("memory").value
    if peaks and len(under.bandwidths) > 1:
        nearest = max(under.best(level).value for level in under.bandwidths)
        plot.plot([highest / nearest, highest / memory], [highest] * 2, color=_NEARER, lw=1.0)
    for group in near(peaks):
        for peak in group:
            plot.plot([peak.value / memory, area.right], [peak.value] * 2, color=_ROOF, lw=1.8)
        text = ", ".join(f"{peak.name} {short(peak.value)}" for peak in group) + " Gop/s"
        middle = (group[0].value * group[-1].value) ** 0.5
        names.append((((area.right, middle), (middle / memory, middle)), text, _ROOF))
    for line, text, colour in sorted(names, key=lambda name: -len(name[1])):  # the longest first
        label(plot, *line, text, colour, circles, [each for each, _, _ in names])


def _size(each: Judgement) -> float:
    """Of a circle, in points squared."""
    return _LEAST + (_MOST - _LEAST) * each.point.share


def _circle(plot, each: Judgement) -> Circle:  # type: ignore[no-untyped-def]
    x, y = plot.transData.transform((each.intensity, each.rate))
    return Circle(x, y, _size(each) ** 0.5 / 2 * plot.figure.dpi / 72)


def _point(plot, number: int, each: Judgement, place: Circle | None, height: int) -> None:  # type: ignore[no-untyped-def]
    """`place`: of its letter in pixels, where that has no room in the circle."""
    colour = _colour(each)
    declared = each.declared_intensity
    if declared and each.intensity and abs(declared / each.intensity - 1) > 0.02:
        plot.plot([declared, each.intensity], [each.rate] * 2, color=colour, lw=1.0, zorder=3)
        plot.scatter([declared], [each.rate], s=40, facecolor="white", edgecolor=colour, zorder=4)
    where = each.intensity, each.rate
    above = 5 + height / 1000  # a circle, its letter, and then the next circle
    plot.scatter(
        *([at] for at in where), s=_size(each), color=colour, edgecolor="white", lw=1.2,
        zorder=above, alpha=0.92, clip_on=False,
    )  # fmt: skip
    if place is not None:
        aside = plot.transData.inverted().transform((place.x, place.y))
        plot.plot(*zip(where, aside, strict=True), color=colour, lw=0.8, zorder=4, clip_on=False)
        where = tuple(aside)
    plot.text(
        *where, mark(number), color=colour if place else "white", fontsize=FONT, fontweight="bold",
        ha="center", va="center_baseline", zorder=above,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6} if place else None,
    )  # fmt: skip


def _legend(figure, judged: Sequence[Judgement]) -> None:  # type: ignore[no-untyped-def]
    """Beside the plot: which point is what. Of many a line each; of more, those of most time."""
    listed = list(enumerate(judged))
    if len(listed) > _MOST_LISTED:
        listed = sorted(listed, key=lambda pair: -pair[1].point.share)[:_MOST_LISTED]
    roomy = len(listed) <= 11
    top, step = 0.85, 0.062 if roomy else 0.0244
    for row, (number, each) in enumerate(listed):
        y = top - row * step
        bold = {"fontsize": 10 if roomy else 9, "fontweight": "bold", "color": _colour(each)}
        figure.text(0.672, y, mark(number), va="top", **bold)
        name = _clipped(printable(brief(each.point.name)), 34 if roomy else 24)
        figure.text(0.694, y, name, fontsize=9.5 if roomy else 8.5, va="top", parse_math=False)
        of_roof = "" if each.of_roof is None else f"{each.of_roof:.0%}"
        if not roomy:
            roof = of_roof if each.intensity and each.rate else f"({of_roof})"
            for x, text in ((0.91, roof), (0.975, f"{each.point.share:.0%}")):
                figure.text(x, y, text, fontsize=8.5, color="0.4", ha="right", va="top")
            continue
        said = [each.kind]
        said += [f"{of_roof} of roof"] if of_roof else []
        said += [f"{each.point.share:.0%} of time"] if len(judged) > 1 else []
        said += [] if each.intensity and each.rate else ["not drawn"]
        figure.text(0.694, y - 0.026, ", ".join(said), fontsize=8.5, color="0.4", va="top")
    if not roomy:
        for x, text in ((0.91, "of roof"), (0.975, "of time")):
            figure.text(x, top + 0.012, text, fontsize=8, color="0.4", ha="right", va="bottom")
    area, rest = "area: share of time", []
    if any(each.ratio is not None for each in judged):
        area += "; hollow: declared bytes, full: counted"
    if not roomy and not all(each.intensity and each.rate for _, each in listed):
        rest.append("in brackets: not drawn")
    if len(judged) > len(listed):
        rest.append(f"{len(judged) - len(listed)} of less time are not listed")
    for y, text in ((0.047, area), (0.02, "; ".join(rest))):
        figure.text(0.672, y, text, fontsize=8, color="0.4", va="bottom")
    x = 0.672
    for kind in dict.fromkeys(each.kind for each in judged):
        figure.text(x, 0.075, f"\N{BLACK CIRCLE} {kind}", fontsize=8.5, va="bottom",
                    color=_COLOURS.get(kind, _NEITHER))  # fmt: skip
        x += 0.02 + 0.0068 * len(kind)


def _colour(each: Judgement) -> str:
    return _COLOURS.get(each.kind, _NEITHER)


def _clipped(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "\N{HORIZONTAL ELLIPSIS}"
