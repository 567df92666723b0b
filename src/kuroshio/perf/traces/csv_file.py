"""CSV files of a row an event: whole numbers as arrays, and all else as texts by number.

Fields are found and numbers are read by arrays, a piece of the file at a time: the csv module's
lists of strings take several times as long and as much memory.
"""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...errors import Refusal
from .events import ABSENT, Column
from .sound import MOST_EVENTS
from .source import pieces

_PIECE = 1 << 20  # bytes at a time
_LONGEST = 1 << 20  # bytes of a line
_ENDS = ("End_Timestamp", "EndNs")
_QUOTE, _COMMA, _NEWLINE, _RETURN = b'",\n\r'
_DIGITS = 18  # that fit int64, whatever they are
_SHORT = 8  # bytes of a text that fit an integer


@dataclass(frozen=True)
class Sheet:
    """Columns by name.

    integers   int64; ABSENT where a field is empty
    texts      all other columns
    cut        whether the last line was cut off; it is left out
    """

    path: Path
    header: tuple[str, ...]
    rows: int
    integers: dict[str, np.ndarray]
    texts: dict[str, Column]
    cut: bool

    def whole(self, *names: str) -> np.ndarray | None:
        """The first of these columns of whole numbers that is there."""
        return next((self.integers[name] for name in names if name in self.integers), None)

    def triple(self, *names: str) -> np.ndarray | None:
        """(row, 3) of three columns; None where one is not there."""
        if any(name not in self.integers for name in names):
            return None
        return np.stack([self.integers[name] for name in names], axis=1)

    def text(self, name: str, row: int) -> str | None:
        """A field; None where it is empty or there is no such column."""
        column = self.texts.get(name)
        if column is None or column.codes[row] == ABSENT:
            return None
        return column.values[column.codes[row]]


def header_in(head: bytes) -> tuple[str, ...]:
    """The names in the first line of how a file begins."""
    text = head.decode("utf-8-sig", errors="replace")
    line = next((line for line in text.splitlines() if line.strip()), "")
    try:
        return () if "\0" in line else tuple(field.strip() for field in next(csv.reader([line])))
    except (csv.Error, StopIteration):
        return ()


def sheet(path: Path, whole: Collection[str], without: Collection[str] = ()) -> Sheet:
    """All of a file: these columns as whole numbers, and none of those that are not wanted.

    A Refusal where a row within it is of another length than the header, or where a whole number
    is none. The last line may be cut off, as where a profiled program was killed: then it is left
    out, unless all its fields are there and the last is an end, which a lost digit would show in.
    """
    blocks = _Blocks(path)
    header: tuple[str, ...] = ()
    at: dict[str, int] = {}
    numbers: dict[str, list[np.ndarray]] = {}
    codes: dict[str, list[np.ndarray]] = {}
    values: dict[str, dict[bytes, int]] = {}
    total, cut = 0, False
    for block in blocks:
        skip = 0
        if not header:
            header, skip = header_in(block), 1
            for number, name in enumerate(header):
                at.setdefault(name, number)  # of columns with one name the first counts
            numbers = {name: [] for name in at if name in whole}
            codes = {name: [] for name in at if name not in whole and name not in without}
            values = {name: {} for name in codes}
        fields = _Fields(path, block)
        if blocks.cut and (len(fields.uneven(len(header))) or header[-1] not in _ENDS):
            cut = True  # the last block, which is the cut line alone
            continue
        fields.arrange(len(header), skip, total)
        for name, parts in numbers.items():
            parts.append(fields.whole_numbers(at[name], name))
        for name, parts in codes.items():
            parts.append(fields.coded(at[name], values[name]))
        total += len(fields)
        if total > MOST_EVENTS:
            raise Refusal(f"{path} has more than {MOST_EVENTS:,} rows. Record fewer steps.")
    return Sheet(
        path, header, total,
        {name: _joined(parts, np.int64) for name, parts in numbers.items()},
        {name: _column(_joined(codes[name], np.int32), values[name]) for name in codes},
        cut or blocks.unclosed,
    )  # fmt: skip


