"""For Python: paths or xarray objects in, an xarray Dataset out, in memory or in a file."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from .archive.catalog import open_archive
from .archive.describe import Schema
from .arguments import (
    baseline_years,
    days_of_year,
    extra_names,
    is_several,
    name_of,
    number,
    whole,
)
from .errors import Refusal
from .job import Job
from .request import Request

if TYPE_CHECKING:
    import xarray as xr


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
