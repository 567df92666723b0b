"""What a trace of Chrome's events does not show, in sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from . import chrome_kinds
from .chrome_columns import LONGEST_NAME, LONGEST_VALUE, MOST_COLUMNS, MOST_VALUES
from .chrome_pairs import MOST_OPEN, Pairs
from .events import ABSENT, Events, Kind

if TYPE_CHECKING:
    from .chrome_rows import Rows
    from .json_stream import Elements

_SHOWN = 5  # categories
_MICROSECOND = 1000  # ns


def cannot_tell(events: Events, rows: Rows, stream: Elements[Any], form: str) -> Iterator[str]:
    """A sentence each, without full stop."""
    if number := rows.unkept[chrome_kinds.PYTHON]:
        yield f"{number:,} calls of Python functions were recorded, and are not read"
    if told := categories(rows):
        yield f"Events of categories that are not known are not read: {told}"
    if rows.lengthless:
        yield (
            f"{rows.lengthless:,} events are not read: they have no length (their phase is none of "
            "X, B and E)"
        )
    yield from _of_pairs(rows.pairs)
    if stream.odd:
        yield f"{stream.odd:,} elements of the list are no events"
    if stream.mended:
        yield (
            "Some text is not what the program had: bytes that are no UTF-8 were replaced, or "
            "numbers that are none left out"
        )
    if stream.unclosed:
        yield "The file's list of events has no end, so that some may be missing"
    if rows.names.cut:
        yield f"{rows.names.cut:,} names are cut after {LONGEST_NAME:,} characters"
    if rows.many_columns:
        yield (
            f"Device events have more kinds of arguments than are kept: {MOST_COLUMNS}, with names "
            f"of up to {LONGEST_VALUE} characters, none of them a quote, a backslash or a control "
            "character"
        )
    for key in rows.dropped_columns:
        yield f"{key[:80]!r} of device events is not kept: it has more than {MOST_VALUES:,} values"
    yield from _of_times(events)
    if form != chrome_kinds.OURS:  # whose stages tell what calls and operators would
        yield from _of_device(events)
    if form == "hipprof":
        yield (
            "hipprof has a queued kernel begin where the one before it ended, so it is not told "
            "what a launch costs between them"
        )


def instead(rows: Rows, stream: Elements[Any]) -> str:
    """What there is, of a file without events that can be read."""
    if told := categories(rows):
        return f"its categories are {told}"
    pairs = rows.pairs
    if lengthless := rows.lengthless + pairs.alone + pairs.disordered:
        return (
            f"{lengthless:,} have no length (a phase of X, or of B with an E), and {stream.odd:,} "
            "are no events"
        )
    if stream.odd:
        return f"{stream.odd:,} are no events"
    return "its list of events is empty"


def categories(rows: Rows) -> str:
    """Those that are not known, with counts."""
    expected = {*chrome_kinds.DERIVED, chrome_kinds.PYTHON}
    unknown = [
        (key, count) for key, count in rows.unkept.most_common() if count and key not in expected
    ]
    shown = [f"{key or 'none'} ({count:,})" for key, count in unknown[:_SHOWN]]
    return ", ".join(shown) + (" and others" if len(unknown) > _SHOWN else "")


def _of_pairs(pairs: Pairs) -> Iterator[str]:
    if number := pairs.alone:
        yield (
            f"Of {number:,} events only the beginning or the end is there (phases B and E); they "
            "are left out"
        )
    if number := pairs.disordered:
        yield (
            f"{number:,} beginnings and ends (phases B and E) are left out: on their threads they "
            "are not in order of time, so that it is not told which belong together"
        )
    if pairs.overfull:
        yield (
            f"Of beginnings and ends (phases B and E) none is read after more than {MOST_OPEN:,} "
            "were open at once"
        )


def _of_times(events: Events) -> Iterator[str]:
    whole = not (events.start % _MICROSECOND).any() and not (events.end % _MICROSECOND).any()
    if len(events) and whole:
        yield "The times are whole microseconds; their fractions were not recorded"


def _of_device(events: Events) -> Iterator[str]:
    work = events.on_device
    if not work.any():
        return
    if not (events.correlation[events.kind == Kind.CALL] != ABSENT).any():
        yield "No calls were recorded that began the device's work, so it is not told when they did"
    copies = events.kind == Kind.COPY
    if number := int((copies & (events.bytes == ABSENT)).sum()):
        yield f"Of {number:,} of {int(copies.sum()):,} copies the bytes were not recorded"
    kernels = events.kind == Kind.KERNEL
    if not kernels.any():
        return
    untold = [
        what
        for column, what in ((events.grid, "grids and blocks"), (events.registers, "registers"))
        if not (column[kernels] != ABSENT).any()
    ]
    if untold:
        yield f"The kernels' {' and '.join(untold)} were not recorded"
    if not events.tell("operator"):
        yield "No operators are linked to the device's work"
