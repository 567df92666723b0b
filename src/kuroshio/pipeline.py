"""The flow: catalog -> plan -> read and decode -> kernels -> smooth -> write.

An archive has been found (archive.catalog). Here it is planned (archive.plan), and then, for each
block of cells and each batch of days of year: the pieces that are new are read and turned into
keys (archive.read, archive.decode), the windows' statistics are selected (kernels.percentile), days
of year whose smoothing window is complete are averaged (kernels.smooth) and handed to the output.
While one batch's results are smoothed and written, the next batch is being read.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Protocol

import numpy as np

from .archive.cut import choose
from .archive.decode import NotCodes, choose_keys, widest_keys
from .archive.model import Archive
from .archive.needs import Needs
from .archive.plan import Batch, Block, Layout, Plan
from .archive.read import Reader, Spans, sample_values
from .archive.schedule import block_of
from .archive.sea import ValueOnLand
from .device.cpu import Crew
from .kernels import fill, moments, percentile, smooth
from .kernels.percentile_vectors import YEARS_PER_WORD
from .keys import Keys
from .request import Request

_LOADS_PER_TASK = 4  # small files: fewer, larger tasks
_TASKS_PER_THREAD = 16  # of a batch's computation: land is quick, so shares must be small
_OUTPUTS_AT_A_TIME = 16  # days of year smoothed together


class Output(Protocol):
    """Where results go: a file being written, or arrays."""

    def put(self, name: str, position: Any, values: np.ndarray, rows: slice) -> None: ...


@dataclass
class Run:
    """What a run was and did, for the account and the output's attributes."""

    plan: Plan
    keys: Keys
    seconds: float = 0.0
    skipped: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Prepared:
    """All that is decided before anything is computed."""

    needs: Needs
    keys: Keys
    layout: Layout
    plan: Plan


def prepare(archive: Archive, request: Request, memory_bytes: int) -> Prepared:
    """Choose the keys and the cut; reads a few pieces at most, and refuses what cannot be done."""
    needs = Needs(archive, request, YEARS_PER_WORD)
    sample = sample_values(archive) if archive.dtype.kind == "f" else []
    keys = choose_keys(archive, sample, padded=request.max_pad > 0)
    return _with_keys(needs, keys, memory_bytes)


def _with_keys(needs: Needs, keys: Keys, memory_bytes: int) -> Prepared:
    averaged = len(needs.request.percentiles) + 1
    layout = Layout(
        key_bytes=keys.bits // 8,
        statistics=len(statistics(needs.request)),
        smoothed_bytes=4 * averaged * _OUTPUTS_AT_A_TIME,
        tile_cells=percentile.tile_cells(),
        years_per_word=YEARS_PER_WORD,
    )
    return Prepared(needs, keys, layout, choose(needs, layout, memory_bytes))


def statistics(request: Request) -> list[tuple[str, int | None]]:
    """What is kept for every day of year: (output variable, which percentile of it)."""
    several = len(request.percentiles) > 1
    thresh = [("thresh", i if several else None) for i in range(len(request.percentiles))]
    return [*thresh, ("seas", None), *((name, None) for name in request.extras)]


def run(
    archive: Archive,
    request: Request,
    open_output: Callable[[Plan, Keys, Executor], Any],
    *,
    memory_bytes: int,
    threads: int,
    skip_bad: bool = False,
    spans: Spans,
    progress: Callable[[int, int], None] | None = None,
) -> Run:
    """Compute the whole request into the context that `open_output(plan, keys, executor)` gives.

    `progress` is called with (pieces read, pieces to read). Raises Refusal for what cannot be
    done; whatever ends the run early, the output's context sees the exception and no thread is
    left.
    """
    prepared = prepare(archive, request, memory_bytes)
    leave_out_land = True
    while True:
        try:
            return _run(prepared, leave_out_land, open_output, threads, skip_bad, spans, progress)
        except NotCodes:
            # Floats that began as whole multiples of 0.01 and went on as something else.
            prepared = _with_keys(prepared.needs, widest_keys(archive), memory_bytes)
        except ValueOnLand:
            leave_out_land = False


def _run(
    prepared: Prepared,
    leave_out_land: bool,
    open_output: Callable[[Plan, Keys, Executor], Any],
    threads: int,
    skip_bad: bool,
    spans: Spans,
    progress: Callable[[int, int], None] | None,
) -> Run:
    begin = perf_counter()
    plan, keys = prepared.plan, prepared.keys
    result = Run(plan, keys)
    reader = Reader(prepared.needs.archive, keys, spans, skip_bad)
    with Crew(threads) as crew, open_output(plan, keys, crew.executor) as output:
        work = _Work(prepared, reader, crew, output, spans, progress)
        sea = reader.sea(prepared.layout.tile_cells) if leave_out_land else None
        for number in range(plan.blocks):
            work.block(block_of(prepared.needs, prepared.layout, plan, number, sea))
        result.skipped = sorted(set(reader.skipped))
        output.finish(result.skipped)
    result.seconds = perf_counter() - begin
    return result


