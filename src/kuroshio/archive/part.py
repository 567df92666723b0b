"""The hidden sibling that an output is written to until it is whole and takes the name."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
from pathlib import Path

_PATIENCE = 100  # tries to give an output its name while others do the same
_unfinished: set[Path] = set()  # of outputs under way in this process


def begin(path: Path) -> Path:
    """A name of its own, so that runs into the same output never touch each other's."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    _unfinished.add(part)
    return part


def discard(part: Path) -> None:
    """Remove what there is of it. Raises OSError where the folder is gone or read-only."""
    try:
        _remove(part)
    finally:
        _unfinished.discard(part)


def remove_unfinished() -> None:
    """Remove what outputs under way have written: for a process that ends without unwinding."""
    for part in list(_unfinished):
        with contextlib.suppress(OSError):
            _remove(part)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def rename(part: Path, path: Path) -> None:
    """Give the finished output its name; an old folder makes way first and goes last.

    Several runs may do so at once: the last one's output stays.
    """
    old = part.with_suffix(".old")
    for _ in range(_PATIENCE):
        if not path.is_dir():
            try:
                os.replace(part, path)
            except OSError as error:
                if error.errno in (errno.EISDIR, errno.ENOTEMPTY, errno.EEXIST):
                    continue  # another run was quicker
                raise
            break
        with contextlib.suppress(FileNotFoundError):  # another run has just moved it away
            os.rename(path, old)
            try:
                os.rename(part, path)
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    os.rename(old, path)
                    raise
                shutil.rmtree(old, ignore_errors=True)  # it was replaced by another run already
                continue
            break
    else:
        raise OSError(errno.EBUSY, "other programs keep replacing it")
    _unfinished.discard(part)
    shutil.rmtree(old, ignore_errors=True)
