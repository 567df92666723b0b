"""A wave: maps that devices inflate together, and how their compressed chunks lie there."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from ..archive import bulk
from ..archive.decode import fill_bits, fill_code
from ..archive.model import ByteRange, Piece
from ..kernels.gpu.windows import MAP

_ALIGNED = 16  # bytes: streams begin at multiples of it, and chunks just before
_BEFORE = _ALIGNED - bulk.STREAM_HEAD


def rooms_of(wheres: Sequence[ByteRange]) -> np.ndarray:
    """(chunk,) int64: bytes that chunks take among others."""
    chunk_bytes = np.array([where.nbytes for where in wheres], np.int64)
    return -(-(_BEFORE + chunk_bytes) // _ALIGNED) * _ALIGNED


def wheres_of(pieces: Sequence[Piece]) -> list[ByteRange]:
    return cast(list[ByteRange], [piece.where for piece in pieces])


def table_of(pieces: Sequence[Piece], rows: Sequence[int]) -> np.ndarray:
    """(map,) MAP: what a device must know of maps that go to rows of keys as they are stored."""
    table = np.zeros(len(pieces), MAP)
    table["row"] = rows
    dtype = np.dtype(wheres_of(pieces)[0].dtype)
    codes = [
        fill_bits(piece.packing, dtype) if dtype.kind == "f" else fill_code(piece.packing)
        for piece in pieces
    ]
    table["fill"] = [fill for fill, _ in codes]
    table["filled"] = [not none for _, none in codes]
    return table


@dataclass
class Wave:
    """Maps in the order of their batches.

    place      where on the devices: see gpu_inflation
    edges      (map + 1,) int64: where each chunk's room begins, and the last ends
    nbytes     (map,) uint64: of the raw streams
    checksums  (map,) uint32: what they end with, known once they have been read
    table      (map,) MAP: what becomes of each
    """

    pieces: Sequence[Piece]
    place: int
    edges: np.ndarray
    nbytes: np.ndarray
    checksums: np.ndarray
    table: np.ndarray
    not_carried: int = 0  # parts of it
    accounted: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def of(cls, pieces: Sequence[Piece], rows: Sequence[int], place: int) -> Wave:
        """Of pieces that are whole maps, which go to rows of keys."""
        wheres = wheres_of(pieces)
        edges = np.zeros(len(pieces) + 1, np.int64)
        np.cumsum(rooms_of(wheres), out=edges[1:])
        frame = bulk.STREAM_HEAD + bulk.STREAM_TAIL
        nbytes = np.array([where.nbytes - frame for where in wheres]).astype(np.uint64)
        checksums = np.zeros(len(pieces), np.uint32)
        return cls(pieces, place, edges, nbytes, checksums, table_of(pieces, rows))

    def __len__(self) -> int:
        return len(self.pieces)

    @property
    def chunks(self) -> np.ndarray:
        """(map,) int64: where each chunk begins."""
        return self.edges[:-1] + _BEFORE

    @property
    def streams(self) -> np.ndarray:
        """(map,) uint64: where each raw stream begins."""
        return (self.edges[:-1] + _ALIGNED).astype(np.uint64)

    def parts(self, nbytes: int) -> list[slice]:
        """Maps in stretches whose chunks take no more than so many bytes."""
        firsts = [0]
        for i in range(1, len(self)):
            if self.edges[i + 1] - self.edges[firsts[-1]] > nbytes:
                firsts.append(i)
        return [slice(a, b) for a, b in zip(firsts, [*firsts[1:], len(self)], strict=True)]
