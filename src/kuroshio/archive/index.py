"""Facts of files kept between runs, in one SQLite file of the user's cache folder.

A row is good for the size and modification time it was made with. The cache is a convenience: a
corrupt one is made anew, an unwritable folder is no error, and nothing in it can be executed.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import sqlite3
import struct
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from .facts import FileFacts, Form, Storage
from .layout import Layout
from .model import Field, Grid, Packing

_FILE = "archives-2.sqlite3"  # the number grows with every change of the tables or of the facts
_PATIENCE_S = 2.0  # for another run that writes
_TABLES = """
CREATE TABLE IF NOT EXISTS layout (
    request TEXT, folder TEXT, fingerprint TEXT, head TEXT, arrays BLOB,
    PRIMARY KEY (request, folder, fingerprint));
CREATE TABLE IF NOT EXISTS form (number INTEGER PRIMARY KEY, body TEXT);
CREATE TABLE IF NOT EXISTS file (
    request TEXT, folder TEXT, name TEXT, size INTEGER, mtime_ns INTEGER, form INTEGER,
    seconds BLOB, packing TEXT, ranges BLOB,
    PRIMARY KEY (request, folder, name)) WITHOUT ROWID;
"""
_INT64 = np.dtype("<i8")
_RANGE = struct.Struct("<qq")


def cache_folder() -> Path:
    """Where caches live: KUROSHIO_CACHE_DIR, else the platform's place for them."""
    if own := os.environ.get("KUROSHIO_CACHE_DIR"):
        return Path(own)
    if xdg := os.environ.get("XDG_CACHE_HOME"):
        return Path(xdg) / "kuroshio"
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
        return Path(local) / "kuroshio" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "kuroshio"
    return Path.home() / ".cache" / "kuroshio"


def request_key(variable: str | None, select: Mapping[str, int]) -> str:
    """What was asked of the files, as a key: the variable (None: the obvious one) and selection."""
    return json.dumps([variable, sorted(select.items())])


class Rows:
    """Facts on their way into the index, made ready one by one while others are still looked for.

    files    rows of the table
    forms    form -> row
    layouts  (request, folder, fingerprint) of those the files refer to
    """

    def __init__(self, request: str) -> None:
        self._request = request
        self._form: tuple[Form | None, int] = None, 0  # the last one, and its number
        self._packing: tuple[Packing | None, str] = None, ""
        self.files: list[tuple[Any, ...]] = []
        self.forms: dict[Form, tuple[int, str]] = {}
        self.layouts: dict[tuple[str, str, str], None] = {}

    def add(self, facts: FileFacts, size: int, mtime_ns: int) -> None:
        """One file's facts, with the size and mtime (ns) it had before it was scanned."""
        folder, name = _split(facts.path)
        form, packing = facts.form, facts.packing
        if form is not self._form[0]:  # a form takes long to hash
            if form not in self.forms:
                self.forms[form] = _form_row(form)
            self._form = form, self.forms[form][0]
        if packing is not self._packing[0]:
            self._packing = packing, _packing_text(packing)
        self.layouts[self._request, folder, form.fingerprint] = None
        self.files.append(
            (
                self._request,
                folder,
                name,
                size,
                mtime_ns,
                self._form[1],
                facts.seconds.astype(_INT64, copy=False).tobytes(),
                self._packing[1],
                b"".join([_RANGE.pack(*each) for each in facts.ranges]),
            )
        )


class Index:
    """Facts of files by (request, path, size, mtime). Every failure means: nothing is known."""

    def __init__(self, folder: Path | None = None) -> None:
        self._path = (folder or cache_folder()) / _FILE

    def load(
        self, paths: Sequence[str], request: str
    ) -> tuple[dict[str, FileFacts], dict[str, Layout]]:
        """What is known and still true of these files, and the layouts they refer to."""
        if not self._path.exists():
            return {}, {}
        try:
            with contextlib.closing(self._connect()) as database:
                return self._load(database, paths, request)
        except Exception as error:  # rows can be damaged in any way
            if not _passing(error):
                self._discard()
            return {}, {}

    def save(self, rows: Rows, layouts: Mapping[str, Layout]) -> None:
        """Remember what the rows hold; `layouts` has theirs by fingerprint."""
        heads = [(*key, *_layout_row(layouts[key[2]])) for key in rows.layouts]
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.closing(self._connect()) as database, database:
                database.executescript(_TABLES)
                database.executemany("INSERT OR REPLACE INTO layout VALUES (?,?,?,?,?)", heads)
                database.executemany(
                    "INSERT OR REPLACE INTO form VALUES (?,?)", rows.forms.values()
                )
                database.executemany(
                    "INSERT OR REPLACE INTO file VALUES (?,?,?,?,?,?,?,?,?)", rows.files
                )
        except (sqlite3.Error, OSError, UnicodeEncodeError) as error:
            if not _passing(error):
                self._discard()

    def _connect(self) -> sqlite3.Connection:
        database = sqlite3.connect(self._path, timeout=_PATIENCE_S)
        database.execute("PRAGMA synchronous = OFF")  # what is lost can be scanned again
        return database

    def _discard(self) -> None:
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)

    def _load(
        self, database: sqlite3.Connection, paths: Sequence[str], request: str
    ) -> tuple[dict[str, FileFacts], dict[str, Layout]]:
        wanted: dict[str, dict[str, str]] = defaultdict(dict)
        for each in paths:
            folder, name = _split(each)
            wanted[folder][name] = each
        facts: dict[str, FileFacts] = {}
        layouts: dict[str, Layout] = {}
        forms: dict[int, Form] = {}
        sizes: dict[int, int] = {}
        for folder, names in wanted.items():
            here = (request, folder)
            for fingerprint, head, arrays in database.execute(
                "SELECT fingerprint, head, arrays FROM layout WHERE request = ? AND folder = ?",
                here,
            ):
                layouts.setdefault(fingerprint, _layout(head, arrays))
            for name, size, mtime_ns, number, seconds, packing, ranges in database.execute(
                "SELECT name, size, mtime_ns, form, seconds, packing, ranges"
                " FROM file WHERE request = ? AND folder = ?",
                here,
            ):
                path = names.get(name)
                if path is None:
                    continue
                try:
                    state = os.stat(path)
                except OSError:
                    continue
                if state.st_size != size or state.st_mtime_ns != mtime_ns:
                    continue
                if number not in forms:
                    forms[number] = _form(database, number)
                    sizes[number] = _RANGE.size * len(forms[number].storage.places)
                form = forms[number]
                if len(ranges) != sizes[number]:
                    raise ValueError("ranges are missing")
                facts[path] = FileFacts(
                    path,
                    form,
                    np.frombuffer(seconds, _INT64),
                    _packing(packing),
                    tuple(_RANGE.iter_unpack(ranges)),
                )
        if any(form.fingerprint not in layouts for form in forms.values()):
            raise ValueError("a layout is missing")
        return facts, layouts


