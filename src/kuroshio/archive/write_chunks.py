"""The output file: values arrive as days of year of a band of rows, chunks leave compressed.

A chunk holds several days of year of a tile of cells, so that a map and a point's annual cycle both
read fast. Values that make whole chunks are compressed and stored as they are put; others are
copied into chunks under assembly, which the pool's threads store once they are complete.
Everything goes to a hidden sibling of the output, renamed at the very end: what carries the
output's name is whole.

Chunks that are missing throughout (land) are not stored: readers see the fill value.
"""

from __future__ import annotations

import contextlib
import errno
import math
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from ..errors import Refusal
from ..sizes import size_text
from . import part
from .describe import OutputVariable, Schema, storable
from .model import Spans
from .shielded import shielded
from .write_store import Encoded, Store

IN_FLIGHT_BYTES = 64 << 20  # complete chunks that wait for a thread
_FEW_VALUES = 64


@dataclass
class _Group:
    """Chunks of one variable under assembly that become complete together: a band's."""

    remaining: int  # positions that have not come
    seen: set[int] = field(default_factory=set)
    tiles: list[tuple[tuple[int, ...], tuple[slice, ...], np.ndarray]] = field(default_factory=list)


_Key = tuple[str, tuple[int, ...], int]  # variable, chunk of days and further index, first row


