"""Standard output of the commands: what a person sees, and what a pipe gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console

from ..messages import printable

_WIDTH_OF_FILES = 240


class Output(Console):
    """Standard output; where its reader has gone, BrokenPipeError says so to the command line."""

    def __init__(self) -> None:
        super().__init__(highlight=False, markup=False, emoji=False)
        if not self.is_terminal:  # nobody's columns to fit into: a line stays a line, for grep
            self.width = _WIDTH_OF_FILES

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError

    def say(self, text: str) -> None:
        """A line, wrapped only for a terminal."""
        self.print(printable(text), soft_wrap=not self.is_terminal)


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


def left_out_says(names: Sequence[str]) -> str:
    return f"In a wider terminal, and with --json, also: {', '.join(names)}."
