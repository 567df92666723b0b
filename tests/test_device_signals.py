"""Handlers of signals that a compiler takes for itself are put back, and are ours afterwards."""

from __future__ import annotations

import ctypes
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from kuroshio.device import cuda, signals
from kuroshio.device.gpu import GpuError

posix = pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals on Windows")


@pytest.fixture
def heard() -> Iterator[list[int]]:
    """Numbers of the signals that our handler has got."""
    numbers: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: numbers.append(number))
    yield numbers
    signal.signal(signal.SIGTERM, before)


def taken() -> None:
    """The handler becomes a function of the C library, as a compiler does it: one that is idle."""
    library = ctypes.CDLL(None)
    library.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
    library.signal(signal.SIGTERM, ctypes.cast(library.abs, ctypes.c_void_p))


def functions() -> list[int]:
    """Addresses of the handlers, all that is sure of what the system tells."""
    return [signals._function(each) for each in signals._handlers().values()]


def arrives(heard: list[int]) -> bool:
    """Whether a signal, sent again and again, is heard."""
    until = time.monotonic() + 10
    while not heard and time.monotonic() < until:
        signal.raise_signal(signal.SIGTERM)
        time.sleep(0.001)
    return bool(heard)


@posix
def test_a_handler_that_was_taken_is_put_back(heard):
    before = functions()
    assert before
    with signals.kept(), signals.kept():
        taken()
        assert arrives(heard)
        taken()
    assert functions() == before
    heard.clear()
    signal.raise_signal(signal.SIGTERM)
    assert heard == [signal.SIGTERM]


@posix
def test_afterwards_nobody_looks(heard):
    with signals.kept():
        pass
    taken()
    time.sleep(0.02)
    signal.raise_signal(signal.SIGTERM)
    assert heard == []


@posix
def test_what_python_ignores_stays_ignored(heard):
    with signals.kept():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(0.02)
        signal.raise_signal(signal.SIGTERM)
    assert heard == []


_COMPILES = """
import random, signal, threading, time
from kuroshio.device import cuda
heard = []
signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
body = "".join(f"a = a * {random.random()}f + sinf(a);" for _ in range(60))
text = 'extern "C" __global__ void work(float* x) { float a = x[0]; ' + body + " x[0] = a; }"
gpu = cuda.first()
compiling = threading.Thread(target=gpu.kernels, args=(text, ["work"]))
compiling.start()
sent = 0
while compiling.is_alive():
    time.sleep(0.01)
    signal.raise_signal(signal.SIGINT)
    sent += 1
print(sent, len(heard))
"""


@pytest.mark.gpu
def test_a_signal_while_kernels_compile_is_heard():
    """Now and then one may come in the moment before it is seen that the handler was taken."""
    try:
        cuda.first()
    except GpuError as error:
        pytest.skip(error.what)
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", _COMPILES], capture_output=True, text=True)
        if done.returncode == 0:
            break
    assert (done.returncode, done.stderr) == (0, "")
    sent, heard = map(int, done.stdout.split())
    assert sent == heard > 5
