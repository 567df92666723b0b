"""A trace's file as a stream of bytes: unpacked where it is gzip's, and never held whole.

Whether a file is packed is told by how it begins, not by its name: profilers and people rename.
"""

from __future__ import annotations

import shlex
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import IO

from isal import igzip_lib, isal_zlib  # twice as fast as zlib, which would take a third of the time

from ...errors import Refusal

GZIP = b"\x1f\x8b"  # how it begins
PIECE = 4 << 20  # bytes that are held at a time
MOST = 32 << 30  # bytes of a file, unpacked: a hundred million events
_PACKED_PIECE = 1 << 18
_LESSON = 31 << 20  # bytes; of larger blocks glibc learns nothing
_BY_ITS_HEADER = 31  # what zlib calls: gzip, with header and checksum


def pieces(path: Path, size: int = PIECE, most: int = MOST) -> Generator[bytes, None, None]:
    """The unpacked bytes, `size` at most at a time. To be closed by who does not want all.

    Refusal where the file cannot be read, is damaged or cut off, or holds more than `most`.
    """
    total = 0
    _keep_freed_memory()
    try:
        with open(path, "rb") as file:
            packed = file.read(len(GZIP)) == GZIP
            file.seek(0)
            plain = iter(lambda: file.read(size), b"")
            for piece in _ahead(_unpacked(file, path, size)) if packed else plain:
                total += len(piece)
                if total > most:
                    raise Refusal(
                        f"{path} holds more than {most / (1 << 30):g} GiB"
                        f"{', unpacked' if packed else ''}, which no trace needs. "
                        "Record fewer steps."
                    )
                yield piece
    except OSError as problem:
        raise _unreadable(path, problem) from problem


def beginning(path: Path, size: int = 1 << 16) -> bytes:
    """The first bytes, unpacked; Refusal as of `pieces`."""
    with closing(pieces(path, size)) as found:
        return next(found, b"")


def unpacking(path: Path) -> str:
    """The command that unpacks a file beside itself."""
    into = path.with_suffix("") if path.suffix == ".gz" else path.with_name(f"{path.name}.unpacked")
    return f"gunzip < {shlex.quote(str(path))} > {shlex.quote(str(into))}"


def _unpacked(file: IO[bytes], path: Path, size: int) -> Iterator[bytes]:
    """Of one or several gzip streams in a row."""
    unpack = isal_zlib.decompressobj(_BY_ITS_HEADER)
    packed = b""
    while True:
        if not packed:
            packed = file.read(_PACKED_PIECE)
        if unpack.eof:
            packed = packed.lstrip(b"\0")  # what fills up a block on a tape
            if not packed:
                if file.tell() == file.seek(0, 2):
                    return
                continue
            if not packed.startswith(GZIP[: len(packed)]):
                raise Refusal(
                    f"{path} goes on after the end of gzip's data with something else. Copy it "
                    f"again, or leave that out if it is none of it: {unpacking(path)}"
                )
            unpack = isal_zlib.decompressobj(_BY_ITS_HEADER)
        try:
            piece = unpack.decompress(packed, size)
        except igzip_lib.IsalError as problem:  # type: ignore[misc]
            raise Refusal(
                f"{path} is damaged: gzip's data do not fit together ({problem}). Copy or record "
                "it again."
            ) from problem
        if not piece and not packed:
            raise Refusal(
                f"{path} is cut off: gzip's data end before their end. Copy it again, or let the "
                "profiler end before the file is taken."
            )
        packed = unpack.unused_data if unpack.eof else unpack.unconsumed_tail
        if piece:
            yield piece


def _ahead(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The same, the next one made while one is used: unpacking lets other threads work."""
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, pieces, b"")
        while piece := coming.result():
            coming = thread.submit(next, pieces, b"")
            yield piece


def _keep_freed_memory() -> None:
    """Lets glibc keep up to 64 MiB that are freed: each piece takes the place of the one before.

    It learns from the largest block that it mapped and that was freed, up to 32 MiB, and hands what
    is above twice that back to the system, from where every page is zeroed and mapped anew. Of a
    file of a million events that took an eighth of the time. Nothing else is changed by it.
    """
    bytes(_LESSON)


def _unreadable(path: Path, problem: OSError) -> Refusal:
    return Refusal(f"{path} cannot be read: {problem.strerror}.")
