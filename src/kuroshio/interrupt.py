"""Ctrl-C, SIGTERM and a closed terminal end a command cleanly, and soon.

A signal raises `Stopped` in the main thread: outputs under way are removed, threads and worker
processes end. A thread in a long call (the compiler, a slow disk) cannot be told to, so a watcher
ends the process when PATIENCE_S have passed, after removing what is unfinished. Where an exception
would be lost, nothing is raised: in LLVM's callbacks, which would go on with half a function, and
while Python clears an object away. The watcher then sends the signal again until it is heard.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator
from types import FrameType

from .messages import complain

PATIENCE_S = 1.3
_AGAIN_S = 0.02
_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
_LOSING_MODULES = ("numba", "llvmlite", "weakref")
FAREWELL = "Stopped. Nothing half-written was left behind."


class Stopped(KeyboardInterrupt):
    """A signal asked the command to end; `status` is the exit status a shell expects."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.status = 128 + number


@contextlib.contextmanager
def stopping_on_signals() -> Iterator[None]:
    """Within, the first signal raises Stopped in the main thread; those after it are ignored."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may handle signals
        return
    caught = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
    # An ignored signal stays ignored: `nohup` and shells that start jobs in the background mean it.
    before = {n: h for n in caught if (h := signal.getsignal(n)) not in (signal.SIG_IGN, None)}
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    over, stopped, sending = threading.Event(), threading.Event(), threading.Lock()

    def again(number: int) -> None:
        with sending:
            if not over.is_set() and not stopped.is_set():
                signal.raise_signal(number)

    watcher = threading.Thread(
        target=_watch, args=(reading, frozenset(before), over, again), daemon=True
    )

    def stop(number: int, frame: FrameType | None) -> None:
        if stopped.is_set() or _would_be_lost(frame):
            return  # it came at the same time as the first; or it comes again
        stopped.set()
        for each in before:
            signal.signal(each, signal.SIG_IGN)
        raise Stopped(number)

    for number in before:
        signal.signal(number, stop)
    heard_before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    watcher.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(heard_before)  # before the watcher closes the end that it reads
        with sending:  # what is sent again meets no handler but ours
            over.set()
        for number, handler in before.items():
            if not stopped.is_set():
                signal.signal(number, handler)
        os.close(writing)  # the watcher reads the end, unless a signal came first


def _would_be_lost(frame: FrameType | None) -> bool:
    """Whether an exception raised here would not reach us: see above."""
    while frame is not None:
        module = frame.f_globals.get("__name__", "").partition(".")[0]
        if module in _LOSING_MODULES or frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False


def _watch(
    reading: int, ours: Collection[int], over: threading.Event, again: Callable[[int], None]
) -> None:
    """Wait for a signal's number; the main thread may be unable to hear of it in time."""
    heard = os.read(reading, 1)
    while heard and heard[0] not in ours:  # of a handler that somebody else has, a library
        heard = os.read(reading, 1)
    end = time.monotonic() + PATIENCE_S
    while heard and not over.wait(_AGAIN_S) and time.monotonic() < end:
        again(heard[0])
    if not heard or over.is_set():
        os.close(reading)  # not sooner: Python would complain of the next signal, which it writes
        return
    writing = sys.modules.get("kuroshio.archive.part")
    if writing is not None:
        writing.remove_unfinished()
    complain(FAREWELL)
    with contextlib.suppress(OSError):
        if os.isatty(2):
            os.write(2, b"\x1b[?25h")  # a progress bar hides the cursor
    os._exit(128 + heard[0])
