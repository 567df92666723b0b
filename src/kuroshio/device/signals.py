"""Handlers of signals stay ours while a device's compiler works.

NVIDIA's compiler of kernels, NVRTC, takes SIGINT and SIGTERM for itself as it begins, and ends the
process with status 4 if one comes: nobody is told, and what was half-written stays. It gives them
back when it has ended. So a thread looks every two milliseconds, and puts back what was there.
"""

from __future__ import annotations

import ctypes
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
_LOOK_S = 0.002
_STRUCT = 512  # bytes, more than a struct sigaction has anywhere

_lock = threading.Lock()
_inside = 0
_over = threading.Event()
_guard: threading.Thread | None = None


@contextmanager
def kept() -> Iterator[None]:
    """Within, the handlers of now are put back whenever they are replaced; from any thread."""
    _enter()
    try:
        yield
    finally:
        _leave()


def _enter() -> None:
    global _inside, _over, _guard
    with _lock:
        _inside += 1
        if _inside == 1 and (handlers := _handlers()):
            _over = threading.Event()
            _guard = threading.Thread(target=_watch, args=(handlers, _over), daemon=True)
            _guard.start()


def _leave() -> None:
    global _inside, _guard
    with _lock:
        _inside -= 1
        if _inside == 0 and _guard is not None:
            _over.set()
            _guard.join()
            _guard = None


def _watch(handlers: dict[int, bytes], over: threading.Event) -> None:
    last = False
    while not last:
        last = over.wait(_LOOK_S)  # then once more: what is given back may lack its flags
        for number, handler in handlers.items():
            now = _function(_handler(number))
            # That a signal is ignored, or does what is usual, is not the compiler's doing.
            taken = now not in (signal.SIG_DFL, signal.SIG_IGN, _function(handler))
            if taken or (last and now == _function(handler)):
                ctypes.CDLL(None).sigaction(number, handler, None)


def _handlers() -> dict[int, bytes]:
    """As the system has them; none where it cannot be asked."""
    numbers = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
    return {number: found for number in numbers if (found := _handler(number))}


def _function(handler: bytes) -> int:
    """Its address, the first of the structure."""
    return int.from_bytes(handler[: ctypes.sizeof(ctypes.c_void_p)], sys.byteorder)


def _handler(number: int) -> bytes:
    there = ctypes.create_string_buffer(_STRUCT)
    try:
        failed = ctypes.CDLL(None).sigaction(number, None, there)
    except (AttributeError, OSError, TypeError):  # not a system of this kind
        return b""
    return b"" if failed else there.raw
