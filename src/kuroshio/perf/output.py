"""Tables that fit the terminal, and a word on what is being done."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from shutil import get_terminal_size

from ..messages import printable


def fitting(
    columns: Mapping[str, Sequence[str]], room: int, gap: int, first_to_go: Sequence[str]
) -> tuple[dict[str, Sequence[str]], list[str]]:
    """The columns that have room side by side, and the names of those left out.

    columns  name -> cells
    room     for all of them, and gap between two, in characters
    """
    kept, left_out = dict(columns), []
    wide = {name: gap + max(map(len, [name, *cells])) for name, cells in columns.items()}
    for name in first_to_go:
        if name in kept and sum(wide[each] for each in kept) > room:
            left_out.append(name)
            del kept[name]
    return kept, left_out


def terminal_width() -> int | None:
    """Of standard output; None where it is no terminal."""
    there = sys.stdout is not None and sys.stdout.isatty()
    return get_terminal_size().columns if there else None


def wrapped(text: str, width: int | None, indent: str = "") -> str:
    """For a terminal of that width; without one a line stays a line, for grep."""
    if width is None:
        return text
    return textwrap.fill(
        text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def left_out_says(names: Sequence[str]) -> str:
    return f"In a wider terminal, and with --json, also: {', '.join(names)}."


@contextmanager
def doing() -> Iterator[Callable[[str], None]]:
    """Gives a function that says on a terminal what is being done, until the next or the end.

    A line now and then: a bar that moves by itself would be timed with the work.
    """

    def say(what: str) -> None:
        if sys.stderr is not None and sys.stderr.isatty():
            line = f"{printable(what)[: get_terminal_size().columns - 5]} ..." if what else ""
            print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)

    try:
        yield say
    finally:
        say("")
