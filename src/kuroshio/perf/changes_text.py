"""What two diagnoses differ in, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from ..messages import printable
from .changes import Amount, Changes
from .findings.figures import time
from .results import columns
from .timeline.kernels import short

_MOST = 12  # rows of a table
_NAME = 50


def text(changes: Changes) -> str:
    """All of it."""
    whose = "a step" if changes.per_step else "the whole"
    parts = [
        f"{printable(changes.names[0])} against {printable(changes.names[1])}; times of {whose}"
        + (f" ({changes.steps[0]} and {changes.steps[1]} steps)" if changes.per_step else "")
    ]
    parts += [f"Not alike: {each}." for each in changes.differ]
    if changes.step:
        parts.append(f"{changes.step.verdict} They were not recorded in turn.")
    for title, amounts in (
        ("device", changes.work),
        ("part of steps", changes.parts),
        ("stage", changes.stages),
        ("holes", changes.holes),
        ("kernel", changes.kernels),
    ):
        if amounts:
            parts.append(_table(title, amounts))
    for title, names in (
        ("Findings that are gone", changes.vanished),
        ("Findings that are new", changes.appeared),
        ("Findings that stay", changes.stayed),
    ):
        if names:
            parts.append("\n".join([f"{title}:", *(f"  {printable(name)}" for name in names)]))
    if not (changes.vanished or changes.appeared or changes.stayed):
        parts.append("Neither has a finding.")
    return "\n\n".join(parts)


def _table(title: str, amounts: Sequence[Amount]) -> str:
    often = any(each.calls != (None, None) for each in amounts)
    lines = [[title, "before", "after", "change", "", *(["times", "times after"] if often else [])]]
    for each in amounts[:_MOST]:
        name = printable(short(each.name))
        line = [
            name if len(name) <= _NAME else f"{name[: _NAME - 3]}...",
            *("" if ns is None else time(round(ns)) for ns in (each.before, each.after)),
            ("+" if each.difference >= 0 else "-") + time(round(abs(each.difference))),
            _how(each),
        ]
        if often:
            line += ["" if calls is None else f"{calls:,.4g}" for calls in each.calls]
        lines.append(line)
    said = columns(lines, left=1)
    if len(amounts) > _MOST:
        rest = sum(each.difference for each in amounts[_MOST:])
        sign = "+" if rest >= 0 else "-"
        said += f"\n{len(amounts) - _MOST} more, {sign}{time(round(abs(rest)))}; all with --json"
    return said


def _how(amount: Amount) -> str:
    if amount.before is None:
        return "new"
    if amount.after is None:
        return "gone"
    return f"{amount.difference / amount.before:+.1%}" if amount.before else ""
