"""Verdicts of studies come out either way, by made-up figures; and what is measured beforehand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from kuroshio.account import COMPUTE, COPY, Account
from kuroshio.intervals import Intervals
from kuroshio.ladder import machine, ours
from kuroshio.ladder.files import BYTES, LIBRARY
from kuroshio.ladder.gpu_place import GpuPlace
from kuroshio.ladder.problem import SCALES
from kuroshio.ladder.results import PassTimes
from kuroshio.ladder.run import Ground
from kuroshio.ladder.studies import (
    blocks,
    branches,
    heap,
    memory,
    moments,
    operations,
    rings,
    streams,
)
from kuroshio.ladder.studies.common import judged
from kuroshio.ladder.study import CONFIRMED, REFUTED, UNDECIDED
from ladder_results import GOOD, MACHINE

PASS = SCALES["pass"]


def ground(place=None) -> Ground:
    return Ground(PASS, None, place, MACHINE, Path(), 1)


@pytest.mark.parametrize(
    ("waited", "second", "verdict"),
    [(1.0, 1.0, CONFIRMED), (2.0, 1.0, REFUTED), (0.5, 1.0, REFUTED), (1.0, 0.01, UNDECIDED)],
)
def test_waits_for_rings(monkeypatch, waited, second, verdict):
    """30 batches read in 0.1 s and computed in 0.02: the device waits 29 x 0.08 s."""
    wait = 29 * 0.08

    def run(*_: object, warm: bool = False) -> PassTimes:
        parts = {"first read": 0.1, "hidden wait": waited * wait, "compute": 0.6}
        return PassTimes({k: second * s for k, s in parts.items()},
                         second * 0.1, second * 0.02, 0.0, 0.0, 660, 12)  # fmt: skip

    monkeypatch.setattr(rings, "_pass", run)
    monkeypatch.setattr(rings.direct, "worker", lambda *_: None)
    study = rings.run(ground())
    expected = study.columns.index("predicted s")
    assert [row[expected] for row in study.rows] == pytest.approx([second * wait] * len(study.rows))
    assert study.verdict == verdict


@pytest.mark.parametrize("value", [0.9, 1.0, 2.0, 2.1])
def test_a_range_has_both_its_ends(value):
    right = CONFIRMED if value in (1.0, 2.0) else REFUTED
    assert judged((value, 1.0, 2.0)) == right
    assert judged((1.5, 1.0, 2.0), (value, 1.0, 2.0)) == right


@pytest.mark.parametrize(("beside", "verdict"), [(True, CONFIRMED), (False, REFUTED)])
def test_two_streams(monkeypatch, beside, verdict):
    """Copies of 1 s and kernels of 0.5: on two streams 12 copies and the last kernel."""

    class Place:
        def __init__(self, gpu=None, streams=2):
            self.gpu, self.streams = gpu, streams

    def fed(_: Ground, place: Place, make: object):
        turn = 1.0 if beside and place.streams == 2 else 1.5
        starts = [turn * number for number in range(12)]
        return (Intervals((s, s + 1.0) for s in starts),
                Intervals((s + 1.0, s + 1.5) for s in starts))  # fmt: skip

    monkeypatch.setattr(streams, "GpuPlace", Place)
    monkeypatch.setattr(streams, "_fed", fed)
    study = streams.run(ground(Place()))
    expected, measured = (study.columns.index(name) for name in ("predicted s", "measured s"))
    assert [row[expected] for row in study.rows] == [18.0, 12.5] * 2
    assert [row[measured] for row in study.rows] == [18.0, 12.5 if beside else 18.0] * 2
    assert study.verdict == verdict


class OnGpu(GpuPlace):
    """In name only, with warps of 32."""

    name, model = "cuda:0", "a GPU"

    def __init__(self) -> None:
        def memory(*_: object) -> None:
            """None of the device's."""

        self.gpu = SimpleNamespace(
            limits=SimpleNamespace(wave_size=32), zeros=memory, pinned=memory, write_combined=memory
        )

    def free_bytes(self) -> int:
        return 1 << 50


def worker(scratch: int = 0) -> SimpleNamespace:
    """Whose kernels take no time of their own."""
    resources = SimpleNamespace(registers=50, local_bytes=scratch)
    return SimpleNamespace(
        begin=lambda *_: None, finish=None, launches=[SimpleNamespace(resources=resources)]
    )


@pytest.mark.parametrize(
    ("direct", "slide", "verdict"),
    [(1.0, 0.1, REFUTED), (2.5, 0.1, CONFIRMED), (6.5, 1.9, CONFIRMED), (7.0, 0.1, REFUTED),
     (6.5, 2.1, REFUTED)],
)  # fmt: skip
def test_operations_are_judged_by_the_ratio_of_sums(monkeypatch, direct, slide, verdict):
    """3,960 values against 660: 2.4 to 6.6 times the time. Of the sums' six batches a third, for a
    slot's sums, 20 bytes, are fetched twice: 880 of 10,560 bytes a cell, times four."""
    seconds = iter((direct, 1.0))
    monkeypatch.setattr(operations, "filled", lambda *_, batches: [])
    monkeypatch.setattr(operations, "batch_seconds", lambda *_: next(seconds))
    monkeypatch.setattr(operations, "usual_s", lambda *_: slide)
    for module in (operations.direct, operations.sliding):
        monkeypatch.setattr(module, "worker", lambda *_: worker())
    assert operations.run(ground(OnGpu())).verdict == verdict


