"""SQLite files that profilers wrote: opened for reading alone, and fetched as columns.

Only tables are read, not views, which in a file from elsewhere could be any program at all.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn
from urllib.parse import quote

import numpy as np

from ...errors import Refusal
from .events import ABSENT, Column
from .sound import MOST_EVENTS
from .source import GZIP, unpacking

MAGIC = b"SQLite format 3\0"
_ROWS = 1 << 14  # fetched at a time
_LONGEST = 1 << 24  # bytes of a text
_WAIT = 2.0  # s for another program's lock


class Database:
    """The tables of a file. What SQLite says against them is raised as it is; see `opened`."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        self.tables = frozenset(str(name) for (name,) in found)
        self._columns: dict[str, tuple[str, ...]] = {}

    def columns(self, table: str) -> tuple[str, ...]:
        """Of a table; none where it does not exist."""
        if table not in self.tables:
            return ()
        if table not in self._columns:
            found = self._connection.execute("SELECT name FROM pragma_table_info(?)", (table,))
            self._columns[table] = tuple(str(name) for (name,) in found)
        return self._columns[table]

    def require(self, table: str, *names: str) -> None:
        """A Refusal where a table that is there lacks one of these columns."""
        lacking = [name for name in names if name not in self.columns(table)]
        if lacking:
            raise Refusal(
                f"{self.path}: the table {table} has no column {' and no '.join(lacking)}, so it "
                "is of a version that is not known here, or was changed. Export it again, or "
                "write another format."
            )

    def count(self, table: str, where: str = "") -> int:
        """Rows; 0 of a table that does not exist."""
        if table not in self.tables:
            return 0
        return int(self._connection.execute(_select(["count(*)"], table, where)).fetchone()[0])

    def integers(self, table: str, names: Sequence[str]) -> dict[str, np.ndarray]:
        """Those of the columns that are there, each int64; ABSENT for NULL."""
        return self.with_text(table, names, "")[0]

    def with_text(
        self, table: str, names: Sequence[str], text: str, where: str = ""
    ) -> tuple[dict[str, np.ndarray], Column]:
        """The same, and a column of texts, of the rows that a condition holds for."""
        there = [name for name in names if name in self.columns(table)]
        number = self.count(table, where) if there else 0
        if number > MOST_EVENTS:
            raise Refusal(
                f"{self.path}: the table {table} has {number:,} rows, more than {MOST_EVENTS:,}. "
                "Record fewer steps."
            )
        found = np.empty((len(there), number), np.int64)
        codes = np.full(number, ABSENT, np.int32)
        known: dict[str, int] = {}
        chosen = [_quoted(name) for name in there]
        if text in self.columns(table):
            chosen.append(_quoted(text))
        row = 0
        for rows in self._batches(_select(chosen, table, where)) if number else ():
            columns = list(zip(*rows, strict=True))
            rows_here = slice(row, row + len(rows))
            for at, name in enumerate(there):
                found[at, rows_here] = self._whole_numbers(table, name, columns[at])
            if len(columns) > len(there):
                codes[rows_here] = [
                    known.setdefault(value, len(known))
                    if value and isinstance(value, str)
                    else ABSENT
                    for value in columns[-1]
                ]
            row += len(rows)
        return dict(zip(there, found, strict=True)), Column(codes, tuple(known))

    def _whole_numbers(self, table: str, name: str, values: tuple) -> np.ndarray:
        try:
            if None in values:
                values = tuple(ABSENT if value is None else value for value in values)
            return np.fromiter(values, np.int64, len(values))
        except (TypeError, ValueError, OverflowError) as problem:
            raise Refusal(
                f"{self.path}: {table}.{name} holds something other than whole numbers, so the "
                "file is damaged. Copy or export it again."
            ) from problem

    def texts(
        self, table: str, key: str, value: str, keys: np.ndarray | None = None
    ) -> dict[int, str]:
        """By integer key, for these keys alone where they are given; NULL is left out."""
        if key not in self.columns(table) or value not in self.columns(table):
            return {}
        wanted = None if keys is None else set(np.unique(keys).tolist())
        return {
            number: text
            for rows in self._batches(_select([_quoted(key), _quoted(value)], table))
            for number, text in rows
            if (wanted is None or number in wanted) and isinstance(text, str)
        }

    def rows(self, table: str, names: Sequence[str], most: int = 4096) -> list[dict[str, object]]:
        """Of a small table by column, at most so many; None for columns that are not there."""
        there = [name for name in names if name in self.columns(table)]
        if not there:
            return []
        sql = f"{_select(list(map(_quoted, there)), table)} LIMIT {most}"
        nothing: dict[str, object] = dict.fromkeys(names)
        return [
            nothing | dict(zip(there, row, strict=True)) for row in self._connection.execute(sql)
        ]

    def _batches(self, sql: str) -> Iterator[list[tuple]]:
        cursor = self._connection.execute(sql)
        while rows := cursor.fetchmany(_ROWS):
            yield rows


