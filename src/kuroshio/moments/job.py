"""The three things done with moments: a file made, updated, turned into a climatology."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import calendar as cal
from ..account import Account
from ..archive.describe import Schema, history_line
from ..archive.fetch import close_files
from ..archive.key_kind import NotCodes, choose_keys, sample_values, widest_keys
from ..archive.model import Archive
from ..archive.plan import Plan
from ..archive.sea import ValueOnLand
from ..archive.stored import Stored
from ..archive.write import check_output, choose_cell_chunks, open_output, space_warning
from ..archive.write_chunks import OutputWriter
from ..device.cpu import Crew, available_memory_bytes, available_threads
from ..errors import Refusal
from ..job import MEMORY_SHARE, divisor
from ..keys import Keys
from ..memory_output import MemoryOutput
from ..request import Request, check_doys
from ..sizes import size_text
from .changes import CHUNK_DOYS, Entry, Series, entries, lengthened
from .checks import (
    check_archive,
    check_data,
    check_same,
    check_unchanged,
    check_whole,
    check_years,
    keys_for,
    no_multiples,
    reading,
    stamp,
)
from .sources import joined, missing_days, sources_of
from .state import State, describe, read_state, totals_text, years_text

if TYPE_CHECKING:
    from .run import Changed

CHUNK_CELLS = 8192  # about, of a chunk: 1.6 MB with 24 days of year and 8 bytes
Progress = Callable[[str, int, int], None]


@dataclass
class Means:
    """What a job may use, and who follows it."""

    memory_bytes: int | None = None
    threads: int | None = None
    skip_bad: bool = False
    command: str = ""
    progress: Progress = lambda stage, done, total: None
    account: Account = field(default_factory=Account)

    def __post_init__(self) -> None:
        if self.threads is not None and self.threads < 1:
            raise Refusal(
                f"{self.threads} threads were asked for; give 1 or more, or nothing for all."
            )
        self.account.threads = self.crew

    @property
    def crew(self) -> int:
        return available_threads() if self.threads is None else self.threads

    @property
    def budget_bytes(self) -> int:
        if self.memory_bytes is not None:
            return self.memory_bytes
        return int(available_memory_bytes() * MEMORY_SHARE)


@dataclass
class Done:
    """What came of a job; `plan` of what was read, None where no files were."""

    state: State
    account: Account
    seconds: float
    plan: Plan | None = None
    skipped: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    schema: Schema | None = None
    fields: dict[str, np.ndarray] = field(default_factory=dict)

    def summary(self) -> dict[str, Any]:
        """Plain numbers of the run, for JSON."""
        read: dict[str, Any] = {}
        if self.plan is not None:
            read = {
                "days_read": self.plan.days_read,
                "pieces": self.plan.pieces,
                "read_amplification": round(self.plan.amplification, 3),
                "decoded_gb": round(self.plan.read_bytes / 1e9, 3),
                "blocks": self.plan.blocks,
            }
        return {
            "seconds": round(self.seconds, 3),
            "bound_by": self.account.bound(self.seconds),
            "stages": self.account.rows(self.seconds),
            "threads": self.account.threads,
            "years": list(self.state.years),
            **read,
            "skipped": self.skipped,
            "notes": self.notes,
        }


def make(
    archive: Archive, baseline: tuple[int, int], half_width: int,
    output: str | os.PathLike[str], means: Means, *, overwrite: bool = False, sources: str = "",
) -> Done:  # fmt: skip
    """Moments of the baseline's years to a new file, in one pass over the files."""
    Request(baseline=baseline, half_width=half_width)  # refuses what makes no sense
    check_output(output, overwrite)
    check_archive(archive, output)
    first, last = (
        int(y) for y in cal.year_and_dayofyear(archive.calendar, archive.days[[0, -1]])[0]
    )
    years = tuple(range(max(baseline[0], first), min(baseline[1], last) + 1))
    if not years:
        raise Refusal(
            f"The baseline {baseline[0]}-{baseline[1]} is not in the data, which covers the years "
            f"{first} to {last}. Give --baseline FIRST LAST within them."
        )
    series = Series(archive.days, (int(archive.days[0]), int(archive.days[-1])))
    sample = sample_values(archive) if archive.dtype.kind == "f" else []
    keys = choose_keys(archive, sample, padded=False)
    wanted = entries(series, series, years, (), archive.calendar, half_width)
    notes = missing_days(years, series, archive.calendar)
    if len(years) < baseline[1] - baseline[0] + 1:
        notes.insert(0, f"Of the baseline {baseline[0]}-{baseline[1]} the data cover "
                        f"{years_text(years)}: the moments are of these years.")  # fmt: skip
    state = State(
        replace(archive, pieces=()), keys if keys.exact_sums else None, half_width,
        replace(series, years=years), {}, sources_of(archive, sources), history_line(means.command),
    )  # fmt: skip
    return _Change(state, None, archive, wanted, keys, output, means, overwrite).carry_out(notes)


