"""The seam between a block's steps and a device: any device that keeps the protocol will do."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

import strategies
from emulator import EmulatedGpu
from engine import PLENTY, archive_of, compute
from kuroshio.archive.plan import Batch, Block, Plan
from kuroshio.block_run import BlockRun
from kuroshio.device.cpu import Work
from kuroshio.engines.choose import Choice
from kuroshio.engines.cpu import CpuEngine
from kuroshio.engines.means import Means
from kuroshio.request import Request


class Elsewhere:
    """A block whose results arrive whole rows of cells at a time, batch by batch, when settled.

    Until then its rows are none of what they were.
    """

    def __init__(self, inner, note: Callable[[str], None]) -> None:
        self.inner, self.note, self.ahead = inner, note, inner.ahead
        self.reference = inner.reference
        tiles, kept, rows, tile = inner.results.shape
        by_row = np.full((kept, rows, tiles * tile + 5), np.nan, np.float32)
        statistic, row, cell = by_row.strides
        strides = (tile * cell, statistic, row, cell)
        self.results = np.lib.stride_tricks.as_strided(by_row, inner.results.shape, strides)

    def start(self, batch: Batch, first: bool) -> list[Work]:
        self.note("first start" if first else "start")
        return self.inner.start(batch, first)

    def launch(self, batch: Batch, first: bool) -> None:
        self.note("first launch" if first else "launch")
        self.inner.launch(batch, first)
        self.results[:, :, batch.result_rows] = np.nan

    def settle(self, batch: Batch) -> None:
        self.note("settle")
        self.inner.settle(batch)
        self.results[:, :, batch.result_rows] = self.inner.results[:, :, batch.result_rows]

    def release(self) -> None:
        self.note("release")
        self.inner.release()


class Another(CpuEngine):
    def __init__(self, failing: str = "") -> None:
        super().__init__()
        self.failing = failing
        self.calls: list[str] = []
        self.threads_at_close: list[str] = []

    def note(self, call: str) -> None:
        self.calls.append(call)
        if call == self.failing:
            raise RuntimeError(f"lost at {call}")

    def begin(self, plan: Plan, threads: int) -> None:
        self.note("begin")
        super().begin(plan, threads)

    def block(self, means: Means, block: Block) -> Elsewhere:
        self.note("block")
        return Elsewhere(super().block(means, block), self.note)

    def close(self) -> None:
        self.note("close")
        names = [thread.name for thread in threading.enumerate()]
        self.threads_at_close = [name for name in names if name.startswith("kuroshio")]
        super().close()


def gappy(rng: np.random.Generator) -> strategies.Sample:
    """Five years on a grid of several tiles, of odd sizes, with values missing here and there."""
    days = np.arange(365 * 5 + 1) + 10957  # from 2000
    values = 15 + rng.standard_normal((days.size, 9, 23))
    values[rng.random(values.shape) < 0.02] = np.nan
    return strategies.Sample(values, days, "standard", values, ())


put_band = BlockRun._put_band


def put_late(*args) -> None:
    """A thread has taken it, but begins only when others could have done much."""
    time.sleep(0.003)
    put_band(*args)


@pytest.mark.parametrize("memory_bytes", [PLENTY, 400_000])
def test_the_same_bits_from_another_device(monkeypatch, memory_bytes):
    archive = archive_of(gappy(np.random.default_rng()), tuple(range(7, 1800, 7)), rows=2)
    request = Request((2000, 2004), (50.0, 90.0), max_pad=2, extras=("count", "std"))
    expected = compute(archive, request, memory_bytes=memory_bytes)
    another = Another()
    monkeypatch.setattr("kuroshio.pipeline.choose_engine", lambda *_: Choice(another, "as asked"))
    monkeypatch.setattr(BlockRun, "_put_band", put_late)
    found = compute(archive, request, memory_bytes=memory_bytes)
    for name, field in expected.items():
        assert np.isfinite(field).any()
        np.testing.assert_array_equal(found[name], field, name)

    assert another.calls[0] == "begin"
    assert another.calls[-1] == "close"
    blocks = [i for i, call in enumerate(another.calls) if call == "block"]
    assert (len(blocks) > 1) == (memory_bytes < PLENTY)
    for start, stop in pairwise([*blocks, len(another.calls) - 1]):
        _, *first, last = another.calls[start:stop]
        assert first[:2] == ["first start", "first launch"]
        assert first[2:] == ["start", "settle", "launch"] * ((len(first) - 3) // 3) + ["settle"]
        assert last == "release"


@pytest.mark.parametrize("step", ["start", "launch", "settle", "release"])
def test_when_a_device_fails_the_crew_ends_and_then_the_engine(monkeypatch, step):
    archive = archive_of(gappy(np.random.default_rng()), tuple(range(7, 1800, 7)), rows=2)
    another = Another(failing=step)
    monkeypatch.setattr("kuroshio.pipeline.choose_engine", lambda *_: Choice(another, "as asked"))
    with pytest.raises(RuntimeError, match=f"lost at {step}"):
        compute(archive, Request((2000, 2004)))
    assert another.calls[-2:] == [step, "close"]
    assert another.threads_at_close == []


@pytest.mark.parametrize("doys", [None, tuple(range(30, 130))], ids=["year", "part"])
def test_the_last_bit_does_not_depend_on_how_the_work_is_cut(monkeypatch, doys):
    """Of values whose sums depend on their order; batches and blocks of all sizes, a device.

    Means of 31 of them lie, one in 62, right between two float32, but for what was lost of a tiny
    one when it was added.
    """
    rng = np.random.default_rng()
    days = np.arange(366) + 10957  # 2000
    shape = (days.size, 6, 40)
    values = 1.5 + rng.integers(0, 1 << 23, shape) * 2.0**-24
    tiny = rng.random(shape) < 0.05
    values[tiny] = 1 + rng.integers(1, 8, shape)[tiny] * 2.0**-50
    values[days < days[60]] = 1.0  # and so the reference of each cell
    sample = strategies.Sample(values, days, "standard", values, ())
    archive = archive_of(sample, tuple(range(1, days.size)))
    request = Request((2000, 2000), (50.0, 90.0), half_width=0, doys=doys)
    expected = compute(archive, request)
    assert np.isfinite(expected["thresh"]).all()
    for batch in (24, 16, 8, 2, 1):
        monkeypatch.setattr("kuroshio.archive.cut.BATCHES", (batch,))
        for given in ({}, {"memory_bytes": 400_000}, {"gpu": EmulatedGpu()}):
            found = compute(archive, request, **given)
            for name, field in expected.items():
                np.testing.assert_array_equal(found[name], field, f"{name}, {batch}, {given}")
