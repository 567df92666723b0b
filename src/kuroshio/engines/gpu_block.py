"""A block on GPUs: keys and kernels there, smoothing and output on the host as for the processor.

Where every piece is a map of one day, each thread of the crew fills pinned memory of its own (its
*rings*: see rings.py), which is copied to the devices as soon as it is full. Shuffled 16-bit codes
and plain floats go as they come out of the file and become keys there; other maps go as keys.
Pieces that are parts of maps are put together in host memory first, a batch's at a time. Copies,
kernels and downloads go on streams of their own: while a batch is computed the next is read and
copied, and the one before is smoothed and written.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from threading import local
from time import perf_counter
from typing import cast

import numpy as np

from ..archive import bulk
from ..archive.model import ByteRange
from ..archive.plan import Batch, Block, Load
from ..archive.sea import ValueOnLand, whole_maps
from ..device.cpu import Work
from ..device.gpu import Gpu
from ..device.llvm import tile_cells
from ..kernels import smooth
from ..kernels.gpu.windows import MAP, Job
from ..keys import NotCodes
from ..request import statistics
from .gpu_share import GpuShare, Part, Stretch, places_of, stretches
from .means import Means, together
from .rings import Clock, Lane, Ring, Rings, maps_of_ring
from .wave import table_of
from .waves import Waves


class GpuBlock:
    """A block's shares, one for each device, and the steps of a batch on all of them.

    results (statistic, row, cell) are in pinned memory, seen as (tile, statistic, row, cell of the
    tile).
    """

    ahead = 1

    def __init__(
        self, means: Means, block: Block, gpus: Sequence[Gpu], clocks: Sequence[Clock],
        rings: Rings, inflating_bytes: int,
    ) -> None:  # fmt: skip
        """inflating_bytes: of each device for maps that it inflates, 0: the host inflates all."""
        self.means, self.block, self.rings = means, block, rings
        self.crew, self.spans = means.crew, means.spans
        archive, keys = means.needs.archive, means.keys
        cells = block.tiles * tile_cells()
        job = _job(means, block, cells)
        # Pinning takes long, and nothing is fetched before the first batch has been computed.
        self.pinning = self.crew.executor.submit(
            _pinned_results, gpus[0], job.statistics, block.result_rows, cells
        )

        self.maps = whole_maps(archive)
        # As they are stored, where the block is the whole grid and no map would be sent twice.
        whole = self.maps and block.runs.grid_cells == archive.grid.cells
        codes = whole and means.reader.alike(archive.pieces)
        self.raw = codes or (whole and means.reader.floats_alike(archive.pieces))
        cells_of_map = archive.grid.cells if self.raw else block.stride_cells
        self.map_bytes = cells_of_map * keys.dtype.itemsize
        planes = 2 if codes else 1
        self.ring_maps = maps_of_ring(self.map_bytes, rings.budget_bytes, self.crew.threads)
        rings.maps = self.ring_maps
        places = places_of(block) if self.raw else None
        cut = stretches(block, cells, len(gpus))
        if not self.maps:  # no rings: parts of maps are put together in memory of their own
            rings.pinned.close()
        self.seen = rings.pinned.take((len(cut),), np.uint32)
        self.shares: list[GpuShare] = []
        for gpu, clock, stretch in zip(gpus, clocks, cut, strict=False):  # few cells, fewer devices
            part = self._part(stretch, planes, alone=len(cut) == 1)
            self.shares.append(
                GpuShare(gpu, clock, job, stretch, part, places, rings.most * self.ring_maps)
            )
        self.waves: Waves | None = None
        self.started = 0  # batches
        if inflating_bytes and self._inflatable():
            self.waves = Waves(
                means, block.batches, self.shares, rings, self.map_bytes, job.statistics,
                inflating_bytes, self._next_ring,
            )  # fmt: skip
        self.launches: dict[str, str] = {}
        self.inflation: dict[str, float | int] | None = None
        self.own = local()  # a thread's maps in pinned memory
        self.assembled = self._assembly()  # one is filled while the other is copied
        self.parts: deque[np.ndarray] = deque()  # filled or being filled, not yet copied

    def start(self, batch: Batch, first: bool) -> list[Work]:
        compiling = [self.crew.start(self._compile, [()])] if first else []
        for share in self.shares:
            share.clear(batch.clear)
        if self.maps:
            carrying, left = self.waves.start(self.started) if self.waves else ([], batch.loads)
            self.started += 1
            groups = together(left, self.ring_maps)
            loading = self.crew.start(self._load_maps, [(some,) for some in groups])
            return [*compiling, *carrying, loading]
        new, memory = _rows_of(batch), self.assembled[0]
        self.assembled.rotate(1)
        self.parts.append(memory)
        return [
            *compiling,
            self.crew.start(self._load_part, [(load, new, memory) for load in batch.loads]),
        ]

    def launch(self, batch: Batch, first: bool) -> None:
        if not self.maps:
            self._upload_assembled(batch)
        if self.waves:
            self.waves.settle(self._send_maps)
        if first:
            self.kept, self.reference = self.pinning.result()
            self.results = _by_tiles(self.kept)
        for i, share in enumerate(self.shares):
            share.launch(batch, first, self.kept, self.reference, self.seen[i : i + 1])

    def settle(self, batch: Batch) -> None:
        start = perf_counter()
        for share in self.shares:
            share.gpu.wait(share.fetched)
        self.spans("wait", start, perf_counter(), 0)
        seen = int(np.bitwise_or.reduce(self.seen)) if self.raw else 0
        if seen & bulk.STRAY:
            raise ValueOnLand
        if seen & bulk.LOST:
            raise NotCodes
        for share in self.shares:
            begun, computed, fetched = share.times()
            keys, cells = self.means.keys, share.job.cells
            self.spans(
                "device compute", begun, computed, batch.live.size * cells * keys.dtype.itemsize,
                device=share.gpu.name,
            )  # fmt: skip
            nbytes = self.kept.itemsize * len(self.kept) * batch.doys.size * cells
            self.spans("device fetch", computed, fetched, nbytes, device=share.gpu.name)

    def doubt(self) -> None:
        """A device has failed: BadFile if what it inflated may be to blame."""
        if self.waves:
            self.waves.doubt()

    def release(self) -> None:
        """Results and reference are still being read; all that is on the devices is not."""
        if self.waves:
            self.waves.close()
            self.inflation = self.waves.division.report()
            self.waves = None
        for share in self.shares:
            self.launches.update(share.launches())
            share.close()
        self.shares = []
        self.own = local()
        self.rings.give_back()
        self.assembled.clear()
        self.parts.clear()

    # -- loading --------------------------------------------------------------------------------

    def _load_maps(self, loads: Sequence[Load]) -> None:
        filled_s = self._send_maps(loads)
        if self.waves:
            self.waves.division.host_took(len(loads), filled_s)
        self.means.have_read(len(loads))

    def _send_maps(self, loads: Sequence[Load]) -> float:
        """Maps into the next of this thread's rings, and from there to rows on the devices.

        Returns the seconds that it took to fill the ring.
        """
        reader, number = self.means.reader, len(loads)
        ring = self._next_ring()
        start = perf_counter()
        rows = [load.rows[0] for load in loads]
        maps = ring.maps[: number * self.map_bytes].reshape(number, -1)
        if self.raw:
            table = table_of([reader.archive.pieces[load.piece] for load in loads], rows)
            missing = reader.inflate_together(loads, maps)
        else:
            table, missing = np.zeros(number, MAP), []
            table["row"] = rows
            keys = maps.view(self.means.keys.dtype)
            for i, load in enumerate(loads):
                reader.load(Load(load.piece, (0,)), self.block, keys[i : i + 1])
        gone = table["row"][missing]
        table["row"][missing] = -1
        ring.write_table(table)
        filled_s = perf_counter() - start
        self.rings.sent(ring, filled_s)
        for share, lane in zip(self.shares, ring.lanes, strict=True):
            share.clear(gone[gone >= 0].tolist())
            share.send(ring, lane, number)
        return filled_s

    def _next_ring(self) -> Ring:
        return self.rings.next(self.own, self.ring_maps * self.map_bytes, self._lanes)

    def _inflatable(self) -> bool:
        """Whether devices may inflate: see waves.py for what they cannot do."""
        reader = self.means.reader
        if not (self.raw and bulk.available()) or reader.skip_bad:
            return False
        return cast(ByteRange, reader.archive.pieces[0].where).deflate

    def _lanes(self) -> list[Lane]:
        return [share.lane(self.ring_maps) for share in self.shares]

    def _part(self, stretch: Stretch, planes: int, alone: bool) -> Part:
        row_bytes, size = self.map_bytes // planes, self.means.keys.dtype.itemsize // planes
        mine = stretch.grid if self.raw else stretch.cells
        whole = slice(0, row_bytes)
        return Part(
            planes, row_bytes, whole if alone else slice(mine.start * size, mine.stop * size)
        )

    def _load_part(self, load: Load, new: dict[int, int], memory: np.ndarray) -> None:
        rows = tuple(new[row] if row >= 0 else -1 for row in load.rows)
        self.means.reader.load(Load(load.piece, rows), self.block, memory)
        self.means.have_read(1)

    def _upload_assembled(self, batch: Batch) -> None:
        memory = self.parts.popleft()
        for row, place in _rows_of(batch).items():
            for share in self.shares:
                share.upload_row(row, memory[place])

    def _assembly(self) -> deque[np.ndarray]:
        """Where pieces are not whole maps, (row, cell) memory for a batch's new rows, twice."""
        if self.maps:
            return deque()
        rows = max(len(_rows_of(batch)) for batch in self.block.batches)
        shape = (rows, self.block.stride_cells)
        return deque(self.rings.assembly(shape, self.means.keys.dtype) for _ in range(2))

    # -- compiling ------------------------------------------------------------------------------

    def _compile(self) -> None:
        """Kernels of the devices and of the smoothing, while the first pieces are read."""
        with self.means.compiling():
            for share in self.shares:
                share.compile()
            results = _by_tiles(np.zeros((1, 1, tile_cells()), np.float32))
            smooth.make_ready(results, self.block.runs.table)


