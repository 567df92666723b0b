"""A block on a GPU: keys and kernels there, smoothing and output on the host as for the processor.

Where every piece is a map of one day, each thread of the crew fills maps of keys in pinned memory (a
few of its own, its *rings*: see rings.py), and each is copied to the device as soon as it is full.
Other pieces hold parts of maps; those of a batch are put together in host memory first. Copies,
kernels and downloads go on streams of their own: while a batch is computed the next is read and
copied, and the one before is smoothed and written.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Timer, local
from time import perf_counter
from typing import Any

import numpy as np

from ..archive.plan import Batch, Block, Load
from ..archive.sea import whole_maps
from ..device.cpu import Work
from ..device.gpu import DeviceArray, Gpu
from ..device.llvm import tile_cells
from ..kernels import fill, smooth
from ..kernels.gpu import programs
from ..kernels.gpu.windows import Buffers, GpuWindows, Job, blocks_of
from ..request import statistics
from .means import Means
from .rings import Rings

_COMPILING_S = 0.5  # longer than taking kernels from the cache: the user should know
_THREADS = 256
_LINE = 16  # bytes to which tables are aligned on the device


class GpuBlock:
    """A block's buffers on the device and the host, and the steps of a batch.

    keys (row, cell) and out (statistic, day of a batch, cell) on the device; results (statistic,
    row, cell) in pinned memory, seen as (tile, statistic, row, cell of the tile).
    """

    def __init__(self, means: Means, block: Block, gpu: Gpu, rings: Rings) -> None:
        self.means, self.block, self.gpu, self.rings = means, block, gpu, rings
        self.clock = rings.clock
        self.crew, self.spans = means.crew, means.spans
        request, keys = means.needs.request, means.keys
        tile = tile_cells()
        cells = block.tiles * tile
        words, years = means.needs.windows.steps.shape[1:]
        least = {int(n) for batch in block.batches for n in batch.least}
        self.job = Job(
            keys=keys,
            quantiles=tuple(p / 100.0 for p in request.percentiles),
            extras=tuple(request.extras),
            words=words,
            years=years,
            step=means.needs.windows.words_per_offset,
            rows=block.key_rows,
            cells=cells,
            days=max(batch.doys.size for batch in block.batches),
            fewest=least.pop() if len(least) == 1 else 0,
        )
        number = len(statistics(request))
        with gpu.use():
            self.keys = gpu.zeros((block.key_rows, cells), keys.dtype)
            self.out = gpu.empty((number * self.job.days * cells,), np.float32)
            self.device_reference = gpu.zeros((cells,), np.float32)
            self.copying, self.computing, self.fetching = (gpu.stream() for _ in range(3))
            self.begun, self.computed, self.fetched = (gpu.event() for _ in range(3))
        kept = gpu.pinned((number, block.result_rows, cells), np.float32)
        kept[:] = 0.0
        self.results = np.lib.stride_tricks.as_strided(
            kept,
            (block.tiles, number, block.result_rows, tile),
            (tile * kept.itemsize, *kept.strides[:2], kept.itemsize),
        )
        self.kept = kept
        self.reference = gpu.pinned((cells,), np.float32)
        self.windows: GpuWindows | None = None  # compiled while the first pieces are read
        self.rows_kernels: Any = None
        self.tables_memory: DeviceArray | None = None
        self.maps = whole_maps(means.needs.archive)
        self.own = local()  # a thread's maps in pinned memory
        self.assembled = self._assembly()  # one is filled while the other is copied
        self.parts: deque[np.ndarray] = deque()  # filled or being filled, not yet copied

    def start(self, batch: Batch, first: bool) -> list[Work]:
        compiling = [self.crew.start(self._compile, [()])] if first else []
        with self.gpu.use():
            for row in batch.clear:
                self.gpu.clear(self.keys[row], self.copying)
        if self.maps:
            return [*compiling, self.crew.start(self._load_map, [(load,) for load in batch.loads])]
        new, memory = _rows_of(batch), self.assembled[0]
        self.assembled.rotate(1)
        self.parts.append(memory)
        return [
            *compiling,
            self.crew.start(self._load_part, [(load, new, memory) for load in batch.loads]),
        ]

    def launch(self, batch: Batch, first: bool) -> None:
        gpu, job = self.gpu, self.job
        assert self.windows is not None
        with gpu.use():
            if not self.maps:
                self._upload_assembled(batch)
            arrived = gpu.event()
            arrived.record(self.copying)
            self.computing.wait_event(arrived)
            self.begun.record(self.computing)
            if batch.fills:
                self._fill(batch)
            if first:
                self._refer(batch)
            tables = self.windows.tables(
                batch.word_rows, batch.live, batch.first_word, batch.least
            )
            runs = len(tables["runs"]) if "runs" in tables else 0
            there = self._upload_tables(tables)
            to = Buffers(self.keys, self.device_reference, self.out)
            self.windows.launch(
                self.computing, to, there, batch.doys.size, runs, batch.live.size
            )
            self.computed.record(self.computing)
            self.fetching.wait_event(self.computed)
            self._download(batch, first)
            self.fetched.record(self.fetching)

    def settle(self, batch: Batch) -> None:
        start = perf_counter()
        self.gpu.wait(self.fetched)
        self.spans("wait", start, perf_counter(), 0)
        begun, computed, fetched = map(self.clock.at, (self.begun, self.computed, self.fetched))
        cells = self.job.cells
        self.spans(
            "device compute", begun, computed, batch.live.size * cells * self.keys.dtype.itemsize
        )
        self.spans("device fetch", computed, fetched, 4 * len(self.kept) * batch.doys.size * cells)

    def release(self) -> None:
        """Results and reference are still being read; all that is on the device is not."""
        for stream in (self.copying, self.computing, self.fetching):
            with suppress(Exception):  # after a failure, which has been raised before
                stream.synchronize()
        self.own = local()
        self.keys = self.out = self.device_reference = None
        self.windows = self.rows_kernels = self.tables_memory = None
        self.assembled.clear()
        self.parts.clear()

    # -- loading --------------------------------------------------------------------------------

    def _load_map(self, load: Load) -> None:
        """A map of keys into the next of this thread's rings, and from there to the device."""
        (row,) = load.rows
        ring = self.rings.next(self.own, self.block.stride_cells, self.means.keys.dtype)
        start = perf_counter()
        self.means.reader.load(Load(load.piece, (0,)), self.block, ring.keys)
        if row >= 0:
            self.rings.send(ring, self.keys[row], self.copying, perf_counter() - start)
        self._count()

    def _load_part(self, load: Load, new: dict[int, int], memory: np.ndarray) -> None:
        rows = tuple(new[row] if row >= 0 else -1 for row in load.rows)
        self.means.reader.load(Load(load.piece, rows), self.block, memory)
        self._count()

    def _upload_assembled(self, batch: Batch) -> None:
        memory = self.parts.popleft()
        for row, place in _rows_of(batch).items():
            self.gpu.upload(self.keys[row], memory[place, : self.job.cells], self.copying)

    def _count(self) -> None:
        self.means.pieces_read += 1
        self.means.progress("read", self.means.pieces_read, self.means.pieces)

    def _assembly(self) -> deque[np.ndarray]:
        """Where pieces are not whole maps, (row, cell) host memory for a batch's new rows, twice."""
        if self.maps:
            return deque()
        rows = max(len(_rows_of(batch)) for batch in self.block.batches)
        shape = (rows, self.block.stride_cells)
        return deque(self.rings.assembly(shape, self.means.keys.dtype) for _ in range(2))

    # -- computing ------------------------------------------------------------------------------

    def _fill(self, batch: Batch) -> None:
        rows, before, after = (table.astype(np.int32) for table in fill.tables(batch.fills))
        there = self._upload_tables({"rows": rows, "before": before, "after": after})
        self.rows_kernels["fill_gaps"](
            self.computing, blocks_of(self.job.cells, _THREADS), _THREADS,
            (self.keys, np.int64(self.job.cells), np.int32(self.job.cells), there["rows"],
             np.int32(rows.size), there["before"], there["after"], np.int32(before.shape[1])),
        )  # fmt: skip

    def _refer(self, batch: Batch) -> None:
        """Each cell's reference value, by the rule of smooth.reference_values."""
        rows = smooth.reference_rows(batch.word_rows, batch.first_word, self.job.words)
        there = self._upload_tables({"rows": rows.astype(np.int32)})
        keys = self.means.keys
        self.rows_kernels["find_references"](
            self.computing, blocks_of(self.job.cells, _THREADS), _THREADS,
            (self.keys, np.int64(self.job.cells), np.int32(self.job.cells), there["rows"],
             np.int32(rows.size), np.float64(keys.scale), np.float64(keys.offset),
             self.device_reference),
        )  # fmt: skip

    def _upload_tables(self, tables: dict[str, np.ndarray]) -> dict[str, DeviceArray]:
        """Small tables in one copy, on the stream that uses them."""
        places, size = {}, 0
        for name, table in tables.items():
            places[name] = (size, size + table.nbytes)
            size += -(-table.nbytes // _LINE) * _LINE
        packed = np.zeros(max(size, _LINE), np.uint8)
        for name, table in tables.items():
            packed[slice(*places[name])] = np.ascontiguousarray(table).reshape(-1).view(np.uint8)
        if self.tables_memory is None or self.tables_memory.shape[0] < packed.size:
            self.tables_memory = self.gpu.empty((2 * packed.size,), np.uint8)
        self.gpu.upload(self.tables_memory[: packed.size], packed, self.computing)
        return {name: self.tables_memory[slice(*place)] for name, place in places.items()}

    def _download(self, batch: Batch, first: bool) -> None:
        cells, days = self.job.cells, batch.doys.size
        for statistic in range(len(self.kept)):
            for day, row in enumerate(batch.result_rows.tolist()):
                at = (statistic * days + day) * cells
                self.gpu.download(
                    self.kept[statistic, row], self.out[at : at + cells], self.fetching
                )
        if first:
            self.gpu.download(self.reference, self.device_reference, self.fetching)

    def _compile(self) -> None:
        """Kernels of the device and of the smoothing, while the first pieces are read."""
        start = perf_counter()
        with self._said(), self.gpu.use():
            self.windows = GpuWindows(self.gpu, self.job)
            program = programs.rows_program(self.means.keys.kind)
            self.rows_kernels = self.gpu.kernels(program.text, program.kernels)
            nothing = np.zeros((0, 1), np.int64)
            smooth.running_mean(
                self.results, 0, nothing, self.reference, self.block.runs.table, 0, 0,
                np.zeros((0, 0), np.float32),
            )  # fmt: skip
        self.spans("compile", start, perf_counter(), 0)

    @contextmanager
    def _said(self) -> Iterator[None]:
        """The user hears of a compilation that takes long."""
        said = Timer(_COMPILING_S, self.means.progress, ("compile", 0, 1))
        said.start()
        start = perf_counter()
        try:
            yield
        finally:
            said.cancel()
        if perf_counter() - start > _COMPILING_S:
            self.means.progress("compile", 1, 1)


def _rows_of(batch: Batch) -> dict[int, int]:
    """The key rows that a batch's pieces fill, and where each is assembled."""
    rows = sorted({row for load in batch.loads for row in load.rows if row >= 0})
    return {row: place for place, row in enumerate(rows)}
