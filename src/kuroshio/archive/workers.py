"""Scans many files in worker processes: HDF5's global lock makes threads useless for that.

The workers are plain child processes that run this module and talk over pipes, so the caller's
script needs no `if __name__ == '__main__'` guard, and nothing is forked beside running threads.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

from ..errors import Refusal
from .facts import FileFacts
from .layout import Layout
from .scan import Scanner

_BATCH = 64
_MOST = 8
Result = FileFacts | Refusal


def scan_here(scanner: Scanner, paths: Sequence[str]) -> Iterator[tuple[str, Result]]:
    """Facts, or why there are none, of files scanned in this process."""
    for path in paths:
        yield path, _attempt(scanner, path)


def scan_in_workers(
    paths: Sequence[str],
    variable: str | None,
    select: Mapping[str, int],
    layouts: dict[str, Layout],
) -> Iterator[tuple[str, Result]]:
    """The same from worker processes, in any order; new layouts are added to `layouts`."""
    batches = [list(paths[i : i + _BATCH]) for i in range(0, len(paths), _BATCH)]
    waiting: queue.SimpleQueue[list[str]] = queue.SimpleQueue()
    done: queue.SimpleQueue[tuple[list[str], list[Result], dict[str, Layout]]] = queue.SimpleQueue()
    for batch in batches:
        waiting.put(batch)
    count = max(1, min(_MOST, _cores(), len(batches)))
    workers: list[subprocess.Popen[bytes]] = []
    over = threading.Event()
    try:
        for _ in range(count):
            workers.append(_start())
            threading.Thread(
                target=_drive,
                args=(workers[-1], variable, dict(select), waiting, done, over),
                daemon=True,
            ).start()
        for _ in batches:
            batch, results, found = done.get()
            layouts.update((k, v) for k, v in found.items() if k not in layouts)
            yield from zip(batch, results, strict=True)
    finally:
        over.set()
        for worker in workers:
            worker.kill()
        for worker in workers:
            worker.wait()
            for pipe in (worker.stdin, worker.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _start() -> subprocess.Popen[bytes]:
    paths = os.pathsep.join(p or os.getcwd() for p in sys.path)
    return subprocess.Popen(
        [sys.executable, "-m", "kuroshio.archive.workers"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": paths},
        process_group=0 if os.name == "posix" else None,  # Ctrl-C is the parent's affair
    )


def _drive(
    worker: subprocess.Popen[bytes],
    variable: str | None,
    select: dict[str, int],
    waiting: queue.SimpleQueue[list[str]],
    done: queue.SimpleQueue[Any],
    over: threading.Event,
) -> None:
    """Feed one worker; where it dies, do its work here, so that no file is lost.

    over  set when nobody waits for answers any more
    """
    here = Scanner(variable, select)
    alive = worker.stdin is not None and worker.stdout is not None
    while not over.is_set():
        try:
            batch = waiting.get_nowait()
        except queue.Empty:
            return
        answer = None
        if alive:
            try:
                pickle.dump((variable, select, batch), worker.stdin)  # type: ignore[arg-type]
                worker.stdin.flush()  # type: ignore[union-attr]
                answer = pickle.load(worker.stdout)  # type: ignore[arg-type]
            except (OSError, EOFError, ValueError, pickle.PickleError):
                alive = False
        if answer is None and over.is_set():
            return
        if answer is None:
            answer = [_attempt(here, path) for path in batch], here.layouts
        done.put((batch, *answer))


def _attempt(scanner: Scanner, path: str) -> Result:
    try:
        return scanner.scan(path)
    except Refusal as refusal:
        return refusal


def _serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """The worker's loop: (variable, selection, paths) in, (results, new layouts) out."""
    scanner, told = None, set[str]()
    while True:
        try:
            variable, select, paths = pickle.load(requests)
        except EOFError:
            return
        scanner = scanner or Scanner(variable, select)
        results = [_attempt(scanner, path) for path in paths]
        fresh = {k: v for k, v in scanner.layouts.items() if k not in told}
        told.update(fresh)
        pickle.dump((results, fresh), answers)
        answers.flush()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its workers
    _serve(sys.stdin.buffer, sys.stdout.buffer)
