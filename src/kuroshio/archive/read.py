"""The fast path: a chunk's bytes read, inflated and turned into keys by one thread at a time.

Inflating happens outside the HDF5 lock with libdeflate, straight from the file's bytes; the byte
shuffle is undone in the same pass that makes the keys. What is not a plain chunk goes through
`fetch` and a library, with the same result.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter

import deflate
import numpy as np

from ..keys import AFFINE16, Keys
from .badfile import BadFile
from .decode import shuffled_int16_to_keys, to_keys, unshuffle
from .fetch import fetch
from .model import Archive, ByteRange, Piece
from .plan import Block, Load

Spans = Callable[[str, float, float, int], None]  # (stage, start_s, stop_s, bytes)


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
            for row in load.rows:
                if row >= 0:
                    self._target(piece, block, buffer, row)[...] = 0
            return 0
        size = math.prod(s.stop - s.start for s in piece.box) * len(load.rows)
        nbytes = size * self.archive.dtype.itemsize
        self.spans("decode", start, perf_counter(), nbytes)
        return nbytes

    def _inflate(self, where: ByteRange) -> np.ndarray:
        """The chunk's bytes as stored, still shuffled if they were."""
        start = perf_counter()
        size = math.prod(where.shape) * np.dtype(where.dtype).itemsize
        try:
            handle = os.open(where.path, os.O_RDONLY)
            try:
                data = os.pread(handle, where.nbytes, where.offset)
            finally:
                os.close(handle)
        except OSError as problem:
            raise BadFile(where.path, f"it cannot be read ({problem.strerror})") from problem
        stop = perf_counter()
        self.spans("read", start, stop, len(data))
        if len(data) < where.nbytes:
            raise BadFile(where.path, "it ends before its data does")
        if where.deflate:
            try:
                raw = deflate.zlib_decompress(data, size)
            except deflate.DeflateError as problem:
                raise BadFile(where.path, "its compressed data is damaged") from problem
            self.spans("inflate", stop, perf_counter(), size)
        else:
            raw = data
        if len(raw) != size:
            raise BadFile(where.path, f"a chunk holds {len(raw)} bytes instead of {size}")
        return np.frombuffer(raw, np.uint8)

    def _place_bytes(
        self, raw: np.ndarray, piece: Piece, rows: tuple[int, ...], block: Block, buffer: np.ndarray
    ) -> None:
        where = piece.where
        assert isinstance(where, ByteRange)
        dtype = np.dtype(where.dtype)
        times, *chunk = where.shape
        shape = self.archive.grid.shape or (1,)
        flat = tuple(chunk[1:]) == shape[1:]
        direct = (
            flat
            and where.shuffle
            and dtype == np.int16
            and self.keys.kind == AFFINE16
            and (piece.packing.scale, piece.packing.offset) == (self.keys.scale, self.keys.offset)
            and len(piece.packing.missing) <= 1
        )
        if not direct:
            values = (
                unshuffle(raw.reshape(dtype.itemsize, -1), dtype)
                if where.shuffle and dtype.itemsize > 1
                else raw.view(dtype)
            )
            self._place_values(values.reshape(where.shape), piece, rows, block, buffer)
            return
        planes = raw.reshape(2, times, -1)
        inner = math.prod(shape[1:])
        top, low, high = self._overlap(piece, block)
        for time, row in enumerate(rows):
            if row >= 0:
                source = planes[:, time, (low - top) * inner : (high - top) * inner]
                start = (low - block.rows.start) * inner
                out = buffer[row, start : start + source.shape[1]]
                shuffled_int16_to_keys(source, piece.packing, out)

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
        for time, row in enumerate(rows):
            if row < 0:
                continue
            source = np.ascontiguousarray(values[time][box])
            target = self._target(piece, block, buffer, row)
            if target.flags.c_contiguous:
                to_keys(source.reshape(-1), piece.packing, self.keys, target.reshape(-1))
            else:
                keys = np.empty(source.size, self.keys.dtype)
                to_keys(source.reshape(-1), piece.packing, self.keys, keys)
                target[...] = keys.reshape(source.shape)

    def _target(self, piece: Piece, block: Block, buffer: np.ndarray, row: int) -> np.ndarray:
        """The view of a key row that a piece's box takes within the block."""
        shape = self.archive.grid.shape or (1,)
        grid = buffer[row, : block.cells].reshape(-1, *shape[1:])
        _, low, high = self._overlap(piece, block)
        start = block.rows.start
        return grid[(slice(low - start, high - start), *piece.box[1:])]

    @staticmethod
    def _overlap(piece: Piece, block: Block) -> tuple[int, int, int]:
        """First row of the piece, and the first and last that it shares with the block."""
        box = piece.box[0] if piece.box else slice(0, 1)
        return box.start, max(box.start, block.rows.start), min(box.stop, block.rows.stop)


def sample_values(archive: Archive, count: int = 3) -> list[np.ndarray]:
    """Stored values of a few pieces spread over the archive, to choose a kind of key by."""
    picks = np.unique(np.linspace(0, len(archive.pieces) - 1, count).astype(int))
    sample = []
    for pick in picks:
        try:
            sample.append(fetch(archive.pieces[pick].where))
        except BadFile:  # the run itself will meet it and say so, or skip it
            continue
    return sample
