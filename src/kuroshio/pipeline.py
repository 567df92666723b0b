"""The flow: catalog -> plan -> read and decode -> kernels -> smooth -> write.

An archive has been found (archive.catalog). Here an engine is chosen (engines.choose) and the work
is planned (archive.plan), and then, for each block of cells and each batch of days of year: the
pieces that are new are read and turned into keys (archive.read, archive.decode), the engine selects
the windows' statistics (engines.protocol, kernels.percentile), days of year whose smoothing window
is complete are averaged (kernels.smooth) and handed to the output. While one batch's results are
smoothed and written, and while a device computes it on its own, the next is being read: see
block_run.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from .archive.cut import choose
from .archive.key_kind import NotCodes, choose_keys, sample_values, widest_keys
from .archive.model import Archive, ByteRange, Progress, Spans
from .archive.needs import Needs
from .archive.plan import Layout, Plan
from .archive.schedule import block_of
from .archive.sea import ValueOnLand
from .archive.write import CHUNK_DOYS
from .device.cpu import Crew
from .device.gpu import GpuError
from .engines.choose import Choice, choose_engine, processor_instead
from .engines.means import Means
from .engines.protocol import Report
from .engines.worth import Task
from .keys import AFFINE16, YEARS_PER_WORD, Keys
from .request import Request, statistics


@dataclass
class Run:
    """What a run was and did, for the account and the output's attributes."""

    plan: Plan
    keys: Keys
    choice: Choice
    seconds: float = 0.0
    skipped: list[str] = field(default_factory=list)
    report: Report = field(default_factory=Report)  # of the engine


@dataclass(frozen=True)
class Prepared:
    """All that is decided before anything is computed."""

    needs: Needs
    keys: Keys
    choice: Choice
    layout: Layout
    plan: Plan


def prepare(
    archive: Archive,
    request: Request,
    *,
    memory_bytes: int,
    threads: int,
    device: str = "cpu",
    pinned_bytes: int | None = None,
    meanwhile: Callable[[], None] | None = None,
) -> Prepared:
    """Choose keys, engine and cut; reads a few pieces at most, and refuses what cannot be done.

    `meanwhile` is done while a GPU is made ready.
    """
    needs = Needs(archive, request, YEARS_PER_WORD)
    sample = sample_values(archive) if archive.dtype.kind == "f" else []
    keys = choose_keys(archive, sample, padded=request.max_pad > 0)
    task = Task(
        cells=archive.grid.cells,
        doys=needs.order.size,
        words=needs.windows.steps.shape[1],
        key_bytes=keys.bits // 8,
        threads=threads,
        inflatable_bytes=_inflatable_bytes(needs, keys),
    )
    choice = choose_engine(device, pinned_bytes, task, meanwhile)
    return _planned(needs, keys, choice, memory_bytes)


def _inflatable_bytes(needs: Needs, keys: Keys) -> int:
    """Decoded bytes of the days that windows need, if they are stored as devices can inflate them.

    By the first piece: most archives are all of a kind.
    """
    piece = needs.archive.pieces[0]
    where = piece.where
    stored = isinstance(where, ByteRange) and where.deflate and where.shuffle
    if keys.kind != AFFINE16 or not stored or len(piece.steps) != 1:
        return 0
    steps = np.unique(needs.windows.steps)
    return int(steps[steps >= 0].size) * needs.archive.grid.cells * keys.bits // 8


def _planned(needs: Needs, keys: Keys, choice: Choice, memory_bytes: int) -> Prepared:
    layout = Layout(
        key_bytes=keys.bits // 8,
        statistics=len(statistics(needs.request)),
        output_days=CHUNK_DOYS,
        tile_cells=choice.engine.tile_cells,
        years_per_word=YEARS_PER_WORD,
        ahead=choice.engine.ahead,
        device_bytes=choice.engine.device_bytes,
    )
    return Prepared(needs, keys, choice, layout, choose(needs, layout, memory_bytes))


