"""Kuroshio: exact climatological means and percentile thresholds of daily gridded data.

    files     a folder, a pattern, Zarr or an xarray object             archive.catalog
    plan      what is read when, where it lies in memory                archive.plan
    read      inflated in threads, turned into keys that sort           archive.read, archive.decode
    select    mean and percentiles of each window, exactly              kernels.percentile
    smooth    a running mean over days of year                          kernels.smooth
    write     one CF file, compressed in threads, named when complete   archive.write

`climatology` does it all; `moments` keeps what years can be added to and taken from; `open_archive`
says what there is; on the command line `kuroshio --help`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import Refusal

if TYPE_CHECKING:
    from . import moments
    from .api import climatology
    from .archive.catalog import open_archive

__all__ = ["Refusal", "climatology", "moments", "open_archive"]


if Path(sys.argv[0] if sys.argv else "").stem not in ("kuroshio", "-m"):
    # Not for the command line, whose help must not wait for xarray.
    from . import accessor  # noqa: F401


def __getattr__(name: str) -> Any:
    # Numba and the file libraries take a while to import: not before they are wanted.
    if name == "climatology":
        from .api import climatology

        return climatology
    if name == "open_archive":
        from .archive.catalog import open_archive

        return open_archive
    if name == "moments":
        from importlib import import_module

        return import_module("kuroshio.moments")
    raise AttributeError(f"module 'kuroshio' has no attribute {name!r}")
