"""The elements of a large array in a JSON file, some megabytes at a time.

A trace is an object with `traceEvents`, or a bare list. Its end of an element cannot be seen
without all that comes before it: quotes, escapes, and brackets, which are counted with NumPy. That
costs as much as decoding does, so it is done once, to learn how this file parts its elements; from
there on a piece is cut where that text last stands, and decoded. A cut in the middle of a string or
a nested array leaves something open, so decoding itself tells whether a cut was right.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, NoReturn, TypeVar

import msgspec

from ...errors import Refusal
from .json_mending import mended
from .json_scan import end_of_value, ends_of_elements

LARGEST = 16 << 20  # bytes of an element, or of another value, with the space before it
_MOST_ODD = 100_000  # elements; each takes some microseconds
_SPACE = b" \t\r\n"
_BOM = b"\xef\xbb\xbf"
_NOT_DECODED = (msgspec.DecodeError, RecursionError)

T = TypeVar("T")


class Elements(Generic[T]):
    """Of the arrays `large` of the object that the file is, or of the list that it is.

    Iterating gives lists of what `decoder` makes of some elements. After that:
    metadata   the object's other values
    odd        elements that the decoder cannot take
    mended     whether text had to be mended to be JSON, see `json_mending`
    unclosed   whether a bare list has no end, as Chrome allows
    """

    def __init__(
        self,
        name: str,
        pieces: Iterator[bytes],
        decoder: msgspec.json.Decoder[list[T]],
        large: frozenset[str],
        piece: int,
        largest: int = LARGEST,
    ) -> None:
        self.metadata: dict[str, Any] = {}
        self.found = False  # such an array
        self.odd = 0
        self.mended = False
        self.unclosed = False
        self._name, self._pieces, self._decoder, self._large = name, pieces, decoder, large
        self._piece, self._largest = piece, largest
        self._text = b""
        self._passed = 0  # bytes before `_text`
        self._between = b""

    def __iter__(self) -> Iterator[list[T]]:
        self._more()
        if self._text.startswith(_BOM):
            self._drop(len(_BOM))
        first = self._next()
        if first == b"[":
            yield from self._array(bare=True)
        elif first == b"{":
            yield from self._object()
        else:
            self._damaged("it begins neither with { nor with [")
        if self._next():
            self._damaged("something comes after its end")

    def _object(self) -> Iterator[list[T]]:
        for key in self._keys():
            if self._next() == b"[" and key in self._large:
                yield from self._array(bare=False)
            else:
                self.metadata[key] = self._value()

    def _keys(self) -> Iterator[str]:
        """An object's names; who takes one has to read its value."""
        self._drop(1)
        if self._next() == b"}":
            self._drop(1)
            return
        while True:
            if self._next() != b'"':
                self._damaged("where the name of a value should be is none")
            key = self._value()
            if self._next() != b":":
                self._damaged("a name has no value")
            self._drop(1)
            yield key
            after = self._next()
            if after not in (b",", b"}"):
                self._damaged("values are not parted by commas")
            self._drop(1)
            if after == b"}":
                return

    def _array(self, bare: bool) -> Iterator[list[T]]:
        self.found = True
        self._drop(1)
        after = self._next()
        while after != b"]":
            if after or not bare:
                yield self._batch()
            after = self._next()
            if after == b",":
                self._drop(1)
                after = self._next()
            elif after not in (b"]", b""):
                self._damaged("elements are not parted by commas")
            if not after:
                if not bare:
                    self._cut_off()
                self.unclosed = True
                return
        self._drop(1)

    def _batch(self) -> list[T]:
        while len(self._text) < self._piece // 2 and self._more():
            pass
        if self._between:
            end = self._text.rfind(self._between) + 1
            if end > 0:
                try:
                    return self._cut(end, self._decoder.decode(_listed(self._text, end)))
                except _NOT_DECODED:
                    pass
        while not (end := self._whole_elements()):
            if len(self._text) > self._largest:
                self._too_large()
            if not self._more():
                self._cut_off()
        return self._cut(end, self._decoded(_listed(self._text, end)))

    def _whole_elements(self) -> int:
        """How much of the text they are; learns what is between two."""
        ends, closed = ends_of_elements(self._text)
        if not len(ends):
            return closed or 0
        if len(ends) < 2:
            return int(ends[-1])
        # Up to the first name within the next element, so that it is seldom found elsewhere.
        first = int(ends[-2])
        quote = self._text.find(b'"', self._text.find(b'"', first) + 1)
        self._between = self._text[first - 1 : quote + 1] if 0 < quote - first < 200 else b""
        return int(ends[-1])

    def _decoded(self, listed: bytes) -> list[T]:
        try:
            return self._decoder.decode(listed)
        except _NOT_DECODED:
            pass
        try:
            apart = msgspec.json.decode(listed, type=list[msgspec.Raw])
        except _NOT_DECODED:
            listed = mended(listed)
            self.mended = True
            try:
                apart = msgspec.json.decode(listed, type=list[msgspec.Raw])
            except _NOT_DECODED as problem:
                self._damaged(str(problem))
        found: list[T] = []
        for each in apart:
            try:
                found += self._one(bytes(each))
            except _NOT_DECODED:
                self.odd += 1
                if self.odd > _MOST_ODD:
                    raise Refusal(
                        f"{self._name} has more than {_MOST_ODD:,} elements in its list that are "
                        "no events. It is no trace."
                    ) from None
        return found

    def _one(self, element: bytes) -> list[T]:
        try:
            return self._decoder.decode(b"[%b]" % element)
        except _NOT_DECODED:
            fixed = mended(element)
            found = self._decoder.decode(b"[%b]" % fixed)
            self.mended |= fixed != element
            return found

    def _value(self) -> Any:
        while not (end := end_of_value(self._text)):
            if len(self._text) > self._largest:
                self._too_large()
            if not self._more():
                self._cut_off()
        text = self._text[:end]
        try:
            return self._cut(end, msgspec.json.decode(text))
        except _NOT_DECODED:
            self.mended = True
        try:
            return self._cut(end, msgspec.json.decode(mended(text)))
        except _NOT_DECODED as problem:
            self._damaged(str(problem))

    def _cut(self, end: int, result: Any) -> Any:
        self._drop(end)
        return result

    def _drop(self, number: int) -> None:
        self._text = self._text[number:]
        self._passed += number

    def _next(self) -> bytes:
        """The next byte that is no space, which then begins the text; none at the end."""
        spaces = 0
        while True:
            spaces += len(self._text)
            self._text = self._text.lstrip(_SPACE)
            spaces -= len(self._text)
            if self._text or spaces > self._largest or not self._more():
                self._passed += spaces
                if spaces > self._largest:
                    self._too_large()
                return self._text[:1]

    def _more(self) -> bool:
        piece = next(self._pieces, b"")
        self._text += piece
        return bool(piece)

    def _damaged(self, why: str) -> NoReturn:
        if not self._text:
            self._cut_off()
        begins = self._text[:40].decode("utf-8", "replace")
        raise Refusal(
            f"{self._name} is no whole JSON: {why}, after byte {self._passed}, from {begins!r}. It "
            "is damaged, or was not written by a profiler. Copy or record it again."
        )

    def _cut_off(self) -> NoReturn:
        raise Refusal(
            f"{self._name} is cut off: its JSON ends at byte {self._passed + len(self._text)} in "
            "the middle. Copy it again, or let the profiler end before the file is taken."
        )

    def _too_large(self) -> NoReturn:
        raise Refusal(
            f"{self._name} has one value of more than {self._largest >> 20} MiB, after byte "
            f"{self._passed}; no event of a trace is as large. It is damaged, or not a trace."
        )


def _listed(text: bytes, end: int) -> bytes:
    """What comes before `end` as a list; the text is copied once."""
    return b"".join((b"[", memoryview(text)[:end], b"]"))
