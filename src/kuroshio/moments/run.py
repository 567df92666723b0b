"""A change carried out: days read, pools changed, a new file written band by band.

Days of year are walked in order, a batch at a time, as for a climatology (archive.plan); a batch's
pools are taken from the old file, changed, and put into the new one. So the old file is whole until
the new one has its name, and memory is bounded by the window.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from time import perf_counter
from typing import Any

import numpy as np

from ..archive.cut import choose
from ..archive.model import Archive, Progress, Spans
from ..archive.needs import Needs
from ..archive.plan import Batch, Block, Layout, Plan
from ..archive.read import Reader
from ..archive.schedule import block_of, lay_out
from ..archive.stored import Stored
from ..device.cpu import Crew
from ..device.llvm import tile_cells
from ..device.memory import ReadyMemory
from ..engines.cpu_keys import CpuKeys
from ..engines.means import Means
from ..kernels import kept_codes, kept_values
from ..keys import YEARS_PER_WORD, Keys
from ..request import Request
from .changes import CHUNK_DOYS, Entry, Tables, tables
from .state import State, empty, read_pools

_POOL_WORDS = 9  # of 4 bytes, of a pool in memory
Open = Callable[[Plan, Any], AbstractContextManager[Any]]


@dataclass
class Changed:
    """What came of it: the plan, number and sum of the values of each entry, files left out, and
    the number of values that the old file's pools held."""

    plan: Plan
    totals: dict[Entry, tuple[int, float]]
    skipped: list[str] = field(default_factory=list)
    were: int = 0


@dataclass(frozen=True)
class Task:
    """A change of `state` (as it will be) by some entries, from an archive.

    keys  of the values read: where sums are exact, those of the state
    """

    state: State
    archive: Archive
    entries: tuple[Entry, ...]
    keys: Keys
    old: Stored | None

    def needs(self) -> tuple[Needs, Tables]:
        """What has to be read, of the pieces that have to be."""
        found: list[Tables] = []
        state, calendar = self.state, self.archive.calendar

        def windows(axis: np.ndarray, order: np.ndarray) -> Any:
            made = tables(list(self.entries), state.series, axis, calendar, state.half_width, order)
            found.append(made)
            return made.windows

        years = [entry.year for entry in self.entries]
        request = Request(
            baseline=(min(years), max(years)), half_width=state.half_width, smooth_width=1,
            feb29="pool",
        )  # fmt: skip
        whole = Needs(self.archive, request, YEARS_PER_WORD, windows)
        wanted = np.zeros(self.archive.days.size, bool)
        wanted[found[-1].windows.steps[found[-1].windows.steps >= 0]] = True
        pieces = tuple(
            piece
            for piece in self.archive.pieces
            if any(step >= 0 and wanted[step] for step in piece.steps)
        )
        if len(pieces) == len(self.archive.pieces):
            return whole, found[-1]
        few = replace(self.archive, pieces=pieces)
        return Needs(few, request, YEARS_PER_WORD, windows), found[-1]


def carry_out(
    task: Task,
    open_output: Open,
    *,
    late: Callable[[Changed], dict[str, str]],
    leave_out_land: bool,
    memory_bytes: int,
    threads: int,
    skip_bad: bool,
    spans: Spans,
    progress: Progress,
) -> Changed:
    """Read, change, and write into the context that `open_output(plan, executor)` gives.

    `late` sees what came of it before the file gets its name: it gives the attributes known only
    then, or refuses. Raises NotCodes or ValueOnLand where it must begin anew in another way.
    """
    needs, table = task.needs()
    layout = Layout(
        key_bytes=task.keys.bits // 8,
        statistics=_POOL_WORDS,
        output_days=CHUNK_DOYS,
        tile_cells=tile_cells(),
        years_per_word=YEARS_PER_WORD,
    )
    plan = choose(needs, layout, memory_bytes)
    reader = Reader(needs.archive, task.keys, spans, skip_bad)
    with Crew(threads) as crew:
        look = leave_out_land and needs.archive.pieces
        sea = reader.sea(layout.tile_cells, crew.run) if look else None
        means = Means(needs, task.keys, reader, crew, spans, progress, plan.loads)
        progress("read", 0, plan.loads)
        with open_output(plan, crew.executor) as output:
            try:
                work = _Work(task, table, means, output)
                for number in range(plan.blocks):
                    work.block(block_of(needs, layout, plan, number, sea))
                totals = dict(zip(table.entries, work.totals(), strict=True))
                changed = Changed(plan, totals, sorted(set(reader.skipped)), sum(work.were))
                output.finish(changed.skipped, **late(changed))
            except BaseException:
                crew.dismiss()  # nobody may put into an output that is being removed
                raise
    return changed