@contextmanager
def opened(path: Path, advice: str) -> Iterator[Database]:
    """A file's tables; a Refusal, with the advice, of what is damaged, locked or no database."""
    _check_whole(path, advice)
    connection = None
    try:
        connection = _connected(path)
        yield Database(path, connection)
    except (sqlite3.Error, UnicodeDecodeError) as problem:  # the second of an error's own text
        if "locked" in str(problem) or "busy" in str(problem):
            raise Refusal(
                f"{path} is locked: another program is writing it. Wait until the profiler has "
                "ended, or copy the file."
            ) from problem
        raise Refusal(
            f"{path} cannot be read as a database ({problem}); it may be damaged or cut off. "
            f"{advice}"
        ) from problem
    finally:
        if connection is not None:
            connection.close()


def tables_of(path: Path) -> frozenset[str]:
    """Names of the tables; none where the file is no whole database."""
    try:
        with opened(path, "") as database:
            return database.tables
    except Refusal:
        return frozenset()


def _connected(path: Path) -> sqlite3.Connection:
    where = f"file:{quote(os.path.abspath(path))}?mode=ro"
    if not _journals(path):
        where += "&immutable=1"  # so that a folder that may not be written is no hindrance
    connection = sqlite3.connect(where, uri=True, timeout=_WAIT)
    # Names are shown to people, and one bad byte is no reason to lose a trace.
    connection.text_factory = lambda data: data.decode("utf-8", errors="replace")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    return connection


def _journals(path: Path) -> bool:
    """Whether another program is writing, or was when it ended: then locks and logs count."""
    return any(Path(f"{path}{suffix}").exists() for suffix in ("-journal", "-wal", "-shm"))


def _check_whole(path: Path, advice: str) -> None:
    """Refusal of what is no database, or shorter than its header says."""
    try:
        with open(path, "rb") as file:
            head = file.read(100)
            size = file.seek(0, os.SEEK_END)
    except OSError as problem:
        raise Refusal(f"{path} cannot be read: {problem.strerror}.") from problem
    if head.startswith(GZIP):
        raise Refusal(
            f"{path} is a database packed by gzip, and a database is not read in order. Unpack it "
            f"first: {unpacking(path)}"
        )
    if not head.startswith(MAGIC) or len(head) < 100:
        raise Refusal(f"{path} is no SQLite database. {advice}")
    page = int.from_bytes(head[16:18], "big")
    page = 65536 if page == 1 else page
    pages = int.from_bytes(head[28:32], "big")
    counted = head[24:28] == head[92:96]  # else an old SQLite wrote last and did not count
    if counted and not _journals(path) and size < page * pages:
        raise Refusal(
            f"{path} is cut off: it has {size:,} bytes of {page * pages:,}. Copy or export it "
            f"again. {advice}"
        )


def _select(columns: Sequence[str], table: str, where: str = "") -> str:
    condition = f" WHERE {where}" if where else ""
    return f"SELECT {', '.join(columns)} FROM {_quoted(table)}{condition}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def refuse(path: Path) -> NoReturn:
    """Of a database that no reader knows: why."""
    with opened(path, "") as database:
        tables = sorted(database.tables)
    held = f"its tables are {', '.join(tables[:5])}{' ...' if len(tables) > 5 else ''}"
    raise Refusal(
        f"{path} is a database of another program: {held if tables else 'it has no tables'}. Of "
        "databases those of nsys (nsys export --type sqlite) and of rocprofv3 (rocpd) can be read."
    )
