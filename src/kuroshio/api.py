"""For Python: paths or xarray objects in, an xarray Dataset out, in memory or in a file."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from . import pipeline, trace_file
from .account import Account, peak_memory_bytes
from .archive.catalog import open_archive
from .archive.describe import Schema, describe, package_version
from .archive.fetch import close_files
from .archive.model import Archive
from .archive.plan import Plan
from .archive.write import check_output, choose_cell_chunks, open_output, space_warning
from .arguments import (
    baseline_years,
    days_of_year,
    extra_names,
    is_several,
    name_of,
    number,
    whole,
)
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

if TYPE_CHECKING:
    import xarray as xr

MEMORY_SHARE = 0.5  # of what is available, unless the user says otherwise
Progress = Callable[[str, int, int], None]  # (what, done, total)


def climatology(
    source: Any,
    *,
    baseline: tuple[int, int] = (1991, 2020),
    percentile: float | Sequence[float] = 90.0,
    half_width: int = 5,
    doys: Sequence[int] | str | None = None,
    smooth_width: int = 31,
    feb29: str = "mean",
    min_valid: float = 0.0,
    max_pad: int = 0,
    extras: Sequence[str] = (),
    method: str = "exact",
    variable: str | None = None,
    select: dict[str, int] | None = None,
    duplicates: str = "error",
    skip_bad: bool = False,
    output: str | PathLike[str] | None = None,
    overwrite: bool = False,
    memory_bytes: int | None = None,
    threads: int | None = None,
    device: str = "auto",
    pinned_memory_bytes: int | None = None,
    trace: str | PathLike[str] | None = None,
) -> xr.Dataset:
    """Climatological mean and percentile thresholds of every cell and day of year.

    For each day of year the values of all baseline years within `half_width` calendar days are
    pooled; `seas` is their mean and `thresh` their percentile, linear between order statistics
    (Hyndman and Fan type 7), both then smoothed by a circular running mean (Hobday et al. 2016,
    doi:10.1016/j.pocean.2015.12.014). 29 February is the mean of its neighbours. Windows cross the
    year's end in real time and use days outside the baseline where the data has them.

    Parameters
    ----------
    source : path, pattern, folder, list of paths, xarray.DataArray or xarray.Dataset
        Daily data; any cell dimensions; NaN or the fill value is missing.
    baseline : first and last year, both included
    percentile : 0 to 100, one or several
    half_width : days on either side of the centre; 5 makes an 11-day window
    doys : days of year to compute, 1 to 366 on a leap-year template (1 March is always 61), or
        a range such as "153:244"
    smooth_width : odd number of days; 1 for no smoothing
    feb29 : 'mean' of 28 February and 1 March, or 'pool': the 29 Februaries of leap years
    min_valid : least valid share of a pool, 0 to 1, below which the result is NaN
    max_pad : longest gap in days filled by linear interpolation in time first
    extras : any of 'count', 'std', 'skewness', 'kurtosis', of the unsmoothed pool
    method : 'exact': percentiles are order statistics; 'moments': they are estimated from mean,
        standard deviation, skewness and kurtosis (Cornish and Fisher 1938)
    variable, select, duplicates, skip_bad : see `kuroshio.open_archive`
    output : a .nc or .zarr path: the result is written there and opened lazily; None: in memory
    overwrite : replace an existing output
    memory_bytes : memory the engine may use; default: half of what is available
    threads : default: all processors this process may use
    device : 'cpu'; a GPU such as 'cuda:0' or 'hip:0', or all of them ('cuda:all', 'hip:all'), with
        CuPy; or 'auto': a GPU where one can be used and the job is worth it, else the processor
    pinned_memory_bytes : host memory from which a GPU copies, at most; default: 512 MiB
    trace : a .json or .json.gz path for the run's timeline, which Perfetto and `kuroshio perf
        diagnose` open

    Returns
    -------
    xarray.Dataset
        `seas` (dayofyear, *cells) and `thresh` (dayofyear, *cells), or (dayofyear, percentile,
        *cells) for several percentiles, float32 in the unit of the input.

    Raises
    ------
    kuroshio.Refusal (a ValueError)
        What came, what is allowed, what to do: no data, wrong variable, grids that differ,
        duplicate dates, data that is not daily, a baseline outside the data, too little memory, a
        GPU that was asked for and cannot be used.
    """
    import warnings

    import xarray as xr

    percentiles = percentile if is_several(percentile) else (percentile,)
    request = Request(
        baseline=baseline_years(baseline),
        percentiles=tuple(number("percentile", p) for p in percentiles),  # type: ignore[union-attr]
        half_width=whole("half_width", half_width),
        doys=days_of_year(doys),
        smooth_width=whole("smooth_width", smooth_width),
        feb29=feb29,
        min_valid=number("min_valid", min_valid),
        max_pad=whole("max_pad", max_pad),
        extras=extra_names(extras),
        method=method,
    )
    if not (output is None or isinstance(output, (str, PathLike))):
        raise Refusal(f"output is {output!r}; it must be a path such as 'clim.nc', or None.")
    if not (trace is None or isinstance(trace, (str, PathLike))):
        raise Refusal(f"trace is {trace!r}; it must be a path such as 'trace.json.gz', or None.")
    job = Job(
        request,
        output=output,
        overwrite=overwrite,
        memory_bytes=None if memory_bytes is None else int(number("memory_bytes", memory_bytes)),
        threads=None if threads is None else whole("threads", threads),
        device=device,
        pinned_memory_bytes=None
        if pinned_memory_bytes is None
        else int(number("pinned_memory_bytes", pinned_memory_bytes)),
        skip_bad=skip_bad,
        trace=trace,
    )
    job.check()
    job.begin()
    account, start = job.account(), perf_counter()
    archive = open_archive(
        source, variable=variable, select=select, duplicates=duplicates, skip_bad=skip_bad
    )
    account.span("index", start, perf_counter(), 0)
    done = job.run(archive, sources=name_of(source), account=account)
    for message in [*archive.notes, *done.warnings, *(f"Skipped {s}" for s in done.skipped)]:
        warnings.warn(message, stacklevel=2)
    if output is not None:
        return xr.open_dataset(output, engine="zarr" if str(output).endswith(".zarr") else None)
    return dataset_of(done.schema, done.fields)


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


def dataset_of(schema: Schema, fields: dict[str, np.ndarray]) -> xr.Dataset:
    import xarray as xr

    coords = {n: (f.dims, f.values, dict(f.attrs)) for n, f in schema.coords.items()}
    inside = ("coordinates", "grid_mapping")  # xarray writes these itself, from `encoding`
    data = {}
    for name, variable in schema.variables.items():
        attrs = {k: v for k, v in variable.attrs.items() if k not in inside}
        data[name] = xr.Variable(variable.dims, fields[name], attrs)
        if "grid_mapping" in variable.attrs:
            data[name].encoding["grid_mapping"] = variable.attrs["grid_mapping"]
    return xr.Dataset(data, coords, schema.attrs)


def divisor(number: int, most: int) -> int:
    """The largest divisor of `number` that is at most `most`."""
    return max(d for d in range(1, min(number, most) + 1) if number % d == 0)
