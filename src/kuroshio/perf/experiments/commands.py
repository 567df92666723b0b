"""Measuring by running commands that print JSON, and reading files that hold it."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from ...errors import Refusal
from ..output import doing
from ..whole_file import read_bytes, read_stream
from .sides import Document, is_bench

REPEATS = 7  # the fewest whose median has an interval is 6
_MOST = 256 << 20  # bytes of a document
_LAST = 10_000  # bytes of last words


def read(path: Path | str) -> Document:
    """A JSON file as a document; its hash goes into the name, for it is what was judged."""
    path = Path(path)
    content = read_bytes(path, _MOST, "Results of measurements are not; give one.")
    made = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    return Document(f"{path} sha256:{sha256(content).hexdigest()[:16]}", _json(content, path), made)


def measure(
    new: str,
    old: str | None,
    repeats: int,
    look: Callable[[list[Document], list[Document]], object] = lambda new, old: None,
) -> tuple[list[Document], list[Document]]:
    """Run commands in turns, old before new, and take the JSON that each prints.

    Commands that print a result of bench run once: its repeats are inside. `look` is given what
    the first turn printed, so that what cannot be used is refused before the others.
    """
    fresh: list[Document] = []
    former: list[Document] = []
    with doing() as say:
        for turn in range(repeats):
            for command, documents in ((old, former), (new, fresh)):
                if command is not None:
                    say(f"running, turn {turn + 1} of {repeats}: {command}")
                    documents.append(run(command))
            if turn == 0:
                look(fresh, former)
            if is_bench(fresh[0].data):
                break
    return fresh, former


def run(command: str) -> Document:
    """A command's output as a document; refuses one that fails or prints no JSON."""
    status, output, words = _call(command, apart=True)
    if status:
        how = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
        below = " Its last words stand below." if words else ""
        raise Refusal(f"{command!r} {how}, so nothing was recorded.{below}", log=words)
    return Document(command, _json(output, f"What {command!r} printed"))


def passes(command: str) -> tuple[bool, str]:
    """Whether a check of correctness ends with status 0, and its last words."""
    status, _, words = _call(command, apart=False)
    return status == 0, words


def _call(command: str, apart: bool) -> tuple[int, bytes, str]:
    """Status, output, and last words: of the errors, if they are kept apart, or of all."""
    try:
        arguments = shlex.split(command)
    except ValueError as error:
        raise Refusal(f"{command!r} is no command: {error}. Mind the quotation marks.") from error
    if not arguments:
        raise Refusal("The command is empty; give a program and its arguments.")
    with tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors if apart else subprocess.STDOUT,
            )
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise Refusal(
                f"{arguments[0]!r} cannot be run: {why}. Commands are run as they are, without "
                "a shell; for one, write: sh -c '...'"
            ) from error
        with process:
            try:
                assert process.stdout
                name = f"What {command!r} printed"
                output = read_stream(process.stdout, name, _MOST, "It was stopped.")
            except BaseException:
                process.kill()
                raise
        words = output
        if apart:
            errors.seek(max(0, errors.seek(0, os.SEEK_END) - _LAST))
            words = errors.read()
    return (
        process.returncode,
        output,
        "\n".join(words[-_LAST:].decode(errors="replace").splitlines()[-20:]),
    )


def _json(content: bytes, what: Path | str) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        start = content[:60].decode(errors="replace").strip()
        raise Refusal(
            f"{what} is no JSON ({error}); it begins with {start!r}. One JSON document is wanted, "
            "and nothing beside it."
        ) from error
