"""All statistics of a batch's windows on a GPU: which kernels give them, and their launches.

Sorted lists for percentiles near an end of the pool, where the device has the shared memory for
them; bit planes for all else, in registers for the cells whose keys differ in few bits. Measured on
an H200, 92 days of year of 736 thousand cells: lists 4.0 ms, planes 10.3 (benchmarks/kernels.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...cornish_fisher import coefficients
from ...device.gpu import DeviceArray, Gpu
from ...keys import AFFINE16, KEY_BITS, Keys
from ..list_windows import HIGHEST, LOWEST, NEITHER, sides_of
from ..moments import STATISTICS, places
from . import programs
from .launches import Chosen, chosen
from .programs import BLOCK, Windows

MAP = np.dtype([("row", np.int32), ("filled", np.int32), ("fill", np.uint64)])  # of rows.h
_FEW_PLANES = 12  # that fit into registers with a window of 11 words
_REGISTER_WORDS = 160  # for them
_MEMORY_BYTES = 256 << 20  # of the device for planes and moments: cells are taken in slices
_MOST_ROWS = 1 << 16  # that lists can number


@dataclass(frozen=True)
class Job:
    """What is the same for all batches of a block.

    words, years, step  as in calendar.Windows; rows and cells of the key buffer; days, the most of
    a batch; fewest, the valid values that results need if they are the same for all days, else 0;
    by_moments, whether percentiles are estimated
    """

    keys: Keys
    quantiles: tuple[float, ...]  # 0 to 1
    extras: tuple[str, ...]
    words: int
    years: int
    step: int
    rows: int
    cells: int
    days: int
    fewest: int
    by_moments: bool = False

    @property
    def names(self) -> list[tuple[str, int | None]]:
        """The statistics, as of request.statistics."""
        thresh = [("thresh", i) for i in range(len(self.quantiles))]
        return [*thresh, ("seas", None), *((name, None) for name in self.extras)]

    @property
    def statistics(self) -> int:
        return len(self.names)

    @property
    def count_at(self) -> int:
        """The statistic that the number of values is, 0 for none."""
        return self.names.index(("count", None)) if "count" in self.extras else 0


@dataclass
class Buffers:
    """What a launch reads and writes on the device.

    keys (row, cell), references (cell,), results (statistic, day, cell) float32
    """

    keys: DeviceArray
    references: DeviceArray
    results: DeviceArray


class GpuWindows:
    """Compiled kernels and their own memory for one job; used by one thread."""

    def __init__(self, gpu: Gpu, job: Job) -> None:
        self.gpu, self.job = gpu, job
        self.stride = np.int64(job.cells)
        self.lists = [] if job.by_moments else self._lists()
        left = tuple(
            q for q in range(len(job.quantiles)) if not any(q in way.numbers for way in self.lists)
        )
        if job.by_moments:
            left = ()
        self.planes: list[_PlanesWay] = []
        if left:
            self.planes = self._planes(left, with_mean=not self.lists)
            self.lowest = gpu.empty((job.cells,), job.keys.dtype)
            self.tops = gpu.empty((job.cells,), np.uint8)
        estimate = coefficients(job.quantiles if job.by_moments else ())
        given = places(job.names, len(estimate))
        self.moments = _MomentsWay(gpu, job, estimate, given) if given else None

    def tables(self, word_rows: np.ndarray, live: np.ndarray, first_word: np.ndarray,
               least: np.ndarray) -> dict[str, np.ndarray]:  # fmt: skip
        """What a batch's launches need of it, to be uploaded under these names."""
        found = {
            "word_rows": word_rows.astype(np.int32),
            "live": live.astype(np.int32),
            "first_word": first_word.astype(np.int32),
            "least": least.astype(np.int32),
        }
        if self.lists:
            found["row_table"] = programs.row_table(word_rows)
            found["runs"] = runs_of(first_word, self.job.step)
        return found

    def launch(
        self, stream: Any, to: Buffers, tables: dict[str, DeviceArray], days: int, runs: int,
        live: int,
    ) -> None:  # fmt: skip
        """All statistics of `days` days of year; `runs` and `live` are the lengths of tables."""
        for way in self.lists:
            way.launch(stream, to, tables, days, runs)
        if self.planes:
            keys = self.job.keys
            self.planes[0].extremes(
                stream, to.keys, self.stride, np.int32(self.job.cells), tables["live"],
                np.int32(live), self.lowest, self.tops,
            )  # fmt: skip
            for planes in self.planes:
                planes.launch(stream, to, tables, days, self.lowest, self.tops, keys)
        if self.moments:
            self.moments.launch(stream, to, tables, days)

    def chosen(self) -> list[Chosen]:
        """All kernels as they are launched."""
        lists = [kernel for way in self.lists for kernel in way.kernels]
        planes = [way.kernel for way in self.planes]
        extremes = [self.planes[0].extremes] if self.planes else []
        return [*lists, *extremes, *planes, *([self.moments.kernel] if self.moments else [])]

    # -- which kernels --------------------------------------------------------------------------

    def _lists(self) -> list[_ListsWay]:
        job = self.job
        full = job.words * job.years
        sides, longest = sides_of(np.array(job.quantiles), full)
        longest = max(longest, job.years, 2)
        fits = programs.lists_shared_bytes(job.words, longest) <= self.gpu.shared_bytes
        if job.keys.kind != AFFINE16 or job.step != 1 or job.rows > _MOST_ROWS or not fits:
            return []
        ways: list[_ListsWay] = []
        for side in (HIGHEST, LOWEST):
            numbers = tuple(np.flatnonzero(sides == side).tolist())
            if not numbers or (sides == NEITHER).all():
                continue
            way = _ListsWay(self.gpu, job, numbers, longest, side, with_mean=not ways)
            if way.spills:
                return []
            ways.append(way)
        return ways

    def _planes(self, numbers: tuple[int, ...], with_mean: bool) -> list[_PlanesWay]:
        job = self.job
        bits = KEY_BITS[job.keys.kind]
        few = (0, _FEW_PLANES)
        if job.words * programs.word_size(job.keys.kind, few[1]) <= _REGISTER_WORDS:
            narrow = _PlanesWay(self.gpu, job, numbers, with_mean, few, in_registers=True)
            if not narrow.spills:
                many = (few[1] + 1, bits)
                return [narrow, _PlanesWay(self.gpu, job, numbers, with_mean, many, False)]
        return [_PlanesWay(self.gpu, job, numbers, with_mean, (0, bits), in_registers=False)]


