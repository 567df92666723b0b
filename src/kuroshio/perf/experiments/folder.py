"""The folder of a repository's experiments: numbered files, each written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path

from ...errors import Refusal
from .record import Record, number_of
from .text import from_text, to_text

NAME = "experiments"
_WIDTH, _LONGEST = 4, 60


def default_folder() -> Path:
    """experiments/ of the repository around the current folder, or of the current folder."""
    here = Path.cwd()
    root = next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)
    return Path(os.path.relpath(root)) / NAME


def load(path: Path | str) -> Record:
    """The record in a file. Refuses a file that is no record, with the line of what is wrong."""
    path = Path(path)
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise Refusal(
            f"{path}, line {line}: this is not UTF-8 text. Save the record as UTF-8."
        ) from error
    except OSError as error:
        raise Refusal(
            f"{path} cannot be read: {error.strerror}. Name a record by its number or file: "
            "kuroshio perf experiment list shows them."
        ) from error
    return from_text(text, path)


def records(folder: Path | str) -> list[Path]:
    """The files of a folder's experiments, by number."""
    folder = Path(folder)
    if not folder.is_dir():
        return []
    paths = [path for path in folder.glob("*.md") if number_of(path) is not None]
    return sorted(paths, key=lambda path: (number_of(path), path.name))


def find(folder: Path | str, which: str | int) -> Path:
    """The file of an experiment, by its number, its name or its path."""
    which = str(which)
    if which.endswith(".md") and ("/" in which or Path(which).exists()):
        return Path(which)
    paths = records(folder)
    if which.isdecimal():
        fits = [path for path in paths if number_of(path) == int(which)]
    else:
        fits = [path for path in paths if path.stem == which.removesuffix(".md")]
    if len(fits) == 1:
        return fits[0]
    if fits:
        raise Refusal(
            f"{len(fits)} experiments have the number {which}: "
            f"{', '.join(path.name for path in fits)} (two branches, merged?). Give the name, and "
            "rename one of them."
        )
    there = ", ".join(path.name for path in paths[-5:]) or "no experiments"
    raise Refusal(
        f"There is no experiment {which!r} in {folder}; there are: {there}. Give a number or a "
        "name, or another folder with --folder."
    )


def create(folder: Path | str, record: Record) -> Record:
    """Write a new record under the next number; the folder is made if need be."""
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(folder, error) from error
    with _locked(folder):
        taken = [number_of(path) or 0 for path in records(folder)]
        number = max(taken, default=0) + 1
        record = record.but(path=folder / f"{number:0{_WIDTH}d}-{slug(record.title)}.md")
        _write(record)
    return record


def update(path: Path | str, change: Callable[[Record], Record]) -> Record:
    """Change a record in its file: read, changed and written while nobody else does so."""
    path = Path(path)
    with _locked(path.parent):
        record = change(load(path)).but(path=path)
        _write(record)
    return record


def slug(title: str) -> str:
    """A title as a part of a file name."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    words = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")
    if len(words) > _LONGEST:
        words = words[: _LONGEST + 1].rpartition("-")[0] or words[:_LONGEST]
    return words or "experiment"


def _write(record: Record) -> None:
    """Beside, then renamed; and read back before, so that what is written can be read."""
    assert record.path
    text = to_text(record)
    try:
        content = text.encode()
    except UnicodeEncodeError as error:
        raise Refusal(
            f"{record.path} cannot be written: a name or text in it is not UTF-8 ({error.reason}). "
            "What was there is as it was; rename the file that was given."
        ) from error
    if from_text(text, record.path) != record:
        raise AssertionError(f"{record.path} would not be read as it was written")
    try:
        handle, part = tempfile.mkstemp(dir=record.path.parent, prefix=".", suffix=".part")
    except OSError as error:
        raise _unwritable(record.path, error) from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(part, _mode(record.path))
        os.replace(part, record.path)
    except BaseException as error:
        Path(part).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise _unwritable(record.path, error) from error
        raise


def _mode(path: Path) -> int:
    """The rights of the file that is replaced, or those of any new file."""
    with contextlib.suppress(OSError):
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One writer a folder at a time, where the file system can do that."""
    handle = None
    try:
        import fcntl

        handle = os.open(folder, os.O_RDONLY)
        fcntl.flock(handle, fcntl.LOCK_EX)
    except (ImportError, OSError):
        pass  # without it two writers at once may give one number to two files
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)


def _unwritable(path: Path, error: OSError) -> Refusal:
    return Refusal(
        f"{path} cannot be written: {error.strerror or error}. What was there is as it was; free "
        "space or rights, or give another folder with --folder."
    )
