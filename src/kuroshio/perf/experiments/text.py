"""A record as a file: TOML between two lines +++, a title, six sections of Markdown.

Whatever is wrong in a file is refused with its line.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ...errors import Refusal
from .front_matter import Table, lines_of
from .prediction import ROW_KEYS, Prediction
from .record import (
    CORRECT,
    DECISIONS,
    HINTS,
    PROSE,
    SCHEMA,
    SECTIONS,
    VERDICTS,
    Conclusion,
    Record,
    Result,
    Seal,
)
from .toml_text import dumps

_FENCE = "+++"
_NO_PREDICTION = """
# What is predicted: a figure, and the range in which it will lie.
# [prediction]
# figure = "host_s.median"   # of a bench result; or a path in JSON: "$.seconds"
# compare = "new/old"        # a ratio; or "new": a value, with before = ...
# low = 0.70
# high = 0.85
"""


def to_text(record: Record) -> str:
    """The whole file."""
    front: dict[str, Any] = {
        "schema": SCHEMA,
        "created": record.created,
        "follows": record.follows,
        "prediction": record.prediction.facts() if record.prediction else None,
        "seal": asdict(record.seal) if record.seal else None,
        "result": [_given(asdict(result)) for result in record.results] or None,
        "conclusion": asdict(record.conclusion) if record.conclusion else None,
    }
    head = dumps(front) + ("" if record.prediction else _NO_PREDICTION)
    parts = [f"{_FENCE}\n{head}{_FENCE}\n", f"# {record.title}\n"]
    for name in SECTIONS:
        parts.append(f"## {name.capitalize()}\n\n{record.prose(name) or HINTS[name]}\n")
    return "\n".join(parts)


def from_text(text: str, path: Path | None = None) -> Record:
    """The record that a file's text holds; `path` is for messages, and stays with it.

    Raises Refusal with the line of what is wrong.
    """
    name = str(path) if path else "the record"
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if lines[0].rstrip() != _FENCE:
        raise _wrong(name, 1, f"a record begins with a line {_FENCE}, here is {lines[0][:60]!r}")
    ends = [place for place, line in enumerate(lines[1:], 1) if line.rstrip() == _FENCE]
    if not ends:
        raise _wrong(name, 1, f"the front matter has no end: a second line {_FENCE} is missing")
    front = _front(lines[1 : ends[0]], name)
    title, prose = _body(lines, ends[0] + 1, name)
    return _record(front, title, prose, path, name)


def _front(lines: list[str], name: str) -> Table:
    try:
        values = tomllib.loads("\n".join(lines))
    except tomllib.TOMLDecodeError as error:
        what = str(error)
        found = re.search(r"\(at line (\d+), column (\d+)\)", what)
        line = int(found[1]) + 1 if found else len(lines) + 1
        what = re.sub(r" *\(at .*\)$", "", what)
        raise _wrong(name, line, f"this is not TOML: {what}") from None
    except (RecursionError, ValueError) as error:  # nested without end, a number without end
        raise _wrong(name, 2, f"this is not TOML: {error}") from None
    return Table(values, lines_of(lines, first=2), name)


def _body(lines: list[str], start: int, name: str) -> tuple[str, dict[str, str]]:
    """The title, and the prose of each section."""
    place = next((i for i in range(start, len(lines)) if lines[i].strip()), None)
    if place is None or not re.match(r"# +\S", lines[place]):
        found = "nothing" if place is None else repr(lines[place][:60])
        line = len(lines) if place is None else place + 1
        raise _wrong(name, line, f"a title (# ...) follows the front matter, here is {found}")
    headings = {f"## {section.capitalize()}": section for section in SECTIONS}
    at = {
        i: headings[s] for i in range(place + 1, len(lines)) if (s := lines[i].rstrip()) in headings
    }
    _check_sections(at, lines, place, name)
    starts = [*at, len(lines)]
    prose = {
        section: "\n".join(lines[begin + 1 : end])
        for (begin, section), end in zip(at.items(), starts[1:], strict=True)
    }
    return lines[place][1:].strip(), prose


def _check_sections(at: dict[int, str], lines: list[str], title: int, name: str) -> None:
    for wanted, (line, found) in zip(SECTIONS, at.items(), strict=False):
        if found == wanted:
            continue
        if list(at.values()).count(found) > 1 and SECTIONS.index(found) < SECTIONS.index(wanted):
            raise _wrong(name, line + 1, f"the section {found!r} is there twice")
        raise _wrong(name, line + 1, _missing(wanted, lines, title, at) + f" before {found!r}")
    if len(at) > len(SECTIONS):
        line = list(at)[len(SECTIONS)]
        raise _wrong(name, line + 1, f"the section {at[line]!r} is there twice")
    if len(at) < len(SECTIONS):
        wanted = SECTIONS[len(at)]
        raise _wrong(name, len(lines), _missing(wanted, lines, title, at))
    first = next(iter(at))
    for i in range(title + 1, first):
        if lines[i].strip():
            raise _wrong(name, i + 1, "text stands before the first section, ## Observation")


def _missing(wanted: str, lines: list[str], title: int, at: dict[int, str]) -> str:
    """With the line that may have been meant."""
    near = [
        i + 1
        for i in range(title + 1, len(lines))
        if i not in at and lines[i].lstrip("# ").lower()[:4] == wanted[:4] and "#" in lines[i][:1]
    ]
    hint = f" (is line {near[0]}, {lines[near[0] - 1].strip()[:60]!r}, meant?)" if near else ""
    return f"the heading '## {wanted.capitalize()}' is missing{hint}"


def _record(
    front: Table, title: str, prose: dict[str, str], path: Path | None, name: str
) -> Record:
    schema = front.word("schema")
    if schema != SCHEMA:
        raise front.wrong("schema", f"it is {schema!r}; this version reads {SCHEMA!r}")
    sealing, concluding = front.table("seal", False), front.table("conclusion", False)
    texts = {PROSE[section]: text for section, text in prose.items()}
    try:
        record = Record(
            title=title,
            created=front.time("created"),
            follows=front.whole("follows", required=False),
            prediction=_prediction(front.table("prediction", False)),
            seal=_seal(sealing) if sealing else None,
            results=tuple(_result(table) for table in front.tables("result")),
            conclusion=_conclusion(concluding) if concluding else None,
            path=path,
            **texts,
        )
    except Refusal as refusal:
        if refusal.message.startswith(name):
            raise
        raise Refusal(f"{name}: {refusal.message}") from refusal
    front.nothing_else()
    _check_verdicts(record, front)
    return record


def _prediction(table: Table | None) -> Prediction | None:
    if table is None:
        return None
    values: dict[str, Any] = {
        "figure": table.word("figure"),
        "compare": table.word("compare", required=False) or "new/old",
        "direction": table.word("direction", required=False) or "",
        "exact": table.flag("exact", required=False) or False,
        **{key: table.number(key, required=False) for key in ("low", "high", "before")},
        **{key: table.plain(key, ROW_KEYS) for key in ("new", "old")},
    }
    table.nothing_else()
    try:
        return Prediction(**values)
    except Refusal as refusal:
        raise table.wrong_here(refusal.message) from refusal


def _seal(table: Table) -> Seal:
    seal = Seal(
        at=table.time("at"),
        sha256=table.word("sha256"),
        sections=table.plain("sections"),
        prediction=table.raw("prediction"),
    )
    table.nothing_else()
    return seal


def _result(table: Table) -> Result:
    result = Result(
        at=table.time("at"),
        correct=table.word("correct", CORRECT),
        verdict=table.word("verdict", VERDICTS),
        seal=table.word("seal"),
        because=table.word("because", required=False),
        value=table.number("value", required=False),
        low=table.number("low", required=False),
        high=table.number("high", required=False),
        moved=table.word("moved", required=False),
        unstable=table.word("unstable", required=False),
        how=table.word("how", required=False),
        sources=tuple(table.words("sources")),
        new=table.raw("new"),
        old=table.raw("old"),
    )
    table.nothing_else()
    return result


def _conclusion(table: Table) -> Conclusion:
    conclusion = Conclusion(decision=table.word("decision", DECISIONS), at=table.time("at"))
    table.nothing_else()
    return conclusion


def _check_verdicts(record: Record, front: Table) -> None:
    """A verdict is what the rule says of its own numbers."""
    from .judging import contradiction

    if record.conclusion and not record.reason.strip():
        raise front.wrong(
            "conclusion", "there is a decision, but the section 'conclusion' is empty"
        )
    for place, result in enumerate(record.results):
        if record.prediction is None:
            raise front.wrong("result", "there is a result, but no prediction")
        if why := contradiction(record.prediction, result):
            raise front.wrong(("result", place, "verdict"), why)


def _given(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in facts.items() if value not in (None, (), {})}


def _wrong(name: str, line: int, what: str) -> Refusal:
    return Refusal(f"{name}, line {line}: {what}.")
