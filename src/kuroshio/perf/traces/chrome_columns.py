"""Values of JSON, which may be of any type, as columns of numbers and of numbered text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np

from ...errors import Refusal
from .events import ABSENT, Column

LONGEST_NAME = 16_384  # characters; of one of a template that is longer they tell enough
LONGEST_VALUE = 256  # characters
MOST_COLUMNS = 48
MOST_VALUES = 1 << 20  # distinct, of a column
_MOST_TEXT = 512 << 20  # characters of all names
_WHOLE = re.compile(r"[A-Za-z ]{0,16}(-?[0-9]{1,19}|0x[0-9a-fA-F]{1,15})")
_PLAIN_KEY = re.compile(rf'[^"\\\x00-\x1f]{{0,{LONGEST_VALUE}}}')  # others no struct can have
_INT64 = np.iinfo(np.int64)


class Names(dict[Any, int]):
    """Numbers of names, from 0, in the order in which they are looked up."""

    def __init__(self, path: object) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.cut = 0
        self._path, self._characters = path, 0

    def __missing__(self, value: Any) -> int:
        name = "" if value is None else str(value)
        if len(name) > LONGEST_NAME:
            name = name[:LONGEST_NAME]
            self.cut += 1
        self._characters += len(name)
        if self._characters > _MOST_TEXT:
            raise Refusal(
                f"{self._path} has names of more than {_MOST_TEXT >> 20} million characters in "
                "all, which no program has. It is no trace, or damaged."
            )
        self[value] = len(self.texts)
        self.texts.append(name)
        return self[value]


def whole(value: Any) -> int:
    """The whole number that a value is or ends in, ABSENT where it is none that int64 holds."""
    number = ABSENT
    if isinstance(value, bool):
        return ABSENT
    if isinstance(value, int):
        number = value
    elif isinstance(value, float) and value.is_integer():
        number = int(value)
    elif isinstance(value, str) and (found := _WHOLE.fullmatch(value.strip())):
        number = int(found[1], 0) if "x" in found[1] else int(found[1])
    return number if _INT64.min <= number <= _INT64.max else ABSENT


def wholes(values: list[Any]) -> np.ndarray:
    """int64, of `whole`."""
    if values.count(ABSENT) == len(values):
        return np.full(len(values), ABSENT, np.int64)
    if set(map(type, values)) == {int}:
        try:
            return np.array(values, np.int64)
        except OverflowError:
            pass
    return np.array([whole(value) for value in values], np.int64)


class Triples(dict[bytes, int]):
    """Lists of three whole numbers, by their text, since kernels repeat them."""

    def __init__(self) -> None:
        super().__init__()
        self._rows = [[ABSENT] * 3]
        self[b""] = 0

    def __missing__(self, text: bytes) -> int:
        try:
            given = msgspec.json.decode(text)
        except msgspec.DecodeError:
            return 0
        if not isinstance(given, list) or len(given) != 3 or len(self) > MOST_VALUES:
            return 0
        self._rows.append([whole(each) for each in given])
        self[text] = len(self._rows) - 1
        return self[text]

    def of(self, values: Iterable[msgspec.Raw]) -> np.ndarray:
        """int64 (value, 3); ABSENT for what is none."""
        codes = [self[bytes(value)] for value in values]
        return np.array(self._rows, np.int64)[codes]


class Arguments:
    """Decodes events' `args`: those of `values` as they are, `texts` and others as their text.

    Which ones there are is learned from the file, and only they are decoded. If the events tell a
    lot that nobody asks for, `learns` is false, and others are skipped.
    """

    def __init__(self, values: Iterable[str], texts: Iterable[str], learns: bool) -> None:
        self.others: list[str] = []
        self.full = False  # there were more others than are kept
        self._values, self._texts = frozenset(values), frozenset(texts)
        self._learns = learns
        self._keys: list[str] = [] if learns else [*self._values, *self._texts]
        self._make()

    def _make(self) -> None:
        names = {f"a{i}": key for i, key in enumerate(self._keys)}
        fields: list[tuple[str, Any, Any]] = [
            (name, Any, ABSENT) if key in self._values else (name, msgspec.Raw, msgspec.Raw())
            for name, key in names.items()
        ]
        learns = self._learns and not self.full
        made = msgspec.defstruct(
            "Arguments", fields, rename=names, gc=False, forbid_unknown_fields=learns
        )
        self._of = {key: attrgetter(name) for name, key in names.items()}
        self._nothing = made()
        self._one = msgspec.json.Decoder(made)
        self._several = msgspec.json.Decoder(list[made])  # type: ignore[valid-type]

    def decode(self, texts: Sequence[msgspec.Raw]) -> list[Any]:
        """What columns are taken from."""
        listed = b"[%b]" % b",".join(texts)
        try:
            found: list[Any] = self._several.decode(listed)
            return found
        except msgspec.DecodeError:
            if self._learns:
                self._learn(texts)
        return [self._decoded(text) for text in texts]

    def column(self, arguments: Sequence[Any], key: str) -> list[Any]:
        """A key's values; of one that was not met yet there are none."""
        return list(map(self._of[key], arguments)) if key in self._of else []

    def wholes(self, arguments: Sequence[Any], key: str) -> np.ndarray:
        """A key's values as int64; ABSENT where there is none."""
        values = self.column(arguments, key)
        return wholes(values) if values else np.full(len(arguments), ABSENT, np.int64)

    def _decoded(self, text: msgspec.Raw) -> Any:
        try:
            return self._one.decode(text)
        except msgspec.DecodeError:  # it is no object
            return self._nothing

    def _learn(self, texts: Sequence[msgspec.Raw]) -> None:
        had = set(self._keys)
        for text in texts:
            try:
                keys = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
            except msgspec.DecodeError:
                continue
            for key in [key for key in keys if key not in had]:
                if key not in self._values and key not in self._texts:
                    if len(self.others) >= MOST_COLUMNS or not _PLAIN_KEY.fullmatch(key):
                        self.full = True
                        continue
                    self.others.append(key)
                had.add(key)
                self._keys.append(key)
        if self.full:  # others are no longer looked for, but those of ours may still come
            self._keys += [*(self._values - had), *(self._texts - had)]
        self._make()


