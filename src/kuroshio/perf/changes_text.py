"""What two diagnoses differ in, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from ..messages import printable
from .changes import Amount, Changes
from .findings.figures import share, time
from .report.diagnosis import ALIKE
from .results import columns
from .timeline.kernels import short

_MOST = 12  # rows of a table
_NAMED = 3  # parts that are named beforehand
_WIDTH = 100  # of a file
_LEAST, _NAME = 16, 60  # characters of a name in a table, whatever the width
_KERNEL = "kernel"
_MANY = 11  # times as long, from which on percents are no longer read


def text(changes: Changes, width: int = _WIDTH) -> str:
    """All of it; tables fit a terminal of that many columns if names can be clipped so far."""
    whose = "a step" if changes.per_step else "the whole"
    parts = [
        f"{printable(changes.names[0])} against {printable(changes.names[1])}; times of {whose}"
        + (f" ({changes.steps[0]} and {changes.steps[1]} steps)" if changes.per_step else "")
    ]
    parts += [f"Not alike: {each}." for each in changes.differ]
    if changes.in_common is not None and changes.in_common < ALIKE:
        parts.append(
            f"Kernels of the same names make up {share(changes.in_common, 1)} of the kernels' "
            "time: most were replaced, or these are different programs, of which nothing follows."
        )
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
        ("part of steps" if changes.per_step else "part", changes.parts),
        ("stage", changes.stages),
        ("holes", changes.holes),
        (_KERNEL, changes.kernels),
    ):
        if amounts:
            parts.append(_table(title, amounts, width))
    return "\n\n".join(parts)


def _table(title: str, amounts: Sequence[Amount], width: int) -> str:
    """Where not all columns fit, with names clipped, how often, before and after go, in that order;
    the change stays."""
    often = any(each.calls != (None, None) for each in amounts)
    heads = ["before", "after", "change", "", "how often"]
    shown = amounts[:_MOST]
    lines = [heads if often else heads[:-1]]
    for each in shown:
        line = [
            *("" if ns is None else time(round(ns)) for ns in (each.before, each.after)),
            _more(each.difference),
            _how(each),
        ]
        lines.append([*line, _often(each)] if often else line)
    names = [printable(each.name) for each in shown]
    least = min(_LEAST, max(map(len, [title, *names])))
    for head in ("how often", "before", "after"):
        if head in lines[0] and _beside(lines) + least > width:
            at = lines[0].index(head)
            lines = [[*line[:at], *line[at + 1 :]] for line in lines]
    names = _fitting(names, title, min(_NAME, max(_LEAST, width - _beside(lines))))
    said = columns([[name, *line] for name, line in zip([title, *names], lines, strict=True)], 1)
    if len(amounts) > _MOST:
        rest = _more(sum(each.difference for each in amounts[_MOST:]))
        said += f"\n{len(amounts) - _MOST} more, {rest or 'the same'}; all with --json"
    return said


def _beside(lines: list[list[str]]) -> int:
    """Columns of the terminal that a table takes beside its names."""
    return max(map(len, columns([["", *line] for line in lines]).splitlines()))


def _fitting(names: Sequence[str], title: str, room: int) -> list[str]:
    if title == _KERNEL:
        return _told_apart(names, room)
    return [_clipped(name, room) for name in names]


def _often(amount: Amount) -> str:
    """A count that stays once, one that changes as two."""
    counts = [f"{calls:,.4g}" for calls in amount.calls if calls is not None]
    return " to ".join(dict.fromkeys(counts))


def _steps(changes: Changes, medians: tuple[float, float]) -> str:
    before, after = medians
    how = f" ({(after - before) / before:+.1%})" if before > 0 else ""
    said = (
        f"A step took {time(round(before))} before and takes {time(round(after))} after, by the "
        f"median{how}."
    )
    if changes.step:
        verdict = changes.step.verdict
        return f"{said} {verdict[:1].upper()}{verdict[1:]} They were not recorded in turn."
    return f"{said} Of so few steps it cannot be said whether that is more than chance."


def _most(parts: Sequence[Amount]) -> list[str]:
    """What of a step changed the most; its parts add up to it."""
    said = [
        f"{printable(each.name)} {_more(each.difference)}"
        for each in parts[:_NAMED]
        if _more(each.difference)
    ]
    return [f"What changed the most of a step: {', '.join(said)}."] if said else []


def _told_apart(names: Sequence[str], room: int) -> list[str]:
    """Kernels in so many characters; those that would look alike, from where they differ."""
    briefs = [short(name) for name in names]
    shown = [_clipped(brief, room) for brief in briefs]
    found = []
    for name, brief, brought in zip(names, briefs, shown, strict=True):
        twins = [at for at, other in enumerate(shown) if other == brought and names[at] != name]
        if twins:
            # Template arguments count only where nothing else differs.
            wholes = any(briefs[at] == brief for at in twins)
            mine, others = (name, names) if wholes else (brief, briefs)
            same = max(_alike(mine, others[at]) for at in twins)
            begin = brief[: room // 3]
            brought = f"{begin}...{_from_word(mine, same)[: room - len(begin) - 3]}"
        found.append(brought)
    return found


def _alike(one: str, other: str) -> int:
    """At how many characters two names begin alike."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _from_word(name: str, at: int) -> str:
    """The rest of a name, from the beginning of the word in which it is."""
    while at and name[at - 1].isalnum():
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
    if not amount.before:
        return ""
    times = amount.after / amount.before
    return f"{times - 1:+.1%}" if times < _MANY else f"{times:.3g}x"


def _more(ns: float) -> str:
    """With its sign; empty where it is less than a nanosecond."""
    return f"{'+' if ns > 0 else '-'}{time(round(abs(ns)))}" if round(abs(ns)) else ""
