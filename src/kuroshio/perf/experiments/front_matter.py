"""The values of a record's front matter, taken one by one, each refused with its line if wrong."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from ...errors import Refusal
from .json_path import MOST

_HEADER = re.compile(r"\s*(\[\[?)\s*([^\[\]]+?)\s*\]\]?\s*(?:#.*)?")
_KEY = re.compile(r"""\s*("[^"]*"|'[^']*'|[A-Za-z0-9_-]+)\s*(?:=|\.)""")

Place = tuple[str | int, ...]


def lines_of(lines: Sequence[str], first: int) -> dict[Place, int]:
    """The line of each key and table of a TOML text whose first line has the number `first`."""
    found: dict[Place, int] = {}
    counts: dict[str, int] = {}
    table: Place = ()
    for number, line in enumerate(lines, first):
        if header := _HEADER.fullmatch(line):
            parts: list[str | int] = [part.strip(" \"'") for part in header[2].split(".")]
            head = str(parts[0])
            if header[1] == "[[" and len(parts) == 1:
                counts[head] = counts.get(head, -1) + 1
                found.setdefault((head,), number)
            if head in counts:
                parts.insert(1, counts[head])
            table = tuple(parts)
            found.setdefault(table, number)
        elif key := _KEY.match(line):
            found.setdefault((*table, key[1].strip("\"'")), number)
    return found


class Table:
    """A table of the front matter: each value is taken by its type, and what is left is refused."""

    def __init__(
        self, values: Mapping[str, Any], lines: Mapping[Place, int], name: str, at: Place = ()
    ) -> None:
        self._values, self._lines, self._name, self._at = dict(values), lines, name, at
        self._known: list[str] = []

    def word(self, key: str, allowed: Sequence[str] = (), required: bool = True) -> Any:
        """A str, one of `allowed` if there are any; None if it is absent and not required."""
        value = self._take(key, str, "a text in quotation marks", required)
        if value is not None and allowed and value not in allowed:
            raise self.wrong(key, f"it is {value!r}; allowed are {', '.join(map(repr, allowed))}")
        return value

    def number(self, key: str, required: bool = True) -> Any:
        value = self._take(key, (int, float), "a number", required)
        if value is None:
            return None
        if not abs(value) < MOST:
            raise self.wrong(key, f"it is {str(value)[:20]}; it must be a finite number")
        return float(value)

    def whole(self, key: str, required: bool = True) -> Any:
        return self._take(key, int, "a whole number", required)

    def flag(self, key: str, required: bool = True) -> Any:
        return self._take(key, bool, "true or false", required)

    def time(self, key: str) -> Any:
        value = self._take(key, datetime, "a time such as 2026-01-31T12:00:00Z", True)
        if value.tzinfo is None:
            raise self.wrong(key, f"the time {value} has no zone: add Z (for UTC) or +02:00")
        try:
            value.astimezone(UTC)
        except OverflowError as error:
            raise self.wrong(key, f"the time {value} is out of range") from error
        return value

    def words(self, key: str) -> list[str]:
        value = self._take(key, list, "a list of texts", False) or []
        if not all(isinstance(item, str) for item in value):
            raise self.wrong(key, "it must be a list of texts in quotation marks")
        return value

    def raw(self, key: str) -> dict[str, Any]:
        """A table of texts, finite numbers, lists and tables of these; empty if it is absent."""
        value = self._take(key, dict, f"a table [{key}]", False) or {}
        for name, fact in value.items():
            if not _is_plain(fact):
                raise self.wrong(
                    (key, name), f"it is {fact!r}; here are texts, numbers and lists of these"
                )
        return value

    def plain(self, key: str, allowed: Sequence[str] = ()) -> dict[str, Any]:
        """A table of texts and whole numbers."""
        inner = self.table(key, False)
        if inner is None:
            return {}
        values = {
            name: inner._take(name, (str, int), "a text or a whole number", True)
            for name in inner._values.copy()
            if not allowed or name in allowed
        }
        inner._known += allowed
        inner.nothing_else()
        return values

    def table(self, key: str, required: bool = True) -> Table | None:
        value = self._take(key, dict, f"a table [{key}]", required)
        return None if value is None else self._inner(value, key)

    def tables(self, key: str) -> list[Table]:
        value = self._take(key, list, f"tables [[{key}]]", False) or []
        if not all(isinstance(item, dict) for item in value):
            raise self.wrong(key, f"it must be tables [[{key}]]")
        return [self._inner(item, key, place) for place, item in enumerate(value)]

    def nothing_else(self) -> None:
        """Refuses a key that nobody has asked for, naming the nearest that is known."""
        for key in self._values:
            near = difflib.get_close_matches(key, self._known, 1)
            hint = f" (is {near[0]!r} meant?)" if near else f"; known are {', '.join(self._known)}"
            raise self.wrong(key, f"this key is not known{hint}")

    def wrong(self, key: str | Place, what: str) -> Refusal:
        place = (*self._at, *(key if isinstance(key, tuple) else (key,)))
        dotted = ".".join(str(part + 1 if isinstance(part, int) else part) for part in place)
        return Refusal(f"{self._name}, line {self._line(place)}: {dotted}: {what}.")

    def wrong_here(self, what: str) -> Refusal:
        return Refusal(f"{self._name}, line {self._line(self._at)}: {what}")

    def _inner(self, values: Mapping[str, Any], *at: str | int) -> Table:
        return Table(values, self._lines, self._name, (*self._at, *at))

    def _take(self, key: str, kind: Any, called: str, required: bool) -> Any:
        self._known.append(key)
        value = self._values.pop(key, None)
        if value is None:
            if required:
                raise self.wrong(key, f"it is missing; it is {called}")
            return None
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.wrong(key, f"it is {value!r}; it must be {called}")
        return value

    def _line(self, place: Place) -> int:
        """Of the key, or of the nearest table around it that is written down."""
        while place and place not in self._lines:
            place = place[:-1]
        return self._lines.get(place, 1)


def _is_plain(fact: Any) -> bool:
    if isinstance(fact, Mapping):
        return all(map(_is_plain, fact.values()))
    if isinstance(fact, list):
        return all(isinstance(each, str | int | float) and _is_plain(each) for each in fact)
    return isinstance(fact, str | int) or (isinstance(fact, float) and abs(fact) < MOST)
