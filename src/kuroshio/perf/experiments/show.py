"""What a person sees of experiments in the terminal, and the same as plain values for JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from rich.markdown import Markdown
from rich.table import Table
from rich.text import Text

from ...console import Output
from ...messages import printable
from ..results import seconds_text
from .record import CONFIRMED, NOT_CHECKED, NOT_JUDGED, REFUTED, SECTIONS, Record
from .sealing import broken
from .steps import sentence

_COLOURS = {CONFIRMED: "green", REFUTED: "red", NOT_JUDGED: "red"}
_CELL = 30
_SECONDS = ("median", "p90", "min", "mad")  # of a result of bench
Broken = tuple[str, str]  # a file's name, and why it cannot be read


def as_facts(record: Record) -> dict[str, Any]:
    """A record as plain values for JSON."""
    return {
        "number": record.number,
        "file": str(record.path) if record.path else None,
        "title": record.title,
        "state": record.state,
        "verdict": record.verdict,
        "decision": record.conclusion.decision if record.conclusion else None,
        "changed_after_sealing": broken(record),
        "created": record.created,
        "follows": record.follows,
        "prediction": record.prediction.facts() if record.prediction else None,
        "seal": asdict(record.seal) if record.seal else None,
        "results": [asdict(result) for result in record.results],
        "conclusion": asdict(record.conclusion) if record.conclusion else None,
        "prose": {section: record.prose(section) for section in SECTIONS},
    }


def print_json(facts: Any) -> None:
    print(json.dumps(facts, indent=1, default=_plain))


def show_trail(records: Sequence[Record], unreadable: Sequence[Broken]) -> None:
    """A line an experiment, failures included."""
    output = Output()
    gap = 3 if output.width >= 100 else 2 if output.width >= 80 else 1
    table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0))
    table.add_column("no.", justify="right")
    for name in ("experiment", "predicted", "measured", "verdict"):
        table.add_column(name)
    table.add_column("conclusion", no_wrap=True)
    for record in records:
        follows = f" (follows {record.follows})" if record.follows else ""
        table.add_row(
            str(record.number or ""),
            _text(record.title + follows),
            _text(str(record.prediction or "")),
            _measured(record),
            _verdict(record),
            record.conclusion.decision if record.conclusion else "",
        )
    for name, _ in unreadable:
        table.add_row("", _text(name), "", "", Text("cannot be read", style="red"), "")
    output.print(table)


def show_record(record: Record) -> None:
    """All of one experiment."""
    output = Output()
    number = "" if record.number is None else f"{record.number}: "
    output.print(Text(printable(f"{number}{record.title}"), style="bold"))
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="dim")
    table.add_column()
    for name, value in _head(record):
        table.add_row(name, _text(value))
    output.print(table)
    for place, result in enumerate(record.results, 1):
        style = _COLOURS.get(result.verdict, "")
        output.print()
        output.print(Text(f"Result {place}, {_day(result.at)}: {result.verdict}", style=style))
        output.say(sentence(record, result))
        if result.new:
            output.print(_sides(result.new, result.old))
        if result.unstable:
            output.say(f"not stable: {result.unstable}")
        for text in _long(result.new, result.old):
            output.say(text)
        for source in result.sources:
            output.say(f"from {source}")
    for section in SECTIONS:
        if record.prose(section) and section != "result":
            output.print()
            output.print(Text(section.capitalize(), style="bold"))
            text = "\n".join(map(printable, record.prose(section).split("\n")))
            output.print(Markdown(text) if output.is_terminal else Text(text))
    if changes := broken(record):
        output.print()
        output.print(
            Text(printable(f"Changed after it was sealed: {'; '.join(changes)}"), style="red")
        )


def _head(record: Record) -> list[tuple[str, str]]:
    head = [("file", str(record.path or "")), ("created", _day(record.created))]
    if record.follows:
        head.append(("follows", str(record.follows)))
    if record.prediction:
        head.append(("predicted", f"{record.prediction} ({record.prediction.direction})"))
    if record.seal:
        head.append(("sealed", f"{_day(record.seal.at)}, {record.seal.sha256[:16]}"))
    if record.conclusion:
        head.append(("concluded", f"{_day(record.conclusion.at)}: {record.conclusion.decision}"))
    return head


def _verdict(record: Record) -> Text:
    if not record.results:
        words = [record.state]
    elif record.verdict == NOT_JUDGED:
        words = ["not correct"]
    else:
        words = [str(record.verdict)]
        if record.results[-1].correct == NOT_CHECKED:
            words.append("not checked")
    if len(record.results) > 1:
        words.append(f"measured {len(record.results)} times")
    if changed := bool(broken(record)):
        words.append("changed after it was sealed")
    style = "red" if changed else _COLOURS.get(record.verdict or "", "")
    return Text(", ".join(words), style=style)


def _measured(record: Record) -> str:
    if not record.results or record.results[-1].value is None:
        return ""
    last = record.results[-1]
    interval = "" if last.low is None else f" ({last.low:.4g} to {last.high:.4g})"
    return f"{last.value:.4g}{interval}"


def _sides(new: Any, old: Any) -> Table:
    table = Table()
    table.add_column("figure")
    table.add_column("new", justify="right")
    if old:
        table.add_column("old", justify="right")
    for key in dict.fromkeys([*new, *old]):
        if _is_long(new.get(key)) or _is_long(old.get(key)):
            continue
        row = [_text(key), *(_text(_shown(side.get(key), key)) for side in (new, old))]
        table.add_row(*row[: 3 if old else 2])
    return table


def _long(new: Any, old: Any) -> list[str]:
    """What does not fit a table: once if it is the same of both sides."""
    lines = []
    for key in dict.fromkeys([*new, *old]):
        values = dict.fromkeys(str(side[key]) for side in (new, old) if _is_long(side.get(key)))
        lines += [f"{key}: {value}" for value in values]
    return lines


def _is_long(value: Any) -> bool:
    return isinstance(value, str) and len(value) > _CELL


def _shown(value: Any, key: str = "") -> str:
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    if key in _SECONDS and isinstance(value, int | float):
        return seconds_text(value)
    if key in ("bytes", "flops") and isinstance(value, int):
        return f"{value:,}"
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def _text(text: str) -> Text:
    return Text(printable(text))


def _day(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M} UTC" if not time.utcoffset() else str(time)


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else str(value)
