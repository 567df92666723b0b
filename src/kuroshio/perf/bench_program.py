"""A command line as a case: the process is what is timed."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import Refusal
from .cases import Case

_SHOWN_BYTES = 2000  # of what a failed program said, from its end


def program_case(command: str, check: Callable[[bytes], Any] | bytes | None = None) -> Case:
    """A case that runs the command without a shell and returns what it writes to its output.

    Refuses a command that is empty or not there; one that ends with another status than 0 is
    refused when it does. `check` is given the output, as bytes.
    """
    try:
        words = shlex.split(command)
    except ValueError as problem:
        raise Refusal(
            f"The command {command!r} cannot be split into words: {problem}. Quote it as for a "
            "shell, such as --command 'python run.py \"a b\"'."
        ) from problem
    if not words:
        raise Refusal("The command is empty. Give a program and its arguments in quotes.")

    def run() -> bytes:
        try:
            done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True)
        except FileNotFoundError as problem:
            raise Refusal(
                f"There is no program {words[0]}. No shell reads the command, so give a program "
                "and its arguments; for pipes and built-in commands: sh -c '...'."
            ) from problem
        except OSError as problem:
            raise Refusal(
                f"{words[0]} cannot be run: {problem.strerror}. Give a program that may be run."
            ) from problem
        if done.returncode:
            how = (
                f"was ended by signal {-done.returncode}"
                if done.returncode < 0
                else f"ended with status {done.returncode}"
            )
            raise Refusal(
                f"The command {command} {how}. Only a command that succeeds (status 0) is timed; "
                "what it said is shown below.",
                (done.stderr or done.stdout)[-_SHOWN_BYTES:].decode(errors="replace").rstrip(),
            )
        return done.stdout

    return Case(run, name=_name(words), check=check)


def _name(words: list[str]) -> str:
    """The command, short enough for a table."""
    text = shlex.join([Path(words[0]).name, *words[1:]])
    return text if len(text) <= 40 else f"{text[:37]}..."
