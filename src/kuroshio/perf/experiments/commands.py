"""Measuring by running commands that print JSON, and reading files that hold it."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from ...errors import Refusal
from .sides import Document, is_bench

REPEATS = 7  # the fewest whose median has an interval is 6


def read(path: Path | str) -> Document:
    """A JSON file as a document; its hash goes into the name, for it is what was judged."""
    path = Path(path)
    try:
        content = path.read_bytes()
        made = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except OSError as error:
        raise Refusal(
            f"{path} cannot be read: {error.strerror}. Give a file that kuroshio perf bench or "
            "another program wrote as JSON."
        ) from error
    return Document(f"{path} sha256:{sha256(content).hexdigest()[:16]}", _json(content, path), made)


def measure(
    new: str, old: str | None, repeats: int, say: Callable[[str], None] = lambda _: None
) -> tuple[list[Document], list[Document]]:
    """Run commands in turns, old before new, and take the JSON that each prints.

    Commands that print a result of bench run once: its repeats are inside.
    """
    fresh: list[Document] = []
    former: list[Document] = []
    for turn in range(repeats):
        for command, documents in ((old, former), (new, fresh)):
            if command is not None:
                say(f"{turn + 1} of {repeats}: {command}")
                documents.append(run(command))
        if is_bench(fresh[0].data):
            break
    return fresh, former


def run(command: str) -> Document:
    """A command's output as a document; refuses one that fails or prints no JSON."""
    done = _call(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        raise Refusal(
            f"{command!r} ended with status {done.returncode}, so nothing was recorded. Its last "
            "words stand below.",
            log=_tail(done.stderr),
        )
    return Document(command, _json(done.stdout, f"What {command!r} printed"))


def passes(command: str) -> tuple[bool, str]:
    """Whether a check of correctness ends with status 0, and its last words."""
    done = _call(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode == 0, _tail(done.stdout)


def _call(command: str, **streams: Any) -> subprocess.CompletedProcess[bytes]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise Refusal(f"{command!r} is no command: {error}. Mind the quotation marks.") from error
    if not words:
        raise Refusal("The command is empty; give one that prints JSON.")
    try:
        return subprocess.run(words, stdin=subprocess.DEVNULL, check=False, **streams)
    except OSError as error:
        raise Refusal(
            f"{words[0]!r} cannot be run: {error.strerror}. Commands are run as they are, without "
            "a shell; for one, write: sh -c '...'"
        ) from error


def _json(content: bytes, what: Path | str) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        start = content[:60].decode(errors="replace").strip()
        raise Refusal(
            f"{what} is no JSON ({error}); it begins with {start!r}. One JSON document is wanted, "
            "and nothing beside it."
        ) from error


def _tail(output: bytes) -> str:
    return "\n".join(output.decode(errors="replace").splitlines()[-20:])