class OutputWriter:
    """An output under way; a context manager that finishes on success and leaves nothing on error.

    chunks   (days of year, *cells) of every chunk
    spans    called with (stage, start_s, stop_s, bytes): collect, compress, write
    """

    def __init__(
        self,
        path: Path,
        schema: Schema,
        chunks: tuple[int, ...],
        pool: Executor,
        make_store: Callable[[Path, Schema, tuple[int, ...]], Store],
        spans: Spans | None = None,
    ):
        self.path, self.schema, self.chunks = path, schema, chunks
        self.days, self.band_rows = chunks[:2]
        self._spans = spans or _unseen
        self._late_attrs: dict[str, str] = {}
        self._part = part.begin(path)
        self._pool = pool
        self._lock = threading.Lock()
        self._storing = 0  # threads that change the file just now
        self._stored = threading.Condition(self._lock)
        self._groups: dict[_Key, _Group] = {}
        self._complete: set[_Key] = set()
        self._spare: list[np.ndarray] = []  # chunks' memory, to be used again
        self._futures: set[Future[None]] = set()
        self._waiting_bytes = 0
        self._error: BaseException | None = None
        self._open = False
        try:
            self._store: Store = shielded(make_store, self._part, schema, chunks)
        except BaseException as error:
            self._discard()
            self._refuse_if_unwritable(error)
            raise
        self._open = True

    def put(
        self,
        name: str,
        position: int | tuple[int, ...],
        values: np.ndarray,
        rows: slice = slice(None),
    ) -> None:
        """Hand over consecutive days of year of a variable on a band of rows.

        position  index of the first along dayofyear; (dayofyear, percentile) for thresh of several
                  percentiles
        values    (days, rows of the band, *other cell dimensions)
        rows      the band along the first cell dimension; begins and ends at multiples of the
                  chunks' rows (or at the edge)

        May be called from several threads, in any order. Values that make whole chunks are stored
        at once in the calling thread, others copied until the rest has come. Raises what a
        compressing thread met.
        """
        self._raise_if_failed()
        if not self._open:
            raise RuntimeError(f"the output {self.path} is closed")
        first, *further = position if isinstance(position, tuple) else (position,)
        shape = self.schema.shape(name)
        doys, cells = shape[0], shape[1 + len(further) :]
        start, stop, _ = rows.indices(cells[0])
        if values.shape[1:] != (stop - start, *cells[1:]) or first + len(values) > doys:
            raise ValueError(
                f"{name} at {position} has shape {values.shape}, not "
                f"(days, {', '.join(map(str, (stop - start, *cells[1:])))}), of {doys} days"
            )
        fits = (
            values.shape[1:] == self.chunks[1:]
            and start % self.chunks[1] == 0
            and values.dtype == self.schema.variables[name].dtype
        )
        edges = sorted({0, len(values), *range(-first % self.days, len(values), self.days)})
        whole: dict[_Key, slice] = {}
        for begin, end in pairwise(edges):
            number, slot = divmod(first + begin, self.days)
            key = (name, (number, *further), start)
            if fits and end - begin == min(self.days, doys - number * self.days):
                self._begin_whole(key)
                whole[key] = slice(begin, end)
            else:
                self._assemble(key, slot, values[begin:end], stop)
        if whole:
            self._put_whole(whole, values)

    def finish(self, skipped: Sequence[str], **late: str) -> None:
        """All values are here; `skipped` names the files that were left out on the way.

        late  global attributes that are known only now
        """
        self._late_attrs.update({name: storable(text) for name, text in late.items()})
        if skipped:
            before = self.schema.attrs.get("skipped_files")
            names = "; ".join([before, *skipped] if before else skipped)
            self._late_attrs["skipped_files"] = storable(names)

    def close(self) -> None:
        """Wait for the chunks under way, finish the file and give it its name."""
        if not self._open:
            return
        try:
            for future in list(self._futures):
                future.result()
            self._raise_if_failed()
            if self._groups:
                name, lead, start = next(iter(self._groups))
                raise RuntimeError(f"{name}, chunk {lead}, rows from {start}: days are missing")
            self._open = False
            shielded(self._store.finish, self._late_attrs)
            part.rename(self._part, self.path)
        except BaseException as error:
            self._open = True
            self.abort()
            self._refuse_if_unwritable(error)
            raise

    def abort(self) -> None:
        """Stop and remove what was written; harmless when there is nothing to stop."""
        with self._stored:
            if not self._open:
                return
            self._open = False
            self._stored.wait_for(lambda: self._storing == 0)
        for future in list(self._futures):
            future.cancel()
        for future in list(self._futures):
            if not future.cancelled():
                future.exception()  # waits for it; what it met no longer matters
        self._groups.clear()
        self._spare.clear()
        self._store.abandon()
        self._discard()

    def __enter__(self) -> OutputWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()

    def _begin_whole(self, key: _Key) -> None:
        with self._lock:
            if key in self._complete or key in self._groups:
                raise ValueError(f"{key} was put twice")
            self._complete.add(key)

    def _put_whole(self, whole: dict[_Key, slice], values: np.ndarray) -> None:
        """Store days that make whole chunks, all together; the output's last are filled up."""
        (name, _, start), parts = next(iter(whole)), list(whole.values())
        zeros = (0,) * (len(self.chunks) - 2)
        indices = [(*lead, start // self.chunks[1], *zeros) for _, lead, _ in whole]
        full = (parts[-1].stop - parts[0].start) // self.days
        if full:
            days = np.ascontiguousarray(values[parts[0].start :][: full * self.days])
            chunks = days.reshape(full, *self.chunks)
            self._now(self._store_chunks, name, indices[:full], chunks)
        if full < len(whole):
            chunk = np.full(self.chunks, self._fill(name) or 0, values.dtype)
            chunk[: parts[-1].stop - parts[-1].start] = values[parts[-1]]
            self._now(self._store_chunks, name, indices[full:], chunk[None])

    def _assemble(self, key: _Key, slot: int, values: np.ndarray, stop: int) -> None:
        """Copy days of one chunk of days, from `slot` on; hand on what is complete."""
        begun = time.perf_counter()
        slots = range(slot, slot + len(values))
        with self._lock:
            group = self._groups.get(key)
            if key in self._complete or (group and not group.seen.isdisjoint(slots)):
                raise ValueError(f"{key} was put twice")
            if group is None:
                group = self._groups[key] = self._new_group(*key, stop)
            group.seen.update(slots)
        for _, box, chunk in group.tiles:
            piece = values[(slice(None), *box)]
            chunk[slot : slots.stop][tuple(slice(size) for size in piece.shape)] = piece
        self._spans("collect", begun, time.perf_counter(), values.nbytes)
        with self._lock:
            group.remaining -= len(values)
            complete = group.remaining == 0
            if complete:
                del self._groups[key]
                self._complete.add(key)
        if complete:
            for index, _, chunk in group.tiles:
                self._hand_on(key[0], index, chunk)

    def _new_group(self, name: str, lead: tuple[int, ...], start: int, stop: int) -> _Group:
        variable, shape = self.schema.variables[name], self.schema.shape(name)
        cells = shape[-len(self.schema.cell_dims) :]
        days, tile = self.chunks[0], self.chunks[1:]
        if start % tile[0] or (stop % tile[0] and stop != cells[0]):
            raise ValueError(f"rows {start}:{stop} cut the chunks of {tile[0]} rows")
        present = min(days, shape[0] - lead[0] * days)
        group = _Group(remaining=present)
        counts = [
            math.ceil(size / step)
            for size, step in zip((stop - start, *cells[1:]), tile, strict=True)
        ]
        for corner in np.ndindex(*counts):
            box = tuple(
                slice(i * step, (i + 1) * step) for i, step in zip(corner, tile, strict=True)
            )
            index = (*lead, corner[0] + start // tile[0], *corner[1:])
            whole = present == days and all(
                (at + 1) * step <= size
                for at, step, size in zip(index[len(lead) :], tile, cells, strict=True)
            )
            group.tiles.append((index, box, self._chunk_memory(variable, whole)))
        return group

    def _chunk_memory(self, variable: OutputVariable, whole: bool) -> np.ndarray:
        """Memory for a chunk; filled where its edge hangs over that of the variable."""
        chunk = None
        for at, spare in enumerate(self._spare):
            if spare.dtype == variable.dtype:
                chunk = self._spare.pop(at)
                break
        if chunk is None:
            chunk = np.empty(self.chunks, variable.dtype)
        if not whole:
            chunk.fill(0 if variable.fill is None else variable.fill)
        return chunk

    def _hand_on(self, name: str, index: tuple[int, ...], chunk: np.ndarray) -> None:
        """To a thread of the pool; or, when many wait already, done here and now."""
        with self._lock:
            crowded = self._waiting_bytes > IN_FLIGHT_BYTES
            self._waiting_bytes += chunk.nbytes
        if crowded:
            self._now(self._finish_chunk, name, index, chunk)
            return
        future = self._pool.submit(self._finish_chunk, name, index, chunk)
        with self._lock:
            self._futures.add(future)
        future.add_done_callback(self._settle)

    def _now(self, task: Callable[..., None], *args: Any) -> None:
        """The task in the calling thread; its failure is the whole output's."""
        try:
            task(*args)
        except BaseException as error:
            with self._lock:
                self._error = self._error or error
            self._raise_if_failed()

    def _settle(self, future: Future[None]) -> None:
        with self._lock:
            self._futures.discard(future)
            if not future.cancelled() and self._error is None:
                self._error = future.exception()

    def _finish_chunk(self, name: str, index: tuple[int, ...], chunk: np.ndarray) -> None:
        """Store an assembled chunk; its memory serves another."""
        self._store_chunks(name, [index], chunk[None])
        with self._lock:
            self._spare.append(chunk)
            self._waiting_bytes -= chunk.nbytes

    def _store_chunks(
        self, name: str, indices: Sequence[tuple[int, ...]], chunks: np.ndarray
    ) -> None:
        started = time.perf_counter()
        encoded = stored = started
        nbytes, size = chunks.nbytes, 0
        if self._open and self._error is None:
            kept = [i for i, chunk in enumerate(chunks) if not _all_fill(chunk, self._fill(name))]
            if len(kept) < len(chunks):
                indices, chunks = [indices[i] for i in kept], chunks[kept]
            if kept:
                data = self._store.encode(name, chunks)
                size = sum(map(len, data.chunks))
                encoded = time.perf_counter()
                self._change(name, indices, data)
                stored = time.perf_counter()
        self._spans("compress", started, encoded, nbytes)
        self._spans("write", encoded, stored, size)

    def _change(self, name: str, indices: Sequence[tuple[int, ...]], data: Encoded) -> None:
        """Store encoded bytes, unless the output has been given up; `abort` waits for this."""
        with self._lock:
            if not self._open:
                return
            self._storing += 1
        try:
            self._store.store(name, indices, data)
        finally:
            with self._stored:
                self._storing -= 1
                self._stored.notify_all()

    def _fill(self, name: str) -> float | None:
        return self.schema.variables[name].fill

    def _discard(self) -> None:
        with contextlib.suppress(OSError):  # the folder is gone, or read-only by now
            part.discard(self._part)

    def _raise_if_failed(self) -> None:
        if self._error is not None:
            self._refuse_if_unwritable(self._error)
            raise self._error

    def _refuse_if_unwritable(self, error: BaseException) -> None:
        """An error of the disk as a Refusal; that of a full one names both numbers."""
        if not isinstance(error, OSError):
            return
        self.abort()
        # HDF5 says it in words only.
        if error.errno not in (errno.ENOSPC, errno.EDQUOT) and "No space left" not in str(error):
            raise Refusal(
                f"The output {self.path} cannot be written: {error.strerror or error}. "
                "The partial output is removed. Choose another name or another folder."
            ) from error
        free = shutil.disk_usage(self.path.absolute().parent).free
        raise Refusal(
            f"The disk is full: the output {self.path} needs up to "
            f"{size_text(self.schema.nbytes)} and {size_text(free)} are free now that the partial "
            "output is removed. Free space, choose another disk, or ask for fewer days of year."
        ) from error


def _unseen(
    stage: str, start_s: float, stop_s: float, nbytes: int, *, device: str = "", stream: int = 0
) -> None:
    """Spans that nobody asked for."""


def _all_fill(chunk: np.ndarray, fill: float | None) -> bool:
    """Whether a chunk need not be stored: readers see `fill`, or 0 where that is a value. A few
    values, for which NumPy keeps the interpreter's lock, decide nearly always."""
    some = chunk.reshape(-1)[:: chunk.size // _FEW_VALUES + 1]
    if fill is None or not np.isnan(fill):
        return not (some != (fill or 0)).any() and not (chunk != (fill or 0)).any()
    return bool(np.isnan(some).all() and np.isnan(chunk).all())
