"""A device's share of a block: a stretch of its cells, with their keys, kernels and streams.

With several devices every map is read once, on the host, and each device is sent its part of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from ..archive.plan import Batch, Block
from ..device.gpu import DeviceArray, Gpu, Kernel
from ..device.reserve import with_reserve
from ..kernels import fill, smooth
from ..kernels.gpu import programs
from ..kernels.gpu.launches import Chosen, chosen, texts
from ..kernels.gpu.windows import Buffers, GpuWindows, Job
from .gpu_tables import Tables
from .means import TABLE_BYTES
from .rings import Clock, Lane, Ring

_KERNELS_BYTES = 32 << 20  # in reserve for what kernels want, unless they want much
_CELLS = 128  # to a multiple of which shares are cut: whole lines of memory, and pairs of cells


@dataclass(frozen=True)
class Stretch:
    """Cells in memory, first and last plus one, and the cells of the grid that a share looks at."""

    cells: slice
    grid: slice


@dataclass(frozen=True)
class Part:
    """Which bytes of a map in a ring are a share's: the same ones of each of its planes."""

    planes: int
    row_bytes: int  # of a plane
    bytes: slice

    @property
    def map_bytes(self) -> int:
        return self.planes * (self.bytes.stop - self.bytes.start)

    @property
    def whole(self) -> bool:
        return self.map_bytes == self.planes * self.row_bytes


