"""What a folder's disk gives, past the system's memory of files where that can be had, and from it.

Cold readings are flagged in the name: "disk read cold" where the system's cache was avoided, else
only "disk read warm" is measured and the cold one is missing.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from time import perf_counter

from .ceiling import GB, Ceiling, Missing, ceiling
from .cpu import Effort

_PIECE = 4 << 20  # bytes of one call
_FILE = 64 << 20  # bytes each thread reads
COLD, WARM = "disk read cold", "disk read warm"


def disk(
    folder: Path, threads: int, effort: Effort, file_bytes: int = _FILE
) -> Iterator[Ceiling | Missing]:
    """Each thread reads a file of its own, from end to end, in pieces of 4 MB."""
    samples = max(3, effort.samples // 3)
    with tempfile.TemporaryDirectory(prefix="kuroshio-disk-", dir=folder) as place:
        files = [Path(place) / f"{number}" for number in range(threads)]
        try:
            for file in files:
                _write(file, file_bytes)
        except OSError as problem:  # it is full
            yield Missing("disk read", f"{folder} cannot be written: {problem.strerror}")
            return
        what = f"{threads} file{'s' if threads > 1 else ''} of {file_bytes >> 20} MB in {folder}"
        flag = getattr(os, "O_DIRECT", 0)
        try:
            if not flag:
                raise OSError("this system has no O_DIRECT")
            cold = [_sample(files, flag) for _ in range(samples)]
            how = f"{what}, O_DIRECT: past the system's cache (the disk's own may still answer)"
            yield ceiling(COLD, "disk", GB, cold, how, threads)
        except OSError as problem:
            yield from _dropped(files, samples, what, problem, threads)
        _sample(files, 0)
        warm = [_sample(files, 0) for _ in range(samples)]
        yield ceiling(WARM, "disk", GB, warm, f"{what}, from the system's cache", threads)


def _dropped(
    files: list[Path], samples: int, what: str, problem: OSError, threads: int
) -> Iterator[Ceiling | Missing]:
    """The system is asked to forget the files, which it need not do."""
    reason = problem.strerror or str(problem)
    if not hasattr(os, "posix_fadvise"):
        yield Missing(COLD, f"the system's cache cannot be avoided here ({reason})")
        return
    found = []
    for _ in range(samples):
        for file in files:
            with file.open("rb") as opened:
                os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        found.append(_sample(files, 0))
    how = (
        f"{what}; O_DIRECT is refused ({reason}), so the system was asked to forget them "
        "(posix_fadvise), which it need not do"
    )
    yield ceiling(COLD, "disk", GB, found, how, threads)


def _write(file: Path, nbytes: int) -> None:
    with file.open("wb") as opened:
        for _ in range(nbytes // _PIECE):
            opened.write(os.urandom(_PIECE))
        opened.flush()
        os.fsync(opened.fileno())


def _sample(files: list[Path], flag: int) -> float:
    """GB/s of all files, each by its own thread."""
    problems: list[BaseException] = []

    def work(file: Path) -> None:
        try:
            _read(file, flag)
        except BaseException as problem:
            problems.append(problem)

    crew = [threading.Thread(target=work, args=(file,)) for file in files]
    start = perf_counter()
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join()
    took = perf_counter() - start
    if problems:
        raise problems[0]
    return sum(file.stat().st_size for file in files) / took / 1e9


def _read(file: Path, flag: int) -> None:
    descriptor = os.open(file, os.O_RDONLY | flag)
    buffer = mmap.mmap(-1, _PIECE)  # whole pages, as O_DIRECT wants them
    try:
        while os.readv(descriptor, [buffer]) == _PIECE:
            pass
    finally:
        with suppress(BufferError):
            buffer.close()
        os.close(descriptor)