@pytest.mark.parametrize(
    ("branch", "verdict"), [(0.2, REFUTED), (0.7, CONFIRMED), (1.0, CONFIRMED), (1.3, REFUTED)]
)
def test_branches_are_judged_by_the_branch_over_none(monkeypatch, branch, verdict):
    seconds = iter((1.0, branch))
    for name in ("filled", "load"):
        monkeypatch.setattr(branches, name, lambda *_: None)
    monkeypatch.setattr(branches, "usual_s", lambda *_: next(seconds))
    monkeypatch.setattr(branches.registers, "worker", lambda *_, branchy: worker())
    assert branches.run(ground(OnGpu())).verdict == verdict


@pytest.mark.parametrize(
    ("scratch", "listed", "verdict"),
    [((136, 0), 0.6, CONFIRMED), ((136, 0), 1.2, REFUTED), ((0, 0), 0.6, REFUTED),
     ((136, 8), 0.6, REFUTED)],
)  # fmt: skip
def test_heap_and_list_are_judged_by_scratch_and_time(monkeypatch, scratch, listed, verdict):
    seconds = iter((1.0, listed))
    for name in ("filled", "load"):
        monkeypatch.setattr(heap, name, lambda *_: None)
    monkeypatch.setattr(heap, "usual_s", lambda *_: next(seconds))
    monkeypatch.setattr(heap.registers, "Worker", lambda *_: worker(scratch[0]))
    monkeypatch.setattr(heap.registers, "worker", lambda *_: worker(scratch[1]))
    assert heap.run(ground(OnGpu())).verdict == verdict


@pytest.mark.parametrize(
    ("pinned", "combined", "verdict"),
    [(20.0, 17.0, CONFIRMED), (20.0, 24.0, CONFIRMED), (14.0, 14.0, REFUTED), (20.0, 15.0, REFUTED),
     (20.0, 26.0, REFUTED)],
)  # fmt: skip
def test_memory_is_judged_by_copies_to_the_device(monkeypatch, pinned, combined, verdict):
    rates = iter([(9.0, 9.0, 10.0, 1.0), (9.0, 9.0, pinned, 99.0), (9.0, 9.0, combined, 99.0)])
    monkeypatch.setattr(memory, "empty_host", lambda *_: None)
    monkeypatch.setattr(memory, "_rates", lambda *_: next(rates))
    assert memory.run(ground(OnGpu())).verdict == verdict


@pytest.mark.parametrize(("near", "verdict"), [(0.91, CONFIRMED), (0.89, REFUTED)])
def test_moments_are_judged_by_what_the_corrected_sums_give(monkeypatch, near, verdict):
    shares = iter([0.06, 0.85, 0.99, 0.99, near])

    def errors() -> SimpleNamespace:
        found = replace(GOOD, within={"0.1": 0.0, "0.3": next(shares), "0.5": 1.0})
        return SimpleNamespace(accuracy=lambda: found)

    pipeline = SimpleNamespace(warm=lambda *_: None, run=lambda *_: SimpleNamespace(gpu_s=0.001))
    monkeypatch.setattr(moments, "Pipeline", lambda *_: pipeline)
    monkeypatch.setattr(moments, "Errors", errors)
    monkeypatch.setattr(moments.sliding, "worker", lambda *_: worker())
    assert moments.run(ground(OnGpu()), None).verdict == verdict


@pytest.mark.parametrize(("odd", "verdict"), [(1.0, CONFIRMED), (1.2, REFUTED), (0.9, REFUTED)])
def test_blocks_are_judged_by_160_over_whole_ones(monkeypatch, odd, verdict):
    """With warps of 32 a block of 160 is whole: it takes as long, give or take 5 %."""
    monkeypatch.setattr(blocks, "_measured", lambda *given: (odd if given[2] == 160 else 1.0, 0.75))
    assert blocks.run(ground(OnGpu())).verdict == verdict


def test_the_library_reads_in_one_thread_and_bytes_are_read_by_all(monkeypatch):
    rates = {(LIBRARY, 1): 2.0, (BYTES, 3): 11.0}
    roofs = [SimpleNamespace(name=name, value=1.0) for name in ("memory read", *machine.OPERATIONS)]
    monkeypatch.setattr(machine, "_read_gb", lambda *given: rates[given[3:]])
    monkeypatch.setattr(machine, "_roofs", lambda *_: roofs)
    monkeypatch.setattr(machine, "_write_s", lambda *_: 0.1)
    place = SimpleNamespace(name="cpu", host=lambda shape: None)
    found = machine.measured(PASS, None, place, 3, Path())
    assert (found.library_gb, found.bytes_gb, found.link_gb) == (2.0, 11.0, 0.0)


def test_the_parts_of_the_engine_are_disjoint_and_add_up():
    account = Account()
    account.span("read", 1.0, 3.0, 0)
    for start, stop in ((2.0, 5.0), (7.0, 7.5)):
        account.span(COPY, start, stop, 0, device="cuda:0")
    for start, stop in ((4.0, 6.0), (7.5, 8.0)):
        account.span(COMPUTE, start, stop, 0, device="cuda:0")
    times = ours._times(account, 1.0, 9.0, maps=660, days=12)
    assert times.parts == {
        "first read": 1.0, "hidden wait": 1.0, "copy": 2.5, "compute": 2.5, "final": 0.0,
        "write": 1.0,
    }  # fmt: skip
    assert times.total_s == 8.0
    assert (times.io_s, times.copy_s, times.overlap_s) == (2.0, 3.5, 1.0)
