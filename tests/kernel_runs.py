"""Windows of random keys on a device, and the same by NumPy, to the last bit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from kuroshio.device.gpu import Gpu
from kuroshio.kernels.gpu import windows
from kuroshio.kernels.gpu.windows import Buffers, GpuWindows, Job, runs_of
from kuroshio.keys import Keys

DIRTY = 7.0  # what results hold before


class Limited:
    """A device whose blocks have so little shared memory."""

    def __init__(self, gpu: Gpu, shared_bytes: int) -> None:
        self._gpu, self.shared_bytes = gpu, shared_bytes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._gpu, name)


@dataclass
class Case:
    """Key rows (row, cell), the windows' tables as in archive.plan.Batch, a reference a cell."""

    job: Job
    rows: np.ndarray
    word_rows: np.ndarray
    first_word: np.ndarray
    least: np.ndarray
    reference: np.ndarray

    @property
    def days(self) -> int:
        return self.first_word.size


def download(gpu: Gpu, array: Any) -> np.ndarray:
    """All of a device's array, after everything that was begun on `stream`."""
    stream = gpu.stream()
    here = np.empty(array.shape, array.dtype)
    gpu.download(here, array, stream)
    stream.synchronize()
    return here


def finish(gpu: Gpu, stream: Any) -> None:
    event = gpu.event()
    event.record(stream)
    gpu.wait(event)


def rows_of(
    rng: np.random.Generator, keys: Keys, rows: int, cells: int, missing: float
) -> np.ndarray:
    """(row, cell) keys: cells of every kind in turn, row 0 without values."""
    half = keys.half
    if keys.affine:
        wide = rng.integers(1, 2 * half, (rows, cells), dtype=np.int64)
        calm = half + 2000 + rng.integers(-300, 300, (rows, cells))
        ties = half - 5 + rng.integers(0, 3, (rows, cells))
        ends = np.where(rng.random((rows, cells)) < 0.5, 1, 2 * half - 1)
        found = np.choose(np.arange(cells) % 6, [wide, calm, ties, ends, calm[:1] + ties * 0, calm])
        found = found.astype(keys.dtype)
    else:
        value = rng.normal(size=(rows, cells)) * 10.0 ** rng.integers(-3, 4, cells)
        value = np.choose(np.arange(cells) % 3, [value, np.round(value, 1), value[:1] + 0 * value])
        raw = value.astype(f"f{keys.bits // 8}").view(keys.dtype)
        found = np.where(raw & keys.dtype.type(half), ~raw, raw | keys.dtype.type(half))
    # Some cells have all values, some few, some one, some none.
    gone = rng.random((rows, cells)) < missing * rng.choice([0, 1, 2], cells)
    one, none = rng.integers(cells, size=2)
    gone[:, one] = np.arange(rows) != rng.integers(rows)
    gone[:, none] = True
    found[gone] = 0
    found[0] = 0
    return found


def case_of(
    rng: np.random.Generator, keys: Keys, words: int, years: int, quantiles: tuple[float, ...], *,
    extras: tuple[str, ...] = ("count",), step: int = 1, cells: int = 128,
    runs: tuple[int, ...] = (9,), missing: float = 0.0, absent: float = 0.0, fewest: int = 1,
) -> Case:  # fmt: skip
    """Random windows: days of each run, share of keys missing and of rows absent.

    fewest  valid values that results need; 0: as many on each day as comes
    """
    first_word, at = [], 0
    for days in runs:
        first_word += [at + step * day for day in range(days)]
        at = first_word[-1] + words
    places = rng.permutation(at * years) + 1
    places[rng.random(places.size) < absent] = 0
    full = words * years
    days = len(first_word)
    least = np.full(days, fewest) if fewest else rng.integers(1, full + 1, days)
    job = Job(keys, quantiles, extras, words, years, step, places.size + 1, cells, days, fewest)
    return Case(
        job, rows_of(rng, keys, places.size + 1, cells, missing), places.reshape(at, years),
        np.array(first_word), least.astype(np.int32),
        rng.normal(20, 5, cells).astype(np.float32),
    )  # fmt: skip


def on_device(
    gpu: Gpu, case: Case, *, lists: bool = True, registers: bool = True, slice_cells: int = 0
) -> np.ndarray:
    """(statistic, day, cell) float32 of a case.

    lists, registers  whether kernels may be those with sorted lists, with planes in registers
    slice_cells       cells that kernels with memory of their own take at once; 0: many
    """
    job = case.job
    with pytest.MonkeyPatch.context() as patch:
        if not registers:
            patch.setattr(windows, "_REGISTER_WORDS", 0)
        if slice_cells:
            patch.setattr(windows, "_slice_of", lambda *_: slice_cells)
        found = GpuWindows(gpu if lists else Limited(gpu, 0), job)
    assert lists or not found.lists
    assert registers or len(found.planes) <= 1
    shape = (job.statistics, case.days, job.cells)
    stream = gpu.stream()
    live = np.unique(case.word_rows[case.word_rows > 0])
    tables = found.tables(case.word_rows, live, case.first_word, case.least)
    to = Buffers(gpu.array(case.rows), gpu.array(case.reference),
                 gpu.array(np.full(shape, DIRTY, np.float32)))  # fmt: skip
    there = {name: gpu.array(table) for name, table in tables.items()}
    runs = len(runs_of(case.first_word, job.step))
    found.launch(stream, to, there, case.days, runs, live.size)
    finish(gpu, stream)
    return download(gpu, to.results)


def by_numpy(case: Case) -> np.ndarray:
    """The same, but for the moments: departures from the reference, sums in the kernels' order."""
    job, keys = case.job, case.job.keys
    out = np.full((job.statistics, case.days, job.cells), DIRTY, np.float32)
    values = keys.values(case.rows)
    reference = case.reference.astype(np.float64)
    for day, first in enumerate(case.first_word):
        rows = case.word_rows[first : first + job.words]
        there = values[rows]  # (word, year, cell)
        count = (~np.isnan(there)).sum((0, 1))
        enough = count >= case.least[day]
        n = np.maximum(count, 1)
        in_order = np.sort(there.reshape(-1, job.cells), axis=0)  # NaN last

        def put(statistic, result, day=day, enough=enough):
            departures = (result - reference).astype(np.float32)
            out[statistic, day] = np.where(enough, departures, np.float32(np.nan))

        for q, quantile in enumerate(job.quantiles):
            position = (n - 1) * quantile
            rank = position.astype(int)
            weight = position - rank
            low = np.take_along_axis(in_order, rank[None], 0)[0]
            high = np.take_along_axis(in_order, np.minimum(rank + 1, n - 1)[None], 0)[0]
            put(q, np.where(weight == 0, low, low + weight * (high - low)))
        if keys.bits == 16:
            total = case.rows[rows].astype(np.int64).sum((0, 1))
            mean = (total / n - keys.half) * keys.scale + keys.offset
        else:
            words = np.zeros((job.words, job.cells))
            for year in range(job.years):
                words += np.nan_to_num(there[:, year])
            mean = np.zeros(job.cells)
            for word in words:
                mean = mean + word
            mean = mean / n
        put(len(job.quantiles), mean)
        if job.count_at:
            out[job.count_at, day] = count
    return out
