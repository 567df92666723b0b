"""A command line as a case: the process is what is timed."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

from ..errors import Refusal
from .cases import Case

_SHOWN_BYTES = 2000  # of what a failed program said, from its end


def program_case(command: str, check: Callable[[bytes], Any] | bytes | None = None) -> Case:
    """A case that runs the command without a shell and returns, for a check, what it writes.

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
        # Files and not pipes: a pipe is waited for until all that the program began have ended.
        with TemporaryFile() as output, TemporaryFile() as errors:
            try:
                done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=output, stderr=errors)
            except OSError as problem:
                raise not_run(words[0], problem) from problem
            if done.returncode:
                how = (
                    f"was ended by signal {-done.returncode}"
                    if done.returncode < 0
                    else f"ended with status {done.returncode}"
                )
                said = _end(errors) or _end(output)
                below = "what it said is shown below" if said else "it said nothing"
                raise Refusal(
                    f"The command {command} {how}. Only a command that succeeds (status 0) is "
                    f"timed; {below}.",
                    said,
                )
            output.seek(0)
            return output.read() if check is not None else b""

    return Case(run, name=_name(words), check=check)


def not_run(program: str, problem: OSError) -> Refusal:
    """What to say of a program that cannot be begun."""
    if isinstance(problem, FileNotFoundError):
        return not_there(program)
    return Refusal(f"{program} cannot be run: {problem.strerror}. Give a program that may be run.")


def not_there(program: str) -> Refusal:
    """What to say of a program that cannot be found."""
    if shutil.which(program):
        return Refusal(
            f"{program} is there, but what its first line says is to run it is not. Correct the "
            "line, or give the interpreter: 'python program.py'."
        )
    hint = f"env {program} ..." if re.fullmatch(r"\w+=.*", program) else "sh -c '...'"
    return Refusal(
        f"There is no program {program}. No shell reads the command, so give a program and its "
        f"arguments; for variables, pipes and built-in commands: {hint}"
    )


def _end(file: IO[bytes]) -> str:
    """The last lines of it."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - _SHOWN_BYTES, 0))
    return file.read().decode(errors="replace").rstrip()


def _name(words: list[str]) -> str:
    """The command, short enough for a table."""
    text = shlex.join([Path(words[0]).name, *words[1:]])
    return text if len(text) <= 40 else f"{text[:37]}..."
