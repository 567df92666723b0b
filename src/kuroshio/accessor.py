"""`da.kuroshio.climatology(...)` on xarray objects."""

from __future__ import annotations

from typing import Any

import xarray as xr


@xr.register_dataarray_accessor("kuroshio")
@xr.register_dataset_accessor("kuroshio")
class KuroshioAccessor:
    """Kuroshio's functions with the object as their source."""

    def __init__(self, source: xr.DataArray | xr.Dataset) -> None:
        self._source = source

    def climatology(self, **options: Any) -> xr.Dataset:
        """The climatology and thresholds of this object; see `kuroshio.climatology`."""
        from .api import climatology

        return climatology(self._source, **options)
