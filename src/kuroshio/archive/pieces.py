"""Facts of a file, or an array object -> the pieces that a reader fetches."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import product
from typing import Any

from .facts import FileFacts
from .layout import Layout
from .model import ArraySlice, ByteRange, FileSlice, Packing, Piece


def file_pieces(facts: FileFacts, layout: Layout, steps: Sequence[int]) -> Iterator[Piece]:
    """The pieces of one file.

    steps  archive step of each time step of the file, -1 for those not wanted; a piece without any
           wanted step is left out
    """
    store, dtype = facts.storage, layout.dtype.str
    time, cells = layout.time_axis, layout.cell_axes
    kept = cells if time is None else (time, *cells)
    chunk = tuple(store.chunk[i] for i in kept)
    raw_shape = chunk if time is not None else (1, *chunk)
    seen = set()
    for offset, nbytes, *first in store.table.tolist():
        start = tuple(first[i] for i in kept)
        seen.add(start)
        mine = _steps(steps, time, start, chunk)
        if mine is not None:
            there = ByteRange(
                facts.path, offset, nbytes, raw_shape, dtype, store.deflate, store.shuffle
            )
            yield Piece(mine, _box(layout, start, chunk), facts.packing, there)
    size = tuple(facts.shape[i] for i in kept)
    if len(seen) == _count(size, chunk):
        return
    step_bytes = layout.grid.cells * layout.dtype.itemsize
    for start in product(*(range(0, n, c) for n, c in zip(size, chunk, strict=True))):
        mine = None if start in seen else _steps(steps, time, start, chunk)
        if mine is None:
            continue
        box = _box(layout, start, chunk)
        where: ByteRange | FileSlice
        if store.start >= 0:
            shape = (len(mine), *layout.grid.shape)
            offset = store.start + (0 if time is None else start[0]) * step_bytes
            where = ByteRange(facts.path, offset, len(mine) * step_bytes, shape, dtype)
        else:
            where = FileSlice(
                facts.path, layout.variable, _index(layout, start, mine, box), _time_axis(layout)
            )
        yield Piece(mine, box, facts.packing, where)


def array_pieces(
    array: Any, layout: Layout, packing: Packing, chunk: Sequence[int], steps: Sequence[int]
) -> Iterator[Piece]:
    """The pieces of an array object along a grid of chunks over its own dimensions."""
    time, cells = layout.time_axis, layout.cell_axes
    kept = cells if time is None else (time, *cells)
    unit = tuple(chunk[i] for i in kept)
    size = layout.grid.shape if time is None else (len(steps), *layout.grid.shape)
    for start in product(*(range(0, n, c) for n, c in zip(size, unit, strict=True))):
        mine = _steps(steps, time, start, unit)
        if mine is not None:
            box = _box(layout, start, unit)
            where = ArraySlice(array, _index(layout, start, mine, box), _time_axis(layout))
            yield Piece(mine, box, packing, where)


def _count(size: Sequence[int], chunk: Sequence[int]) -> int:
    return math.prod(-(-n // c) for n, c in zip(size, chunk, strict=True))


def _steps(
    steps: Sequence[int], time: int | None, start: Sequence[int], chunk: Sequence[int]
) -> tuple[int, ...] | None:
    """Archive steps of a chunk, clipped to the array; None where none is wanted."""
    mine = tuple(steps) if time is None else tuple(steps[start[0] : start[0] + chunk[0]])
    return mine if any(step >= 0 for step in mine) else None


def _box(layout: Layout, start: tuple[int, ...], chunk: tuple[int, ...]) -> tuple[slice, ...]:
    skip = 0 if layout.time_axis is None else 1
    return _clipped(start[skip:], chunk[skip:], layout.grid.shape)


@lru_cache(maxsize=4096)  # tens of thousands of files have the same few chunks
def _clipped(
    start: tuple[int, ...], chunk: tuple[int, ...], shape: tuple[int, ...]
) -> tuple[slice, ...]:
    return tuple(
        slice(first, min(first + width, n))
        for first, width, n in zip(start, chunk, shape, strict=True)
    )


def _index(
    layout: Layout, start: Sequence[int], steps: Sequence[int], box: Sequence[slice]
) -> tuple[slice | int, ...]:
    """The hyperslab over the variable's own dimensions, dropped ones as integers."""
    cells = iter(box)
    return tuple(
        slice(start[0], start[0] + len(steps))
        if i == layout.time_axis
        else p
        if p >= 0
        else next(cells)
        for i, p in enumerate(layout.picked)
    )


def _time_axis(layout: Layout) -> int | None:
    """Where time stands once the dropped dimensions are gone."""
    if layout.time_axis is None:
        return None
    return sum(p < 0 for p in layout.picked[: layout.time_axis])
