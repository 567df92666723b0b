"""Facts of a file, or an array object -> the pieces that a reader fetches."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import product
from typing import Any

from .facts import FileFacts, Form
from .layout import Layout
from .model import ArraySlice, ByteRange, FileSlice, Packing, Piece


class Cut:
    """How files of one form are cut into pieces: worked out once for all of them."""

    def __init__(self, form: Form, layout: Layout) -> None:
        self.layout, self._start, store = layout, form.storage.start, form.storage
        time, cells = layout.time_axis, layout.cell_axes
        kept = cells if time is None else (time, *cells)
        self._chunk = tuple(store.chunk[i] for i in kept)
        raw_shape = self._chunk if time is not None else (1, *self._chunk)
        self._stored = (raw_shape, layout.dtype.str, store.deflate, store.shuffle)
        starts = [tuple(place[i] for i in kept) for place in store.places]
        self._plain = [(self._times(s), _box(layout, s, self._chunk)) for s in starts]
        size = tuple(form.shape[i] for i in kept)
        self._others: list[tuple[int, ...]] = []
        if len(starts) < _count(size, self._chunk):
            plain = set(starts)
            self._others = [s for s in _starts(size, self._chunk) if s not in plain]
        self._alone = len(self._plain) == 1 and not self._others

    def pieces(self, facts: FileFacts, steps: Sequence[int]) -> list[Piece]:
        """The pieces of one file.

        steps  archive step of each time step of the file, -1 for those not wanted; a piece without
               any wanted step is left out
        """
        path, packing, stored = facts.path, facts.packing, self._stored
        if self._alone and len(steps) == 1:  # tens of thousands of daily files, all in all
            (_, box), ((offset, nbytes),) = self._plain[0], facts.ranges
            where = ByteRange(path, offset, nbytes, *stored)
            return [Piece(tuple(steps), box, packing, where)] if steps[0] >= 0 else []
        found = []
        for (times, box), (offset, nbytes) in zip(self._plain, facts.ranges, strict=True):
            mine = tuple(steps[times])
            if max(mine, default=-1) >= 0:
                found.append(Piece(mine, box, packing, ByteRange(path, offset, nbytes, *stored)))
        for start in self._others:
            mine = tuple(steps[self._times(start)])
            if max(mine, default=-1) >= 0:
                box = _box(self.layout, start, self._chunk)
                found.append(Piece(mine, box, packing, self._other(path, start, mine, box)))
        return found

    def _other(
        self, path: str, start: tuple[int, ...], steps: Sequence[int], box: tuple[slice, ...]
    ) -> ByteRange | FileSlice:
        """Where a piece lies that is no chunk of plain bytes."""
        layout = self.layout
        if self._start < 0:
            index = _index(layout, start, steps, box)
            return FileSlice(path, layout.variable, index, _time_axis(layout))
        step_bytes = layout.grid.cells * layout.dtype.itemsize
        offset = self._start + (0 if layout.time_axis is None else start[0]) * step_bytes
        shape = (len(steps), *layout.grid.shape)
        return ByteRange(path, offset, len(steps) * step_bytes, shape, layout.dtype.str)

    def _times(self, start: tuple[int, ...]) -> slice:
        """The time steps of a chunk."""
        return _times(self.layout, start, self._chunk)


def array_pieces(
    array: Any, layout: Layout, packing: Packing, chunk: Sequence[int], steps: Sequence[int]
) -> Iterator[Piece]:
    """The pieces of an array object along a grid of chunks over its own dimensions."""
    time, cells = layout.time_axis, layout.cell_axes
    kept = cells if time is None else (time, *cells)
    unit = tuple(chunk[i] for i in kept)
    size = layout.grid.shape if time is None else (len(steps), *layout.grid.shape)
    for start in _starts(size, unit):
        mine = tuple(steps[_times(layout, start, unit)])
        if max(mine, default=-1) >= 0:
            box = _box(layout, start, unit)
            where = ArraySlice(array, _index(layout, start, mine, box), _time_axis(layout))
            yield Piece(mine, box, packing, where)


def _count(size: Sequence[int], chunk: Sequence[int]) -> int:
    return math.prod(-(-n // c) for n, c in zip(size, chunk, strict=True))


def _starts(size: Sequence[int], chunk: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The first index in each dimension of every chunk."""
    return product(*(range(0, n, c) for n, c in zip(size, chunk, strict=True)))


def _times(layout: Layout, start: Sequence[int], chunk: Sequence[int]) -> slice:
    """The time steps of a chunk, not clipped to the array."""
    return slice(None) if layout.time_axis is None else slice(start[0], start[0] + chunk[0])


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
