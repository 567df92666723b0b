"""The account in a terminal: small tables, and sentences below them."""

from __future__ import annotations

from rich.cells import cell_len
from rich.table import Table as Rich
from rich.text import Text

from ..console import Output
from ..messages import printable
from .report import Report
from .study import CONFIRMED, REFUTED
from .tables import Table, study_table

_COLOURS = {CONFIRMED: "green", REFUTED: "red"}


def show(report: Report) -> None:
    """All of it."""
    console = Output()
    console.say(report.heading)
    for table in report.tables:
        _table(console, table)
    console.print()
    for sentence in report.sentences:
        console.say(sentence)
    for study in report.studies:
        _table(console, study_table(study))
        for name, text in (
            ("Claimed", study.claim), ("Predicted", study.prediction), ("Found", study.finding)
        ):  # fmt: skip
            if text:
                console.say(f"{name}: {text}")
        console.print(Text(f"Verdict: {study.verdict}", style=_COLOURS.get(study.verdict, "")))


def _table(console: Output, table: Table) -> None:
    """A title, and a grid or, where that is too wide, a paragraph a row."""
    console.print()
    console.print(Text(printable(table.title), style="bold"))
    gap = 2 if console.width >= 100 else 1
    widths = _widths(table, console.width - gap * len(table.columns))
    if not widths:
        for row in table.rows:
            told = zip(table.columns, row, strict=True)
            console.say("; ".join(f"{column}: {cell}" for column, cell in told if cell))
    elif table.rows:
        grid = Rich(box=None, pad_edge=False, padding=(0, gap, 0, 0))
        for column, width in zip(table.columns, widths, strict=True):
            grid.add_column(
                Text(printable(column)),
                justify="left" if column in table.text else "right",
                width=width,
            )
        for row in table.rows:
            grid.add_row(*(Text(printable(cell), style=_COLOURS.get(cell, "")) for cell in row))
        console.print(grid)
    for note in table.notes:
        console.print(Text(printable(note), style="dim"), soft_wrap=not console.is_terminal)


def _widths(table: Table, room: int) -> list[int]:
    """Of each column, no narrower than its longest word; none where that is too much.

    Left to itself Rich cuts words, and a figure that is cut off is a wrong one.
    """
    widths, wanted = [], []
    for at, column in enumerate(table.columns):
        cells = [printable(cell) for cell in (column, *(row[at] for row in table.rows))]
        widths.append(max(cell_len(word) for cell in cells for word in cell.split() or [""]))
        wanted.append(max(map(cell_len, cells)))
    room -= sum(widths)
    if room < 0:
        return []
    for at, width in enumerate(wanted):
        more = min(width - widths[at], room)
        widths[at] += more
        room -= more
    return widths