class _Work:
    """The blocks of a change, one after the other."""

    def __init__(self, task: Task, table: Tables, means: Means, output: Any) -> None:
        self.task, self.table, self.means, self.output = task, table, means, output
        self.crew, self.spans = means.crew, means.spans
        self.change = kept_codes.change if task.state.keys else kept_values.change
        self.cell_shape = means.needs.archive.grid.shape[1:]
        steps = means.needs.axis.size
        self.number = np.zeros(steps, np.int64)  # of values, and their sum, of each step
        self.total = np.zeros(steps, np.int64 if task.state.keys else np.float64)
        self.compiled = False
        self.were: list[int] = []  # values in the pools of the old file, by what was read of it

    def totals(self) -> list[tuple[int, float]]:
        return self.table.totals(self.number, self.total)

    def block(self, block: Block) -> None:
        memory = ReadyMemory(block.key_rows * block.stride_cells * self.means.keys.bits // 8, 0)
        held = CpuKeys(self.means, block, memory)
        counted = np.zeros(self.number.size, bool)
        for batch in block.batches:
            loading = held.load(batch)
            if not self.compiled:
                self._compile(held, batch)
            self.crew.finish(loading)
            self.crew.run(self._count, self._uncounted(held, batch, counted))
            start, stop, rows = block.rows.start, block.rows.stop, self.output.band_rows
            edges = [*range(start, stop, rows), stop]
            self.crew.run(self._band, [(held, batch, slice(*edge)) for edge in pairwise(edges)])

    def _uncounted(
        self, held: CpuKeys, batch: Batch, counted: np.ndarray
    ) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """(keys, steps, rows) of the days that come into use, in shares for the threads."""
        windows = self.means.needs.windows
        words, _ = lay_out(windows.steps[batch.doys - 1], windows.words_per_offset)
        steps, at = np.unique(words, return_index=True)
        rows = batch.word_rows.reshape(-1)[at]
        fresh = (steps >= 0) & ~counted[steps] & (rows > 0)
        steps, rows = steps[fresh], rows[fresh]
        counted[steps] = True
        keys = held.keys[:, : held.block.cells]
        shares = max(min(self.crew.threads, steps.size), 1)
        return [(keys, steps[i::shares], rows[i::shares]) for i in range(shares)]

    def _count(self, keys: np.ndarray, steps: np.ndarray, rows: np.ndarray) -> None:
        """Number and sum of the values of some days."""
        if self.task.state.keys:
            number, total = np.empty(rows.size, np.int64), np.empty(rows.size, np.int64)
            kept_codes.row_totals(keys, rows, number, total)
            self.number[steps] += number
            self.total[steps] += total
            return
        for step, row in zip(steps, rows, strict=True):
            values = self.means.keys.values(keys[row])
            self.number[step] += np.count_nonzero(~np.isnan(values))
            self.total[step] += np.nansum(values)

    def _band(self, held: CpuKeys, batch: Batch, rows: slice) -> None:
        """Pools of a band of the grid's rows: taken from the old file, changed, put."""
        start = perf_counter()
        block, first_doy = held.block, int(batch.doys[0])
        inner = int(np.prod(self.cell_shape, dtype=np.int64))
        days = slice(first_doy - 1, first_doy - 1 + batch.doys.size)
        if self.task.old is None:
            kept = empty(self.task.state, batch.doys.size, (rows.stop - rows.start) * inner)
        else:
            kept = read_pools(self.task.state, self.task.old, days, rows)
            size = sum(values.nbytes for values in kept)
            self.were.append(int(kept.number.sum()))
            self.spans("fetch", start, start := perf_counter(), size)
        begin, end = ((row - block.rows.start) * inner for row in (rows.start, rows.stop))
        for grid_start, length, place in block.runs.table.tolist():
            first, last = max(begin, grid_start), min(end, grid_start + length)
            if first < last:
                cells = slice(first - begin, last - begin)
                self.change(
                    self.means.keys, held.keys, place + first - grid_start, batch.word_rows,
                    batch.first_word, self.table.signs, kept, cells,  # type: ignore[arg-type]
                )  # fmt: skip
        self.spans("compute", start, perf_counter(), kept.mean.size)
        for name, values in zip(self.task.state.names, kept, strict=True):
            shaped = values.reshape(batch.doys.size, rows.stop - rows.start, *self.cell_shape)
            self.output.put(name, first_doy - 1, shaped, rows)

    def _compile(self, held: CpuKeys, batch: Batch) -> None:
        """Compile the kernels, or take them from Numba's cache, while the first pieces are read."""
        self.compiled = True
        nothing = np.zeros((self.table.signs.size, batch.word_rows.shape[1]), np.int32)
        with self.means.compiling():
            self.change(
                self.means.keys, held.keys, 0, nothing, np.zeros(1, np.int64), self.table.signs,
                empty(self.task.state, 1, 1), slice(0, 1),  # type: ignore[arg-type]
            )  # fmt: skip
