"""Files that people name, read whole; never more of one than such a file can be."""

from __future__ import annotations

from pathlib import Path

from ..errors import Refusal


def read_bytes(path: Path, most: int, advice: str) -> bytes:
    """All of a file, or of a pipe or device, of `most` bytes at most.

    Refusal, with the advice, where there is more or it cannot be read.
    """
    try:
        with open(path, "rb") as file:
            data = file.read(most + 1)
    except OSError as problem:
        raise Refusal(f"{path} cannot be read: {problem.strerror}. {advice}") from problem
    except ValueError as problem:  # a NUL in its name
        raise Refusal(f"{str(path)!r} cannot be read: {problem}. {advice}") from problem
    if len(data) > most:
        raise Refusal(f"{path} is larger than {most >> 20} MiB. {advice}")
    return data
