"""Pinned memory between reader and device: how much, and when it may be filled again."""

from __future__ import annotations

import threading
from itertools import pairwise
from time import perf_counter

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from emulator import EmulatedGpu
from feeding import Fed
from kuroshio.engines import rings
from kuroshio.engines.means import RING_BYTES, TOGETHER
from kuroshio.engines.rings import TABLE_BYTES, Clock, Rings, choose_rings, maps_of_ring
from kuroshio.engines.waiting import waiting_s

times = st.floats(0, 1e3, allow_subnormal=False)
threads = st.integers(1, 60)


# -- how many --------------------------------------------------------------------------------------


@given(most=st.integers(1, 8), threads=threads, read_s=times, copy_s=times)
@example(most=2, threads=16, read_s=1.0, copy_s=0.0)
@example(most=8, threads=3, read_s=0.0, copy_s=1.0)
def test_rings_are_as_few_as_serve(most, threads, read_s, copy_s):
    waits = [waiting_s(n, threads, read_s, copy_s) for n in range(1, most + 2)]
    assert all(wait >= 0 for wait in waits)
    chosen = choose_rings(most, threads, read_s, copy_s)
    assert 1 <= chosen <= most
    saved = [now - then for now, then in pairwise(waits)]
    worth = [0.005 * (read_s + now) for now in waits]
    for fewer in range(1, chosen):
        assert saved[fewer - 1] > worth[fewer - 1]
    if chosen < most:
        assert saved[chosen - 1] <= worth[chosen - 1]


def test_a_second_ring_where_copies_take_long_enough_to_notice():
    assert choose_rings(2, 16, read_s=4e-3, copy_s=1e-6) == 1
    assert choose_rings(2, 16, read_s=4e-3, copy_s=1e-4) == 2
    assert choose_rings(2, 16, read_s=4e-3, copy_s=1e-3) == 1  # the link is the limit


@given(map_bytes=st.integers(1, 1 << 30), budget=st.integers(0, 1 << 40), threads=threads)
@example(map_bytes=100, budget=4 * 2 * (TABLE_BYTES + 200), threads=4)
@example(map_bytes=100, budget=4 * 2 * (TABLE_BYTES + 200) - 1, threads=4)
def test_maps_of_a_ring(map_bytes, budget, threads):
    maps = maps_of_ring(map_bytes, budget, threads)
    assert 1 <= maps <= TOGETHER
    ring = TABLE_BYTES + maps * map_bytes
    if maps > 1:
        assert 2 * threads * ring <= budget
        assert ring <= RING_BYTES
    if maps < TOGETHER:
        more = ring + map_bytes
        assert 2 * threads * more > budget or more > RING_BYTES


# -- when ------------------------------------------------------------------------------------------


RING = TABLE_BYTES + 1000


def turns(gpus, rng, *, budget: int, of_threads: int, each: int) -> tuple[Fed, np.ndarray]:
    """Random maps through rings to the devices and back; whether each came back whole from each."""
    fed = Fed(gpus, of_threads, budget)
    sent = rng.integers(0, 256, (of_threads, each, 1000), dtype=np.uint8)
    came = gpus[0].pinned((len(gpus), *sent.shape), np.uint8)
    own = threading.local()
    failed = []

    def fill(mine: int) -> None:
        try:
            for turn in range(each):
                ring = fed.next(own)
                ring.maps[:] = sent[mine, turn]
                ring.write_table(np.array([mine, turn]))
                fed.send(
                    ring, 1000, 1e-3,
                    lambda i, lane, stream, turn=turn: lane.gpu.download(
                        came[i, mine, turn], lane.maps, stream
                    ),
                )  # fmt: skip
        except BaseException as error:
            failed.append(error)

    hands = [threading.Thread(target=fill, args=(mine,)) for mine in range(of_threads)]
    for hand in hands:
        hand.start()
    for hand in hands:
        hand.join()
    assert not failed
    fed.synchronize()
    assert {name for name, *_ in fed.spans} <= {"device copy"}
    return fed, (came == sent).all(axis=3)


def second_rings(monkeypatch) -> None:
    """They are taken once there are times, whatever these are."""
    monkeypatch.setattr(rings, "choose_rings", lambda most, *_: most)