def run(
    archive: Archive,
    request: Request,
    open_output: Callable[[Plan, Keys, Executor], Any],
    *,
    memory_bytes: int,
    threads: int,
    device: str = "cpu",
    pinned_bytes: int | None = None,
    skip_bad: bool = False,
    spans: Spans,
    progress: Progress | None = None,
) -> Run:
    """Compute the whole request into the context that `open_output(plan, keys, executor)` gives.

    `progress` is called with (stage, done, total): pieces read, or kernels compiled. Raises Refusal
    for what cannot be done; whatever ends the run early, the output's context sees the exception
    and no thread is left. A GPU that 'auto' took and that fails before the first results is
    replaced by the processor.
    """
    begin = perf_counter()
    prepared = prepare(
        archive, request, memory_bytes=memory_bytes, threads=threads, device=device,
        pinned_bytes=pinned_bytes, meanwhile=_make_ready,
    )  # fmt: skip
    spans("start", begin, perf_counter(), 0)
    leave_out_land = True
    while True:
        watch = _Watch()
        try:
            return _run(
                prepared, leave_out_land, open_output, watch, threads, skip_bad, spans, progress
            )
        except NotCodes:
            # Floats that began as whole multiples of 0.01 and went on as something else.
            keys = widest_keys(archive)
            prepared = _planned(prepared.needs, keys, prepared.choice, memory_bytes)
        except ValueOnLand:
            leave_out_land = False
        except GpuError as error:
            if watch.used or not prepared.choice.auto:
                raise
            choice = processor_instead(prepared.choice, error)
            prepared = _planned(prepared.needs, prepared.keys, choice, memory_bytes)


def _run(
    prepared: Prepared,
    leave_out_land: bool,
    open_output: Callable[[Plan, Keys, Executor], Any],
    watch: _Watch,
    threads: int,
    skip_bad: bool,
    spans: Spans,
    progress: Progress | None,
) -> Run:
    begin = perf_counter()
    needs, plan, keys = prepared.needs, prepared.plan, prepared.keys
    result = Run(plan, keys, prepared.choice)
    with closing(prepared.choice.engine) as engine:
        engine.begin(plan, threads)
        from .archive.read import Reader  # with Numba: it takes time, in which the engine begins
        from .block_run import BlockRun

        reader = Reader(needs.archive, keys, spans, skip_bad)
        with Crew(threads) as crew:
            sea = reader.sea(prepared.layout.tile_cells, crew.run) if leave_out_land else None
            means = Means(needs, keys, reader, crew, spans, progress or _unseen, plan.loads)

            def start(number: int) -> BlockRun:
                block = block_of(needs, prepared.layout, plan, number, sea)
                return BlockRun(means, block, engine.block(means, block))

            started = start(0)
            spans("start", begin, perf_counter(), 0)
            means.progress("read", means.pieces_read, means.pieces)
            with open_output(
                plan, keys, crew.executor
            ) as output:  # while the first pieces are read
                watched = watch.over(output)
                try:
                    started.finish(watched)
                    del started  # its buffers make room for the next block's
                    for number in range(1, plan.blocks):
                        start(number).finish(watched)
                except BaseException as error:
                    crew.dismiss()  # nobody may put into an output that is being removed
                    if isinstance(error, GpuError):
                        engine.doubt()
                    raise
                result.skipped = sorted(set(reader.skipped))
                output.finish(result.skipped)
        result.report = engine.report()
    result.seconds = perf_counter() - begin
    return result


def _make_ready() -> None:
    """What `_run` needs of Numba first: imports, and what its first call of anything takes."""
    from . import block_run  # noqa: F401
    from .archive import bulk, read  # noqa: F401

    bulk.make_ready()


class _Watch:
    """Passes an output's results on, and knows whether there were any."""

    used = False

    def over(self, output: Any) -> _Watch:
        self._output = output
        self.band_rows = output.band_rows
        return self

    def put(self, name: str, position: Any, values: np.ndarray, rows: slice) -> None:
        self.used = True
        self._output.put(name, position, values, rows)


def _unseen(stage: str, done: int, total: int) -> None:
    """Progress that nobody follows."""