class _Work:
    """One run's means: the buffers of a block, and the steps of a batch."""

    def __init__(
        self,
        prepared: Prepared,
        reader: Reader,
        crew: Crew,
        output: Output,
        spans: Spans,
        progress: Callable[[int, int], None] | None,
    ) -> None:
        needs = prepared.needs
        self.request, self.keys = needs.request, prepared.keys
        self.reader, self.crew, self.output = reader, crew, output
        self.spans, self.progress = spans, progress
        self.statistics = statistics(self.request)
        self.averaged = len(self.request.percentiles) + 1  # of the statistics, those smoothed
        self.words, years = needs.windows.steps.shape[1:]
        self.kernel = percentile.compiled_for(self.keys.kind, self.words, years)
        self.cell_shape = needs.archive.grid.shape or (1,)
        self.done, self.total = 0, prepared.plan.pieces * prepared.plan.blocks

    def block(self, block: Block) -> None:
        """All batches of a block: load, compute, then smooth and put while the next one loads."""
        buffer = _zeros((block.key_rows, block.stride_cells), self.keys.dtype)
        shape = (len(self.statistics), block.result_rows, block.stride_cells)
        results = _zeros(shape, np.dtype(np.float32))
        counts = np.empty((max(b.doys.size for b in block.batches), block.stride_cells), np.int32)
        shape = (self.averaged, _OUTPUTS_AT_A_TIME, block.runs.grid_cells)
        smoothed = np.empty(shape, np.float32)
        reference = None
        compiling = self.crew.start(self._compile, [(buffer, results, counts)])
        loading = [*compiling, *self._start_loads(block.batches[0], block, buffer)]
        for i, batch in enumerate(block.batches):
            start = perf_counter()
            self.crew.finish(loading)
            self.spans("wait", start, perf_counter(), 0)
            if batch.fills:
                self._fill(batch, block, buffer)
            if reference is None:
                rows = batch.word_rows[batch.first_word[0] :][: self.words].reshape(-1)
                reference = smooth.reference_values(self.keys, buffer, rows[rows > 0])
            self._compute(batch, block, buffer, reference, results, counts)
            if batch.leap_day:
                self._leap_day(results, *batch.leap_day)
            following = block.batches[i + 1] if i + 1 < len(block.batches) else None
            self._finish(batch, following, block, buffer, reference, results, smoothed)
            loading = self._next_loads

    def _compile(self, buffer: np.ndarray, results: np.ndarray, counts: np.ndarray) -> None:
        """Compile the kernel, or load it from Numba's cache, while the first pieces are read."""
        start = perf_counter()
        none = np.zeros(0, np.int32)
        self.kernel(
            buffer, 0, 0, none, np.zeros((1, 1), np.int32), np.zeros(0, np.int64), False,
            np.zeros(1), none, self.keys.scale, self.keys.offset, results[0, 0], results, none,
            counts,
        )  # fmt: skip
        self.spans("compile", start, perf_counter(), 0)

    # -- the steps of a batch -------------------------------------------------------------------

    def _start_loads(self, batch: Batch, block: Block, buffer: np.ndarray) -> list:
        for row in batch.clear:
            buffer[row] = 0
        groups = [
            (batch.loads[k : k + _LOADS_PER_TASK], block, buffer)
            for k in range(0, len(batch.loads), _LOADS_PER_TASK)
        ]
        return self.crew.start(self._load, groups)

    def _load(self, loads: tuple, block: Block, buffer: np.ndarray) -> None:
        for load in loads:
            self.reader.load(load, block, buffer)
        self.done += len(loads)
        if self.progress:
            self.progress(self.done, self.total)

    def _fill(self, batch: Batch, block: Block, buffer: np.ndarray) -> None:
        self._timed("fill", fill.fill_gaps, self._stretches(block, percentile.tile_cells()), buffer,
                    *fill.tables(batch.fills))  # fmt: skip

    def _compute(
        self,
        batch: Batch,
        block: Block,
        buffer: np.ndarray,
        reference: np.ndarray,
        results: np.ndarray,
        counts: np.ndarray,
    ) -> None:
        quantiles = np.array(self.request.percentiles) / 100.0

        def tiles(first: int, last: int) -> None:
            start = perf_counter()
            tile = percentile.tile_cells()
            self.kernel(
                buffer, first // tile, last // tile, batch.live, batch.word_rows,
                batch.first_word, batch.gaps, quantiles, batch.least, self.keys.scale,
                self.keys.offset, reference, results, batch.result_rows, counts,
            )  # fmt: skip
            if self.request.extras:
                self._extras(batch, first, last, buffer, results, counts)
            self.spans("compute", start, perf_counter(), (last - first) * batch.doys.size)

        self.crew.run(tiles, self._stretches(block, percentile.tile_cells()))

    def _extras(
        self,
        batch: Batch,
        first: int,
        last: int,
        buffer: np.ndarray,
        results: np.ndarray,
        counts: np.ndarray,
    ) -> None:
        extras = self.request.extras
        if set(extras) & set(moments.STATISTICS):
            found = moments.of_windows(
                self.keys, buffer[:, first:last], batch.word_rows, batch.first_word, self.words,
                batch.least,
            )  # fmt: skip
        for i, name in enumerate(extras, self.averaged):
            value = (
                counts[: batch.doys.size, first:last]
                if name == "count"
                else found[moments.STATISTICS.index(name)]
            )
            results[i, batch.result_rows, first:last] = value

    def _leap_day(self, results: np.ndarray, leap: int, before: int, after: int) -> None:
        """29 February from its neighbours: their mean, of counts the smaller."""
        for i, (name, _) in enumerate(self.statistics):
            if name == "count":
                np.minimum(results[i, before], results[i, after], out=results[i, leap])
            else:
                results[i, leap] = (results[i, before] + results[i, after]) * np.float32(0.5)

    def _finish(
        self,
        batch: Batch,
        following: Batch | None,
        block: Block,
        buffer: np.ndarray,
        reference: np.ndarray,
        results: np.ndarray,
        smoothed: np.ndarray,
    ) -> None:
        """Smooth and put the outputs that are complete; the next batch's reading goes alongside."""
        self._next_loads: list = []
        groups = [
            batch.outputs[k : k + _OUTPUTS_AT_A_TIME]
            for k in range(0, len(batch.outputs), _OUTPUTS_AT_A_TIME)
        ] or [()]
        for number, group in enumerate(groups):
            out = smoothed[:, : len(group)]
            futures = self._smooth(group, block, reference, results, out)
            if number == 0 and following is not None:
                self._next_loads = self._start_loads(following, block, buffer)
            self.crew.finish(futures)
            self.crew.run(self._put, self._puts(group, block, results, out))

    def _puts(self, group: tuple, block: Block, results: np.ndarray, out: np.ndarray) -> list:
        puts = []
        for k, wanted in enumerate(group):
            middle = wanted.rows[len(wanted.rows) // 2]
            for i, (name, which) in enumerate(self.statistics):
                if i < self.averaged:
                    values = out[i, k]
                else:
                    nothing = 0.0 if name == "count" else np.nan
                    values = block.runs.expand(results[i, middle], nothing)
                place = wanted.position if which is None else (wanted.position, which)
                puts.append((name, place, values.reshape(-1, *self.cell_shape[1:]), block.rows))
        return puts

    def _put(self, name: str, place: Any, values: np.ndarray, rows: slice) -> None:
        self.output.put(name, place, values, rows)

    def _smooth(
        self,
        group: tuple,
        block: Block,
        reference: np.ndarray,
        results: np.ndarray,
        out: np.ndarray,
    ) -> list:
        if not group:
            return []
        rows = np.array([o.rows for o in group], np.int64)

        def stretch(first: int, last: int) -> None:
            start = perf_counter()
            last = min(last, block.cells)
            for i in range(self.averaged):
                smooth.running_mean(
                    results[i], rows, reference, block.runs.table, first, last, out[i]
                )
            self.spans("smooth", start, perf_counter(), (last - first) * len(group))

        return self.crew.start(stretch, self._stretches(block, percentile.tile_cells()))

    # -- helpers --------------------------------------------------------------------------------

    def _stretches(self, block: Block, tile: int) -> list[tuple[int, int]]:
        """Cells first to last, whole tiles, a share for each task."""
        tiles = -(-block.cells // tile)
        share = max(-(-tiles // (self.crew.threads * _TASKS_PER_THREAD)), 1) * tile
        return [(s, min(s + share, tiles * tile)) for s in range(0, tiles * tile, share)]

    def _timed(self, stage: str, task: Callable[..., Any], stretches: list, *args: Any) -> None:
        def timed(first: int, last: int) -> None:
            start = perf_counter()
            task(first, last, *args)
            self.spans(stage, start, perf_counter(), 0)

        self.crew.run(timed, stretches)


def _zeros(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Zeros whose rows start on cache lines when their length is a whole number of them."""
    size = int(np.prod(shape)) * dtype.itemsize
    raw = np.zeros(size + 64, np.uint8)
    skip = -raw.ctypes.data % 64
    return raw[skip : skip + size].view(dtype).reshape(shape)
