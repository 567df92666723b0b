"""Memory that is made ready beforehand."""

import threading
import time

import numpy as np
import pytest

from kuroshio.device import memory
from kuroshio.device.memory import ReadyMemory, aligned_zeros


@pytest.mark.parametrize("expected", [0, 100, 1 << 20, 64 << 20])
def test_what_is_taken_is_zero_aligned_and_left_alone(expected, monkeypatch):
    monkeypatch.setattr(memory, "_STEP", 1 << 16)
    ready = ReadyMemory(expected, expected)
    taken = ready.take((300, 70), np.dtype(np.uint16))
    assert taken.shape == (300, 70)
    assert taken.ctypes.data % 64 == 0
    assert not taken.any()
    taken[:] = 7
    time.sleep(0.02)  # a thread that went on would clear it
    assert (taken == 7).all()
    ready.close()
    assert not any(thread.name == "kuroshio-memory" for thread in threading.enumerate())


def test_more_is_never_touched_than_there_is():
    ready = ReadyMemory(1000, 600)
    ready._thread.join()
    assert ready.take((10,), np.dtype(np.float64)).size == 10


def test_zeros_start_on_lines():
    zeros = aligned_zeros((3, 32), np.dtype(np.float32))
    assert zeros.ctypes.data % 64 == 0
    assert not zeros.any()
