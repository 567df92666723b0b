"""The seam between a block's steps and a device: any device that keeps the protocol will do."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import strategies
from engine import PLENTY, archive_of, compute
from kuroshio.archive.plan import Batch, Block, Plan
from kuroshio.device.cpu import Work
from kuroshio.engines.choose import Choice
from kuroshio.engines.cpu import CpuEngine
from kuroshio.engines.means import Means
from kuroshio.request import Request


class Elsewhere:
    """A block whose results arrive whole rows of cells at a time, batch by batch."""

    def __init__(self, inner, calls: list[str]) -> None:
        self.inner, self.calls = inner, calls
        self.reference = inner.reference
        tiles, kept, rows, tile = inner.results.shape
        by_row = np.full((kept, rows, tiles * tile + 5), np.nan, np.float32)
        statistic, row, cell = by_row.strides
        strides = (tile * cell, statistic, row, cell)
        self.results = np.lib.stride_tricks.as_strided(by_row, inner.results.shape, strides)

    def start(self, batch: Batch, first: bool) -> list[Work]:
        self.calls.append("first start" if first else "start")
        return self.inner.start(batch, first)

    def compute(self, batch: Batch, first: bool) -> None:
        self.calls.append("first compute" if first else "compute")
        self.inner.compute(batch, first)
        self.results[:, :, batch.result_rows] = self.inner.results[:, :, batch.result_rows]

    def release(self) -> None:
        self.calls.append("release")
        self.inner.release()


class Another(CpuEngine):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []

    def begin(self, plan: Plan) -> None:
        self.calls.append("begin")
        super().begin(plan)

    def block(self, means: Means, block: Block) -> Elsewhere:
        self.calls.append("block")
        return Elsewhere(super().block(means, block), self.calls)

    def close(self) -> None:
        self.calls.append("close")
        super().close()


def gappy(rng: np.random.Generator) -> strategies.Sample:
    """Five years on a grid of several tiles, of odd sizes, with values missing here and there."""
    days = np.arange(365 * 5 + 1) + 10957  # from 2000
    values = 15 + rng.standard_normal((days.size, 9, 23))
    values[rng.random(values.shape) < 0.02] = np.nan
    return strategies.Sample(values, days, "standard", values, ())


@pytest.mark.parametrize("memory_bytes", [PLENTY, 400_000])
def test_the_same_bits_from_another_device(monkeypatch, memory_bytes):
    archive = archive_of(gappy(np.random.default_rng()), tuple(range(7, 1800, 7)), rows=2)
    request = Request((2000, 2004), (50.0, 90.0), max_pad=2, extras=("count", "std"))
    expected = compute(archive, request, memory_bytes=memory_bytes)
    another = Another()
    monkeypatch.setattr("kuroshio.pipeline.choose_engine", lambda *_: Choice(another, "as asked"))
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
        assert first[:2] == ["first start", "first compute"]
        assert first[2:] == ["start", "compute"] * (len(first) // 2 - 1)
        assert last == "release"