class _ListsWay:
    """Percentiles of one side of the pool from lists: two launches (see MOVES in lists.h)."""

    def __init__(
        self, gpu: Gpu, job: Job, numbers: tuple[int, ...], longest: int, side: int, with_mean: bool
    ) -> None:
        self.job, self.numbers = job, numbers
        full = job.words * job.years
        ranks = []
        for q in numbers:
            rank = int((full - 1) * job.quantiles[q])
            ranks.append(full - rank if side == HIGHEST else rank + 2)
        count_at = job.count_at if with_mean else 0
        windows = Windows(
            job.words, job.years, numbers, len(job.quantiles), with_mean, count_at
        )  # fmt: skip
        self.gpu = gpu
        self.kernels: list[Chosen] = []
        shared_bytes = programs.lists_shared_bytes(job.words, longest)
        for moves in (False, True):
            program = programs.lists_program(
                windows, ranks, longest, side == HIGHEST, moves, job.fewest
            )
            (name,) = program.kernels
            kernel = gpu.kernels(program.text, program.kernels)[name]
            called = f"{name}, with many gaps" if moves else name
            self.kernels.append(
                chosen(
                    gpu, called, kernel, job.cells // 2, threads=BLOCK, shared_bytes=shared_bytes
                )
            )
        self.spills = any(each.kernel.local_bytes for each in self.kernels)
        self.quantiles = gpu.array(np.array([job.quantiles[q] for q in numbers]))
        self.again = gpu.zeros((self.kernels[0].launch.grid,), np.uint8)

    def launch(
        self, stream: Any, to: Buffers, tables: dict[str, DeviceArray], days: int, runs: int
    ) -> None:
        job, keys = self.job, self.job.keys
        args = (
            to.keys, np.uint32(job.cells * keys.dtype.itemsize), np.int32(job.cells // 2),
            tables["row_table"], tables["runs"], np.int32(runs), np.int32(days), tables["least"],
            self.quantiles, np.float64(keys.scale), np.float64(keys.offset), to.references,
            to.results, self.again,
        )  # fmt: skip
        self.gpu.clear(self.again, stream)
        for kernel in self.kernels:
            kernel(stream, *args)


class _PlanesWay:
    """Percentiles from bit planes, of the cells whose keys need so many."""

    def __init__(
        self, gpu: Gpu, job: Job, numbers: tuple[int, ...], with_mean: bool,
        planes: tuple[int, int], in_registers: bool,
    ) -> None:  # fmt: skip
        self.job = job
        count_at = job.count_at if with_mean else 0
        windows = Windows(
            job.words, job.years, numbers, len(job.quantiles), with_mean, count_at
        )  # fmt: skip
        program = programs.planes_program(job.keys.kind, windows, planes, in_registers)
        kernels = gpu.kernels(program.text, program.kernels)
        extremes, windows_kernel = program.kernels
        self.extremes = chosen(gpu, extremes, kernels[extremes], job.cells)
        self.spills = in_registers and kernels[windows_kernel].local_bytes > 0
        self.quantiles = gpu.array(np.array([job.quantiles[q] for q in numbers]))
        cell_bytes = 4 * job.words * programs.word_size(job.keys.kind, planes[1])
        self.slice, self.memory = job.cells, None
        if not in_registers:
            self.slice = _slice_of(job.cells, cell_bytes)
            self.memory = gpu.empty((self.slice * cell_bytes // 4,), np.uint32)
        called = f"{windows_kernel} in {'registers' if in_registers else 'memory'}"
        self.kernel = chosen(gpu, called, kernels[windows_kernel], self.slice, threads=BLOCK)

    def launch(
        self, stream: Any, to: Buffers, tables: dict[str, DeviceArray], days: int,
        lowest: DeviceArray, tops: DeviceArray, keys: Keys,
    ) -> None:  # fmt: skip
        cells = np.int32(self.job.cells)
        for start in range(0, self.job.cells, self.slice):
            args = (
                to.keys, np.int64(cells), cells, np.int32(start), np.int32(self.slice),
                tables["word_rows"], tables["first_word"], np.int32(days), tables["least"], lowest,
                tops, self.quantiles, np.float64(keys.scale), np.float64(keys.offset),
                to.references, to.results, self.memory,
            )  # fmt: skip
            self.kernel(stream, *args)


class _MomentsWay:
    """What moments give: estimated percentiles, mean, standard deviation, skewness, kurtosis."""

    def __init__(
        self, gpu: Gpu, job: Job, estimate: np.ndarray, given: list[tuple[int, int]]
    ) -> None:
        self.job = job
        program = programs.moments_program(job.keys.kind, job.words, job.years, len(estimate))
        (name,) = program.kernels
        cell_bytes = 8 * 5 * job.words
        self.slice = _slice_of(job.cells, cell_bytes)
        kernel = gpu.kernels(program.text, program.kernels)[name]
        self.kernel = chosen(gpu, name, kernel, self.slice)
        self.memory = gpu.empty((self.slice * cell_bytes // 8,), np.float64)
        self.estimate = gpu.array(estimate.reshape(-1)) if estimate.size else None
        found = {row - len(estimate): at for at, row in given}  # percentiles have their own places
        self.places = [np.int32(found.get(i, 0)) for i in range(len(STATISTICS))]

    def launch(self, stream: Any, to: Buffers, tables: dict[str, DeviceArray], days: int) -> None:
        keys, cells = self.job.keys, np.int32(self.job.cells)
        for start in range(0, self.job.cells, self.slice):
            args = (
                to.keys, np.int64(cells), cells, np.int32(start), np.int32(self.slice),
                tables["word_rows"], tables["first_word"], np.int32(days), tables["least"],
                np.float64(keys.scale), np.float64(keys.offset), to.references, self.estimate,
                to.results, *self.places, self.memory,
            )  # fmt: skip
            self.kernel(stream, *args)


def runs_of(first_word: np.ndarray, step: int) -> np.ndarray:
    """(run, 3) int32: first day of each run of windows that move on by `step`, its end and word."""
    breaks = np.flatnonzero(np.diff(first_word) != step) + 1
    starts = np.concatenate([[0], breaks])
    stops = np.concatenate([breaks, [first_word.size]])
    return np.stack([starts, stops, first_word[starts]], axis=1).astype(np.int32)


def _slice_of(cells: int, cell_bytes: int) -> int:
    """Cells taken at once, so that what they need stays within _MEMORY_BYTES."""
    return max(min(cells, _MEMORY_BYTES // cell_bytes // BLOCK * BLOCK), 1)
