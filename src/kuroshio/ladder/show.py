"""The account in a terminal: small tables, and sentences below them."""

from __future__ import annotations

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
    """A title and a grid as narrow as its words allow; only a title where there are no rows."""
    console.print()
    console.print(Text(printable(table.title), style="bold"))
    if table.rows:
        gap = 2 if console.width >= 100 else 1
        grid = Rich(box=None, pad_edge=False, padding=(0, gap, 0, 0))
        for column in table.columns:
            grid.add_column(
                Text(printable(column)), justify="left" if column in table.text else "right"
            )
        for row in table.rows:
            grid.add_row(*(Text(printable(cell), style=_COLOURS.get(cell, "")) for cell in row))
        console.print(grid)
    for note in table.notes:
        console.print(Text(printable(note), style="dim"), soft_wrap=not console.is_terminal)
