"""Pinned memory between reader and device: how much, when it may be filled again, and its end."""

from __future__ import annotations

import gc
import threading
from itertools import count

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import strategies
from emulator import EmulatedGpu
from engine import archive_of, compute
from kuroshio.device.gpu import GpuError
from kuroshio.engines import rings
from kuroshio.engines.gpu import GpuEngine
from kuroshio.engines.means import TOGETHER
from kuroshio.engines.rings import Clock, Rings, choose_rings, maps_of_ring, waiting_s
from kuroshio.request import Request

times = st.floats(0, 1e3, allow_subnormal=False)
threads = st.integers(1, 200)


# -- how many --------------------------------------------------------------------------------------


@given(most=st.integers(1, 8), threads=threads, read_s=times, copy_s=times)
@example(most=2, threads=16, read_s=1.0, copy_s=0.0)
def test_rings_are_as_few_as_serve(most, threads, read_s, copy_s):
    waits = [waiting_s(n, threads, read_s, copy_s) for n in range(1, most + 2)]
    assert all(wait >= 0 for wait in waits)
    assert waits == sorted(waits, reverse=True)
    chosen = choose_rings(most, threads, read_s, copy_s)
    assert 1 <= chosen <= most
    for fewer in range(1, chosen):
        assert waits[fewer - 1] - waits[fewer] > 0.005 * read_s
    if chosen < most:
        assert waits[chosen - 1] - waits[chosen] <= 0.005 * read_s


def test_a_second_ring_where_copies_take_long_enough_to_notice():
    assert choose_rings(2, 16, read_s=4e-3, copy_s=1e-6) == 1
    assert choose_rings(2, 16, read_s=4e-3, copy_s=1e-4) == 2
    assert waiting_s(2, 16, 4e-3, 1e-4) == 0
    assert waiting_s(2, 16, 4e-3, 1e-3) == pytest.approx(12e-3)  # the link is the limit


@given(map_bytes=st.integers(1, 1 << 30), budget=st.integers(0, 1 << 40), threads=threads)
@example(map_bytes=100, budget=1600, threads=4)
def test_maps_of_a_ring(map_bytes, budget, threads):
    maps = maps_of_ring(map_bytes, budget, threads)
    assert 1 <= maps <= TOGETHER
    ring = rings._TABLE_BYTES + maps * map_bytes
    if maps > 1:
        assert 2 * threads * ring <= budget
        assert ring <= rings._RING_BYTES
    if maps < TOGETHER:
        more = ring + map_bytes
        assert 2 * threads * more > budget or more > rings._RING_BYTES


# -- when ------------------------------------------------------------------------------------------


def turns(gpu, rng, *, budget: int, of_threads: int, each: int) -> tuple[Rings, np.ndarray]:
    """Random maps through rings to the device and back, and whether each came back whole."""
    nbytes = 1000
    spans = []
    all_rings = Rings(gpu, Clock(gpu), lambda *span: spans.append(span), of_threads, budget)
    copying, unpacking = gpu.stream(), gpu.stream()
    sent = rng.integers(0, 256, (of_threads, each, nbytes), dtype=np.uint8)
    came = gpu.pinned(sent.shape, np.uint8)
    own = threading.local()

    def fill(mine: int) -> None:
        with gpu.use():
            for turn in range(each):
                ring = all_rings.next(own, nbytes)
                ring.maps[:] = sent[mine, turn]
                ring.write_table(np.array([mine, turn]))
                all_rings.send(ring, nbytes, copying, 1e-3)
                unpacking.wait_event(ring.copied)
                gpu.download(came[mine, turn], ring.maps_there, unpacking)
                ring.free.record(unpacking)

    hands = [threading.Thread(target=fill, args=(mine,)) for mine in range(of_threads)]
    for hand in hands:
        hand.start()
    for hand in hands:
        hand.join()
    unpacking.synchronize()
    assert {name for name, *_ in spans} <= {"device copy"}
    return all_rings, (came == sent).all(axis=2)


@pytest.mark.parametrize("budget", [0, 4 * 1256, 8 * 1256 - 1, 1 << 20])
def test_a_ring_is_filled_again_when_it_has_been_copied(gpu, budget):
    all_rings, whole = turns(gpu, np.random.default_rng(), budget=budget, of_threads=4, each=30)
    assert whole.all()
    assert all_rings.most_bytes <= max(budget, 4 * 1256)
    told = all_rings.report()
    assert told["rings"] in (1, 2)
    assert told["read_s"] == 1e-3
    assert told["copy_s"] >= 0
    assert all_rings.turns >= 4 * 28
    assert told["measured_wait_s"] == round(all_rings.waited_s, 4) >= 0
    by_turn = waiting_s(told["rings"], 4, **all_rings._times())
    assert told["predicted_wait_s"] == round(all_rings.turns * by_turn, 4)


