"""The bottleneck moving: how long each rung takes, and of what that time is made."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Mapping
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from . import style

# Okabe and Ito's, as on the page.
_COLOURS = ("#56B4E9", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#0072B2")
_WIDTH, _ROW, _FOOT, _LEGEND = 11.0, 0.52, 0.75, 0.5  # inches
_NAMES, _GAP, _EDGE = 1.75, 0.55, 0.5
_SHARE_PANEL = 0.5  # of the width that bars have
_NAMED, _DARK = 0.12, "#0072B2"  # a share that is written, and what needs white letters
_SIDES = ("top", "right")


def draw_ladder(
    bars: Mapping[str, Mapping[str, float]], path: Path, title: str, subtitle: str
) -> None:
    """Write the picture, .png or .svg; OSError where that cannot be.

    bars  name, of one line or two -> part -> seconds; all have the same parts, and the first is
          drawn on top

    Seconds are on a linear scale, so that a short bar is a short time; beside it each bar once more
    in shares, for what a short one is made of.
    """
    height = style.HEAD + _LEGEND + _ROW * len(bars) + _FOOT
    figure = style.new_figure(_WIDTH, height, title, subtitle)
    inside = _WIDTH - _NAMES - _GAP - _EDGE
    down = _ROW * len(bars) / height
    wide = inside * (1 - _SHARE_PANEL)
    left = figure.add_axes((_NAMES / _WIDTH, _FOOT / height, wide / _WIDTH, down))
    right = figure.add_axes(
        ((_NAMES + wide + _GAP) / _WIDTH, _FOOT / height, inside * _SHARE_PANEL / _WIDTH, down)
    )
    totals = {name: sum(parts.values()) for name, parts in bars.items()}
    _stack(left, bars, dict.fromkeys(bars, 1.0))
    _stack(right, bars, {name: total or 1.0 for name, total in totals.items()}, named=True)
    longest = max(totals.values())
    for at, total in enumerate(totals.values()):
        left.text(
            total + 0.012 * longest,
            at,
            f"{total:#.3g}".rstrip(".") + " s",
            va="center",
            fontsize=style.TICK - 1,
        )
    left.set_xlim(0, 1.2 * longest)
    left.set_yticks(range(len(bars)), list(bars), fontsize=style.TICK - 3)
    left.set_xlabel("seconds", fontsize=style.LABEL - 1)
    right.set_xlim(0, 1)
    right.set_yticks([])
    right.xaxis.set_major_formatter(PercentFormatter(1.0))
    right.set_xlabel("share", fontsize=style.LABEL - 1)
    figure.legend(
        *left.get_legend_handles_labels(), loc="lower left", ncols=len(_COLOURS), frameon=False,
        bbox_to_anchor=(0.008, (_FOOT + _ROW * len(bars)) / height), fontsize=style.TICK - 1,
        handlelength=1.0, columnspacing=1.2, handletextpad=0.5,
    )  # fmt: skip
    new = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph")  # a name in letters that the font lacks
            style.save(figure, new)
        new.replace(path)
    finally:
        with contextlib.suppress(OSError):  # it is not there, or nothing can be written there
            new.unlink()


def _stack(
    axes: Axes, bars: Mapping[str, Mapping[str, float]], whole: Mapping[str, float],
    named: bool = False,
) -> None:  # fmt: skip
    """Parts end to end, each divided by its bar's `whole`; `named`: large ones say their share."""
    for side in _SIDES:
        axes.spines[side].set_visible(False)
    ends = dict.fromkeys(bars, 0.0)
    for at, part in enumerate(next(iter(bars.values()))):
        widths = [parts[part] / whole[name] for name, parts in bars.items()]
        colour = _COLOURS[at % len(_COLOURS)]
        axes.barh(
            range(len(bars)), widths, left=list(ends.values()), height=0.68, color=colour,
            edgecolor="white", linewidth=0.6, label=part,
        )  # fmt: skip
        for row, (name, width) in enumerate(zip(bars, widths, strict=True)):
            if named and width >= _NAMED:
                axes.text(
                    ends[name] + width / 2, row, f"{width:.0%}", ha="center", va="center",
                    fontsize=style.TICK - 2, color="white" if colour == _DARK else "black",
                )  # fmt: skip
            ends[name] += width
    axes.set_ylim(len(bars) - 0.5, -0.5)
    axes.tick_params(labelsize=style.TICK - 1, length=3)
    axes.tick_params(axis="y", length=0)
