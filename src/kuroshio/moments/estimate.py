"""From moments that are kept to a climatology, as `--method moments` makes it of the files.

The same steps in the same kernels: mean and estimated percentiles of each pool, 29 February, the
running mean. A band of the grid's rows at a time, all days of year of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from time import perf_counter
from typing import Any

import numpy as np

from .. import calendar as cal
from ..archive.describe import Schema, history_line
from ..archive.describe import describe as describe_climatology
from ..archive.model import Spans
from ..archive.needs import days_averaged
from ..archive.schedule import least_valid
from ..archive.sea import all_cells
from ..archive.stored import Stored
from ..archive.write import CHUNK_DOYS
from ..cornish_fisher import coefficients
from ..device.llvm import tile_cells
from ..errors import Refusal
from ..kernels import kept_codes, kept_values, moments, smooth
from ..request import Request, statistics
from ..sizes import size_text
from .changes import sizes
from .state import Kept, State, read_pools, years_text

_CELLS = 256
_POOL_BYTES = 40  # in memory


def schema_of(state: State, request: Request, command: str) -> Schema:
    """What the climatology says of itself: as if made of the files."""
    doys = request.doys or range(1, cal.template_length(state.archive.calendar) + 1)
    schema = describe_climatology(state.archive, request, doys, command=command)
    own = {k: v for k, v in schema.attrs.items() if k != "source_file_count"}
    attrs = {**own, **state.sources, "history": f"{history_line(command)}\n{state.history}"}
    if not state.contiguous:
        attrs["baseline_years"] = years_text(state.years)
    return replace(schema, attrs=attrs)


def band_rows(state: State, stored: Stored, request: Request, threads: int, budget: int) -> int:
    """Rows of a band: a chunk of the file, or fewer where memory is short."""
    shape = state.archive.grid.shape
    days = cal.template_length(state.archive.calendar)
    row = days * int(np.prod(shape[1:], dtype=np.int64))
    row *= _POOL_BYTES + 8 * len(statistics(request))
    rows = stored.chunk_rows("mean")
    if row > budget:
        raise Refusal(
            f"There is not enough memory: a row of the grid needs {size_text(row)} and "
            f"{size_text(budget)} may be used. Raise --memory (memory_bytes), or close other "
            "programs."
        )
    return max(min(rows, budget // (row * threads)), 1)


class Estimate:
    """The climatology of a state, band by band; `band` may be called from several threads."""

    def __init__(self, state: State, stored: Stored, request: Request, spans: Spans) -> None:
        self.state, self.stored, self.request, self.spans = state, stored, request, spans
        archive = state.archive
        self.were: list[int] = []  # values in the pools, band by band
        self.length = cal.template_length(archive.calendar)
        self.statistics = statistics(request)
        self.averaged = len(request.percentiles) + 1  # of them, those smoothed
        self.estimate = coefficients([p / 100.0 for p in request.percentiles])
        self.given = moments.places(self.statistics, len(self.estimate))
        order = np.arange(1, self.length + 1)
        pools = sizes(state.series, archive.calendar, state.half_width, order)
        self.least = least_valid(request.min_valid, pools)
        doys = request.doys or tuple(order.tolist())
        rows = days_averaged(doys, request.smooth_width, self.length) - 1
        self.days = np.ascontiguousarray(rows, np.int64)
        self.middle = np.ascontiguousarray(rows[:, rows.shape[1] // 2 :][:, :1], np.int64)
        self.anew = np.arange(len(doys)) % CHUNK_DOYS == 0
        self.leap_day = archive.calendar == "standard" and request.feb29 == "mean"

    def band(self, rows: slice, put: Callable[..., None]) -> None:
        """Read the pools of a band, and put all its days of year; `put` as an output has it."""
        start = perf_counter()
        kept = read_pools(self.state, self.stored, slice(0, self.length), rows)
        self.were.append(int(kept.number.sum()))
        read = perf_counter()
        self.spans("fetch", start, read, sum(values.nbytes for values in kept))
        cells, tile = kept.mean.shape[1], tile_cells()
        tiles = -(-cells // tile)
        reference = np.zeros(tiles * tile, np.float32)
        reference[:cells] = self._reference(kept)
        results = np.full((tiles, len(self.statistics), self.length, tile), np.nan, np.float32)
        for first, last in pairwise([*range(0, cells, _CELLS), cells]):
            self._select(kept, first, last, reference, results)
        if self.leap_day:
            self._leap_day(results)
        computed = perf_counter()
        self.spans("compute", read, computed, kept.mean.size)
        out = np.empty((len(self.days), cells), np.float32)
        none, table = np.zeros_like(reference), all_cells(cells).table
        shaped = out.reshape(len(out), rows.stop - rows.start, *self.state.archive.grid.shape[1:])
        for i, (name, which) in enumerate(self.statistics):
            begun = perf_counter()
            smoothed = i < self.averaged
            smooth.running_mean(
                results, i, self.days if smoothed else self.middle, self.anew,
                reference if smoothed else none, table, 0, cells, out,
            )  # fmt: skip
            if name == "count":
                np.nan_to_num(out, copy=False)
            self.spans("smooth", begun, perf_counter(), out.size)
            put(name, 0 if which is None else (0, which), shaped, rows)

    def _select(
        self, kept: Kept, first: int, last: int, reference: np.ndarray, results: np.ndarray
    ) -> None:
        """The statistics of some cells, a whole number of tiles but for the band's end."""
        found = np.empty((self.length, 5, last - first))
        central: Any = kept_codes.central if self.state.keys else kept_values.central
        central(first, *kept, found)
        keys = self.state.keys
        scaling = (keys.scale, keys.offset) if keys else (1.0, 0.0)
        rows = len(self.estimate) + len(moments.STATISTICS)
        out = np.empty((rows, self.length, last - first), np.float32)
        moments.statistics(found, *scaling, self.least, reference[first:last], self.estimate, out)
        tile = results.shape[3]
        for at, row in self.given:
            for start in range(first, last, tile):
                stop = min(start + tile, last)
                to = results[start // tile, at, :, : stop - start]
                to[:] = out[row, :, start - first : stop - first]

    def _reference(self, kept: Kept) -> np.ndarray:
        """(cell,) float32 near each cell's means, from which results are departures."""
        if self.state.keys:
            day = np.argmax(kept.number > 0, axis=0)
            mean = kept.mean[day, np.arange(day.size)].astype(np.float64)
            near = np.where(mean == kept_codes.NOTHING, 0.0, mean * self.state.keys.scale)
            near += self.state.keys.offset
        else:
            size = np.where(np.isfinite(kept.mean), np.abs(kept.mean), np.inf)
            day = np.argmin(size, axis=0)
            near = np.nan_to_num(kept.mean[day, np.arange(day.size)], posinf=0.0, neginf=0.0)
        largest = np.finfo(np.float32).max
        return np.clip(near, -largest, largest).astype(np.float32)

    def _leap_day(self, results: np.ndarray) -> None:
        """29 February from its neighbours: their mean, of counts the smaller."""
        leap, before, after = (cal.LEAP_DAY - 1 + shift for shift in (0, -1, 1))
        for i, (name, _) in enumerate(self.statistics):
            days = results[:, i]
            if name == "count":
                np.minimum(days[:, before], days[:, after], out=days[:, leap])
            else:
                days[:, leap] = (days[:, before] + days[:, after]) * np.float32(0.5)
