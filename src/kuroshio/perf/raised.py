"""What somebody else's code raised, for a paragraph and the lines below it."""

from __future__ import annotations

import traceback
from pathlib import Path

_OWN = str(Path(__file__).parent)


def said(problem: BaseException) -> str:
    """The first line of its message."""
    try:
        lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    except Exception:  # it is somebody else's, too
        lines = []
    return (lines[0] if lines else "no message").rstrip(".")


def traceback_of(problem: BaseException) -> str:
    """Where it was raised, without our own frames and Python's importing."""
    frames = traceback.extract_tb(problem.__traceback__)
    theirs = [frame for frame in frames if not frame.filename.startswith((_OWN, "<frozen "))]
    return "".join(traceback.format_list(theirs[-5:])).rstrip()