def stretches(block: Block, cells: int, number: int) -> list[Stretch]:
    """`cells` of a block cut into even shares; together they look at the whole grid."""
    step = -(-cells // (number * _CELLS)) * _CELLS
    edges = [*range(0, cells, step), cells]
    starts = [_grid_cell(block, edge) for edge in edges[1:-1]]
    grid_edges = [0, *starts, block.runs.grid_cells]
    return [
        Stretch(slice(edges[i], edges[i + 1]), slice(grid_edges[i], grid_edges[i + 1]))
        for i in range(len(edges) - 1)
    ]


def places_of(block: Block) -> np.ndarray:
    """(cell of the grid,) int32: where in a row it is kept, -1 for nowhere."""
    places = np.full(block.runs.grid_cells, -1, np.int32)
    for start, length, place in block.runs.table.tolist():
        places[start : start + length] = np.arange(place, place + length)
    return places


class GpuShare:
    """keys (row, cell) and out (statistic, day of a batch, cell) on the device.

    part    what of a map comes here
    places  of the grid's cells if maps come as they are stored, None if they come as keys
    """

    def __init__(
        self, gpu: Gpu, clock: Clock, job: Job, stretch: Stretch, part: Part,
        places: np.ndarray | None, rings: int,
    ) -> None:  # fmt: skip
        """rings: the largest number of maps that lie there on their way to rows."""
        self.clock, self.stretch, self.part = clock, stretch, part
        first, last = stretch.cells.start, stretch.cells.stop
        self.job = replace(job, cells=last - first)
        cells, keys = self.job.cells, job.keys
        program = programs.rows_program(keys.kind)
        with gpu.use():
            self.keys: DeviceArray = gpu.zeros((job.rows, cells), keys.dtype)
            self.out: DeviceArray = gpu.empty((job.statistics * job.days * cells,), np.float32)
            self.reference: DeviceArray = gpu.zeros((cells,), np.float32)
            self.copying, self.unpacking, self.computing, self.fetching = (
                gpu.stream() for _ in range(4)
            )
            self.arrived, self.begun, self.computed, self.fetched = (gpu.event() for _ in range(4))
            ring_bytes = rings * (TABLE_BYTES + part.map_bytes)
            self.gpu = gpu = with_reserve(gpu, ring_bytes + _KERNELS_BYTES)
            kernels = gpu.kernels(program.text, program.kernels)
            self.kernels: Mapping[str, Kernel] = kernels
            width = part.map_bytes // keys.dtype.itemsize if places is not None else cells
            self.rows_kernels: Mapping[str, Chosen] = {
                name: chosen(gpu, name, kernel, width if name == "unpack_maps" else cells)
                for name, kernel in kernels.items()
            }
            self.places: DeviceArray = None
            self.seen: DeviceArray = None  # oddities of codes, as bits of bulk
            if places is not None:
                mine = places[stretch.grid]
                self.places = gpu.array(np.where(mine >= 0, mine - first, -1).astype(np.int32))
                self.seen = gpu.zeros((1,), np.uint32)
        self.windows: GpuWindows | None = None
        self.tables = Tables(gpu, self.computing)

    def compile(self) -> None:
        with self.gpu.use():
            self.windows = GpuWindows(self.gpu, self.job)

    def launches(self) -> dict[str, str]:
        """How each kernel is launched, and why; empty before they are compiled."""
        if self.windows is None:
            return {}
        unused = {"place_maps"} if self.places is not None else {"unpack_maps"}
        rows = [each for name, each in self.rows_kernels.items() if name not in unused]
        return texts([*rows, *self.windows.chosen()])

    def lane(self, ring_maps: int) -> Lane:
        """What a ring of so many maps needs here."""
        gpu = self.gpu
        with gpu.use():
            there = gpu.empty((TABLE_BYTES + ring_maps * self.part.map_bytes,), np.uint8)
            return Lane(gpu, self.clock, there, gpu.event(), gpu.event(), gpu.event())

    # -- maps and rows to the device ------------------------------------------------------------

    def clear(self, rows: Sequence[int]) -> None:
        with self.gpu.use():
            for row in rows:
                self.gpu.clear(self.keys[row], self.unpacking)

    def send(self, ring: Ring, lane: Lane, number: int) -> None:
        """Begin to copy this share's part of a ring's maps, and to unpack it to rows."""
        gpu, part = self.gpu, self.part
        lane.sent_bytes = TABLE_BYTES + number * part.map_bytes
        with gpu.use():
            if part.whole:
                nbytes = lane.sent_bytes
                gpu.upload_between(
                    lane.begun, lane.there[:nbytes], ring.memory[:nbytes], lane.copied, self.copying
                )
            else:
                lane.begun.record(self.copying)
                gpu.upload(lane.table, ring.memory[:TABLE_BYTES], self.copying)
                planes = ring.maps[: number * part.planes * part.row_bytes]
                planes = planes.reshape(-1, part.row_bytes)[:, part.bytes]
                gpu.upload_parts(lane.maps[: planes.size], planes, self.copying)
                lane.copied.record(self.copying)
            self.unpacking.wait_event(lane.copied)
            width = part.map_bytes // part.planes
            if self.places is not None:
                self.unpack(self.unpacking, lane.maps, part.map_bytes, width, number, lane.table)
            else:
                cells = self.job.cells
                self.rows_kernels["place_maps"](
                    self.unpacking, lane.maps, np.int64(width // self.job.keys.dtype.itemsize),
                    np.int32(number), np.int32(cells), lane.table, self.keys, np.int64(cells),
                )  # fmt: skip
            lane.free.record(self.unpacking)

    def unpack(
        self, stream: Any, maps: DeviceArray, map_stride: int, plane_stride: int, number: int,
        table: DeviceArray,
    ) -> None:  # fmt: skip
        """Maps as they are stored, from the first byte that is this share's, to rows of keys."""
        width = self.part.map_bytes // self.job.keys.dtype.itemsize
        self.rows_kernels["unpack_maps"](
            stream, maps, np.int64(map_stride), np.int64(plane_stride), np.int32(number),
            np.int32(width), self.places, table, self.keys, np.int64(self.job.cells), self.seen,
        )  # fmt: skip

    def upload_row(self, row: int, keys: np.ndarray) -> None:
        """Begin to copy a row of keys (cell in memory,)."""
        with self.gpu.use():
            self.gpu.upload(self.keys[row], keys[self.stretch.cells], self.unpacking)

    # -- computing ------------------------------------------------------------------------------

    def launch(
        self, batch: Batch, first: bool, kept: np.ndarray, reference: np.ndarray, seen: np.ndarray
    ) -> None:
        """Begin all of a batch, down to its results' way to the host.

        kept (statistic, row, cell), reference (cell,) and seen (1,) are in pinned memory.
        """
        gpu = self.gpu
        assert self.windows is not None
        with gpu.use():
            self.arrived.record(self.unpacking)
            self.computing.wait_event(self.arrived)
            self.begun.record(self.computing)
            if batch.fills:
                self._fill(batch)
            if first:
                self._refer(batch)
            tables = self.windows.tables(batch.word_rows, batch.live, batch.first_word, batch.least)
            runs = len(tables["runs"]) if "runs" in tables else 0
            there = self.tables.send(tables)
            to = Buffers(self.keys, self.reference, self.out)
            self.windows.launch(self.computing, to, there, batch.doys.size, runs, batch.live.size)
            self.computed.record(self.computing)
            self.fetching.wait_event(self.computed)
            self._download(batch, kept)
            if first:
                gpu.download(reference[self.stretch.cells], self.reference, self.fetching)
            if self.seen is not None:
                gpu.download(seen, self.seen, self.fetching)
            self.fetched.record(self.fetching)

    def times(self) -> tuple[float, float, float]:
        """When, on the host's clock, computing began and ended and the results had arrived."""
        begun, computed, fetched = map(self.clock.at, (self.begun, self.computed, self.fetched))
        return begun, computed, fetched

    def close(self) -> None:
        """Wait for what is under way, and give back all memory; harmless a second time."""
        for stream in (self.copying, self.unpacking, self.computing, self.fetching):
            with suppress(Exception):  # after a failure, which has been raised before
                stream.synchronize()
        self.keys = self.out = self.reference = self.places = self.seen = None
        self.windows = None
        self.tables.close()
        self.kernels, self.rows_kernels = {}, {}

    def _fill(self, batch: Batch) -> None:
        rows, before, after = (table.astype(np.int32) for table in fill.tables(batch.fills))
        there = self.tables.send({"rows": rows, "before": before, "after": after})
        self._on_rows(
            "fill_gaps", self.computing, there["rows"], np.int32(rows.size), there["before"],
            there["after"], np.int32(before.shape[1]),
        )  # fmt: skip

    def _refer(self, batch: Batch) -> None:
        """Each cell's reference value, by the rule of smooth.reference_values."""
        rows = smooth.reference_rows(batch.word_rows, batch.first_word, self.job.words)
        there = self.tables.send({"rows": rows.astype(np.int32)})
        keys = self.job.keys
        self._on_rows(
            "find_references", self.computing, there["rows"], np.int32(rows.size),
            np.float64(keys.scale), np.float64(keys.offset), self.reference,
        )  # fmt: skip

    def _on_rows(self, name: str, stream: Any, *args: Any) -> None:
        """A kernel of rows.h on all cells."""
        cells = self.job.cells
        self.rows_kernels[name](stream, self.keys, np.int64(cells), np.int32(cells), *args)

    def _download(self, batch: Batch, kept: np.ndarray) -> None:
        """Days whose rows lie side by side in one go: every call is a turn of the lock."""
        cells, days, rows = self.job.cells, batch.doys.size, batch.result_rows
        edges = [0, *(np.flatnonzero(np.diff(rows) != 1) + 1).tolist(), days]
        for statistic in range(len(kept)):
            for first, last in pairwise(edges):
                at = (statistic * days + first) * cells
                to = slice(rows[first], rows[first] + last - first)
                self.gpu.download(
                    kept[statistic, to, self.stretch.cells],
                    self.out[at : at + (last - first) * cells], self.fetching,
                )  # fmt: skip


def _grid_cell(block: Block, cell: int) -> int:
    """The cell of the grid that a cell in memory is."""
    for start, length, place in block.runs.table.tolist():
        if place <= cell < place + length:
            return int(start + cell - place)
    return block.runs.grid_cells  # beyond the last: padding