@pytest.mark.parametrize(
    ("budget", "most"), [(0, 1), (4 * RING, 1), (8 * RING - 1, 1), (8 * RING, 2), (1 << 20, 2)]
)
def test_a_ring_is_filled_again_when_it_has_been_copied(gpu, monkeypatch, budget, most):
    second_rings(monkeypatch)
    fed, whole = turns([gpu], np.random.default_rng(), budget=budget, of_threads=4, each=30)
    assert whole.all()
    check(fed, whole, budget, most)


@pytest.mark.parametrize(("budget", "most"), [(0, 1), (8 * RING, 2)])
def test_a_ring_is_filled_again_when_all_devices_have_it(monkeypatch, budget, most):
    second_rings(monkeypatch)
    gpus = EmulatedGpu.several(3)
    fed, whole = turns(gpus, np.random.default_rng(), budget=budget, of_threads=4, each=30)
    check(fed, whole, budget, most)


def check(fed: Fed, whole: np.ndarray, budget: int, most: int) -> None:
    assert whole.all()
    assert fed.rings.most_bytes <= max(budget, 4 * RING)
    told = fed.rings.report()
    assert told["rings"] == most
    assert told["read_s"] == 1e-3
    assert told["copy_s"] >= 0
    first_turns = 4 * most if most == 1 else 8
    assert 4 * 30 - first_turns <= sum(fed.rings._turns.values()) <= 4 * 29
    assert told["measured_wait_s"] == round(fed.rings.waited_s, 4) >= 0
    assert told["predicted_wait_s"] >= 0
    waits = sum(fed.rings._turns.values())
    assert len(fed.spans) == waits * len(fed.gpus)
    fed.rings.give_back()
    assert len(fed.spans) == 4 * 30 * len(fed.gpus)
    assert {nbytes for *_, nbytes in fed.spans} == {RING}


def test_a_missing_wait_would_be_seen(monkeypatch):
    """The emulated device copies as late as it may, so that the tests above can fail."""
    monkeypatch.setattr(Rings, "_wait", lambda *_: None)
    _, whole = turns([EmulatedGpu()], np.random.default_rng(), budget=0, of_threads=2, each=9)
    assert not whole.all()


def test_a_missing_wait_for_one_of_several_devices_would_be_seen(monkeypatch):
    wait = Rings._wait

    def wait_for_the_first(self, ring, number):
        lanes = ring.lanes
        ring.lanes = lanes[:1]
        wait(self, ring, number)
        ring.lanes = lanes

    monkeypatch.setattr(Rings, "_wait", wait_for_the_first)
    gpus = EmulatedGpu.several(2)
    _, whole = turns(gpus, np.random.default_rng(), budget=0, of_threads=2, each=9)
    assert whole[0].all()
    assert not whole[1].all()


def test_copies_are_told_with_what_was_sent():
    fed, own = Fed([EmulatedGpu()], 1, 0), threading.local()
    for nbytes in (1000, 10, 0):
        fed.send(fed.next(own), nbytes, 0.0)
    assert [nbytes - TABLE_BYTES for *_, nbytes in fed.spans] == [1000, 10]
    fed.synchronize()
    fed.rings.give_back()
    assert [nbytes - TABLE_BYTES for *_, nbytes in fed.spans] == [1000, 10, 0]
    assert all(start <= stop for _, start, stop, _ in fed.spans)


def test_what_happened_is_on_the_host_s_clock(gpu):
    clock, stream, event = Clock(gpu), gpu.stream(), gpu.event()
    before = perf_counter()
    event.record(stream)
    gpu.wait(event)
    assert before - 1e-3 <= clock.at(event) <= perf_counter() + 1e-3


def test_first_rings_come_before_second_ones():
    """However late a thread begins, its ring is within the budget."""
    gpu = EmulatedGpu()
    fed = Fed([gpu], 3, 4 * RING)
    fed.rings.wanted = 2
    own = [threading.local() for _ in range(3)]  # a thread's each
    taken = []
    for which in (0, 0, 0, 1, 1, 2, 2):
        fed.next(own[which])
        taken.append(fed.rings.nbytes // RING)
    assert taken == [1, 2, 2, 3, 3, 4, 4]
    assert gpu.most_pinned_bytes == 4 * RING
