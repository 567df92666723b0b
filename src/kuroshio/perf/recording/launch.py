"""A program run as if it had been run by itself: its streams, its signals, its status."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType

from ..bench_program import not_run

_PASSED_ON = ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")


def launch(words: Sequence[str], environment: Mapping[str, str], stdout: int | None = None) -> int:
    """Run it without a shell; its status, as a shell has it: 128 and the number of a signal.

    Signals to this process go on to it. `stdout` is a file descriptor where its output goes
    instead. A Refusal where it cannot be run.
    """
    held: list[int] = []  # that came before there was anybody to pass them on to
    tell: Callable[[int], None] = held.append
    with _hearing(lambda number: tell(number)):
        try:
            process = subprocess.Popen(words, env=environment, stdout=stdout)
        except OSError as problem:
            raise not_run(words[0], problem) from problem
        tell = process.send_signal
        for number in held:
            tell(number)
        status = process.wait()
    return status if status >= 0 else 128 - status


@contextmanager
def _hearing(hear: Callable[[int], None]) -> Iterator[None]:
    """Within, signals are for the program, and this process stays to see what it recorded."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may handle signals
        return

    def pass_on(number: int, _: FrameType | None) -> None:
        if number != signal.SIGINT or not _at_a_terminal():  # Ctrl-C has reached it already
            hear(number)

    numbers = [getattr(signal, name) for name in _PASSED_ON if hasattr(signal, name)]
    before = {n: h for n in numbers if (h := signal.getsignal(n)) not in (signal.SIG_IGN, None)}
    watcher = signal.set_wakeup_fd(-1)  # it would end this process: see kuroshio.interrupt
    for number in before:
        signal.signal(number, pass_on)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(watcher, warn_on_full_buffer=False)


def _at_a_terminal() -> bool:
    """Whether this process, and so the program, is in the foreground of a terminal."""
    for stream in (sys.stdin, sys.stderr, sys.stdout):
        try:
            return os.tcgetpgrp(stream.fileno()) == os.getpgrp()
        except (AttributeError, OSError, ValueError):
            continue
    return False
