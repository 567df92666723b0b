"""Standard output and error of the commands: what a person sees, and what a pipe gets."""

from __future__ import annotations

from rich.console import Console

from .messages import printable

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
