"""A roofline in a terminal: the plot, and a table of what lies where."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..messages import printable
from .roofline import Judgement, Roofs
from .roofline_axes import Axes, axes, mark, peaks_of, roof_at

if TYPE_CHECKING:
    from rich.table import Table

_HEIGHT = 18


def plot(judged: Sequence[Judgement], under: Roofs, width: int) -> str:
    """Gop/s over operations a byte, both by powers of ten; empty where no point has both."""
    shown = [each for each in judged if each.intensity and each.rate]
    if not shown:
        return ""
    inside = max(30, min(width, 100) - 10)
    area = axes(shown, under)
    cells = [[" "] * inside for _ in range(_HEIGHT)]

    def put(x: float, y: float, sign: str) -> None:
        column, row = _column(area, x, inside), _row(area, y)
        if 0 <= column < inside and 0 <= row < _HEIGHT:
            cells[row][column] = sign

    peaks = peaks_of(shown, under)
    for level in under.bandwidths:
        sign = "/" if level == "memory" else "."
        for column in range(inside):
            x = area.left * (area.right / area.left) ** ((column + 0.5) / inside)
            y = roof_at(x, under, level, peaks)
            if y is not None:
                put(x, y, sign)
    for peak in peaks:
        start = peak.value / under.best("memory").value
        for column in range(max(0, _column(area, start, inside)), inside):
            x = area.left * (area.right / area.left) ** ((column + 0.5) / inside)
            put(x, peak.value, "-")
    for number, each in enumerate(judged):
        if each.intensity and each.rate:
            put(each.intensity, each.rate, mark(number))
    lines = []
    for row, line in enumerate(cells):
        value = area.top * (area.bottom / area.top) ** ((row + 0.5) / _HEIGHT)
        label = f"{_short(value):>8}" if row % 4 == 0 else " " * 8
        lines.append(f"{label} |{''.join(line)}")
    lines.append(" " * 9 + "+" + "-" * inside)
    lines.append(" " * 10 + _ticks(area, inside))
    roofs = ", ".join(peak.name for peak in peaks)
    lines.append(
        f"Gop/s over operations a byte. / memory's roof{_nearer(under)}, - peak"
        f"{'s' if len(peaks) > 1 else ''}: {roofs or 'none measured'}"
    )
    return "\n".join(lines)


def table(judged: Sequence[Judgement]) -> Table:
    """Point by point: class, distance, rates, bytes declared and counted."""
    from rich.table import Table

    made = Table()
    made.add_column("")
    made.add_column("case", overflow="fold")
    made.add_column("class")
    for name in ("of roof", "Gop/s", "GB/s", "op/byte", "share"):
        made.add_column(name, justify="right")
    counted = any(each.point.counted_bytes is not None for each in judged)
    if counted:
        for name in ("declared", "counted", "ratio"):
            made.add_column(name, justify="right")
    for number, each in enumerate(judged):
        p = each.point
        row = [
            mark(number), printable(p.name), each.kind,
            "" if each.of_roof is None else f"{each.of_roof:.0%}",
            _short(each.rate), _short(each.bandwidth), _short(each.intensity), f"{p.share:.0%}",
        ]  # fmt: skip
        if counted:
            row += [_bytes(p.bytes), _bytes(p.counted_bytes)]
            row.append("" if each.ratio is None else f"{each.ratio:.4g}")
        made.add_row(*row)
    return made


def sentences(judged: Sequence[Judgement]) -> list[str]:
    """What there is to say of each point."""
    said = []
    for number, each in enumerate(judged):
        parts = []
        if each.of_roof is not None:
            parts.append(f"{each.of_roof:.0%} of {each.roof}")
        else:
            parts.append(each.roof)
        if each.ratio is not None:
            parts.append(f"counted bytes are {each.ratio:.4g} of those declared: {each.ratio_says}")
        parts += [*each.point.notes, *each.notes]
        said.append(f"{mark(number)} {printable(each.point.name)}: {'; '.join(parts)}.")
    return said


def _nearer(under: Roofs) -> str:
    levels = [level for level in under.bandwidths if level != "memory"]
    return f", . {', '.join(levels[::-1])}" if levels else ""


def _column(area: Axes, x: float, inside: int) -> int:
    return math.floor(inside * math.log(x / area.left) / math.log(area.right / area.left))


def _row(area: Axes, y: float) -> int:
    return math.floor(_HEIGHT * math.log(area.top / y) / math.log(area.top / area.bottom))


def _ticks(area: Axes, inside: int) -> str:
    line = [" "] * (inside + 8)
    first = math.ceil(math.log10(area.left))
    for power in range(first, math.floor(math.log10(area.right)) + 1):
        at = _column(area, 10.0**power, inside)
        for i, sign in enumerate(f"{10.0**power:g}"):
            line[at + i] = sign
    return "".join(line).rstrip()


def _short(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _bytes(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"
