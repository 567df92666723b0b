"""What two diagnoses differ in, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from ..messages import printable
from .changes import Amount, Changes
from .findings.figures import time
from .results import columns
from .timeline.kernels import short

_MOST = 12  # rows of a table
_NAMED = 3  # parts that are named beforehand
_NAME = 60
_BESIDE, _DIFFERENCE = 30, 25  # characters of a name, and of what tells it from its like
_KERNEL = "kernel"


def text(changes: Changes) -> str:
    """All of it."""
    whose = "a step" if changes.per_step else "the whole"
    parts = [
        f"{printable(changes.names[0])} against {printable(changes.names[1])}; times of {whose}"
        + (f" ({changes.steps[0]} and {changes.steps[1]} steps)" if changes.per_step else "")
    ]
    parts += [f"Not alike: {each}." for each in changes.differ]
    if changes.medians:
        parts.append(_steps(changes, changes.medians))
    if changes.parts and changes.per_step:
        parts += _most(changes.parts)
    for title, names in (
        ("Findings that are gone", changes.vanished),
        ("Findings that are new", changes.appeared),
        ("Findings that stay", changes.stayed),
    ):
        if names:
            parts.append("\n".join([f"{title}:", *(f"  {printable(name)}" for name in names)]))
    if not (changes.vanished or changes.appeared or changes.stayed):
        parts.append("Neither has a finding.")
    for title, amounts in (
        ("device", changes.work),
        ("part of steps", changes.parts),
        ("stage", changes.stages),
        ("holes", changes.holes),
        (_KERNEL, changes.kernels),
    ):
        if amounts:
            parts.append(_table(title, amounts))
    return "\n\n".join(parts)


def _table(title: str, amounts: Sequence[Amount]) -> str:
    often = any(each.calls != (None, None) for each in amounts)
    lines = [
        [
            title,
            "before",
            "after",
            "change",
            "",
            *(["count before", "count after"] if often else []),
        ]
    ]
    shown = amounts[:_MOST]
    names = [each.name for each in shown]
    for each, name in zip(shown, _told_apart(names) if title == _KERNEL else names, strict=True):
        line = [
            _clipped(printable(name), _NAME),
            *("" if ns is None else time(round(ns)) for ns in (each.before, each.after)),
            _more(each.difference),
            _how(each),
        ]
        if often:
            line += ["" if calls is None else f"{calls:,.4g}" for calls in each.calls]
        lines.append(line)
    said = columns(lines, left=1)
    if len(amounts) > _MOST:
        rest = _more(sum(each.difference for each in amounts[_MOST:]))
        said += f"\n{len(amounts) - _MOST} more, {rest or 'the same'}; all with --json"
    return said


def _steps(changes: Changes, medians: tuple[float, float]) -> str:
    before, after = medians
    how = f" ({(after - before) / before:+.1%})" if before > 0 else ""
    said = (
        f"A step took {time(round(before))} before and takes {time(round(after))} after, by the "
        f"median{how}."
    )
    if changes.step:
        return f"{said} {changes.step.verdict} They were not recorded in turn."
    return f"{said} Of so few steps it cannot be said whether that is more than chance."


def _most(parts: Sequence[Amount]) -> list[str]:
    """What of a step changed the most; its parts add up to it."""
    said = [
        f"{printable(each.name)} {_more(each.difference)}"
        for each in parts[:_NAMED]
        if _more(each.difference)
    ]
    return [f"What changed the most of a step: {', '.join(said)}."] if said else []


def _told_apart(names: Sequence[str]) -> list[str]:
    """Short names of kernels; where two are the same, with that in which the whole ones differ."""
    shorts = [short(name) for name in names]
    found = []
    for name, brief in zip(names, shorts, strict=True):
        alike = [
            other
            for other, its in zip(names, shorts, strict=True)
            if its == brief and other != name
        ]
        if alike:
            same = max(_alike(name, other) for other in alike)
            brief = f"{_clipped(brief, _BESIDE)} {_from_word(name, same)[:_DIFFERENCE]}..."
        found.append(brief)
    return found


def _alike(one: str, other: str) -> int:
    """At how many characters two names begin alike."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _from_word(name: str, at: int) -> str:
    """The rest of a name, from the beginning of the word in which it is."""
    while at and (name[at - 1].isalnum() or name[at - 1] == "_"):
        at -= 1
    return name[at:]


def _clipped(name: str, most: int) -> str:
    """Without its middle if it is longer: names of kernels differ at their ends."""
    if len(name) <= most:
        return name
    tail = 2 * (most - 3) // 3
    return f"{name[: most - 3 - tail]}...{name[-tail:]}"


def _how(amount: Amount) -> str:
    if amount.before is None:
        return "new"
    if amount.after is None:
        return "gone"
    if not _more(amount.difference):
        return "same"
    return f"{amount.difference / amount.before:+.1%}" if amount.before else ""


def _more(ns: float) -> str:
    """With its sign; empty where it is less than a nanosecond."""
    return f"{'+' if ns > 0 else '-'}{time(round(abs(ns)))}" if round(abs(ns)) else ""
