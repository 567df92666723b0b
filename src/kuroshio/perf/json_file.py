"""JSON and other text in files that people name: or refused with what to give instead."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from ..errors import Refusal

_PART = ".kuroshio-part-"
_HEAD = 200  # bytes in which a document of ours names its schema


def read_json(path: Path, advice: str) -> Any:
    """What a file holds; Refusal, with the advice, where it cannot be read or is no whole JSON."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as problem:
        raise Refusal(f"{path} cannot be read: {problem.strerror}. {advice}") from problem
    except UnicodeDecodeError as problem:
        raise Refusal(f"{path} is no JSON: it is no text of UTF-8. {advice}") from problem
    if not text.strip():
        raise Refusal(f"{path} is empty. {advice}")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise Refusal(
            f"{path} is no whole JSON ({problem}); it may be cut off. {advice}"
        ) from problem


def write_json(path: str | os.PathLike[str], content: Any) -> None:
    """Beside the path, then renamed to it; a Refusal where that cannot be."""

    def put(file: IO[str]) -> None:
        json.dump(content, file, indent=1)
        file.write("\n")

    _write(path, put)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """The same of any text, as UTF-8."""
    _write(path, lambda file: file.write(text))


def _write(path: str | os.PathLike[str], put: Callable[[IO[str]], object]) -> None:
    target = _target(path)
    part: str | None = None
    try:
        handle, part = tempfile.mkstemp(prefix=_PART, dir=target.parent)
        # What cannot be encoded, as of names of files that are no UTF-8, is spelled out.
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            put(file)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(part, 0o666 & ~mask)
        os.replace(part, target)
    except BaseException as problem:
        if part is not None:
            Path(part).unlink(missing_ok=True)
        if isinstance(problem, OSError):
            raise _not_writable(path, problem) from problem
        raise


def check_writable(
    path: str | os.PathLike[str], inputs: Iterable[str | os.PathLike[str]] = ()
) -> None:
    """A Refusal where `write_json` could not write: before something long is done.

    inputs  files that are to be read, and are not to be replaced by what is found in them; of
            folders all that such a run did not write itself
    """
    target = _target(path)
    read = [os.path.realpath(each) for each in inputs]
    if str(target) in read or (
        str(target.parent) in read and target.exists() and not _is_ours(target)
    ):
        raise Refusal(
            f"{os.fspath(path)} is one of the files to be read, and would be replaced. Choose "
            "another name."
        )
    try:
        with tempfile.TemporaryFile(prefix=_PART, dir=target.parent):
            pass
    except OSError as problem:
        raise _not_writable(path, problem) from problem


def _is_ours(path: Path) -> bool:
    """Whether it is a page or a document that an earlier run wrote."""
    with suppress(OSError), open(path, "rb") as file:
        head = file.read(_HEAD)
        return b'"schema": "kuroshio.' in head or head.lower().startswith(b"<!doctype html")
    return False


def _target(path: str | os.PathLike[str]) -> Path:
    """Where a link leads; a Refusal of what no file may take the place of, such as /dev/null."""
    try:
        target = Path(os.path.realpath(path))
        fit = os.fspath(path) and (target.is_file() or not target.exists())
    except OSError as problem:  # a name that is too long
        raise _not_writable(path, problem) from problem
    if not fit:
        kind = "a folder" if target.is_dir() else "no file, but a device or a pipe"
        raise Refusal(
            f"{os.fspath(path) or 'An empty name'} cannot be written: it is {kind}. Give the name "
            "of a file with -o; for the standard output there is --json."
        )
    return target


def _not_writable(path: str | os.PathLike[str], problem: OSError) -> Refusal:
    return Refusal(
        f"{os.fspath(path)} cannot be written: {problem.strerror}. Give another name, in a "
        "folder that exists and may be written."
    )
