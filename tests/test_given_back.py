"""Whatever ends a run on a device, its memory and what was pinned are given back."""

from __future__ import annotations

import gc
import threading
from itertools import count

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import strategies
from emulator import EmulatedGpu
from engine import archive_of, compute
from kuroshio import engines
from kuroshio.device.gpu import GpuError
from kuroshio.engines import gpu_block
from kuroshio.engines.gpu import GpuEngine
from kuroshio.engines.pinned import Pinned
from kuroshio.engines.rings import Rings
from kuroshio.request import Request


def small(rng: np.random.Generator, *, maps: bool, width: int = 24) -> tuple:
    """An archive of two years, in maps of days or in pieces of a week and some rows; a request."""
    days = np.arange(365 * 2 + 1) + 10957
    codes = rng.integers(-100, 3000, (days.size, 4, width)).astype(np.int16)
    codes[rng.random(codes.shape) < 0.02] = -999
    values = np.where(codes == -999, np.nan, codes * 0.01)
    sample = strategies.Sample(values, days, "standard", codes, (), 0.01, 0.0, -999)
    splits = range(1, days.size) if maps else range(7, days.size, 7)
    archive = archive_of(sample, tuple(splits), rows=0 if maps else 2)
    request = Request((2000, 2001), (90.0,), half_width=1, doys=tuple(range(90, 190)))
    return archive, request


def fails(gpu: EmulatedGpu, *, maps: bool) -> bool:
    """Whether a small run ends with an error of the device."""
    archive, request = small(np.random.default_rng(), maps=maps)
    try:
        compute(archive, request, gpu=gpu)
    except GpuError:
        return True
    return False


def left(gpu: EmulatedGpu) -> list:
    gc.collect()
    return list(gpu.live.values())


@pytest.mark.parametrize("maps", [True, False])
@pytest.mark.parametrize("memory_bytes", [1 << 34, 30_000])
def test_all_memory_is_given_back(maps, memory_bytes):
    """After one block or, where the host has little memory, several."""
    gpu = EmulatedGpu()
    archive, request = small(np.random.default_rng(), maps=maps)
    found = compute(archive, request, gpu=gpu, memory_bytes=memory_bytes)
    assert np.isfinite(found["thresh"]).any()
    assert gpu.most_pinned_bytes > 0
    assert left(gpu) == []


@pytest.mark.parametrize("maps", [True, False])
def test_the_device_is_empty_when_a_block_begins(maps, monkeypatch):
    gpu, held, block = EmulatedGpu(), [], GpuEngine.block

    def begin(*args):
        held.append(gpu.held_bytes(pinned=False))
        return block(*args)

    monkeypatch.setattr(GpuEngine, "block", begin)
    archive, request = small(np.random.default_rng(), maps=maps)
    compute(archive, request, gpu=gpu, memory_bytes=30_000)
    assert len(held) > 2
    assert held == [0] * len(held)


@pytest.mark.parametrize("maps", [True, False])
@pytest.mark.parametrize("kernel", ["place_maps", "find_references", "windows_by_lists"])
@pytest.mark.parametrize("beside", [0, 1])
def test_all_memory_is_given_back_after_an_error(maps, kernel, beside):
    """On the only device, or on the last of several."""
    gpus = EmulatedGpu.several(1 + beside)
    gpus[-1].failing = kernel
    archive, request = small(np.random.default_rng(), maps=maps, width=64)
    if kernel == "place_maps" and not maps:
        compute(archive, request, gpu=gpus)
    else:
        with pytest.raises(GpuError, match="a kernel failed"):
            compute(archive, request, gpu=gpus)
    assert [left(gpu) for gpu in gpus] == [[]] * len(gpus)


@settings(max_examples=12)
@given(at=st.integers(1, 30), maps=st.booleans())
def test_all_memory_is_given_back_where_there_is_too_little(at, maps):
    calls = count(1)

    class Full(EmulatedGpu):
        def empty(self, shape, dtype):
            if next(calls) == at:
                raise GpuError("out of memory")
            return super().empty(shape, dtype)

    gpu = Full()
    failed = fails(gpu, maps=maps)
    assert failed == (next(calls) > at)
    assert left(gpu) == []


@settings(max_examples=12)
@given(at=st.integers(1, 9), maps=st.booleans(), seed=st.integers(0, 2**32 - 1))
def test_all_memory_is_given_back_after_ctrl_c(at, maps, seed):
    """It comes to the main thread, where that waits for the device."""
    calls = count(1)

    class Interrupted(EmulatedGpu):
        def wait(self, event):
            if threading.current_thread() is threading.main_thread() and next(calls) == at:
                raise KeyboardInterrupt
            super().wait(event)

    gpu = Interrupted()
    archive, request = small(np.random.default_rng(seed), maps=maps)
    interrupted = False
    try:
        compute(archive, request, gpu=gpu)
    except KeyboardInterrupt:
        interrupted = True
    assert interrupted == (next(calls) > at)
    assert left(gpu) == []


def test_the_budget_is_each_block_s_anew(monkeypatch):
    """Every block may have what the first had, and none more."""
    gpu, counted, give_back = EmulatedGpu(), [], Rings.give_back

    def count_and_give_back(self):
        counted.append((self.nbytes, self.most_bytes))
        give_back(self)

    monkeypatch.setattr(Rings, "give_back", count_and_give_back)
    archive, request = small(np.random.default_rng(), maps=False)
    compute(archive, request, gpu=gpu, memory_bytes=30_000, pinned_bytes=6000)
    *blocks, end = counted
    assert len(blocks) > 2
    assert {taken for taken, _ in blocks} == {5376}  # the second of two would be too much
    assert {most for _, most in blocks} == {5376}
    assert end[0] == 0


