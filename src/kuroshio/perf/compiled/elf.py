"""As much of ELF (64 bits, little-endian) as code objects, cubins and programs need."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

MAGIC = b"\x7fELF"
CUDA, AMDGPU = 190, 224  # machines

_NOTE_SECTION, _NOTE_SEGMENT, _SYMBOLS = 7, 4, 2  # of types
# Types of sections without bytes in the file; NVIDIA's is of shared memory that is not linked yet.
_EMPTY = (0, 8, 0x7000000A)


@dataclass(frozen=True)
class Section:
    name: str
    kind: int
    nbytes: int
    """In memory; in the file there may be none."""
    data: bytes
    link: int
    """Number of another section that belongs to it."""


@dataclass(frozen=True)
class Symbol:
    name: str
    section: int
    other: int


class Elf:
    """An ELF file. ValueError, at once or later, where it ends before what it announces."""

    def __init__(self, data: bytes) -> None:
        if not data.startswith(MAGIC):
            raise ValueError("it does not begin as ELF does")
        if len(data) < 64 or data[4:6] != b"\x02\x01":
            raise ValueError("its head is not one of ELF with 64 bits")
        self._data = data
        self._names_left = 4 * len(data)  # of an honest file names take a part only
        self.abi_version = data[8]
        (self.machine,) = struct.unpack_from("<H", data, 18)
        segments, sections, self.flags = struct.unpack_from("<QQI", data, 32)
        sizes = struct.unpack_from("<HHHHH", data, 54)
        segment_bytes, segment_count, section_bytes, section_count, names = sizes
        self._segments = list(self._table("<IIQ16xQ", segments, segment_bytes, segment_count))
        self._section_heads = list(
            self._table("<II16xQQII", sections, section_bytes, section_count)
        )
        self._no_overlap([size for kind, _, _, size in self._segments if kind == _NOTE_SEGMENT])
        self._no_overlap([head[3] for head in self._section_heads if head[1] not in _EMPTY])
        self.sections = list(self._named_sections(names))

    def notes(self) -> Iterator[tuple[bytes, int, bytes]]:
        """Owner, type and content of each, from the segments, or (not linked yet) the sections."""
        places = [(at, size) for kind, _, at, size in self._segments if kind == _NOTE_SEGMENT]
        parts = [self._part(at, size) for at, size in places]
        parts = parts or [s.data for s in self.sections if s.kind == _NOTE_SECTION]
        for part in parts:
            at = 0
            while at + 12 <= len(part):
                owner_bytes, nbytes, kind = struct.unpack_from("<III", part, at)
                owner_at = at + 12
                content_at = owner_at + owner_bytes + -owner_bytes % 4
                at = content_at + nbytes + -nbytes % 4
                if content_at + nbytes > len(part):
                    raise ValueError("a note is cut off")
                owner = part[owner_at : owner_at + owner_bytes].rstrip(b"\0")
                yield owner, kind, part[content_at : content_at + nbytes]

    def symbols(self) -> list[Symbol]:
        """In the order of the table, so that a number names the same one."""
        found = []
        for table in self.sections:
            if table.kind == _SYMBOLS:
                names = self._linked(table)
                for at in range(0, len(table.data) - 23, 24):
                    name, _, other, section = struct.unpack_from("<IBBH", table.data, at)
                    found.append(Symbol(self._text(names, name), section, other))
        return found

    def _named_sections(self, names: int) -> Iterator[Section]:
        heads = self._section_heads
        if not heads:
            return
        if names >= len(heads):
            raise ValueError("the names of its sections are missing")
        texts = self._part(heads[names][2], heads[names][3])
        for name, kind, at, size, link, _ in heads:
            data = b"" if kind in _EMPTY else self._part(at, size)
            yield Section(self._text(texts, name), kind, size, data, link)

    def _linked(self, section: Section) -> bytes:
        if section.link >= len(self.sections):
            raise ValueError(f"what belongs to its section {section.name} is missing")
        return self.sections[section.link].data

    def _table(self, form: str, at: int, size: int, count: int) -> Iterator[tuple[int, ...]]:
        if count and size < struct.calcsize(form):
            raise ValueError("its tables are damaged")
        table = self._part(at, size * count) if count else b""
        return (struct.unpack_from(form, table, size * i) for i in range(count))

    def _part(self, at: int, size: int) -> bytes:
        if at + size > len(self._data):
            raise ValueError(
                f"it ends after {len(self._data):,} bytes, but announces {at + size:,} or more"
            )
        return self._data[at : at + size]

    def _no_overlap(self, sizes: list[int]) -> None:
        """A small file may announce one part a thousand times, and would fill all memory."""
        if sum(sizes) > len(self._data):
            raise ValueError(f"it announces {sum(sizes):,} bytes and has {len(self._data):,}")

    def _text(self, texts: bytes, at: int) -> str:
        end = texts.find(b"\0", at)
        self._names_left -= end - at
        if end < 0 or self._names_left < 0:
            raise ValueError("a name in it is cut off")
        return texts[at:end].decode(errors="replace")
