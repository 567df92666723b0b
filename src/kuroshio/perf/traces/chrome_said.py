"""What a trace of Chrome's events does not show, in sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from . import chrome_kinds
from .chrome_columns import LONGEST_NAME, MOST_COLUMNS, MOST_VALUES
from .events import ABSENT, Events, Kind

if TYPE_CHECKING:
    from .chrome_rows import Rows
    from .json_stream import Elements

_SHOWN = 5  # categories
_MICROSECOND = 1000  # ns


def cannot_tell(events: Events, rows: Rows, stream: Elements[Any], form: str) -> Iterator[str]:
    """A sentence each, without full stop."""
    if number := rows.unkept[chrome_kinds.PYTHON]:
        yield f"which of {number:,} calls of Python functions took what time; they are not read"
    if told := categories(rows):
        yield f"what was in events of categories that are not known: {told}"
    if rows.pairs:
        yield f"what was in {rows.pairs:,} events that are no complete ones (other phases than X)"
    if stream.odd:
        yield f"what was in {stream.odd:,} elements that are no events"
    if stream.mended:
        yield (
            "some text as it was: bytes that are no UTF-8 were replaced, or numbers that are none "
            "left out"
        )
    if stream.unclosed:
        yield "whether events are missing at the end: the file's list has no end"
    if rows.names.cut:
        yield f"{rows.names.cut:,} names after {LONGEST_NAME:,} characters, where they are cut"
    if rows.many_columns:
        yield f"further arguments of device events than {MOST_COLUMNS}"
    for key in rows.dropped_columns:
        yield f"{key[:80]!r} of device events, which has more than {MOST_VALUES:,} values"
    yield from _of_times(events)
    yield from _of_device(events)
    if form == "hipprof":
        yield (
            "what a launch itself costs between queued kernels: hipprof has one begin where the "
            "one before it ended"
        )


def categories(rows: Rows) -> str:
    """Those that are not known, with counts."""
    expected = {*chrome_kinds.DERIVED, chrome_kinds.PYTHON}
    unknown = [(key, count) for key, count in rows.unkept.most_common() if key not in expected]
    shown = [f"{key or 'none'} ({count:,})" for key, count in unknown[:_SHOWN]]
    return ", ".join(shown) + (" and others" if len(unknown) > _SHOWN else "")


def _of_times(events: Events) -> Iterator[str]:
    whole = not (events.start % _MICROSECOND).any() and not (events.end % _MICROSECOND).any()
    if len(events) and whole:
        yield "fractions of a microsecond: the times are whole ones"


def _of_device(events: Events) -> Iterator[str]:
    work = events.on_device
    if not work.any():
        return
    if not (events.correlation[events.kind == Kind.CALL] != ABSENT).any():
        yield "which calls began the device's work, and when: no call that did was recorded"
    copies = events.kind == Kind.COPY
    if number := int((copies & (events.bytes == ABSENT)).sum()):
        yield f"how many bytes {number:,} of {int(copies.sum()):,} copies moved"
    kernels = events.kind == Kind.KERNEL
    if not kernels.any():
        return
    untold = [
        what
        for column, what in ((events.grid, "grids and blocks"), (events.registers, "registers"))
        if not (column[kernels] != ABSENT).any()
    ]
    if untold:
        yield f"{' and '.join(untold)} of kernels: not recorded"
    if not events.tell("operator"):
        yield "which operators began the work: none are recorded"