def _job(means: Means, block: Block, cells: int) -> Job:
    request = means.needs.request
    words, years = means.needs.windows.steps.shape[1:]
    least = {int(n) for batch in block.batches for n in batch.least}
    job = Job(
        keys=means.keys,
        quantiles=tuple(p / 100.0 for p in request.percentiles),
        extras=tuple(request.extras),
        words=words,
        years=years,
        step=means.needs.windows.words_per_offset,
        rows=block.key_rows,
        cells=cells,
        days=max(batch.doys.size for batch in block.batches),
        fewest=least.pop() if len(least) == 1 else 0,
        by_moments=request.method == "moments",
    )
    assert job.statistics == len(statistics(request))
    return job


def _pinned_results(
    gpu: Gpu, statistics: int, rows: int, cells: int
) -> tuple[np.ndarray, np.ndarray]:
    """(statistic, row, cell) for results, (cell,) for references, from the system at once."""
    memory = gpu.pinned(((statistics * rows + 1) * cells,), np.float32)
    return memory[:-cells].reshape(statistics, rows, cells), memory[-cells:]


def _by_tiles(kept: np.ndarray) -> np.ndarray:
    """(statistic, row, cell) seen as (tile, statistic, row, cell of the tile)."""
    tile = tile_cells()
    return np.lib.stride_tricks.as_strided(
        kept,
        (kept.shape[2] // tile, *kept.shape[:2], tile),
        (tile * kept.itemsize, *kept.strides[:2], kept.itemsize),
    )


def _rows_of(batch: Batch) -> dict[int, int]:
    """The key rows that a batch's pieces fill, and where each is assembled."""
    rows = sorted({row for load in batch.loads for row in load.rows if row >= 0})
    return {row: place for place, row in enumerate(rows)}