# -- in one piece ----------------------------------------------------------------------------------


@settings(max_examples=25)
@given(
    nbytes=st.integers(0, 1000),
    most=st.integers(0, 12),
    piece=st.sampled_from((1, 1000, 1 << 24)),
    sizes=st.lists(st.tuples(st.integers(0, 300), st.sampled_from(["u1", "u2", "f4", "f8"]))),
)
def test_pinned_memory_is_handed_out_once(nbytes, most, piece, sizes):
    gpu = EmulatedGpu()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engines.pinned, "_PIECE_BYTES", piece)
        patch.setattr(engines.pinned, "_SPARE_BYTES", 0)
        pinned = Pinned(gpu, nbytes, most)
        pinned._thread.join()  # all of it is there now
    room = most * -(-max(nbytes, 1) // 256) * 256
    assert room <= gpu.held_bytes(pinned=True) <= max(room, room + piece)
    taken = [pinned.take((2, size), dtype) for size, dtype in sizes]
    for i, array in enumerate(taken):
        assert array.shape == (2, sizes[i][0])
        assert array.dtype == sizes[i][1]
        assert gpu._is_pinned(array) or not array.size
        array[...] = i % 256
    assert all((array == i % 256).all() for i, array in enumerate(taken))
    alone = [array.nbytes for array in taken]
    assert gpu.held_bytes(pinned=True) <= room + piece + sum(alone)
    array = None
    taken.clear()
    pinned.close()
    assert left(gpu) == []


@pytest.mark.parametrize("how", ["several blocks", "large maps", "parts of maps"])
def test_no_more_is_pinned_than_may_be(how, monkeypatch):
    """What a block has pinned serves the next, and what no ring can use is not kept."""
    results, get = [], gpu_block._pinned_results

    def noted(gpu, *shape):
        got = get(gpu, *shape)
        results.append(got[0].nbytes + got[1].nbytes)
        return got

    monkeypatch.setattr(gpu_block, "_pinned_results", noted)
    monkeypatch.setattr(engines.pinned, "_PIECE_BYTES", 1)
    monkeypatch.setattr(engines.pinned, "_SPARE_BYTES", 1024)
    archive, request = small(np.random.default_rng(), maps=how != "parts of maps", width=2400)
    budget = 4 * (4 * 4 * 2400 * 2 + 256)
    if how == "large maps":  # just enough for a ring of each thread
        budget = 2 * (4 * 2400 * 2 + 256)
        monkeypatch.setattr(engines.gpu, "RING_BYTES", 4096)
        monkeypatch.setattr(engines.rings, "RING_BYTES", 4096)
    if how == "parts of maps":  # just enough: 42 days of them are put together, twice
        budget = 2 * 42 * (4 * 2400 + 32) * 2
    gpu = EmulatedGpu()
    compute(
        archive, request, gpu=gpu, pinned_bytes=budget,
        device_bytes=200_000 if how == "several blocks" else None,
    )  # fmt: skip
    assert (len(results) > 1) == (how == "several blocks")
    assert gpu.most_pinned_bytes <= budget + max(results) + 4 * 2048


@pytest.mark.parametrize("error", [GpuError("out of pinned memory"), RuntimeError("whatever")])
@pytest.mark.parametrize("maps", [True, False])
def test_where_one_piece_is_not_to_be_had_there_are_several(maps, error):
    class Frugal(EmulatedGpu):
        refused = 0

        def pinned(self, shape, dtype):
            if threading.current_thread().name == "kuroshio-pinned":
                self.refused += 1
                raise error
            return super().pinned(shape, dtype)

    gpu = Frugal()
    archive, request = small(np.random.default_rng(), maps=maps)
    found, same = compute(archive, request, gpu=gpu), compute(archive, request)
    assert gpu.refused == 1
    assert gpu.most_pinned_bytes > 0
    np.testing.assert_array_equal(found["thresh"], same["thresh"])
    assert left(gpu) == []


@pytest.mark.parametrize("maps", [True, False])
def test_an_interrupt_while_memory_is_given_back(maps, monkeypatch):
    """What has been given back is, and the rest follows."""
    give_back, interrupts = Rings.give_back, iter([KeyboardInterrupt])

    def interrupted(rings: Rings) -> None:
        for interrupt in interrupts:
            raise interrupt
        give_back(rings)

    monkeypatch.setattr(Rings, "give_back", interrupted)
    gpu = EmulatedGpu()
    archive, request = small(np.random.default_rng(), maps=maps)
    with pytest.raises(KeyboardInterrupt) as caught:
        compute(archive, request, gpu=gpu)
    del caught
    assert left(gpu) == []


@settings(max_examples=12)
@given(at=st.integers(1, 8), maps=st.booleans())
def test_all_memory_is_given_back_where_too_little_can_be_pinned(at, maps):
    calls = count(1)

    class Full(EmulatedGpu):
        def pinned(self, shape, dtype):
            call = next(calls)
            if call == 1 or call == at:  # the first is for all in one piece, and may fail
                raise GpuError("out of pinned memory")
            return super().pinned(shape, dtype)

    gpu = Full()
    failed = fails(gpu, maps=maps)
    assert failed == (at > 1 and next(calls) > at)
    assert left(gpu) == []
