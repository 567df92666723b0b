"""The account in a terminal: tables that fit it, and sentences below them."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.table import Table as Rich
from rich.text import Text

from ..console import Output
from ..messages import printable
from .report import LEAD, Report
from .study import CONFIRMED, REFUTED
from .tables import Table, study_table

_COLOURS = {CONFIRMED: "green", REFUTED: "red"}


def show(report: Report) -> None:
    """All of it; what it comes to is said last, where it stays in sight."""
    console = Output()
    console.say(report.heading)
    console.say(LEAD)
    for table in report.tables:
        _table(console, table)
    for study in report.studies:
        _table(console, study_table(study))
        for name, text in (
            ("Claimed", study.claim), ("Predicted", study.prediction), ("Found", study.finding)
        ):  # fmt: skip
            if text:
                console.say(f"{name}: {text}")
        console.print(Text(f"Verdict: {study.verdict}", style=_COLOURS.get(study.verdict, "")))
    if report.sentences:
        console.print()
        console.print(Text("What it comes to", style="bold"))
    for sentence in report.sentences:
        console.say(f"- {sentence}")


def _table(console: Output, table: Table) -> None:
    """A title and a grid, or several below each other where the terminal is narrow."""
    console.print()
    console.print(Text(printable(table.title), style="bold"))
    gap = 2 if console.width >= 100 else 1
    for columns in _pieces(table, console.width, gap) if table.rows else ():
        grid = Rich(box=None, pad_edge=False, padding=(0, gap, 0, 0))
        wide = _widths(table, columns, console.width - gap * len(columns))
        for at in columns:
            name = table.columns[at]
            grid.add_column(
                Text(printable(name)), justify="left" if name in table.text else "right",
                width=wide[at],
            )  # fmt: skip
        for row in table.rows:
            grid.add_row(
                *(Text(printable(row[at]), style=_COLOURS.get(row[at], "")) for at in columns)
            )
        console.print(grid)
    for note in table.notes:
        console.print(Text(printable(note), style="dim"), soft_wrap=not console.is_terminal)


def _pieces(table: Table, width: int, gap: int) -> list[list[int]]:
    """Columns side by side as many as fit without a figure being cut; each piece has the names.

    Names are as many of the first columns as tell rows apart, if they leave room for others.
    """
    needs = [_narrowest(table, at) + gap for at in range(len(table.columns))]
    number = 1
    while len({tuple(row[:number]) for row in table.rows}) < len(table.rows):
        if number == len(needs) or sum(needs[: number + 1]) > width * 2 // 3:
            break
        number += 1
    names = list(range(number))
    pieces: list[list[int]] = []
    room = 0
    for at in range(len(names), len(needs)):
        if not pieces or needs[at] > room:
            pieces.append(list(names))
            room = width - sum(needs[name] for name in names)
        pieces[-1].append(at)
        room -= needs[at]
    return pieces or [names]


def _widths(table: Table, columns: Sequence[int], room: int) -> dict[int, int]:
    """Of columns side by side: as wide as they would be, and less where there is no room."""
    wide = {at: _narrowest(table, at) for at in columns}
    spare = room - sum(wide.values())
    for at in columns:
        cells = [table.columns[at], *(row[at] for row in table.rows)]
        more = max(min(max(map(cell_len, map(printable, cells))) - wide[at], spare), 0)
        wide[at] += more
        spare -= more
    if spare < 0:  # narrower than one column and its names
        wide[columns[-1]] = max(wide[columns[-1]] + spare, 1)
    return wide


def _narrowest(table: Table, at: int) -> int:
    """Of a column: figures are not wrapped, words only between them."""
    cells = [row[at] for row in table.rows]
    if table.columns[at] in table.text:
        cells = [word for cell in cells for word in cell.split()]
    heads = table.columns[at].split()
    return max(map(cell_len, map(printable, [*cells, *heads])), default=1)