class _Blocks:
    """A file in blocks of whole lines, and at last, without its end, a line that is cut off.

    cut        whether this is that line
    unclosed   whether the file ended within quotes: then the line is not given
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.cut = self.unclosed = False

    def __iter__(self) -> Iterator[bytes]:
        rest = b""
        for number, piece in enumerate(pieces(self.path, _PIECE)):
            rest += piece if number else piece.removeprefix(b"\xef\xbb\xbf")
            end = _last_end(rest)
            if end:
                yield rest[:end]
                rest = rest[end:]
            if len(rest) > _LONGEST:
                raise Refusal(
                    f"{self.path} has a line, or a text in quotes, of more than {_LONGEST:,} "
                    "bytes: it is no CSV, or damaged."
                )
        if not rest.strip():
            return
        if not rest.count(b'"') % 2:
            self.cut = True
            yield rest + b"\n"
        elif rest.endswith(b"\n"):
            raise Refusal(
                f"{self.path} is no whole CSV (a quote that opens is never closed): it is damaged, "
                "or something else was printed into it. Make it again."
            )
        else:
            self.unclosed = True


class _Fields:
    """Where the fields of a block are: starts and ends, (row, column) once they are arranged."""

    def __init__(self, path: Path, block: bytes) -> None:
        self.path, self._block = path, block
        self._data = data = np.frombuffer(block, np.uint8)
        apart = (data == _COMMA) | (data == _NEWLINE)
        quotes = np.flatnonzero(data == _QUOTE)
        ends = np.flatnonzero(apart)
        ends = ends[np.searchsorted(quotes, ends) % 2 == 0]  # not within quotes
        starts = np.concatenate([[0], ends[:-1] + 1])
        breaks = data[ends] == _NEWLINE
        alone = breaks & np.concatenate([[True], breaks[:-1]])
        ends -= breaks & (ends > starts) & (data[ends - 1] == _RETURN)
        filled = ~(alone & (ends == starts))  # not an empty line
        self._starts, self._ends, self._breaks = starts[filled], ends[filled], breaks[filled]

    def __len__(self) -> int:
        return len(self._starts)

    def uneven(self, width: int) -> np.ndarray:
        """Numbers of rows with another number of fields, and how many each has: (row, 2)."""
        counts = np.diff(np.flatnonzero(self._breaks), prepend=-1)
        rows = np.flatnonzero(counts != width)
        return np.stack([rows, counts[rows]], axis=1) if len(rows) else np.empty(0, np.int64)

    def arrange(self, width: int, skip: int, before: int) -> None:
        """As a table, without so many first rows; a Refusal where it is none."""
        uneven = self.uneven(width)
        if len(uneven):
            row, found = uneven[0]
            raise Refusal(
                f"{self.path}: row {before + row + 2 - skip} has {found} fields and the header "
                f"{width}, so the file is damaged, or something else was printed into it. Make it "
                "again."
            )
        starts = self._starts.reshape(-1, width)[skip:]
        ends = self._ends.reshape(-1, width)[skip:]
        quoted = (ends - starts > 1) & (self._data[starts] == _QUOTE)
        self._starts, self._ends = starts + quoted, ends - quoted

    def whole_numbers(self, column: int, name: str) -> np.ndarray:
        starts, ends = self._starts[:, column], self._ends[:, column]
        widths = ends - starts
        found = np.zeros(len(starts), np.int64)
        odd = widths > _DIGITS
        for place in range(min(int(widths.max(initial=0)), _DIGITS)):
            there = place < widths
            digit = self._data[np.where(there, ends - 1 - place, starts)].astype(np.int64) - 48
            odd |= there & ((digit < 0) | (digit > 9))
            found += np.where(there, digit, 0) * 10**place
        found[widths == 0] = ABSENT
        for row in np.flatnonzero(odd):
            found[row] = self._whole_number(name, self._block[starts[row] : ends[row]])
        return found

    def _whole_number(self, name: str, field: bytes) -> int:
        """One that the arrays could not read."""
        text = field.decode("utf-8", errors="replace").strip()
        if not text:
            return ABSENT
        try:
            value = int(text)
        except ValueError:
            hint = " A spreadsheet seems to have rounded it." if "E+" in text else ""
            raise Refusal(
                f"{self.path}: {name} is {text[:40]!r}, which is no whole number.{hint} Give the "
                "file as the profiler wrote it."
            ) from None
        if not -(2**63) <= value < 2**63:
            raise Refusal(
                f"{self.path}: {name} is {text[:40]}, more than any profiler writes: damaged."
            )
        return value

    def coded(self, column: int, known: dict[bytes, int]) -> np.ndarray:
        """Numbers of texts; those that are new are added to the known."""
        starts, ends = self._starts[:, column], self._ends[:, column]
        widths = ends - starts
        if widths.max(initial=0) >= _SHORT:
            spans = zip(starts.tolist(), ends.tolist(), strict=True)
            block = self._block
            found = [known.setdefault(block[start:end], len(known)) for start, end in spans]
            return np.array(found, np.int32)
        packed = widths.astype(np.uint64)  # so that a NUL is no end
        for place in range(int(widths.max(initial=0))):
            there = place < widths
            byte = self._data[np.where(there, starts + place, starts)]
            packed |= np.where(there, byte, 0).astype(np.uint64) << np.uint64(8 * place + 8)
        _, firsts, codes = np.unique(packed, return_index=True, return_inverse=True)
        numbers = [
            known.setdefault(self._block[starts[row] : ends[row]], len(known)) for row in firsts
        ]
        return np.array(numbers, np.int32)[codes]


def _last_end(text: bytes) -> int:
    """After the last newline that is not within quotes; 0 where there is none."""
    end = len(text)
    outside = not text.count(b'"') % 2
    while end:
        before = text.rfind(b"\n", 0, end)
        outside ^= bool(text.count(b'"', before + 1, end) % 2)
        if before >= 0 and outside:
            return before + 1
        end = max(before, 0)
    return 0


def _joined(parts: list[np.ndarray], kind: type) -> np.ndarray:
    return np.concatenate(parts) if parts else np.empty(0, kind)


def _column(codes: np.ndarray, values: dict[bytes, int]) -> Column:
    """An empty field is no value."""
    nothing = values.get(b"")
    if nothing is not None:
        codes = np.where(codes == nothing, np.int32(ABSENT), codes)
    texts = (value.decode("utf-8", errors="replace").replace('""', '"') for value in values)
    return Column(codes, tuple(texts))
