"""The output file: values arrive as days of year of a band of rows, chunks leave compressed.

A chunk holds several days of year of a tile of cells, so that a map and a point's annual cycle both
read fast. Values that make a whole chunk are compressed and stored as they are put; others are
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
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import numpy as np

from ..errors import Refusal
from . import part
from .describe import OutputVariable, Schema, storable
from .model import Spans
from .sizes import size_text

IN_FLIGHT_BYTES = 64 << 20  # complete chunks that wait for a thread


class Store(Protocol):
    """What a file format does: make the empty file, encode a chunk, store it, finish."""

    def encode(self, name: str, chunk: np.ndarray) -> bytes | memoryview:
        """The stored bytes of a whole chunk; called from many threads."""

    def store(self, name: str, index: tuple[int, ...], data: bytes | memoryview) -> None:
        """Put an encoded chunk at its place (counted in chunks); called from many threads."""

    def finish(self, late_attrs: Mapping[str, str]) -> None:
        """Add global attributes learned on the way, complete and close the file."""

    def abandon(self) -> None:
        """Close without caring for the content."""


@dataclass
class _Group:
    """Chunks of one variable under assembly that become complete together: a band's."""

    remaining: int  # positions that have not come
    seen: set[int] = field(default_factory=set)
    tiles: list[tuple[tuple[int, ...], tuple[slice, ...], np.ndarray]] = field(default_factory=list)


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
        self._groups: dict[tuple[str, tuple[int, ...], int], _Group] = {}
        self._complete: set[tuple[str, tuple[int, ...], int]] = set()
        self._spare: list[np.ndarray] = []  # chunks' memory, to be used again
        self._futures: set[Future[None]] = set()
        self._waiting_bytes = 0
        self._error: BaseException | None = None
        self._open = False
        try:
            self._store: Store = _shielded(make_store, self._part, schema, chunks)
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
        values    (days, rows of the band, *other cell dimensions); all in one chunk of days
        rows      the band along the first cell dimension; begins and ends at multiples of the
                  chunks' rows (or at the edge)

        May be called from several threads, in any order. Values that make a whole chunk are
        compressed and stored at once, in the calling thread; others are copied until the rest has
        come. Raises what a compressing thread met.
        """
        self._raise_if_failed()
        begun = time.perf_counter()
        if not self._open:
            raise RuntimeError(f"the output {self.path} is closed")
        lead = position if isinstance(position, tuple) else (position,)
        cells = self.schema.shape(name)[len(lead) :]
        start, stop, _ = rows.indices(cells[0])
        if values.shape[1:] != (stop - start, *cells[1:]):
            raise ValueError(
                f"{name} at {position} has shape {values.shape}, not "
                f"(days, {', '.join(map(str, (stop - start, *cells[1:])))})"
            )
        slot = lead[0] % self.chunks[0]
        slots = range(slot, slot + len(values))
        if slots.stop > self.chunks[0]:
            raise ValueError(f"{name} {position}: {len(values)} days reach into the next chunk")
        key = (name, (lead[0] // self.chunks[0], *lead[1:]), start)
        whole = (
            values.shape == self.chunks
            and start % self.chunks[1] == 0
            and values.dtype == self.schema.variables[name].dtype
        )
        with self._lock:
            group = self._groups.get(key)
            if key in self._complete or (group and not group.seen.isdisjoint(slots)):
                raise ValueError(f"{name} {position} rows {start}:{stop} was put twice")
            if group is None and not whole:
                group = self._groups[key] = self._new_group(name, key[1], start, stop)
            if group is not None:
                group.seen.update(slots)
            else:
                self._complete.add(key)
        if group is None:
            index = (*key[1], start // self.chunks[1], *(0 for _ in cells[1:]))
            self._now(self._store_chunk, name, index, np.ascontiguousarray(values))
            return
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
                self._hand_on(name, index, chunk)

    def finish(self, skipped: Sequence[str]) -> None:
        """All values are here; `skipped` names the files that were left out on the way."""
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
            _shielded(self._store.finish, self._late_attrs)
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
        self._store_chunk(name, index, chunk)
        with self._lock:
            self._spare.append(chunk)
            self._waiting_bytes -= chunk.nbytes

    def _store_chunk(self, name: str, index: tuple[int, ...], chunk: np.ndarray) -> None:
        started = time.perf_counter()
        encoded = stored = started
        size = 0
        if self._open and self._error is None and not _all_fill(chunk, self._fill(name)):
            data = self._store.encode(name, chunk)
            encoded = time.perf_counter()
            self._change(name, index, data)
            stored, size = time.perf_counter(), len(data)
        self._spans("compress", started, encoded, chunk.nbytes)
        self._spans("write", encoded, stored, size)

    def _change(self, name: str, index: tuple[int, ...], data: bytes | memoryview) -> None:
        """Store encoded bytes, unless the output has been given up; `abort` waits for this."""
        with self._lock:
            if not self._open:
                return
            self._storing += 1
        try:
            self._store.store(name, index, data)
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


def _shielded(task: Callable[..., Any], *args: Any) -> Any:
    """The task's result; an interrupt is heard once it has ended.

    Zarr works in a thread of its own, which an exception here would leave writing.
    """
    with ThreadPoolExecutor(1) as thread:  # leaving it waits
        return thread.submit(task, *args).result()


def _unseen(stage: str, start_s: float, stop_s: float, nbytes: int) -> None:
    """Spans that nobody asked for."""


def _all_fill(chunk: np.ndarray, fill: float | None) -> bool:
    """Whether a chunk need not be stored. The first value decides nearly always."""
    if fill is None or chunk.flat[0] == chunk.flat[0]:
        return False
    return bool(np.isnan(chunk).all())
