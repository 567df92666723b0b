"""The page's parts as HTML. All text goes through `text`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ...pages import text
from ..findings import figures
from ..findings.finding import Finding
from ..timeline.steps import Part, Steps
from . import palette, savings

_MOST_STEPS = 24  # bars of single steps


@dataclass(frozen=True)
class Column:
    """Of a table. number: flush right; name: long words, wrapped anywhere."""

    title: str
    number: bool = True
    name: bool = False


# Of a bar: what it is, its colour, ns.
Piece = tuple[str, str, int]
# What a cell says, and by what it is sorted; None is not recorded.
Cell = tuple[str, float | None] | str
NOT_RECORDED: Cell = ("", None)


def section(title: str, *parts: str, identity: str = "") -> str:
    """Nothing without parts."""
    inside = "\n".join(part for part in parts if part)
    named = f' id="{identity}"' if identity else ""
    return f"<section{named}>\n<h2>{text(title)}</h2>\n{inside}\n</section>" if inside else ""


def paragraph(words: str, kind: str = "") -> str:
    return f'<p class="{kind}">{text(words)}</p>' if kind else f"<p>{text(words)}</p>"


def items(words: Iterable[str]) -> str:
    listed = "".join(f"<li>{text(each)}</li>" for each in words)
    return f"<ul>{listed}</ul>" if listed else ""


def findings(found: Sequence[Finding]) -> str:
    """A button each, with the share it could save; the first is open."""
    if not found:
        return paragraph("No rule found anything that is worth a change. Silence is a result.")
    listed = "\n".join(_finding(each, number) for number, each in enumerate(found))
    return f'<ol class="findings">\n{listed}\n</ol>'


def _finding(finding: Finding, number: int) -> str:
    most, bar = savings.headline(finding, "{}, {}") or "saving not known", ""
    if finding.saves is not None:
        share = min(1.0, finding.saves / finding.of) if finding.of else 0.0
        bar = f'<div class="saving"><span style="width:{100 * share:.2f}%"></span></div>'
    told = [
        ("Verify next", items(finding.verify)),
        ("Directions", items(finding.directions)),
        ("At most", text(_at_most(finding))),
        ("Seen in", items(finding.names)),
        ("The trace cannot tell", items(finding.cannot_tell)),
    ]
    rows = "".join(f"<dt>{name}</dt><dd>{said}</dd>" for name, said in told if said)
    opened = " open" if number == 0 else ""
    head = f'<span>{text(finding.title)}</span><span class="most">{text(most)}</span>'
    if finding.places:
        head = (
            f'<button type="button" class="finding" data-number="{number}" aria-pressed="false" '
            f'aria-controls="timeline">{head}</button>'
        )
    else:  # nothing to go to
        head = f'<div class="finding">{head}</div>'
    return (
        f'<li id="finding-{number}">{head}\n{bar}{paragraph(finding.summary)}\n'
        f"<details{opened}><summary>What to verify, and what helps</summary>"
        f"<dl>{rows}</dl></details></li>"
    )


def _at_most(finding: Finding) -> str:
    how = savings.counted(finding)
    if finding.bound is None:
        return how
    times = finding.speedup
    faster = f"; {times:.2f} times as fast" if times else ""
    return f"{figures.time(finding.bound)} of {figures.time(finding.of)}{faster}: {how}"


def stages(steps: Steps, title: str = "") -> str:
    """One bar of all steps, one of each of the first steps, and what each part could give."""
    parts = [part for part in Part if part in steps.bounds and steps.bounds[part].time]
    if not parts:
        return ""
    total = {part: steps.bounds[part].time for part in parts}
    lines = [bar(title or "all", _pieces(total), steps.total, steps.total, " all")]
    longest = max((each.end - each.start for each in steps.steps), default=0)
    if len(steps.steps) > 1:
        lines += [
            bar(each.name, _pieces(each.parts), each.end - each.start, longest)
            for each in steps.steps[:_MOST_STEPS]
        ]
    more = len(steps.steps) - _MOST_STEPS
    note = paragraph(f"and {more} more", "note") if more > 0 else ""
    return f"{bars(lines)}{note}\n{_bounds(steps, parts)}"


def _pieces(parts: Mapping[Part, int]) -> list[Piece]:
    return [(str(part), palette.OF_PART[part], ns) for part, ns in parts.items()]


def bars(lines: Sequence[str]) -> str:
    return f'<div class="stages">\n{"".join(lines)}\n</div>'


def bar(name: str, pieces: Sequence[Piece], whole: int, longest: int, kind: str = "") -> str:
    """Pieces side by side, as long as `whole` is of the longest."""
    told = [each for each in pieces if each[2] > 0 and whole]
    drawn = "".join(
        f'<span class="c-{colour}" style="width:{100 * ns / whole:.3f}%" '
        f'title="{text(f"{said}: {figures.time(ns)}, {figures.share(ns, whole)}")}"></span>'
        for said, colour, ns in told
    )
    said = ", ".join(f"{said} {figures.share(ns, whole)}" for said, _, ns in told)
    wide = 100 * whole / longest if longest else 0.0
    return (
        f'<div class="stage{kind}"><span title="{text(name)}">{text(name)}</span>'
        f'<div class="bar" role="img" aria-label="{text(f"{name}: {said}")}" '
        f'style="width:{wide:.3f}%">{drawn}</div><span>{figures.time(whole)}</span></div>\n'
    )


def _bounds(steps: Steps, parts: Sequence[Part]) -> str:
    rows: list[list[Cell]] = []
    for part in parts:
        bound = steps.bounds[part]
        gone = "-" if bound.vanished is None else f"{bound.vanished:.2f} x"
        rows.append(
            [
                str(part), (figures.time(bound.time), bound.time),
                (figures.share(bound.time, steps.total), bound.share), (gone, bound.vanished),
                (f"{bound.halved:.2f} x", bound.halved),
            ]
        )  # fmt: skip
    columns = [
        Column("part", number=False), Column("time"), Column("share"),
        Column("without it, at most"), Column("twice as fast, at most"),
    ]  # fmt: skip
    keys = [palette.OF_PART[part] for part in parts]
    return table(
        "What each part gives if the others stay as they are (Amdahl)", columns, rows, keys=keys
    )


def legend(words: Sequence[tuple[str, str]]) -> str:
    """Colours and what they mean."""
    shown = "".join(
        f'<li><span class="key c-{colour}"></span>{text(said)}</li>' for colour, said in words
    )
    return f'<ul class="legend">{shown}</ul>'


def table(
    title: str,
    columns: Sequence[Column],
    rows: Sequence[Sequence[Cell]],
    *,
    sortable: bool = False,
    keys: Sequence[str] = (),
) -> str:
    """Scrolled by itself where it is too wide; with buttons to sort by; keys colour its rows."""
    if not rows:
        return ""
    # A column of which nothing was recorded says nothing.
    full = [at for at in range(len(columns)) if any(row[at] != NOT_RECORDED for row in rows)]
    columns, rows = [columns[at] for at in full], [[row[at] for at in full] for row in rows]
    head = "".join(
        f'<th scope="col"{_side(column)}>'
        + (f'<button type="button">{text(column.title)}</button>' if sortable else column.title)
        + "</th>"
        for column in columns
    )
    body = "\n".join(
        f"<tr>{''.join(_cells(row, columns, keys[at] if keys else ''))}</tr>"
        for at, row in enumerate(rows)
    )
    tall = " tall" if len(rows) > 15 else ""
    return (
        f'<div class="wide{tall}" role="region" aria-label="{text(title)}" tabindex="0">'
        f"<table{' class=sortable' if sortable else ''}>\n<thead><tr>{head}</tr></thead>\n"
        f"<tbody>\n{body}\n</tbody>\n</table></div>"
    )


def _side(column: Column) -> str:
    return ' class="number"' if column.number else ""


def _cells(row: Sequence[Cell], columns: Sequence[Column], key: str) -> Iterable[str]:
    for at, (cell, column) in enumerate(zip(row, columns, strict=True)):
        words, value = cell if isinstance(cell, tuple) else (cell, None)
        sign = f'<span class="key c-{key}"></span>' if key and at == 0 else ""
        kind = ' class="name"' if column.name else _side(column)
        sorts = ""
        if isinstance(cell, tuple):
            sorts = f' data-value="{"" if value is None else f"{value:.9g}"}"'
        yield f"<td{kind}{sorts}>{sign}{text(words)}</td>"
