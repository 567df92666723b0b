"""The results of a pass as a NetCDF file, as every rung but the last writes them."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

from ..archive.model import Archive
from ..errors import Refusal
from ..sizes import size_text
from .problem import Pass


def write_pass(
    path: Path, archive: Archive, passing: Pass, means: np.ndarray, thresholds: np.ndarray
) -> None:
    """float32 (day, cell) each to variables (dayofyear, *cell dims), not compressed."""
    import xarray as xr

    dims, shape = ("dayofyear", *archive.grid.dims), (-1, *archive.grid.shape)
    attrs = {name: archive.attrs[name] for name in ("units",) if name in archive.attrs}
    dataset = xr.Dataset(
        {
            "seas": (dims, means.reshape(shape), {**attrs, "long_name": "mean of the window"}),
            "thresh": (dims, thresholds.reshape(shape), {**attrs, "long_name": "90th percentile"}),
        },
        {"dayofyear": ("dayofyear", np.array(passing.doys, np.int16))}
        | {n: (f.dims, f.values, dict(f.attrs)) for n, f in archive.grid.coords.items()},
        {"Conventions": "CF-1.11"},
    )
    try:
        dataset.to_netcdf(path)
    except (OSError, RuntimeError) as error:  # netCDF4 raises either where the disk is full
        free = shutil.disk_usage(path.parent).free
        raise Refusal(
            f"The results of a pass cannot be written to {path.parent} ({error}): they take "
            f"{size_text(means.nbytes + thresholds.nbytes)}, and {size_text(free)} are free. Free "
            "space or rights, or give another folder with -o."
        ) from error
