"""Files that people name, read whole; never more of one than such a file can be."""

from __future__ import annotations

from pathlib import Path
from typing import IO

from ..errors import Refusal

_PIECE = 1 << 20


def read_bytes(path: Path, most: int, advice: str) -> bytes:
    """All of a file, or of a pipe or device, of `most` bytes at most.

    Refusal where it cannot be read, or, with the advice, where there is more.
    """
    try:
        with open(path, "rb") as file:
            return read_stream(file, str(path), most, advice)
    except OSError as problem:
        raise Refusal(f"{path} cannot be read: {problem.strerror}.") from problem
    except Refusal:
        raise
    except ValueError as problem:  # a NUL in its name
        raise Refusal(f"{str(path)!r} cannot be read: {problem}.") from problem


def read_stream(file: IO[bytes], name: str, most: int, advice: str) -> bytes:
    """All that a stream has, of `most` bytes at most; Refusal where there is more."""
    data = bytearray()
    while piece := file.read(_PIECE):
        data += piece
        if len(data) > most:
            raise Refusal(f"{name} is larger than {most >> 20} MiB. {advice}")
    return bytes(data)
