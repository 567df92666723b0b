"""The last rung: this package's engine, exact, with each file read once and by all threads."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np

from ..account import COMPUTE, COPY, Account
from ..archive.model import Archive
from ..intervals import Intervals
from ..job import Job
from ..request import Request
from .problem import Problem
from .results import PassTimes


@dataclass(frozen=True)
class Ours:
    """A run of the engine: when what was done, and the rings that it chose (0: it has none)."""

    times: PassTimes
    rings: int


def run(
    problem: Problem, archive: Archive, output: Path, device: str, threads: int,
    method: str = "exact",
) -> Ours:  # fmt: skip
    """All days of the problem in one run, to a NetCDF file; raises what `api.Job` does."""
    first, last = problem.doys
    request = Request(
        baseline=problem.years, percentiles=(problem.percentile,), half_width=problem.half_width,
        doys=tuple(range(first, last + 1)), smooth_width=1, method=method,
    )  # fmt: skip
    job = Job(request, output=output, overwrite=True, threads=threads, device=device)
    account = Account()
    start = perf_counter()
    done = job.run(archive, account=account)
    stop = perf_counter()
    rings = done.report.rings or {}
    return Ours(
        _times(account, start, stop, problem.files, last - first + 1), int(rings.get("rings", 0))
    )


def _times(account: Account, start: float, stop: float, maps: int, days: int) -> PassTimes:
    """As of a pass. Of many threads: computing is when any of them did, or the device."""
    computing = account.when(COMPUTE) or account.when("compute")
    copying = account.when(COPY)
    busy = Intervals([*computing, *copying])
    work = list(busy)
    first, last = work[0][0] - start, work[-1][1]
    reading = account.when("read", "inflate", "fetch")
    return PassTimes(
        parts={
            "first read": first,
            "hidden wait": max(last - start - first - busy.seconds, 0.0),
            "copy": busy.seconds - computing.seconds,
            "compute": computing.seconds,
            "final": 0.0,
            "write": stop - last,
        },
        io_s=reading.seconds,
        gpu_s=computing.seconds,
        copy_s=copying.seconds,
        overlap_s=copying.overlap_s(computing),
        maps=maps,
        days=days,
    )


def results(problem: Problem, output: Path) -> tuple[np.ndarray, np.ndarray]:
    """Means and thresholds of a run, (day, cell), as the file has them."""
    import xarray as xr

    with xr.open_dataset(output) as dataset:
        return tuple(  # type: ignore[return-value]
            dataset[name].values.reshape(-1, problem.cells) for name in ("seas", "thresh")
        )
