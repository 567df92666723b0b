"""A roofline in a terminal: the plot, and a table of what lies where."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..messages import printable
from .output import fitting
from .roofline import COMPUTE_BOUND, Judgement, Roofs, short
from .roofline_axes import Axes, axes, mark, peaks_of, roof_at

if TYPE_CHECKING:
    from rich.table import Table

_HEIGHT = 18
_ABOUT_ONE = 1.25
_CASE = 16  # columns that names of cases have at least
# Columns of the table that go first where the terminal is narrow.
_DISPENSABLE = ("op/byte", "share", "Gop/s", "GB/s", "declared", "counted")


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
    at: dict[tuple[int, int], list[str]] = {}
    for number, each in enumerate(judged):
        if each.intensity and each.rate:
            place = _column(area, each.intensity, inside), _row(area, each.rate)
            at.setdefault(place, []).append(mark(number))
    for (column, row), marks in at.items():
        cells[row][column] = marks[0]
    hidden = [f"{', '.join(marks[1:])} behind {marks[0]}" for marks in at.values() if marks[1:]]
    rows = {_row(area, value): text for value, text in _powers(area.bottom, area.top)}
    lines = [f"{rows.get(row, ''):>8} |{''.join(line)}" for row, line in enumerate(cells)]
    lines.append(f"{rows.get(_HEIGHT, ''):>8} +{'-' * inside}")
    lines.append(" " * 10 + _ticks(area, inside))
    names = ", ".join(peak.name for peak in peaks) or "none measured"
    key = (
        f"Gop/s over operations a byte. / memory's roof{_nearer(under)}, - peak"
        f"{'s' if len(peaks) > 1 else ''}: {names}"
    )
    if hidden:
        key += f"; {'; '.join(hidden)}"
    return "\n".join([*lines, *textwrap.wrap(key, max(width, 40), break_on_hyphens=False)])


def table(judged: Sequence[Judgement], width: int) -> tuple[Table, list[str]]:
    """Point by point: class, distance, rates, bytes declared and counted.

    Columns for which there is no room are left out; their names come with the table.
    """
    from rich.table import Table

    cells: dict[str, Sequence[str]] = {
        "of roof": ["" if j.of_roof is None else f"{j.of_roof:.0%}" for j in judged],
        "Gop/s": [_short(j.rate) for j in judged],
        "GB/s": [_short(j.bandwidth) for j in judged],
        "op/byte": [_short(j.intensity) for j in judged],
        "share": [f"{j.point.share:.0%}" for j in judged],
    }
    if any(j.point.counted_bytes is not None for j in judged):
        cells["declared"] = [_bytes(j.point.bytes) for j in judged]
        cells["counted"] = [_bytes(j.point.counted_bytes) for j in judged]
        cells["ratio"] = ["" if j.ratio is None else f"{j.ratio:.4g}" for j in judged]
    room = width - len("│   │ ") - _CASE - sum(len(f"{kind} │ ") for kind in (COMPUTE_BOUND, ""))
    cells, left_out = fitting(cells, room, len(" │ "), _DISPENSABLE)
    made = Table()
    made.add_column("")
    made.add_column("case", overflow="fold")
    made.add_column("class", no_wrap=True)
    for name in cells:
        made.add_column(name, justify="right", no_wrap=True)
    for number, each in enumerate(judged):
        rest = [column[number] for column in cells.values()]
        made.add_row(mark(number), printable(brief(each.point.name)), each.kind, *rest)
    return made, left_out


def sentences(judged: Sequence[Judgement]) -> list[str]:
    """What there is to say of each point, and then once what holds for several."""
    said = []
    notes: dict[str, list[int]] = {}
    for number, each in enumerate(judged):
        for note in [*each.point.notes, *each.notes]:
            notes.setdefault(note, []).append(number)
    for number, each in enumerate(judged):
        parts = []
        if each.of_roof is not None:
            parts.append(f"{each.of_roof:.0%} of {each.roof}")
        else:
            parts.append(each.roof)
        if each.ratio is not None:
            parts.append(f"counted bytes are {each.ratio:.4g} of those declared: {each.ratio_says}")
        parts += [note for note, of in notes.items() if of == [number]]
        said.append(f"{mark(number)} {printable(brief(each.point.name))}: {'; '.join(parts)}.")
    for note, of in notes.items():
        if len(of) > 1:
            said.append(f"{', '.join(mark(number) for number in of)}: {note}.")
    return said


def fewer_threads(judged: Sequence[Judgement], under: Roofs) -> str:
    """That work kept one processor busy and is held to more; empty where there is no such."""
    alone = [
        mark(number) for number, each in enumerate(judged)
        if each.point.processors is not None and each.point.processors <= _ABOUT_ONE
    ]  # fmt: skip
    if not alone or (under.threads or 1) < 2:
        return ""
    return (
        f"{', '.join(alone)} kept about one processor busy, and the roofs are those of "
        f"{under.threads}: --threads 1 holds to the roofs of one."
    )


def brief(name: str) -> str:
    """ns::copy<float>, of void ns::copy<float>(float const*, float*)."""
    return re.sub(r"(?<=[\w>])\(.*$", "", name).removeprefix("void ").strip() or name


def _nearer(under: Roofs) -> str:
    levels = [level for level in under.bandwidths if level != "memory"]
    return f", . {', '.join(levels[::-1])}" if levels else ""


def _column(area: Axes, x: float, inside: int) -> int:
    return math.floor(inside * math.log(x / area.left) / math.log(area.right / area.left))


def _row(area: Axes, y: float) -> int:
    return math.floor(_HEIGHT * math.log(area.top / y) / math.log(area.top / area.bottom))


def _powers(low: float, high: float) -> list[tuple[float, str]]:
    """The powers of ten from low to high, and how they are written."""
    first, last = round(math.log10(low)), round(math.log10(high))
    return [(10.0**power, f"{10.0**power:g}") for power in range(first, last + 1)]


def _ticks(area: Axes, inside: int) -> str:
    line, free = [" "] * (inside + 8), 0
    for value, text in _powers(area.left, area.right):
        at = _column(area, value, inside)
        if at >= free:
            line[at : at + len(text)] = text
            free = at + len(text) + 1
    return "".join(line).rstrip()


def _short(value: float | None) -> str:
    return "" if value is None else short(value)


def _bytes(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"
