"""The fast path: a chunk's bytes read, inflated and turned into keys by one thread at a time.

Inflating happens outside the HDF5 lock with libdeflate, straight from the file's bytes; the byte
shuffle is undone in the same pass that makes the keys. What is not a plain chunk goes through
`fetch` and a library, with the same result.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, cast

import deflate
import numpy as np

from ..keys import AFFINE16, FLOAT32, FLOAT64, Keys, NotCodes
from . import bulk
from .badfile import BadFile, unreadable
from .decode import fill_code, keep_runs, shuffled_int16_to_keys, to_keys, unshuffle
from .fetch import fetch
from .model import Archive, ByteRange, Piece, Spans
from .plan import Block, Load
from .sea import SAMPLE_DAYS, Runs, ValueOnLand, all_cells, runs_of, whole_maps

_LINE = 64


class _Scratch(threading.local):
    """A thread's memory, used for chunk after chunk: fresh pages cost more than the work on them.

    Measured, ms a file of 1 million int16 values on their way to 32-bit keys: 1.3 instead of 3.4,
    and 2.1 instead of 2.7 for the inflation before.
    """

    def __init__(self) -> None:
        self._memory: dict[str, np.ndarray] = {}

    def take(self, use: str, count: int, dtype: np.dtype | type = np.uint8) -> np.ndarray:
        """(count,) of a dtype, on a cache line; what was taken before for the same use is lost."""
        nbytes = count * np.dtype(dtype).itemsize
        memory = self._memory.get(use)
        if memory is None or memory.size < nbytes:
            raw = np.empty(nbytes + _LINE, np.uint8)
            memory = self._memory[use] = raw[-raw.ctypes.data % _LINE :]
        return memory[:nbytes].view(dtype)


_scratch = _Scratch()


@dataclass
class Reader:
    """Loads pieces of an archive into rows of a key buffer; safe from several threads.

    With `skip_bad` a piece that cannot be read is left missing and named in `skipped`.
    """

    archive: Archive
    keys: Keys
    spans: Spans
    skip_bad: bool = False
    skipped: list[str] = field(default_factory=list)

    def make_ready(self) -> None:
        """Compile what loads many pieces in one go, if that is how they are loaded."""
        if bulk.available() and self.alike(self.archive.pieces[:1]):
            bulk.make_ready()

    def load(self, load: Load, block: Block, buffer: np.ndarray) -> int:
        """Fill the rows of one piece; returns the bytes it holds decoded.

        `buffer` is (key row, padded cell); rows of -1 are read but not kept.
        """
        piece = self.archive.pieces[load.piece]
        try:
            if isinstance(piece.where, ByteRange):
                raw = self._inflate(piece.where)
                start = perf_counter()
                self._place_bytes(raw, piece, load.rows, block, buffer)
            else:
                start = perf_counter()
                values = fetch(piece.where)
                stop = perf_counter()
                self.spans("fetch", start, stop, values.nbytes)
                start = stop
                self._place_values(values, piece, load.rows, block, buffer)
        except BadFile as problem:
            if not self.skip_bad:
                raise
            self.skipped.append(f"{problem.path}: {problem.reason}")
            gone = [row for row in load.rows if row >= 0]
            if block.runs.whole:
                self._target(piece, block, buffer)[gone] = 0
            else:
                buffer[gone] = 0
            return 0
        size = math.prod(s.stop - s.start for s in piece.box) * len(load.rows)
        nbytes = size * self.archive.dtype.itemsize
        self.spans("decode", start, perf_counter(), nbytes)
        return nbytes

    def load_together(self, loads: Sequence[Load], block: Block, buffer: np.ndarray) -> None:
        """As `load` for several pieces, in one go without the interpreter lock if they allow it."""
        pieces = [self.archive.pieces[load.piece] for load in loads]
        if not (bulk.available() and self.alike(pieces)):
            for load in loads:
                self.load(load, block, buffer)
            return
        wheres = [piece.where for piece in pieces]
        top, low, high = self._overlap(pieces[0], block)
        inner = math.prod((self.archive.grid.shape or (1,))[1:])
        fills, nones = zip(*(fill_code(piece.packing) for piece in pieces), strict=True)
        keys = bulk.KeyRows(
            np.array(fills, np.uint16),
            np.array(nones),
            ((low - top) * inner, (high - top) * inner),
            (block.runs if not block.runs.whole else all_cells((high - low) * inner)).table,
            buffer,
            np.array([load.rows[0] for load in loads], np.int64),
            (low - block.rows.start) * inner,
        )
        raw = _scratch.take("raw", self.archive.grid.cells * 2).reshape(1, -1)
        maps = bulk.Maps(raw, {})
        bulk.read_maps(cast(list[ByteRange], wheres), maps, self.spans, keys)
        for i in self._missing(maps):
            if loads[i].rows[0] >= 0:
                buffer[loads[i].rows[0]] = 0
        if keys.odd & bulk.STRAY:
            raise ValueOnLand
        if keys.odd & bulk.LOST:
            raise NotCodes

    def inflate_together(self, loads: Sequence[Load], raw: np.ndarray) -> list[int]:
        """The chunks of `alike` pieces as stored to uint8 (map, byte); numbers of those missing."""
        wheres = cast(list[ByteRange], [self.archive.pieces[load.piece].where for load in loads])
        maps = bulk.Maps(raw[: len(loads)], {})
        if bulk.available():
            bulk.read_maps(wheres, maps, self.spans)
        else:
            for i, where in enumerate(wheres):
                try:
                    maps.raw[i] = self._inflate(where)
                except BadFile as problem:
                    maps.problems[i] = problem
        return self._missing(maps)

    def alike(self, pieces: Sequence[Piece]) -> bool:
        """Whether all are whole maps of shuffled 16-bit codes, stored alike: for the above."""
        return self._stored_alike(pieces) and all(map(self._direct, pieces))

    def floats_alike(self, pieces: Sequence[Piece]) -> bool:
        """Whether all are whole maps of floats that keys are made of bit by bit, stored alike."""
        return self._stored_alike(pieces) and all(map(self._float, pieces))

    def _stored_alike(self, pieces: Sequence[Piece]) -> bool:
        first, stored = pieces[0], pieces[0].where
        return isinstance(stored, ByteRange) and all(
            isinstance(piece.where, ByteRange)
            and piece.box == first.box
            and piece.where[3:] == stored[3:]
            and piece.where.shape == (1, *self.archive.grid.shape)
            for piece in pieces
        )

    def _missing(self, maps: bulk.Maps) -> list[int]:
        """Numbers of maps that could not be read; raises unless they may be skipped."""
        for problem in maps.problems.values():
            if not self.skip_bad:
                raise problem
            self.skipped.append(f"{problem.path}: {problem.reason}")
        return list(maps.problems)

    def _direct(self, piece: Piece) -> bool:
        """Whether codes become keys in one pass from shuffled bytes."""
        where = piece.where
        assert isinstance(where, ByteRange)
        return (
            where.shuffle
            and np.dtype(where.dtype) == np.int16
            and tuple(where.shape[2:]) == self.archive.grid.shape[1:]
            and self.keys.kind == AFFINE16
            and (piece.packing.scale, piece.packing.offset) == (self.keys.scale, self.keys.offset)
            and len(piece.packing.missing) <= 1
        )

    def _float(self, piece: Piece) -> bool:
        """Whether the bytes are floats of the keys' size as they are, with one missing at most."""
        where = piece.where
        assert isinstance(where, ByteRange)
        dtype = np.dtype(where.dtype)
        return (
            not where.shuffle
            and self.keys.kind in (FLOAT32, FLOAT64)
            and dtype == np.dtype(f"f{self.keys.bits // 8}")
            and not piece.packing.packed
            and sum(not np.isnan(m) for m in piece.packing.missing) <= 1
        )

    def sea(self, tile: int, run: Callable[..., list[Any]]) -> Runs:
        """The cells worth keeping: all, or where every piece is a map those with values.

        tile  cells that are kept or left out together
        run   as device.cpu.Crew.run: a task for every item, on threads
        """
        cells = self.archive.grid.cells
        if not whole_maps(self.archive):
            return all_cells(cells)
        picks = np.linspace(0, len(self.archive.pieces) - 1, SAMPLE_DAYS).astype(int)
        found = run(self._valid, [(self.archive.pieces[pick],) for pick in np.unique(picks)])
        return runs_of(np.logical_or.reduce(found), tile)

    def _valid(self, piece: Piece) -> np.ndarray:
        """Which cells of a map have a value; of one that cannot be read, none."""
        shape, cells = self.archive.grid.shape or (1,), self.archive.grid.cells
        whole = Block(slice(0, shape[0]), all_cells(cells), cells, 0, 1, 0, ())
        row = _scratch.take("row", cells, self.keys.dtype).reshape(1, cells)
        row[:] = 0
        with suppress(BadFile):  # the run itself will meet it and say so, or skip it
            if isinstance(piece.where, ByteRange):
                self._place_bytes(self._inflate(piece.where), piece, (0,), whole, row)
            else:
                self._place_values(fetch(piece.where), piece, (0,), whole, row)
        return row[0] > 0

    def _inflate(self, where: ByteRange) -> np.ndarray:
        """The chunk's bytes as stored, still shuffled if they were; until the next in this thread.

        A copy of bytes that were not deflated would be made with the interpreter's lock held.
        """
        start = perf_counter()
        size = math.prod(where.shape) * np.dtype(where.dtype).itemsize
        try:
            stored, length = _scratch.take("compressed", where.nbytes), 0
            data = stored.data
            with open(where.path, "rb", buffering=0) as file:
                file.seek(where.offset)
                while length < where.nbytes and (more := file.readinto(data[length:])):
                    length += more
        except OSError as problem:
            raise unreadable(where.path, problem.errno or 0) from problem
        stop = perf_counter()
        self.spans("read", start, stop, length)
        if length < where.nbytes:
            raise BadFile(where.path, "it ends before its data does")
        if where.deflate:
            try:
                stored = np.frombuffer(deflate.zlib_decompress(data, size), np.uint8)
            except deflate.DeflateError as problem:
                raise BadFile(where.path, "its compressed data is damaged") from problem
            self.spans("inflate", stop, perf_counter(), size)
        if stored.size != size:
            raise BadFile(where.path, f"a chunk holds {stored.size} bytes instead of {size}")
        return stored

    def _place_bytes(
        self, raw: np.ndarray, piece: Piece, rows: tuple[int, ...], block: Block, buffer: np.ndarray
    ) -> None:
        where = piece.where
        assert isinstance(where, ByteRange)
        if not self._direct(piece):
            self._place_values(_as_stored(raw, where), piece, rows, block, buffer)
            return
        times, shape = where.shape[0], self.archive.grid.shape or (1,)
        planes = raw.reshape(2, times, -1)
        inner = math.prod(shape[1:])
        top, low, high = self._overlap(piece, block)
        runs = block.runs if not block.runs.whole else all_cells((high - low) * inner)
        start = (low - block.rows.start) * inner
        for time, row in enumerate(rows):
            if row >= 0:
                source = planes[:, time, (low - top) * inner : (high - top) * inner]
                out = buffer[row, start : start + runs.cells]
                shuffled_int16_to_keys(source, piece.packing, runs.table, out)

    def _place_values(
        self,
        values: np.ndarray,
        piece: Piece,
        rows: tuple[int, ...],
        block: Block,
        buffer: np.ndarray,
    ) -> None:
        """Values (time, *cell dims), perhaps larger than the piece's box, to its rows."""
        top, low, high = self._overlap(piece, block)
        box = (slice(low - top, high - top), *(slice(0, s.stop - s.start) for s in piece.box[1:]))
        if not piece.box:
            values = values.reshape(-1, 1)
        if not block.runs.whole:
            keys = _scratch.take("keys", block.runs.grid_cells, self.keys.dtype)
            to_keys(values[0][box].reshape(-1), piece.packing, self.keys, keys)
            keep_runs(keys, block.runs.table, buffer[rows[0]])
            return
        target = self._target(piece, block, buffer)
        if len(rows) == 1 and rows[0] >= 0 and target[rows[0]].flags.c_contiguous:
            source = np.ascontiguousarray(values[0][box]).reshape(-1)
            to_keys(source, piece.packing, self.keys, target[rows[0]].reshape(-1))
            return
        source = np.ascontiguousarray(values[(slice(0, len(rows)), *box)])
        keys = _scratch.take("keys", source.size, self.keys.dtype)
        to_keys(source.reshape(-1), piece.packing, self.keys, keys)
        places = np.array(rows)
        target[places[places >= 0]] = keys.reshape(source.shape)[places >= 0]

    def _target(self, piece: Piece, block: Block, buffer: np.ndarray) -> np.ndarray:
        """The view (key row, *cells) that a piece's box takes of the buffer within the block."""
        shape = self.archive.grid.shape or (1,)
        grid = buffer[:, : block.cells].reshape(len(buffer), -1, *shape[1:])
        _, low, high = self._overlap(piece, block)
        start = block.rows.start
        return grid[(slice(None), slice(low - start, high - start), *piece.box[1:])]

    @staticmethod
    def _overlap(piece: Piece, block: Block) -> tuple[int, int, int]:
        """First row of the piece, and the first and last that it shares with the block."""
        box = piece.box[0] if piece.box else slice(0, 1)
        return box.start, max(box.start, block.rows.start), min(box.stop, block.rows.stop)


def _as_stored(raw: np.ndarray, where: ByteRange) -> np.ndarray:
    """A chunk's bytes as its values, the byte shuffle undone; until the next in this thread."""
    dtype = np.dtype(where.dtype)
    if where.shuffle and dtype.itemsize > 1:
        stored = _scratch.take("stored", raw.size // dtype.itemsize, dtype)
        unshuffle(raw.reshape(dtype.itemsize, -1), stored)
        raw = stored
    return raw.view(dtype).reshape(where.shape)
