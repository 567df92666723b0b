"""Facts of files kept between runs, in one SQLite file of the user's cache folder.

A row is good for the size and modification time it was made with. The cache is a convenience: a
corrupt one is made anew, an unwritable folder is no error, and nothing in it can be executed.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sqlite3
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from .facts import FileFacts, Storage
from .layout import Layout
from .model import Field, Grid, Packing

_FILE = "archives-1.sqlite3"  # the number grows with every change of the tables or of the facts
_PATIENCE_S = 2.0  # for another run that writes
_TABLES = """
CREATE TABLE IF NOT EXISTS layout (
    request TEXT, folder TEXT, fingerprint TEXT, head TEXT, arrays BLOB,
    PRIMARY KEY (request, folder, fingerprint));
CREATE TABLE IF NOT EXISTS file (
    request TEXT, folder TEXT, name TEXT, size INTEGER, mtime_ns INTEGER, fingerprint TEXT,
    shape TEXT, seconds BLOB, packing TEXT, storage TEXT, chunks BLOB,
    PRIMARY KEY (request, folder, name)) WITHOUT ROWID;
"""


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
        except (sqlite3.Error, OSError, ValueError, KeyError, TypeError, EOFError):
            self._discard()
            return {}, {}

    def save(
        self,
        facts: Iterable[tuple[FileFacts, int, int]],
        layouts: Mapping[str, Layout],
        request: str,
    ) -> None:
        """Remember facts with the size and mtime (ns) each file had before it was scanned."""
        files, heads = [], {}
        for fact, size, mtime_ns in facts:
            folder, name = os.path.split(fact.path)
            layout = layouts[fact.fingerprint]
            heads[request, folder, fact.fingerprint] = layout
            files.append(
                (
                    request,
                    folder,
                    name,
                    size,
                    mtime_ns,
                    fact.fingerprint,
                    json.dumps(fact.shape),
                    fact.seconds.astype("<i8").tobytes(),
                    _packing_text(fact.packing),
                    _storage_text(fact.storage),
                    fact.storage.table.astype("<i8").tobytes(),
                )
            )
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.closing(self._connect()) as database, database:
                database.executescript(_TABLES)
                database.executemany(
                    "INSERT OR REPLACE INTO layout VALUES (?,?,?,?,?)",
                    [(*key, *_layout_row(layout)) for key, layout in heads.items()],
                )
                database.executemany(
                    "INSERT OR REPLACE INTO file VALUES (?,?,?,?,?,?,?,?,?,?,?)", files
                )
        except sqlite3.OperationalError:
            return  # locked by another run, read-only, or a full disk
        except (sqlite3.Error, OSError, UnicodeEncodeError):
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
        for path in paths:
            folder, name = os.path.split(path)
            wanted[folder][name] = path
        facts: dict[str, FileFacts] = {}
        layouts: dict[str, Layout] = {}
        for folder, names in wanted.items():
            rows = database.execute(
                "SELECT name, size, mtime_ns, fingerprint, shape, seconds, packing, storage, chunks"
                " FROM file WHERE request = ? AND folder = ?",
                (request, folder),
            )
            for name, size, mtime_ns, fingerprint, shape, seconds, packing, storage, chunks in rows:
                path = names.get(name, "")
                if not path or _state(path) != (size, mtime_ns):
                    continue
                extent = _shape(shape)
                facts[path] = FileFacts(
                    path,
                    fingerprint,
                    extent,
                    np.frombuffer(seconds, "<i8"),
                    _packing(packing),
                    _storage(storage, chunks, len(extent)),
                )
            for fingerprint, head, arrays in database.execute(
                "SELECT fingerprint, head, arrays FROM layout WHERE request = ? AND folder = ?",
                (request, folder),
            ):
                layouts.setdefault(fingerprint, _layout(head, arrays))
        return {p: f for p, f in facts.items() if f.fingerprint in layouts}, layouts


def _state(path: str) -> tuple[int, int] | None:
    try:
        state = os.stat(path)
    except OSError:
        return None
    return state.st_size, state.st_mtime_ns


@lru_cache(maxsize=64)
def _shape(text: str) -> tuple[int, ...]:
    return tuple(json.loads(text))


def _packing_text(how: Packing) -> str:
    return json.dumps([how.scale, how.offset, how.missing, how.packed])


@lru_cache(maxsize=1024)
def _packing(text: str) -> Packing:
    scale, offset, missing, packed = json.loads(text)
    return Packing(scale, offset, tuple(missing), packed)


def _storage_text(store: Storage) -> str:
    return json.dumps([store.chunk, store.deflate, store.shuffle, store.start])


def _storage(text: str, table: bytes, ndim: int) -> Storage:
    chunk, deflate, shuffle, start = _storage_head(text)
    chunks = np.frombuffer(table, "<i8").reshape(-1, 2 + ndim)
    return Storage(chunk, deflate, shuffle, start, chunks)


@lru_cache(maxsize=64)
def _storage_head(text: str) -> tuple[tuple[int, ...], bool, bool, int]:
    chunk, deflate, shuffle, start = json.loads(text)
    return tuple(chunk), deflate, shuffle, start


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
