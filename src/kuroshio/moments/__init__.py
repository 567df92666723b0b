"""Moments that are kept, so that years can be added and taken away without reading the others.

    new           moments of a baseline, in one pass over the files        job.make
    update        years added and removed; reads the days of those         job.update
    climatology   mean and estimated percentiles, of what is kept          job.estimate

A file of moments holds, for each day of year and cell, number, mean and power sums of the pool that
a climatology is made of: see state.py for the file, changes.py for which days are whose, and
docs/design/moments.md for why it is so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isfinite
from os import PathLike
from typing import TYPE_CHECKING, Any

from ..arguments import (
    baseline_years,
    days_of_year,
    extra_names,
    is_several,
    name_of,
    number,
    whole,
)
from ..errors import Refusal
from ..request import Request

if TYPE_CHECKING:
    import xarray as xr

    from .job import Done, Means
    from .state import State

__all__ = ["climatology", "new", "update"]


def new(
    source: Any,
    output: str | PathLike[str],
    *,
    baseline: tuple[int, int] = (1991, 2020),
    half_width: int = 5,
    overwrite: bool = False,
    memory_bytes: int | None = None,
    threads: int | None = None,
    skip_bad: bool = False,
    **archive: Any,
) -> None:
    """Moments of a baseline's years to a new file, .nc or .zarr, in one pass over the files.

    Of 16-bit codes (packed integers of one scale, or floats that are multiples of one) sums are
    exact integers; of others they are floats, and updates leave rounding. Gaps are not filled.

    source, baseline, half_width, overwrite, memory_bytes, threads, skip_bad : see
    `kuroshio.climatology`
    archive : variable, select, duplicates: see `kuroshio.open_archive`

    Raises kuroshio.Refusal as `kuroshio.climatology` does.
    """
    from ..archive.catalog import open_archive
    from .job import make

    means = _means(memory_bytes, threads, skip_bad)
    years = baseline_years(baseline)
    opened = open_archive(source, skip_bad=skip_bad, **archive)
    done = make(
        opened, years, whole("half_width", half_width), _path("output", output), means,
        overwrite=overwrite, sources=name_of(source),
    )  # fmt: skip
    _warn(opened.notes, done)


def update(
    path: str | PathLike[str],
    source: Any,
    *,
    add: Iterable[int] = (),
    remove: Iterable[int] = (),
    output: str | PathLike[str] | None = None,
    overwrite: bool = False,
    memory_bytes: int | None = None,
    threads: int | None = None,
    skip_bad: bool = False,
    **archive: Any,
) -> None:
    """Add years to a file of moments and take others away.

    Of the files only those of these years are read, and of the days about them that their windows
    reach; `source` may name all. The new file takes the old one's place once it is complete; with
    `output` the old one stays.

    Raises kuroshio.Refusal where the data are of another grid, calendar, unit or packing, a year to
    add is there already, one to remove is not, or its files have changed.
    """
    from ..archive.catalog import open_archive
    from .job import update as carry_out

    means = _means(memory_bytes, threads, skip_bad)
    path, come, gone = _path("path", path), _years("add", add), _years("remove", remove)
    if output is not None:
        output = _path("output", output)
    opened = open_archive(source, skip_bad=skip_bad, **archive)
    done = carry_out(
        path, opened, come, gone, means, output=output, overwrite=overwrite,
        sources=name_of(source),
    )  # fmt: skip
    _warn(opened.notes, done)


def climatology(
    path: str | PathLike[str],
    *,
    percentile: float | Sequence[float] = 90.0,
    doys: Sequence[int] | str | None = None,
    smooth_width: int = 31,
    feb29: str = "mean",
    min_valid: float = 0.0,
    extras: Sequence[str] = (),
    output: str | PathLike[str] | None = None,
    overwrite: bool = False,
    memory_bytes: int | None = None,
    threads: int | None = None,
) -> xr.Dataset:
    """What `kuroshio.climatology(..., method="moments")` gives, of a file of moments.

    Options and result as there; years and half width are those of the file.
    """
    import xarray as xr

    from ..api import dataset_of
    from .job import estimate

    percentiles = percentile if is_several(percentile) else (percentile,)
    options: dict[str, Any] = {
        "percentiles": tuple(number("percentile", p) for p in percentiles),  # type: ignore[union-attr]
        "doys": days_of_year(doys),
        "smooth_width": whole("smooth_width", smooth_width),
        "feb29": feb29,
        "min_valid": number("min_valid", min_valid),
        "extras": extra_names(extras),
    }
    if not (output is None or isinstance(output, (str, PathLike))):
        raise Refusal(f"output is {output!r}; it must be a path such as 'clim.nc', or None.")
    means = _means(memory_bytes, threads, skip_bad=False)
    path = _path("path", path)
    done = estimate(
        path, lambda state: request_of(state, options), means, output=output, overwrite=overwrite
    )
    _warn((), done)
    if output is not None:
        return xr.open_dataset(output, engine="zarr" if str(output).endswith(".zarr") else None)
    assert done.schema is not None
    return dataset_of(done.schema, done.fields)


def request_of(state: State, options: dict[str, Any]) -> Request:
    """The climatology that a file of moments can give, with these options."""
    return Request(
        baseline=(state.years[0], state.years[-1]), half_width=state.half_width,
        method="moments", **options,
    )  # fmt: skip


def _path(name: str, given: Any) -> str | PathLike[str]:
    if not isinstance(given, (str, PathLike)):
        raise Refusal(f"{name} is {given!r}; it must be a path such as 'moments.nc'.")
    return given


def _years(name: str, given: Any) -> list[int]:
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise Refusal(f"{name} is {given!r}; it must be a list of years, such as [2021].")
    return [whole(name, year) for year in given]


def _means(memory_bytes: Any, threads: Any, skip_bad: bool) -> Means:
    from .job import Means

    if memory_bytes is not None and not isfinite(number("memory_bytes", memory_bytes)):
        raise Refusal(f"memory_bytes is {memory_bytes!r}; it must be a number of bytes.")
    return Means(
        None if memory_bytes is None else int(memory_bytes),
        None if threads is None else whole("threads", threads),
        skip_bad,
    )


def _warn(notes: Iterable[str], done: Done) -> None:
    import warnings

    for message in [*notes, *done.notes, *(f"Skipped {s}" for s in done.skipped)]:
        warnings.warn(message, stacklevel=3)
