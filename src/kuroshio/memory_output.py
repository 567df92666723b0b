"""An output that is kept in memory: what `ks.climatology` without `output` returns."""

from __future__ import annotations

from typing import Any

import numpy as np

from .archive.describe import Schema
from .archive.write import choose_cell_chunks


class MemoryOutput:
    """An output that keeps the fields as arrays."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        shape = [schema.sizes[dim] for dim in schema.cell_dims] or [1]
        self.band_rows = choose_cell_chunks(shape)[0]
        self.fields = {
            name: np.empty(schema.shape(name), variable.dtype)
            for name, variable in schema.variables.items()
        }

    def __enter__(self) -> MemoryOutput:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def put(self, name: str, position: Any, values: np.ndarray, rows: slice) -> None:
        first, *which = position if isinstance(position, tuple) else (position,)
        target = self.fields[name][(slice(first, first + len(values)), *which)]
        if target.ndim > 1:
            target[:, rows] = values
        else:  # a series has no cells
            target[:] = values.reshape(-1)

    def finish(self, skipped: list[str]) -> None:
        if skipped:
            before = self.schema.attrs.get("skipped_files")
            names = [before, *skipped] if before else skipped
            self.schema.attrs["skipped_files"] = "; ".join(names)
