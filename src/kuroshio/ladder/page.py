"""The account as a page that needs nothing else: no scripts, no fonts, nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from urllib.parse import quote

from ..pages import text, whole
from .account import Row
from .page_style import STYLE
from .report import JSON, Report
from .results import PARTS
from .study import CONFIRMED, NOT_JUDGED, REFUTED, UNDECIDED
from .tables import Table, study_table
from .words import percent, seconds

_CLASSES = {CONFIRMED: "good", REFUTED: "bad", UNDECIDED: "open", NOT_JUDGED: "open"}
_LONG = 32  # characters, above which words are wrapped


def page(report: Report) -> str:
    """HTML, whole."""
    parts = [
        f"<h1>The ladder, {text(report.problem.name)} scale</h1>",
        f"<p>{text(report.heading)}</p>",
        _sentences(report.sentences),
        _bars(report.rows),
        *(_table(table) for table in report.tables),
        *_studies(report),
        _measured(report.measured),
        f'<p class="note">All figures, for programs: <a href="{JSON}">{JSON}</a>.</p>',
    ]
    title = f"Ladder: {report.problem.name} on {report.device}"
    return whole(title, "\n".join(part for part in parts if part), STYLE)


def _sentences(said: Sequence[str]) -> str:
    if not said:
        return "<p>No rung has run.</p>"
    items = "\n".join(f"<li>{text(each)}</li>" for each in said)
    return f"<h2>What it says</h2>\n<ul>\n{items}\n</ul>"


def _bars(rows: Sequence[Row]) -> str:
    """Two bars a rung: seconds, all on one linear scale, and the same in shares."""
    ran = [row for row in rows if row.total_s]
    if not ran:
        return ""
    longest = max(row.total_s or 0.0 for row in ran)
    legend = "".join(
        f'<li><span class="key part-{at}"></span>{text(part)}</li>' for at, part in enumerate(PARTS)
    )
    lines = []
    for row in ran:
        assert row.total_s
        said = ", ".join(f"{part} {percent(row.share(part))}" for part in PARTS)
        label = f"{row.key}: {seconds(row.total_s)} s a pass: {said}"
        published = f"{row.published.total_s:g} s" if row.published else "-"
        lines.append(
            f'<div class="rung"><span class="name">{text(row.key)}</span>'
            f'<div class="both" role="img" aria-label="{text(label)}">'
            f"{_bar(row, 100 * row.total_s / longest, '')}{_bar(row, 100.0, ' share')}</div>"
            f'<span class="value">{seconds(row.total_s)} s</span>'
            f'<span class="value quiet">{published}</span></div>'
        )
    return (
        f'<h2>Where a pass goes</h2>\n<ul class="legend">{legend}</ul>\n'
        '<div class="bars">\n<div class="rung head"><span>rung</span><span>seconds, and shares of '
        'them below</span><span class="value">here</span><span class="value">published</span></div>'
        "\n" + "\n".join(lines) + "\n</div>"
    )


def _bar(row: Row, width: float, kind: str) -> str:
    """Its parts side by side; `width` in percent of all there is."""
    parts = "".join(
        f'<span class="part-{at}" style="width:{100 * row.share(part):.4f}%" '
        f'title="{text(f"{part}: {seconds(row.parts[part])} s, {percent(row.share(part))}")}">'
        "</span>"
        for at, part in enumerate(PARTS)
        if row.parts[part] > 0
    )
    return f'<div class="bar{kind}" style="width:{width:.4f}%">{parts}</div>'


def _table(table: Table, level: int = 2) -> str:
    """With its title as a heading; wide ones are scrolled by themselves."""
    head = f"<h{level}>{text(table.title)}</h{level}>"
    notes = "".join(f'\n<p class="note">{text(note)}</p>' for note in table.notes)
    if not table.rows:
        return head + notes
    sides = [_side(table, at) for at in range(len(table.columns))]
    columns = "".join(
        f'<th scope="col"{side}>{text(column)}</th>'
        for column, side in zip(table.columns, sides, strict=True)
    )
    links = table.links or [""] * len(table.rows)
    rows = "\n".join(
        f"<tr>{''.join(_cells(row, sides, link))}</tr>"
        for row, link in zip(table.rows, links, strict=True)
    )
    return (
        f'{head}\n<div class="wide" role="region" aria-label="{text(table.title)}" tabindex="0">'
        f"<table>\n<thead><tr>{columns}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table></div>{notes}"
    )


def _side(table: Table, at: int) -> str:
    """A column's class: numbers flush right, long words with room to be wrapped in."""
    if table.columns[at] not in table.text:
        return ' class="number"'
    return ' class="words"' if max(len(row[at]) for row in table.rows) > _LONG else ""


def _cells(row: Sequence[str], sides: Sequence[str], link: str) -> Iterable[str]:
    for at, (cell, side) in enumerate(zip(row, sides, strict=True)):
        inside = text(cell)
        if link and at == len(row) - 1:
            inside = f'<a href="{escape(quote(link))}">{inside}</a>'
        elif cell in _CLASSES:
            inside = f'<span class="{_CLASSES[cell]}">{inside}</span>'
        yield f'<th scope="row">{inside}</th>' if at == 0 else f"<td{side}>{inside}</td>"


def _studies(report: Report) -> Iterable[str]:
    if report.studies:
        yield "<h2>Strategies one by one</h2>"
    for study in report.studies:
        said = "".join(
            f"<dt>{name}</dt><dd>{text(words)}</dd>"
            for name, words in (
                ("Claimed", study.claim), ("Predicted", study.prediction), ("Found", study.finding)
            )
            if words
        )  # fmt: skip
        verdict = (
            f'<span class="{_CLASSES.get(study.verdict, "open")}">{text(study.verdict)}</span>'
        )
        yield f"{_table(study_table(study), 3)}\n<dl>{said}<dt>Verdict</dt><dd>{verdict}</dd></dl>"


def _measured(told: Sequence[tuple[str, str]]) -> str:
    rows = "\n".join(
        f'<tr><th scope="row">{text(name)}</th><td>{text(value)}</td></tr>' for name, value in told
    )
    return (
        "<h2>How it was measured</h2>\n<p>These rates were measured before the first rung ran, and "
        "predictions were made from them and sealed. Every rung was held to the exact answer of "
        "this package's engine, and that to NumPy on some cells.</p>\n"
        f'<div class="wide"><table class="facts"><tbody>\n{rows}\n</tbody></table></div>'
    )
