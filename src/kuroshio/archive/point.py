"""One cell's daily series out of an archive, for a picture; the whole archive is read for it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from .fetch import close_files, fetch
from .model import Archive, Piece


def series_at(
    archive: Archive,
    cell: tuple[int, ...],
    *,
    threads: int = 2,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Days (int64, as `archive.days`) and unpacked values (float64, NaN missing) of one cell.

    cell  index along every cell dimension
    """
    pieces = [
        piece
        for piece in archive.pieces
        if all(s.start <= at < s.stop for s, at in zip(piece.box, cell, strict=True))
    ]
    values = np.full(archive.days.size, np.nan)
    try:
        with ThreadPoolExecutor(threads) as pool:
            found = pool.map(lambda piece: _values(piece, cell), pieces)
            for done, (piece, series) in enumerate(zip(pieces, found, strict=True), 1):
                for step, value in zip(piece.steps, series, strict=True):
                    if step >= 0:
                        values[step] = value
                if progress:
                    progress(done, len(pieces))
    finally:
        close_files()
    return archive.days, values


def _values(piece: Piece, cell: tuple[int, ...]) -> np.ndarray:
    inside = tuple(at - s.start for at, s in zip(cell, piece.box, strict=True))
    # A stored chunk may hang over the end of the series.
    stored = fetch(piece.where)[(slice(0, len(piece.steps)), *inside)]
    packing = piece.packing
    value = stored.astype(np.float64)
    value[np.isin(value, packing.missing)] = np.nan
    return value * packing.scale + packing.offset
