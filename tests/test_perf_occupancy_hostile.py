"""Files made to fill memory are refused while they are small."""

from __future__ import annotations

import struct
import sys
import tracemalloc
from types import SimpleNamespace

import pytest

from kuroshio.errors import Refusal
from kuroshio.perf.compiled import files
from kuroshio.perf.compiled.files import read


def announcing(kind: int, count: int, nbytes: int, machine: int = 224) -> bytes:
    """A small ELF file whose sections all are the whole of it."""
    head = bytearray(64)
    head[:6] = b"\x7fELF\x02\x01"
    struct.pack_into("<H", head, 18, machine)
    struct.pack_into("<QQ", head, 32, 0, 64)
    struct.pack_into("<HHHHH", head, 54, 0, 0, 64, count, 0)
    section = struct.pack("<IIQQQQIIQQ", 0, kind, 0, 0, 1, nbytes - 1, 0, 0, 0, 24)
    return (bytes(head) + section * count).ljust(nbytes - 1, b"A") + b"\0"


@pytest.mark.parametrize(("kind", "machine"), [(1, 224), (7, 224), (2, 190)])
def test_a_small_file_cannot_fill_memory(tmp_path, kind, machine):
    """4 MB that announce 4 GB, in sections over one another."""
    (tmp_path / "elf").write_bytes(announcing(kind, 1000, 4 << 20, machine))
    tracemalloc.start()
    try:
        with pytest.raises(Refusal, match="announces"):
            read(str(tmp_path / "elf"))
        assert tracemalloc.get_traced_memory()[1] < 40 << 20
    finally:
        tracemalloc.stop()


def test_a_name_cannot_fill_memory(tmp_path):
    """Sections without bytes, each with a name as long as the file."""
    content = bytearray(announcing(8, 1000, 1 << 20))
    struct.pack_into("<I", content, 64 + 4, 3)  # and one with the names
    struct.pack_into("<QQ", content, 64 + 24, 64 * 1001, len(content) - 64 * 1001)
    (tmp_path / "elf").write_bytes(content)
    with pytest.raises(Refusal, match="a name in it is cut off"):
        read(str(tmp_path / "elf"))


def test_files_without_end(monkeypatch):
    monkeypatch.setattr(files, "_LARGEST", 1 << 20)
    with pytest.raises(Refusal, match="larger than 1 MiB"):
        read("/dev/zero")
    with open("/dev/zero", "rb") as endless:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=endless))
        with pytest.raises(Refusal, match="Standard input is larger than 1 MiB"):
            read("-")