def update(
    path: str | os.PathLike[str], archive: Archive, add: Iterable[int], remove: Iterable[int],
    means: Means, *, output: str | os.PathLike[str] | None = None, overwrite: bool = False,
    sources: str = "",
) -> Done:  # fmt: skip
    """Years added and taken away, in a new file that takes the place of the old one (or `output`).

    Only the days that enter or leave a pool are read.
    """
    was = stamp(path)
    before, stored = read_state(path)
    with stored:
        in_place = output is None or os.path.realpath(output) == os.path.realpath(path)
        target = path if output is None else output
        check_output(target, overwrite or in_place)
        check_archive(archive, target)
        come, gone = sorted(set(add)), sorted(set(remove))
        check_years(Path(path), before, come, gone)
        keys = keys_for(Path(path), before, archive)
        calendar, half_width = archive.calendar, before.half_width
        series = lengthened(before.series, archive.days, calendar, half_width)
        check_data(come, series, calendar)
        wanted = entries(before.series, series, come, gone, calendar, half_width)
        years = tuple(sorted({*before.years, *come} - {*gone}))
        after = replace(
            before,
            series=replace(series, years=years),
            sources=joined(before, archive, sources_of(archive, sources)),
            history=f"{history_line(means.command)}\n{before.history}",
        )

        def check(changed: Changed) -> None:
            check_unchanged(path, was)
            check_whole(before, stored, changed.were)
            for entry, pair in changed.totals.items():
                if entry.sign < 0:
                    check_same(Path(path), before, entry.year, pair, keys.lossless)

        change = _Change(after, stored, archive, wanted, keys, target, means, True, check)
        with reading(path, was):
            return change.carry_out(missing_days(come, series, calendar))


