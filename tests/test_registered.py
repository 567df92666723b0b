"""Host memory registered with a driver: there, zeroed, and given back with its last part."""

from __future__ import annotations

import gc
import sys

import numpy as np
import pytest

from kuroshio.device.registered import LEAST_BYTES, registered

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="made for Linux only")


def test_it_is_given_back_when_nobody_holds_a_part():
    held: dict[int, int] = {}

    def register(address: int, nbytes: int) -> bool:
        held[address] = nbytes
        return True

    nbytes = 3 * LEAST_BYTES + 100
    memory = registered(nbytes, register, held.pop)
    assert memory is not None
    assert (memory.size, memory.dtype, memory.any()) == (nbytes, np.uint8, np.False_)
    assert held == {memory.ctypes.data: nbytes}
    part = memory[5000:6000].view(np.float32).reshape(2, -1)[1]
    del memory
    gc.collect()
    assert held
    part[:] = 7
    assert (part == 7).all()
    del part
    gc.collect()
    assert not held


def test_what_the_driver_refuses_is_not_had():
    assert registered(LEAST_BYTES, lambda *_: False, pytest.fail) is None
    gc.collect()


def test_little_is_left_to_the_driver():
    assert registered(LEAST_BYTES - 1, lambda *_: pytest.fail("asked"), pytest.fail) is None


def test_more_than_there_is_is_left_to_the_driver():
    assert registered(1 << 60, lambda *_: pytest.fail("asked"), pytest.fail) is None