class _Values(dict[bytes, int]):
    """Numbers of texts, as they are in the file."""

    def __missing__(self, text: bytes) -> int:
        cut = text[: 4 * LONGEST_VALUE]
        return self.setdefault(cut, len(self) - 2)


class Texts:
    """One of the other arguments, of all events, as it is gathered."""

    def __init__(self) -> None:
        self.overfull = False
        self._codes: list[np.ndarray] = []
        self._length = 0
        self._numbers = _Values({b"": ABSENT, b"null": ABSENT})

    def add(self, first: int, values: Sequence[msgspec.Raw]) -> None:
        """Of events from number `first` on; earlier ones without a value have none."""
        self._fill(first)
        if self.overfull:
            return
        self._length += len(values)
        numbers = self._numbers
        self._codes.append(np.array([numbers[bytes(value)] for value in values], np.int32))
        self.overfull = len(numbers) > MOST_VALUES

    def column(self, number: int) -> Column:
        """Of `number` events."""
        self._fill(number)
        values = [_text(value) for value in list(self._numbers)[2:]]
        return Column(np.concatenate(self._codes), tuple(values))

    def _fill(self, number: int) -> None:
        if number > self._length:
            self._codes.append(np.full(number - self._length, ABSENT, np.int32))
            self._length = number


def _text(value: bytes) -> str:
    if value[:1] == b'"':
        try:
            return msgspec.json.decode(value, type=str)[:LONGEST_VALUE]
        except msgspec.DecodeError:  # it is cut
            value = value[1:]
    return value.decode("utf-8", "replace")[:LONGEST_VALUE]