@dataclass
class _Change:
    """A change of a file of moments, tried until keys and cells are as the values need them.

    check  raises Refusal where what was read is not what it should be
    """

    state: State
    old: Stored | None
    archive: Archive
    entries: Sequence[Entry]
    keys: Keys
    output: str | os.PathLike[str]
    means: Means
    overwrite: bool
    check: Callable[[Changed], None] = lambda changed: None
    leave_out_land: bool = True
    tight: str | None = None  # a warning of the disk

    def carry_out(self, notes: list[str]) -> Done:
        start, archive = perf_counter(), self.archive
        while True:
            try:
                changed = self._attempt()
                break
            except NotCodes as error:
                if self.old is not None and self.state.keys:
                    raise no_multiples(self.state.keys) from error
                self.keys = widest_keys(archive)
                exact = self.keys if self.keys.exact_sums else None
                self.state = replace(self.state, keys=exact)
            except ValueOnLand:
                self.leave_out_land = False
            except MemoryError as error:
                raise Refusal(
                    f"The memory is exhausted: {size_text(self.means.budget_bytes)} were to be "
                    "used, and the system does not give them. Pass a smaller --memory "
                    "(memory_bytes=), or close other programs."
                ) from error
            finally:
                close_files()
        account = self.means.account
        indexing_s = account.seconds.get("index", 0.0) / account.threads
        return Done(
            self.state, account, perf_counter() - start + indexing_s, changed.plan,
            [*archive.skipped, *changed.skipped], [*notes, *filter(None, [self.tight])],
        )  # fmt: skip

    def _attempt(self) -> Changed:
        from .run import Task, carry_out  # with Numba

        means = self.means
        task = Task(self.state, self.archive, tuple(self.entries), self.keys, self.old)
        return carry_out(
            task, self._open, late=self._late, leave_out_land=self.leave_out_land,
            memory_bytes=means.budget_bytes, threads=means.crew, skip_bad=means.skip_bad,
            spans=means.account.span, progress=means.progress,
        )  # fmt: skip

    def _open(self, plan: Plan, executor: Executor) -> OutputWriter:
        chunks = list(choose_cell_chunks(self.archive.grid.shape, CHUNK_CELLS))
        if plan.blocks > 1:  # chunks must not straddle blocks
            chunks[0] = divisor(plan.block_rows, chunks[0])
        schema = describe(self.state)
        self.tight = space_warning(self.output, schema)
        return open_output(
            self.output, schema, pool=executor, chunk_doys=CHUNK_DOYS, cell_chunks=chunks,
            overwrite=self.overwrite, spans=self.means.account.span,
        )  # fmt: skip

    def _late(self, changed: Changed) -> dict[str, str]:
        """The attributes known only now."""
        self.check(changed)
        totals = {year: self.state.totals.get(year, (0, 0)) for year in self.state.years}
        for entry, (number, total) in changed.totals.items():
            if entry.sign > 0:
                n, s = totals[entry.year]
                totals[entry.year] = (n + number, s + total)
        self.state = replace(self.state, totals=totals)
        return {"year_totals": totals_text(totals)}


def estimate(
    path: str | os.PathLike[str], request_of: Callable[[State], Request], means: Means, *,
    output: str | os.PathLike[str] | None = None, overwrite: bool = False,
) -> Done:  # fmt: skip
    """A climatology of what is kept, to a file or in memory; `request_of` knows the options."""
    from .estimate import Estimate, band_rows, schema_of

    start = perf_counter()
    if output is not None:
        check_output(output, overwrite)
        if os.path.realpath(output) == os.path.realpath(path):
            raise Refusal(f"The output {output} is the file of moments. Choose another name.")
    was = stamp(path)
    state, stored = read_state(path)
    with stored:
        request = request_of(state)
        if request.doys is not None:
            check_doys(request.doys, cal.template_length(state.archive.calendar))
        schema = schema_of(state, request, means.command)
        work = Estimate(state, stored, request, means.account.span)
        shape = state.archive.grid.shape
        rows = band_rows(state, stored, request, means.crew, means.budget_bytes)
        edges = [*range(0, shape[0], rows), shape[0]]
        done, bands = 0, len(edges) - 1
        means.progress("read", 0, bands)
        fields: dict[str, np.ndarray] = {}
        with Crew(means.crew) as crew:
            writer: Any = MemoryOutput(schema)
            if output is not None:
                chunks = [rows, *choose_cell_chunks(shape)[1:]]
                writer = open_output(
                    output, schema, pool=crew.executor, cell_chunks=chunks, overwrite=overwrite,
                    spans=means.account.span,
                )  # fmt: skip
            with writer as opened:

                def band(start: int, stop: int) -> None:
                    nonlocal done
                    work.band(slice(start, stop), opened.put)
                    done += 1
                    means.progress("read", done, bands)

                try:
                    with reading(path, was):
                        crew.run(band, list(pairwise(edges)))
                except BaseException:
                    crew.dismiss()
                    raise
                check_unchanged(path, was)
                check_whole(state, stored, sum(work.were))
                opened.finish([])
            if output is None:
                fields = writer.fields
    notes = []
    if not state.contiguous:
        notes.append(f"The years are {years_text(state.years)}, with gaps: the baseline in the "
                     "file names the first and the last.")  # fmt: skip
    seconds = perf_counter() - start
    return Done(state, means.account, seconds, notes=notes, schema=schema, fields=fields)
