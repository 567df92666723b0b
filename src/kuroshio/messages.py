"""What a person is told on standard error: paragraphs, whole and safe to show.

Into a terminal they are wrapped between words, so that a path can be copied in one piece; into a
file or a pipe each is one line without colour codes.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import textwrap
from typing import TextIO

RED, YELLOW = "1;31", "33"
_WIDEST = 100


def complain(message: str, log: str = "") -> None:
    """Why a command ended; below it, as it is, what another program said of that."""
    _say(f"kuroshio: {message}", RED)
    if log:
        lines = log.expandtabs().splitlines()
        _print("\n".join(printable(line) for line in lines))


def note(message: str) -> None:
    """What should be known although the command went on."""
    _say(f"note: {message}", YELLOW)


def forget(stream: TextIO) -> None:
    """What is still in a stream's buffer goes nowhere, so that the end of the process is in order.

    Python ends with status 120 where it cannot flush its standard streams.
    """
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def printable(text: str) -> str:
    """The text with control characters and undecodable bytes of file names spelled out."""
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text
    )


def _say(text: str, colour: str) -> None:
    text = printable(text)
    terminal = sys.stderr is not None and sys.stderr.isatty()
    if terminal:
        width = min(shutil.get_terminal_size().columns, _WIDEST)
        text = textwrap.fill(text, max(width, 20), break_long_words=False, break_on_hyphens=False)
        if not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb":
            text = f"\x1b[{colour}m{text}\x1b[0m"
    _print(text)


def _print(text: str) -> None:
    try:
        print(text, file=sys.stderr, flush=True)
    except (OSError, ValueError):  # nobody listens
        forget(sys.stderr)