def test_a_missing_wait_would_be_seen(monkeypatch):
    """The emulated device copies as late as it may, so that the test above can fail."""
    monkeypatch.setattr(Rings, "_wait", lambda *_: None)
    _, whole = turns(EmulatedGpu(), np.random.default_rng(), budget=1 << 20, of_threads=2, each=9)
    assert not whole.all()


def test_copies_are_told_with_what_was_sent():
    gpu, spans, own = EmulatedGpu(), [], threading.local()
    all_rings = Rings(gpu, Clock(gpu), lambda *span: spans.append(span), 1, 0)
    stream = gpu.stream()
    for nbytes in (1000, 10, 0):
        ring = all_rings.next(own, 1000)
        all_rings.send(ring, nbytes, stream, 0.0)
        ring.free.record(stream)
    assert [nbytes - rings._TABLE_BYTES for *_, nbytes in spans] == [1000, 10]
    assert all(start <= stop for _, start, stop, _ in spans)


def test_nothing_measured_nothing_predicted():
    gpu = EmulatedGpu()
    told = Rings(gpu, Clock(gpu), lambda *_: None, 4, 1 << 20).report()
    assert told == {
        "rings": 2, "pinned_gb": 0.0, "predicted_wait_s": 0.0, "measured_wait_s": 0.0
    }  # fmt: skip


# -- the end ---------------------------------------------------------------------------------------


def small(rng: np.random.Generator, *, maps: bool) -> tuple:
    """An archive of two years, in maps of days or in pieces of a week and some rows; a request."""
    days = np.arange(365 * 2 + 1) + 10957
    codes = rng.integers(-100, 3000, (days.size, 4, 24)).astype(np.int16)
    codes[rng.random(codes.shape) < 0.02] = -999
    values = np.where(codes == -999, np.nan, codes * 0.01)
    sample = strategies.Sample(values, days, "standard", codes, (), 0.01, 0.0, -999)
    splits = range(1, days.size) if maps else range(7, days.size, 7)
    archive = archive_of(sample, tuple(splits), rows=0 if maps else 2)
    request = Request((2000, 2001), (90.0,), half_width=1, doys=tuple(range(90, 190)))
    return archive, request


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
def test_all_memory_is_given_back_after_an_error(maps, kernel):
    gpu = EmulatedGpu(failing=kernel)
    archive, request = small(np.random.default_rng(), maps=maps)
    if kernel == "place_maps" and not maps:
        compute(archive, request, gpu=gpu)
    else:
        with pytest.raises(GpuError, match="a kernel failed"):
            compute(archive, request, gpu=gpu)
    assert left(gpu) == []


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
    archive, request = small(np.random.default_rng(), maps=maps)
    failed = False
    try:
        compute(archive, request, gpu=gpu)
    except GpuError:
        failed = True
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
    gpu, counted, dropped = EmulatedGpu(), [], Rings.dropped

    def count_and_drop(self):
        counted.append((self.nbytes, self.most_bytes, self.budget_bytes))
        dropped(self)

    monkeypatch.setattr(Rings, "dropped", count_and_drop)
    archive, request = small(np.random.default_rng(), maps=False)
    compute(archive, request, gpu=gpu, memory_bytes=30_000, pinned_bytes=6000)
    *blocks, end = counted
    assert len(blocks) > 2
    assert {taken for taken, _, _ in blocks} == {5376}  # the second of two would be too much
    assert {most for _, most, _ in blocks} == {5376}
    assert end[0] == 0


def test_first_rings_come_before_second_ones():
    """However late a thread begins, its ring is within the budget."""
    gpu = EmulatedGpu()
    all_rings = Rings(gpu, Clock(gpu), lambda *_: None, 3, 4 * 1256)
    own = [threading.local() for _ in range(3)]  # a thread's each
    taken = []
    for which in (0, 0, 0, 1, 1, 2, 2):
        all_rings.next(own[which], 1000)
        taken.append(all_rings.nbytes // 1256)
    assert taken == [1, 2, 2, 3, 3, 4, 4]
    assert gpu.most_pinned_bytes == 4 * 1256