def _passing(error: Exception) -> bool:
    """Whether an error says nothing of the content: locked by another run, read-only, a full disk.

    SQLite's general error is one of the content: tables or columns are not there.
    """
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    return isinstance(error, sqlite3.OperationalError) and code != sqlite3.SQLITE_ERROR


def _split(path: str) -> tuple[str, str]:
    """Folder and name of an absolute path."""
    folder, _, name = path.rpartition(os.sep)
    return folder, name


def _form_row(form: Form) -> tuple[int, str]:
    """A form and the number by which its files refer to it: a digest of it."""
    body = json.dumps([form.fingerprint, form.shape, form.storage])
    digest = hashlib.blake2b(body.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True), body


def _form(database: sqlite3.Connection, number: int) -> Form:
    ((body,),) = database.execute("SELECT body FROM form WHERE number = ?", (number,))
    fingerprint, shape, (chunk, deflate, shuffle, start, places) = json.loads(body)
    storage = Storage(tuple(chunk), deflate, shuffle, start, tuple(map(tuple, places)))
    return Form(fingerprint, tuple(shape), storage)


def _packing_text(how: Packing) -> str:
    return json.dumps([how.scale, how.offset, how.missing, how.packed])


@lru_cache(maxsize=1024)
def _packing(text: str) -> Packing:
    scale, offset, missing, packed = json.loads(text)
    return Packing(scale, offset, tuple(missing), packed)


def _layout_row(layout: Layout) -> tuple[str, bytes]:
    coords = layout.grid.coords
    head = {
        "variable": layout.variable, "dims": layout.dims, "picked": layout.picked,
        "time": layout.time, "time_axis": layout.time_axis, "dtype": layout.dtype.str,
        "calendar": layout.calendar, "attrs": _plain(layout.attrs),
        "cells": [layout.grid.dims, layout.grid.shape],
        "coords": {name: [c.dims, _plain(c.attrs)] for name, c in coords.items()},
    }  # fmt: skip
    body = io.BytesIO()
    arrays: dict[str, Any] = {f"v{i}": c.values for i, c in enumerate(coords.values())}
    np.savez(body, **arrays)
    return json.dumps(head), body.getvalue()


def _layout(head: str, arrays: bytes) -> Layout:
    said = json.loads(head)
    with np.load(io.BytesIO(arrays), allow_pickle=False) as values:
        coords = {
            name: Field(tuple(dims), values[f"v{i}"], _rich(attrs))
            for i, (name, (dims, attrs)) in enumerate(said["coords"].items())
        }
    dims, shape = said["cells"]
    return Layout(
        said["variable"],
        tuple(said["dims"]),
        tuple(said["picked"]),
        said["time"],
        said["time_axis"],
        np.dtype(said["dtype"]),
        said["calendar"],
        _rich(said["attrs"]),
        Grid(tuple(dims), tuple(shape), coords),
    )


def _plain(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes for JSON; NumPy values keep their type."""
    return {
        name: [np.asarray(value).dtype.str, np.asarray(value).tolist()]
        if isinstance(value, (np.generic, np.ndarray)) and np.asarray(value).dtype.kind in "iufbU"
        else value
        if isinstance(value, (str, int, float))
        else str(value)
        for name, value in attrs.items()
    }


def _rich(attrs: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: np.array(value[1], np.dtype(value[0]))[()] if isinstance(value, list) else value
        for name, value in attrs.items()
    }
