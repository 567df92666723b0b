"""A block on a GPU: keys and kernels there, smoothing and output on the host as for the processor.

Where every piece is a map of one day, each thread of the crew fills pinned memory of its own (its
*rings*: see rings.py), which is copied to the device as soon as it is full. Shuffled 16-bit codes
go as they come out of the file and become keys there; other maps go as keys. Pieces that are parts
of maps are put together in host memory first, a batch's at a time. Copies, kernels and downloads go
on streams of their own: while a batch is computed the next is read and copied, and the one before
is smoothed and written.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from threading import Timer, local
from time import perf_counter

import numpy as np

from ..archive import bulk
from ..archive.decode import fill_code
from ..archive.plan import Batch, Block, Load
from ..archive.sea import ValueOnLand, whole_maps
from ..device.cpu import Work
from ..device.gpu import DeviceArray, Gpu, Kernel
from ..device.llvm import tile_cells
from ..kernels import fill, smooth
from ..kernels.gpu import programs
from ..kernels.gpu.windows import MAP, Buffers, GpuWindows, Job, blocks_of
from ..keys import NotCodes
from ..request import statistics
from .means import Means, together
from .rings import Ring, Rings, maps_of_ring

_COMPILING_S = 0.5  # longer than taking kernels from the cache: the user should know
_THREADS = 256
_LINE = 16  # bytes to which tables are aligned on the device


class GpuBlock:
    """A block's buffers on the device and the host, and the steps of a batch.

    keys (row, cell) and out (statistic, day of a batch, cell) on the device; results (statistic,
    row, cell) in pinned memory, seen as (tile, statistic, row, cell of the tile).
    """

    ahead = 1

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
            self.copying, self.unpacking, self.computing, self.fetching = (
                gpu.stream() for _ in range(4)
            )
            self.begun, self.computed, self.fetched = (gpu.event() for _ in range(3))
        kept = gpu.pinned((number, block.result_rows, cells), np.float32)
        self.results = np.lib.stride_tricks.as_strided(
            kept,
            (block.tiles, number, block.result_rows, tile),
            (tile * kept.itemsize, *kept.strides[:2], kept.itemsize),
        )
        self.kept = kept
        self.reference = gpu.pinned((cells,), np.float32)
        self.windows: GpuWindows | None = None  # compiled while the first pieces are read
        program = programs.rows_program(keys.kind)
        with gpu.use():
            self.rows_kernels: Mapping[str, Kernel] = gpu.kernels(program.text, program.kernels)
        self.tables_memory: DeviceArray | None = None
        archive = means.needs.archive
        self.maps = whole_maps(archive)
        # Codes as they come, where the block is the whole grid and no map would be sent twice.
        self.raw = self.maps and block.runs.grid_cells == archive.grid.cells
        self.raw = self.raw and means.reader.alike(archive.pieces)
        self.map_bytes = (
            2 * archive.grid.cells if self.raw else block.stride_cells * keys.dtype.itemsize
        )
        self.ring_maps = maps_of_ring(self.map_bytes, rings.budget_bytes, self.crew.threads)
        self.places: DeviceArray = None
        self.seen: DeviceArray = None  # oddities of codes, as bits of bulk
        self.seen_here = gpu.pinned((1,), np.uint32)
        if self.raw:
            self.places = gpu.array(_places(block))
            self.seen = gpu.zeros((1,), np.uint32)
        self.own = local()  # a thread's maps in pinned memory
        self.assembled = self._assembly()  # one is filled while the other is copied
        self.parts: deque[np.ndarray] = deque()  # filled or being filled, not yet copied

    def start(self, batch: Batch, first: bool) -> list[Work]:
        compiling = [self.crew.start(self._compile, [()])] if first else []
        with self.gpu.use():
            for row in batch.clear:
                self.gpu.clear(self.keys[row], self.unpacking)
        if self.maps:
            groups = together(batch.loads, self.ring_maps)
            return [*compiling, self.crew.start(self._load_maps, [(some,) for some in groups])]
        new, memory = _rows_of(batch), self.assembled[0]
        self.assembled.rotate(1)
        self.parts.append(memory)
        return [
            *compiling,
            self.crew.start(self._load_part, [(load, new, memory) for load in batch.loads]),
        ]

    def launch(self, batch: Batch, first: bool) -> None:
        gpu, _job = self.gpu, self.job
        assert self.windows is not None
        with gpu.use():
            if not self.maps:
                self._upload_assembled(batch)
            arrived = gpu.event()
            arrived.record(self.unpacking)
            self.computing.wait_event(arrived)
            self.begun.record(self.computing)
            if batch.fills:
                self._fill(batch)
            if first:
                self._refer(batch)
            tables = self.windows.tables(batch.word_rows, batch.live, batch.first_word, batch.least)
            runs = len(tables["runs"]) if "runs" in tables else 0
            there = self._upload_tables(tables)
            to = Buffers(self.keys, self.device_reference, self.out)
            self.windows.launch(self.computing, to, there, batch.doys.size, runs, batch.live.size)
            self.computed.record(self.computing)
            self.fetching.wait_event(self.computed)
            self._download(batch, first)
            self.fetched.record(self.fetching)

    def settle(self, batch: Batch) -> None:
        start = perf_counter()
        self.gpu.wait(self.fetched)
        self.spans("wait", start, perf_counter(), 0)
        if self.raw and self.seen_here[0] & bulk.STRAY:
            raise ValueOnLand
        if self.raw and self.seen_here[0] & bulk.LOST:
            raise NotCodes
        begun, computed, fetched = map(self.clock.at, (self.begun, self.computed, self.fetched))
        cells = self.job.cells
        self.spans(
            "device compute", begun, computed, batch.live.size * cells * self.keys.dtype.itemsize
        )
        self.spans("device fetch", computed, fetched, 4 * len(self.kept) * batch.doys.size * cells)

    def release(self) -> None:
        """Results and reference are still being read; all that is on the device is not."""
        for stream in (self.copying, self.unpacking, self.computing, self.fetching):
            with suppress(Exception):  # after a failure, which has been raised before
                stream.synchronize()
        self.own = local()
        self.keys = self.out = self.device_reference = None
        self.windows = self.tables_memory = self.places = self.seen = None
        self.rows_kernels = {}
        self.assembled.clear()
        self.parts.clear()
        self.rings.dropped()

    # -- loading --------------------------------------------------------------------------------

    def _load_maps(self, loads: Sequence[Load]) -> None:
        """Maps into the next of this thread's rings, and from there to rows on the device."""
        reader, number = self.means.reader, len(loads)
        ring = self.rings.next(self.own, self.ring_maps * self.map_bytes)
        start = perf_counter()
        table = np.zeros(number, MAP)
        table["row"] = [load.rows[0] for load in loads]
        maps = ring.maps[: number * self.map_bytes].reshape(number, -1)
        if self.raw:
            codes = [fill_code(reader.archive.pieces[load.piece].packing) for load in loads]
            table["fill"] = [fill for fill, _ in codes]
            table["filled"] = [not none for _, none in codes]
            missing = reader.inflate_together(loads, maps)
        else:
            missing = []
            keys = maps.view(self.means.keys.dtype)
            for i, load in enumerate(loads):
                reader.load(Load(load.piece, (0,)), self.block, keys[i : i + 1])
        gone = table["row"][missing]
        table["row"][missing] = -1
        ring.write_table(table)
        filled_s = perf_counter() - start
        with self.gpu.use():
            for row in gone[gone >= 0].tolist():
                self.gpu.clear(self.keys[row], self.unpacking)
            self.rings.send(ring, number * self.map_bytes, self.copying, filled_s)
            self.unpacking.wait_event(ring.copied)
            self._unpack(ring, number)
            ring.free.record(self.unpacking)
        self.means.have_read(number)

    def _unpack(self, ring: Ring, number: int) -> None:
        cells = np.int32(self.job.cells)
        stride = np.int64(self.job.cells)
        if self.raw:
            grid = np.int32(self.block.runs.grid_cells)
            self.rows_kernels["unpack_maps"](
                self.unpacking, blocks_of(int(grid), _THREADS), _THREADS,
                (ring.maps_there, np.int32(number), grid, self.places, ring.table_there, self.keys,
                 stride, self.seen),
            )  # fmt: skip
        else:
            map_stride = np.int64(self.map_bytes // self.means.keys.dtype.itemsize)
            self.rows_kernels["place_maps"](
                self.unpacking, blocks_of(int(cells), _THREADS), _THREADS,
                (ring.maps_there, map_stride, np.int32(number), cells, ring.table_there, self.keys,
                 stride),
            )  # fmt: skip

    def _load_part(self, load: Load, new: dict[int, int], memory: np.ndarray) -> None:
        rows = tuple(new[row] if row >= 0 else -1 for row in load.rows)
        self.means.reader.load(Load(load.piece, rows), self.block, memory)
        self.means.have_read(1)

    def _upload_assembled(self, batch: Batch) -> None:
        memory = self.parts.popleft()
        for row, place in _rows_of(batch).items():
            self.gpu.upload(self.keys[row], memory[place, : self.job.cells], self.unpacking)

    def _assembly(self) -> deque[np.ndarray]:
        """Where pieces are not whole maps, (row, cell) memory for a batch's new rows, twice."""
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
        if self.raw:
            self.gpu.download(self.seen_here, self.seen, self.fetching)

    def _compile(self) -> None:
        """Kernels of the device and of the smoothing, while the first pieces are read."""
        start = perf_counter()
        with self._said(), self.gpu.use():
            self.windows = GpuWindows(self.gpu, self.job)
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


def _places(block: Block) -> np.ndarray:
    """(cell of the grid,) int32: where in a row it is kept, -1 for nowhere."""
    places = np.full(block.runs.grid_cells, -1, np.int32)
    for start, length, place in block.runs.table.tolist():
        places[start : start + length] = np.arange(place, place + length)
    return places


def _rows_of(batch: Batch) -> dict[int, int]:
    """The key rows that a batch's pieces fill, and where each is assembled."""
    rows = sorted({row for load in batch.loads for row in load.rows if row >= 0})
    return {row: place for place, row in enumerate(rows)}
