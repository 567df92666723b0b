"""A job: a request with where its result goes and what it may use, and what came of it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from os import PathLike
from time import perf_counter
from typing import Any

import numpy as np

from . import pipeline, trace_file
from .account import Account, peak_memory_bytes
from .archive.describe import Schema, describe, package_version
from .archive.fetch import close_files
from .archive.model import Archive
from .archive.plan import Plan
from .archive.write import check_output, choose_cell_chunks, open_output, space_warning
from .device.cpu import available_memory_bytes, available_threads
from .device.names import check_device
from .engines.choose import Choice, start_device
from .engines.protocol import Report
from .errors import Refusal
from .keys import Keys
from .memory_output import MemoryOutput
from .recorder import Recorder
from .request import Request
from .sizes import size_text

MEMORY_SHARE = 0.5  # of what is available, unless the user says otherwise
Progress = Callable[[str, int, int], None]  # (what, done, total)


@dataclass
class Done:
    """What came of a job: its plan and account, and in memory its fields."""

    plan: Plan
    keys: Keys
    choice: Choice
    schema: Schema
    fields: dict[str, np.ndarray]
    account: Account
    seconds: float
    skipped: list[str]
    warnings: list[str]
    report: Report = field(default_factory=Report)  # of the engine

    @property
    def device_rows(self) -> list[dict[str, Any]]:
        """What a GPU did; nothing if it failed and the processor took its place."""
        return self.account.device_rows(self.seconds) if self.choice.gpus else []

    def summary(self) -> dict[str, Any]:
        """Plain numbers of the run, for JSON."""
        peak = peak_memory_bytes()
        return {
            "seconds": round(self.seconds, 3),
            "bound_by": self.account.bound(self.seconds),
            "stages": self.account.rows(self.seconds),
            "device_stages": self.device_rows,
            "rings": self.report.rings,
            "inflation": self.report.inflation,
            "launches": self.report.launches,
            "threads": self.account.threads,
            "device": self.choice.device,
            "device_model": self.choice.model,
            "device_why": self.choice.why,
            "peak_memory_gb": None if peak is None else round(peak / 1e9, 3),
            "days_read": self.plan.days_read,
            "pieces": self.plan.pieces,
            "read_amplification": round(self.plan.amplification, 3),
            "decoded_gb": round(self.plan.read_bytes / 1e9, 3),
            "blocks": self.plan.blocks,
            "days_of_year": len(self.plan.doys),
            "skipped": self.skipped,
            "warnings": self.warnings,
        }


@dataclass
class Job:
    """A request with where its result goes and what it may use."""

    request: Request
    output: str | PathLike[str] | None = None
    overwrite: bool = False
    memory_bytes: int | None = None
    threads: int | None = None
    device: str = "auto"
    pinned_memory_bytes: int | None = None
    skip_bad: bool = False
    command: str = ""
    trace: str | PathLike[str] | None = None  # where the timeline goes

    def __post_init__(self) -> None:
        check_device(self.device)
        if self.pinned_memory_bytes is not None and self.pinned_memory_bytes < 1:
            raise Refusal(
                f"{self.pinned_memory_bytes} bytes of pinned memory were asked for; give 1 or "
                "more, such as 2_000_000_000, or nothing for 512 MiB."
            )

    def check(self) -> None:
        """Refuse an output that cannot be written, before anything is read."""
        if self.output is not None:
            check_output(self.output, self.overwrite)
        if self.trace is None:
            return
        trace_file.check(self.trace, self.overwrite)
        if self.output is not None and _same_path(self.trace, self.output):
            raise Refusal(f"The trace and the output are both {self.output}. Name them apart.")

    def account(self) -> Account:
        """A new one, which keeps every span if a trace is wanted."""
        return Account(recorder=None if self.trace is None else Recorder())

    def begin(self) -> None:
        """Begin to make a GPU that is asked for ready, while the archive is looked through."""
        start_device(self.device)

    def _check_not_an_input(self, archive: Archive, what: str, path: str | PathLike[str]) -> None:
        target = os.path.realpath(path)
        # Ten thousand paths take long to resolve: only those of the same file are.
        if any(os.path.realpath(source) == target for source in _same_file(archive, target)):
            raise Refusal(
                f"The {what} {path} is one of the files to be read, and would be replaced. "
                "Choose another name."
            )

    @property
    def budget_bytes(self) -> int:
        if self.memory_bytes is not None:
            return self.memory_bytes
        return int(available_memory_bytes() * MEMORY_SHARE)

    def plan(self, archive: Archive) -> tuple[Keys, Plan, Choice]:
        """What would be done; reads a few values of float archives and nothing of others."""
        prepared = pipeline.prepare(
            archive, self.request, memory_bytes=self.budget_bytes,
            threads=self.threads or available_threads(), device=self.device,
            pinned_bytes=self.pinned_memory_bytes,
        )  # fmt: skip
        return prepared.keys, prepared.plan, prepared.choice

    def run(
        self, archive: Archive, *, sources: str = "", progress: Progress | None = None,
        account: Account | None = None,
    ) -> Done:  # fmt: skip
        """Compute and write; see `climatology`."""
        threads = available_threads() if self.threads is None else self.threads
        if threads < 1:
            raise Refusal(f"{threads} threads were asked for; give 1 or more, or nothing for all.")
        if self.output is not None and not archive.grid.dims:
            raise Refusal(
                "A single series, without any dimension of cells, is not written as it is made. "
                "Leave out output and call .to_netcdf(...) on the result, or give it a cell: "
                "series.expand_dims('station', axis=1)."
            )
        if self.trace is not None:
            self._check_not_an_input(archive, "trace", self.trace)
        account = account or self.account()
        account.threads = threads
        warnings: list[str] = []
        made: dict[str, Any] = {}

        def opened(plan: Plan, keys: Keys, executor: Any) -> Any:
            schema = describe(
                archive, self.request, plan.doys, sources=sources, command=self.command
            )
            made["schema"] = schema
            if self.output is None:
                made["memory"] = MemoryOutput(schema)
                return made["memory"]
            self._check_not_an_input(archive, "output", self.output)
            shape = archive.grid.shape
            chunks = list(choose_cell_chunks(shape))
            if plan.blocks > 1:  # chunks must not straddle blocks
                chunks[0] = divisor(plan.block_rows, chunks[0])
            tight = space_warning(self.output, schema)
            warnings[:] = [tight] if tight else []  # a run may open its output anew
            return open_output(
                self.output, schema, pool=executor, cell_chunks=chunks, overwrite=self.overwrite,
                spans=account.span,
            )  # fmt: skip

        start = perf_counter()
        try:
            result = pipeline.run(
                archive, self.request, opened, memory_bytes=self.budget_bytes, threads=threads,
                device=self.device, pinned_bytes=self.pinned_memory_bytes,
                skip_bad=self.skip_bad, spans=account.span, progress=progress,
            )  # fmt: skip
        except MemoryError as error:
            raise Refusal(
                f"The memory is exhausted: {size_text(self.budget_bytes)} were to be used, and the "
                "system does not give them. Pass a smaller --memory (memory_bytes=), or close "
                "other programs."
            ) from error
        finally:
            close_files()
        seconds = perf_counter() - start + account.seconds.get("index", 0.0) / threads
        fields = made["memory"].fields if "memory" in made else {}
        skipped = [*archive.skipped, *result.skipped]
        warnings = [*result.plan.warnings, *warnings, *filter(None, [result.choice.instead])]
        done = Done(
            result.plan, result.keys, result.choice, made["schema"], fields, account, seconds,
            skipped, warnings, result.report,
        )  # fmt: skip
        if self.trace is not None:
            self._write_trace(done)
        return done

    def _write_trace(self, done: Done) -> None:
        """After the output: a result in memory is not thrown away because a trace does not fit."""
        assert self.trace is not None
        assert done.account.recorder is not None
        try:
            trace_file.write(self.trace, done.account.recorder, self._facts(done))
        except Refusal as refusal:
            if self.output is not None:
                raise Refusal(f"{refusal.message} The output {self.output} is complete.") from None
            done.warnings.append(refusal.message)

    def _facts(self, done: Done) -> dict[str, str]:
        """Of a run, for its trace."""
        return {
            "kuroshio": package_version(),
            "command": self.command or "kuroshio.climatology",
            "processors": str(available_threads()),
            "threads": str(done.account.threads),
            "device": done.choice.device,
            "device_model": done.choice.model or "",
            "clock": "perf_counter",
            "seconds": f"{done.seconds:.6f}",
        }


def _same_file(archive: Archive, path: str) -> Iterator[str]:
    """The sources that are the file at this path, by whatever name."""
    try:
        state = os.stat(path)
    except FileNotFoundError:  # as usual; or another run is replacing it just now
        return
    for source in archive.sources:
        with contextlib.suppress(OSError):  # some are a word for an object in memory
            if os.path.samestat(os.stat(source), state):
                yield source


def _same_path(one: str | PathLike[str], other: str | PathLike[str]) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def divisor(number: int, most: int) -> int:
    """The largest divisor of `number` that is at most `most`."""
    return max(d for d in range(1, min(number, most) + 1) if number % d == 0)
