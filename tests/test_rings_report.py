"""How many rings are taken, and what waiting before them is predicted (engines/waiting.py)."""

from __future__ import annotations

import threading
from collections import deque

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator import EmulatedGpu
from feeding import Fed
from kuroshio.engines.rings import choose_rings
from kuroshio.engines.waiting import copy_s_per_byte, waiting_s


def tick_by_tick(rings: int, threads: int, reads: list[int], copy: int, turns: int) -> float:
    """The same crew, link and rings, one tick at a time."""
    place = [thread * len(reads) // threads for thread in range(threads)]
    filled_at = {thread: reads[place[thread]] for thread in range(threads)}
    spare = [rings - 1] * threads
    sent = [0] * threads
    order = list(range(threads))  # of each thread's latest sending
    waiting: dict[int, tuple[int, bool]] = {}  # since when, and whether it counts
    queue: deque[int] = deque()
    copying: tuple[int, int] | None = None  # thread, until
    sendings = waits = 0
    waited = 0
    tick = 0
    while sendings < threads * turns or any(counts for _, counts in waiting.values()):
        if copying and copying[1] == tick:
            spare[copying[0]] += 1
            copying = None
        for thread, (since, counts) in list(waiting.items()):
            if spare[thread]:
                del waiting[thread]
                waited += (tick - since) * counts
                spare[thread] -= 1
                filled_at[thread] = tick + reads[place[thread] % len(reads)]
        for thread in sorted(
            (t for t, at in filled_at.items() if at == tick), key=order.__getitem__
        ):
            del filled_at[thread]
            queue.append(thread)
            counts = sendings < threads * turns
            order[thread] = threads + sendings
            sendings += 1
            sent[thread] += 1
            place[thread] += 1
            waits += counts and sent[thread] >= rings
            if spare[thread]:
                spare[thread] -= 1
                filled_at[thread] = tick + reads[place[thread] % len(reads)]
            else:
                waiting[thread] = (tick, counts)
        if copying is None and queue:
            copying = (queue.popleft(), tick + copy)
        tick += 1
    return waited / max(waits, 1)


@given(
    st.integers(1, 4), st.integers(1, 6), st.lists(st.integers(1, 30), min_size=1, max_size=7),
    st.integers(1, 12), st.integers(1, 20),
)  # fmt: skip
def test_waiting_is_that_of_a_simulation_tick_by_tick(rings, threads, reads, copy, turns):
    found = waiting_s(rings, threads, reads, copy, turns)
    assert found == pytest.approx(tick_by_tick(rings, threads, reads, copy, turns))


@given(st.integers(1, 20), st.floats(1e-3, 1), st.floats(1e-5, 1))
def test_waiting_where_reading_is_steady(threads, read, copy):
    excess = max(threads * copy - read, 0.0)
    assert waiting_s(2, threads, read, copy) <= excess + 1e-9
    near = {"rel": 0.02, "abs": 1e-3 * read}  # the first turns are others
    assert waiting_s(2, threads, read, copy, 1000) == pytest.approx(excess, **near)
    assert waiting_s(1, threads, read, copy, 1000) == pytest.approx(max(copy, excess), **near)


def test_waiting_with_uneven_reading_is_more_than_none_and_not_all_at_once():
    """A device's numbers: 16 threads, 14 ms for a ring, 0.15 ms for its copy."""
    reads = np.random.default_rng().uniform(8e-3, 20e-3, 32).tolist()
    one, two = (waiting_s(rings, 16, reads, 0.15e-3) for rings in (1, 2))
    assert 0.15e-3 <= one < 0.4e-3
    assert two < 1e-5


def test_rings_are_taken_as_far_as_they_pay():
    assert choose_rings(2, 16, [14e-3], 0.15e-3) == 2
    assert choose_rings(1, 16, [14e-3], 0.15e-3) == 1
    assert choose_rings(2, 2, [14e-3], 0.01e-3) == 1  # a copy that is over at once
    assert choose_rings(2, 16, [1e-3], 1.0) == 1  # the link is slower than all threads


@given(st.floats(1e-12, 1e-9), st.lists(st.integers(1, 10**7), min_size=4, max_size=40))
def test_copies_that_were_held_up_do_not_count(rate, nbytes):
    alike = [rate * n * (1 + i % 3 / 10) for i, n in enumerate(nbytes)]
    assert rate <= copy_s_per_byte(alike, nbytes) <= 1.2 * rate * (1 + 1e-9)
    held_up = [took if i == 1 else took + 1.0 for i, took in enumerate(alike)]
    assert copy_s_per_byte(held_up, nbytes) == pytest.approx(1.1 * rate)
    assert copy_s_per_byte([0.0, *alike], [1, *nbytes]) == copy_s_per_byte(alike, nbytes)
    assert copy_s_per_byte([0.0], [1]) == 0.0


# -- the rings themselves --------------------------------------------------------------------------


class Timed(Fed):
    """Rings of an emulated device, fed by one thread with times that are given."""

    def __init__(self, budget: int = 1 << 30, threads: int = 4) -> None:
        super().__init__([EmulatedGpu()], threads, budget, maps=3)
        self.own = threading.local()
        self.copy_s = 0.0
        (gpu,), (clock,) = self.gpus, self.clocks
        gpu.seconds = lambda start, stop: (
            stop.time_s - start.time_s if start is clock._start else self.copy_s
        )

    def turn(self, filled_s: float, copy_s: float, nbytes: int = 1000) -> None:
        self.copy_s = copy_s
        self.send(self.next(self.own), nbytes, filled_s)


def test_a_second_ring_is_taken_once_it_is_known_to_pay():
    fed = Timed()
    for _ in range(34):
        assert fed.rings.wanted == 1
        fed.turn(filled_s=10e-3, copy_s=1e-3)
        if fed.rings.wanted == 2:
            break
    assert fed.rings.most_bytes == 1256
    for _ in range(8):
        fed.turn(10e-3, 1e-3)
    report = fed.rings.report()
    assert (report["rings"], report["maps"], fed.rings.most_bytes) == (2, 3, 2 * 1256)
    assert report["copy_s"] == pytest.approx(1e-3)
    assert report["read_s"] == pytest.approx(10e-3)
    one = waiting_s(1, 4, 10e-3, 1e-3)
    assert report["predicted_wait_s"] == pytest.approx(32 * one, abs=1e-4)  # and none with two
    assert report["measured_wait_s"] < 1


@pytest.mark.parametrize(("budget", "copy_s"), [(1 << 30, 1e-6), (5000, 1e-3)])
def test_one_ring_does_where_two_do_not_pay_or_are_too_many(budget, copy_s):
    fed = Timed(budget)
    for _ in range(40):
        fed.turn(10e-3, copy_s)
    assert fed.rings.report()["rings"] == 1
    assert fed.rings.most_bytes == 1256


def test_the_prediction_does_not_take_what_held_copies_up_for_copies():
    fed = Timed(threads=16)
    for i in range(200):
        fed.turn(14e-3, 0.15e-3 if i % 10 == 5 else 8e-3)
    report = fed.rings.report()
    assert report["copy_s"] == pytest.approx(0.15e-3)
    assert 0 < report["predicted_wait_s"] < 0.1


def test_all_copies_are_accounted_for_and_memory_given_back():
    fed = Timed()
    sizes = np.random.default_rng().integers(1, 1001, 40).tolist()
    for nbytes in sizes:
        fed.turn(10e-3, 1e-3, nbytes)
    fed.synchronize()
    fed.rings.give_back()
    assert {span[0] for span in fed.spans} == {"device copy"}
    assert sorted(span[3] for span in fed.spans) == sorted(size + 256 for size in sizes)
    assert all(stop - start == pytest.approx(1e-3) for _, start, stop, _ in fed.spans)
    assert fed.rings.nbytes == 0
    report = fed.rings.report()
    fed.rings.give_back()  # a second time changes nothing
    assert len(fed.spans) == 40
    assert fed.rings.report() == report


def test_without_turns_there_is_no_report():
    fed = Timed()
    assert fed.rings.report() is None
    fed.turn(1e-3, 1e-3)
    assert fed.rings.report() is None
