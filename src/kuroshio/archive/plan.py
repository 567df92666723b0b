"""The plan: what is read when, where it lies in memory, what is computed and written after it.

Pure: from an Archive, a Request and a memory budget to tables of integers. Days of year are walked
in order, a *batch* at a time; a batch reads the days that its windows need and that are not yet in
memory, computes, and frees what no later window needs. So each piece is read once, and memory is
bounded by the window (plus, for a whole year, the days around the start that the end needs again).
Where even that is too much the grid is cut into *blocks* along its first dimension. Refusals that
depend on the data's extent happen here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .. import calendar as cal
from ..errors import Refusal
from ..request import SHORT_BASELINE_YEARS, Request
from . import pool
from .model import Archive

_BATCHES = (24, 16, 12, 8, 6, 4, 3, 2, 1)  # days of year computed at a time
_ROW_ALIGNMENT_BYTES = 64


@dataclass(frozen=True)
class Layout:
    """What the kernels need of memory: bytes a key, statistics kept, cells a tile, years a word."""

    key_bytes: int
    statistics: int  # float32 results kept a cell and day of year
    tile_cells: int
    years_per_word: int


@dataclass(frozen=True)
class Load:
    """Read a piece; its time index i goes to row rows[i] of the key buffer (-1: not needed)."""

    piece: int
    rows: tuple[int, ...]


@dataclass(frozen=True)
class Fill:
    """Interpolate gaps of one day's row from the rows of the days around it, nearest first."""

    row: int
    before: tuple[int, ...]
    after: tuple[int, ...]


@dataclass(frozen=True)
class Output:
    """A day of year that can be written: its place in the output and the rows to average."""

    position: int
    rows: tuple[int, ...]


@dataclass(frozen=True)
class Batch:
    """Loads, then fills, then the kernel on these tables, then means and outputs."""

    loads: tuple[Load, ...]
    clear: tuple[int, ...]  # rows of days that no piece holds
    fills: tuple[Fill, ...]
    doys: np.ndarray  # int64 (doy,)
    first_word: np.ndarray  # int64 (doy,): where its window starts among the words
    word_rows: np.ndarray  # int32 (word, year): key row, 0 for none
    live: np.ndarray  # int32: distinct key rows of word_rows, 0 left out
    gaps: bool  # whether word_rows has a 0
    least: np.ndarray  # int32 (doy,): valid values a result needs
    result_rows: np.ndarray  # int32 (doy,)
    leap_day: tuple[int, int, int] | None  # result rows of 29 February, 28 February, 1 March
    outputs: tuple[Output, ...]


@dataclass(frozen=True)
class Block:
    """All batches for a range of the first cell dimension."""

    rows: slice
    cells: int
    stride_cells: int  # a row of the key and result buffers, padded
    key_rows: int  # row 0 stays missing
    result_rows: int
    batches: tuple[Batch, ...]


@dataclass(frozen=True)
class Plan:
    """Everything that will happen, and what it will cost."""

    doys: tuple[int, ...]  # of the output
    walk: tuple[int, ...]  # days of year in the order in which they are computed
    block_rows: int  # of the first cell dimension, a block (the last may have fewer)
    batch: int
    blocks: int
    memory_bytes: int
    read_bytes: int  # decoded, all blocks together
    amplification: float  # decoded bytes over bytes needed once
    pieces: int
    days_read: int
    days_missing: int  # days within the windows that the archive lacks
    warnings: tuple[str, ...]

    @property
    def computed(self) -> int:
        """Days of year computed: those written, and what smoothing needs around them."""
        return len(self.walk)


class Planner:
    """The tables that do not depend on how the grid is cut, and the choice of the cut."""

    def __init__(self, archive: Archive, request: Request, layout: Layout) -> None:
        self.archive, self.request, self.layout = archive, request, layout
        self.shape = archive.grid.shape or (1,)  # a single series is a grid of one cell
        _check_baseline(archive, request)
        length = cal.template_length(archive.calendar)
        self.doys = request.doys or tuple(range(1, length + 1))
        self.has_leap_day = archive.calendar == "standard" and request.feb29 == "mean"

        half = (request.smooth_width - 1) // 2
        if request.smooth_width > length:
            raise Refusal(
                f"The smoothing width {request.smooth_width} is longer than the year ({length} days)."
            )
        wanted = np.asarray(self.doys)[:, None] - 1 + np.arange(-half, half + 1)
        self.averaged = wanted % length + 1  # (output, width): template days to average
        needed = np.unique(self.averaged)
        if self.has_leap_day and cal.LEAP_DAY in needed:
            needed = np.setdiff1d(
                np.union1d(needed, [cal.LEAP_DAY - 1, cal.LEAP_DAY + 1]), [cal.LEAP_DAY]
            )
        self.order = _walk(needed, length)
        # With gap filling a missing day is a row like any other, so the axis has no holes.
        days = archive.days
        self.axis = np.arange(days[0], days[-1] + 1) if request.max_pad else days
        self.windows = cal.windows(
            self.axis, archive.calendar, request.baseline, request.half_width,
            self.order, layout.years_per_word,
        )  # fmt: skip
        on_axis = np.searchsorted(self.axis, days)
        sizes = [len(p.steps) for p in archive.pieces]
        self.entry_piece = np.repeat(np.arange(len(sizes)), sizes)
        steps = np.fromiter((s for p in archive.pieces for s in p.steps), np.int64, sum(sizes))
        self.entry_step = np.where(steps >= 0, on_axis[steps], cal.MISSING)
        self.piece_rows = np.array(
            [(s.start, s.stop) for s in (p.box[0] if p.box else slice(0, 1) for p in archive.pieces)], np.int64
        ).reshape(-1, 2)
        if not (self.windows.steps >= 0).any():
            raise Refusal(
                f"No day of the baseline {request.baseline[0]}-{request.baseline[1]} and the days of "
                "year asked for is in the data, which runs from "
                f"{cal.iso_date(archive.calendar, int(days[0]))} to "
                f"{cal.iso_date(archive.calendar, int(days[-1]))}. Choose another baseline or other days."
            )

    # -- the choice -----------------------------------------------------------------------------

    def choose(self, memory_bytes: int) -> Plan:
        """The quickest cut that fits, or a Refusal with both numbers."""
        rows = self.shape[0]
        best: tuple[float, Plan] | None = None
        smallest = None
        block = rows
        while block >= 1:
            for batch in _BATCHES:
                plan = self._cost(block, batch)
                smallest = min(smallest or plan.memory_bytes, plan.memory_bytes)
                if plan.memory_bytes <= memory_bytes:
                    cost = _relative_cost(plan, self)
                    if best is None or cost < best[0]:
                        best = (cost, plan)
            if best is not None and best[1].amplification <= 1.0 + 1e-9:
                break
            if best is not None and block < best[1].block_rows // 2:
                break
            block = self._next_block(block)
        if best is None:
            raise Refusal(
                f"There is not enough memory: the smallest block (one row of the grid, "
                f"{self.archive.grid.cells // rows:,} cells) needs {smallest / 1e9:.2f} GB and "
                f"{memory_bytes / 1e9:.2f} GB may be used. Raise --memory, close other programs, "
                "narrow the window or ask for fewer days of year at a time."
            )
        return best[1]

    def _next_block(self, block: int) -> int:
        """The next smaller cut: whole chunks of the archive where there are any, else halves."""
        edges = np.unique(self.piece_rows[:, 0])
        chunk = int(np.diff(edges).max()) if edges.size > 1 else 0
        if chunk and block > chunk:
            return max(
                chunk, (block // 2 + chunk - 1) // chunk * chunk if block // 2 > chunk else chunk
            )
        return block // 2

    def _cost(self, block: int, batch: int) -> Plan:
        first, last = self._use(batch)
        needed = last >= 0
        piece_first = self._piece_first(first)
        used = piece_first < _NEVER
        step_first = self._step_first(piece_first, first)
        keys = pool.peak(step_first[needed], last[needed])
        _, result_first, result_last, *_ = self._results(batch)
        results = pool.peak(result_first, result_last)
        cells = block * (self.archive.grid.cells // self.shape[0])
        stride = self._stride(cells)
        statistics = self.layout.statistics
        outputs = min(batch, len(self.doys)) + 2
        memory = stride * (
            (keys + 1) * self.layout.key_bytes + (results + outputs) * statistics * 4 + batch * 4
        )
        rows = self.shape[0]
        blocks = -(-rows // block)
        width = self.archive.dtype.itemsize
        inner = self.archive.grid.cells // rows
        sizes = np.array([len(p.steps) for p in self.archive.pieces]) * (
            self.piece_rows[:, 1] - self.piece_rows[:, 0]
        )
        share = np.array(
            [np.prod([s.stop - s.start for s in p.box[1:]], dtype=np.int64) / max(inner, 1)
             for p in self.archive.pieces]
        ) if len(self.shape) > 1 else np.ones(len(sizes))  # fmt: skip
        visits = (self.piece_rows[:, 1] - 1) // block - self.piece_rows[:, 0] // block + 1
        once = float((sizes * share)[used].sum()) * inner * width
        read = float((sizes * share * visits)[used].sum()) * inner * width
        present = np.zeros(self.axis.size, bool)
        present[self.entry_step[self.entry_step >= 0]] = True
        missing = int(self.windows.size.sum() - (self.windows.steps >= 0).sum())
        return Plan(
            doys=self.doys,
            walk=tuple(self.order.tolist()),
            block_rows=block,
            batch=batch,
            blocks=blocks,
            memory_bytes=int(memory),
            read_bytes=int(read),
            amplification=read / once if once else 1.0,
            pieces=int(used.sum()),
            days_read=int((needed & present).sum()),
            days_missing=missing,
            warnings=_warnings(self.archive, self.request),
        )

    # -- one block ------------------------------------------------------------------------------

    def block(self, plan: Plan, number: int) -> Block:
        """The tables of one block of a chosen plan."""
        shape = self.shape
        start = number * plan.block_rows
        stop = min(start + plan.block_rows, shape[0])
        cells = (stop - start) * (self.archive.grid.cells // shape[0])
        batch = plan.batch

        inside = (self.piece_rows[:, 0] < stop) & (self.piece_rows[:, 1] > start)
        first, last = self._use(batch)
        piece_first = np.where(inside, self._piece_first(first), _NEVER)
        step_first = self._step_first(piece_first, first)
        needed = np.flatnonzero(last >= 0)
        key_row = np.zeros(self.axis.size, np.int32)
        key_row[needed] = pool.assign(step_first[needed], last[needed], start=1)

        held = np.zeros(self.axis.size, bool)
        mine = inside[self.entry_piece] & (self.entry_step >= 0)
        held[self.entry_step[mine]] = True
        edges = np.searchsorted(self.entry_piece, np.arange(len(self.archive.pieces) + 1))
        names, result_first, result_last, leap, finished = self._results(batch)
        result_row = dict(
            zip(names.tolist(), pool.assign(result_first, result_last).tolist(), strict=True)
        )

        batches = []
        count = -(-self.order.size // batch)
        loads = _by_batch(piece_first, count)
        clears = _by_batch(np.where((last >= 0) & ~held, step_first, _NEVER), count)
        fills = _by_batch(self._member_first(batch), count) if self.request.max_pad else None
        for i in range(count):
            part = slice(i * batch, (i + 1) * batch)
            steps = self.windows.steps[part]
            words, first_word = _runs(steps, self.windows.words_per_offset)
            rows = np.where(words >= 0, key_row[words], 0).astype(np.int32)
            doys = self.order[part]
            size = self.windows.size[part]
            batches.append(Batch(
                loads=tuple(
                    Load(int(p), self._rows(self.entry_step[edges[p]:edges[p + 1]], key_row, last))
                    for p in loads[i]
                ),
                clear=tuple(key_row[clears[i]].tolist()),
                fills=() if fills is None else self._fills(fills[i], key_row),
                doys=doys,
                first_word=first_word,
                word_rows=rows,
                live=np.unique(rows[rows > 0]).astype(np.int32),
                gaps=bool((rows == 0).any()),
                least=_least(self.request.min_valid, size),
                result_rows=np.array([result_row[int(d)] for d in doys], np.int32),
                leap_day=tuple(result_row[d] for d in (60, 59, 61)) if leap == i else None,
                outputs=tuple(
                    Output(int(o), tuple(result_row[d] for d in self.averaged[o].tolist()))
                    for o in np.flatnonzero(finished == i)
                ),
            ))  # fmt: skip
        return Block(
            rows=slice(start, stop),
            cells=cells,
            stride_cells=self._stride(cells),
            key_rows=int(key_row.max()) + 1,
            result_rows=max(result_row.values()) + 1,
            batches=tuple(batches),
        )

    # -- lifetimes ------------------------------------------------------------------------------

    def _use(self, batch: int) -> tuple[np.ndarray, np.ndarray]:
        """First and last batch that needs each step of the axis in memory (_NEVER, -1: none)."""
        first = self._member_first(batch)
        last = np.full(self.axis.size, -1)
        when = np.arange(self.order.size) // batch
        for i, steps in zip(when, self.windows.steps, strict=True):
            last[steps[steps >= 0]] = i
        pad = self.request.max_pad
        if pad:
            # A day is filled when first needed, from neighbours that must be there by then.
            for shift in range(-pad, pad + 1):
                source = np.arange(self.axis.size) + shift
                good = (source >= 0) & (source < self.axis.size)
                at = first[good]
                there = at < _NEVER
                np.maximum.at(last, source[good][there], at[there])
            member = first.copy()
            for shift in range(-pad, pad + 1):
                source = np.arange(self.axis.size) + shift
                good = (source >= 0) & (source < self.axis.size)
                np.minimum.at(first, source[good], member[good])
        return first, last

    def _member_first(self, batch: int) -> np.ndarray:
        """First batch in which each step belongs to a window."""
        first = np.full(self.axis.size, _NEVER)
        when = np.arange(self.order.size) // batch
        for i, steps in zip(when[::-1], self.windows.steps[::-1], strict=True):
            first[steps[steps >= 0]] = i
        return first

    def _piece_first(self, first: np.ndarray) -> np.ndarray:
        """The batch that loads each piece."""
        result = np.full(len(self.archive.pieces), _NEVER)
        good = self.entry_step >= 0
        np.minimum.at(result, self.entry_piece[good], first[self.entry_step[good]])
        return result

    def _step_first(self, piece_first: np.ndarray, first: np.ndarray) -> np.ndarray:
        """The batch from which on each step is in memory: a piece brings all its steps along."""
        result = first.copy()
        good = self.entry_step >= 0
        np.minimum.at(result, self.entry_step[good], piece_first[self.entry_piece[good]])
        return result

    def _results(self, batch: int) -> tuple:
        """Template days with a result row, first and last batch of each, 29 February's batch, and
        the batch after which each output is finished."""
        ready = {int(d): i // batch for i, d in enumerate(self.order)}
        leap = None
        if self.has_leap_day and cal.LEAP_DAY in self.averaged:
            leap = max(ready[cal.LEAP_DAY - 1], ready[cal.LEAP_DAY + 1])
            ready[cal.LEAP_DAY] = leap
        table = np.zeros(max(ready) + 1, np.int64)
        table[list(ready)] = list(ready.values())
        finished = table[self.averaged].max(axis=1)
        last = dict(ready)
        if leap is not None:
            last[cal.LEAP_DAY - 1] = last[cal.LEAP_DAY + 1] = leap
        for days, when in zip(self.averaged.tolist(), finished.tolist(), strict=True):
            for d in days:
                last[d] = max(last[d], when)
        names = np.array(sorted(ready), np.int64)
        return (
            names,
            np.array([ready[int(d)] for d in names]),
            np.array([last[int(d)] for d in names]),
            leap,
            finished,
        )

    # -- small tables ---------------------------------------------------------------------------

    def _stride(self, cells: int) -> int:
        """Cells a row takes, padded to whole tiles and to an odd number of cache lines.

        Rows a multiple of many cache lines apart would all compete for the same few cache sets.
        """
        per_line = max(_ROW_ALIGNMENT_BYTES // self.layout.key_bytes, self.layout.tile_cells)
        lines = -(-cells // per_line)
        return (lines | 1) * per_line

    def _rows(self, steps: np.ndarray, key_row: np.ndarray, last: np.ndarray) -> tuple[int, ...]:
        wanted = (steps >= 0) & (last[steps] >= 0)
        return tuple(np.where(wanted, key_row[steps], -1).tolist())

    def _fills(self, steps: np.ndarray, key_row: np.ndarray) -> tuple[Fill, ...]:
        pad = self.request.max_pad
        rows = np.concatenate([np.zeros(pad, np.int32), key_row, np.zeros(pad, np.int32)])
        return tuple(
            Fill(
                int(key_row[s]),
                tuple(rows[s : s + pad][::-1].tolist()),
                tuple(rows[s + pad + 1 : s + 2 * pad + 1].tolist()),
            )
            for s in np.sort(steps).tolist()
        )


_NEVER = np.iinfo(np.int64).max // 2


def _by_batch(first: np.ndarray, count: int) -> list[np.ndarray]:
    """Indices of the items of each batch, given the batch of each item."""
    order = np.argsort(first, kind="stable")
    edges = np.searchsorted(first[order], np.arange(count + 1))
    return [order[edges[i] : edges[i + 1]] for i in range(count)]


def _runs(steps: np.ndarray, words_per_offset: int) -> tuple[np.ndarray, np.ndarray]:
    """Windows laid end to end so that each is contiguous: (words, first word of each window).

    A window that continues the one before adds only its last offset; around 29 February and
    wherever else it does not, a new run starts.
    """
    words: list[np.ndarray] = []
    starts = np.empty(len(steps), np.int64)
    for i, window in enumerate(steps):
        shift = words_per_offset
        if i and np.array_equal(steps[i - 1][shift:], window[:-shift]):
            words.extend(window[-shift:])
        else:
            words.extend(window)
        starts[i] = len(words) - len(window)
    return np.array(words), starts


def _least(share: float, size: np.ndarray) -> np.ndarray:
    """The smallest number of valid values n >= 1 of a pool with n / size >= share."""
    n = np.ceil(share * size).astype(np.int64)
    enough = np.maximum(n - 1, 0) / np.maximum(size, 1) >= share  # rounding of the product
    return np.maximum(n - enough, 1).astype(np.int32)


def _walk(doys: np.ndarray, length: int) -> np.ndarray:
    """The days in circular order, starting after the longest stretch that is not needed."""
    if doys.size == length:
        return doys
    gaps = np.diff(doys, append=doys[0] + length)
    return np.roll(doys, -(int(np.argmax(gaps)) + 1))


def _relative_cost(plan: Plan, planner: Planner) -> float:
    """Seconds on an imagined thread, only to compare cuts; fresh memory costs time, too."""
    decode = plan.read_bytes / 1e9
    overlap = planner.windows.steps.shape[1] - 1
    cells = planner.archive.grid.cells
    transposes = plan.computed * (1 + overlap / plan.batch) * 7e-9 * cells
    return decode + transposes + plan.memory_bytes / 1e9


def _check_baseline(archive: Archive, request: Request) -> None:
    first, last = (
        int(cal.year_and_dayofyear(archive.calendar, archive.days[i : i + 1])[0][0])
        for i in (0, archive.days.size - 1)
    )
    if request.baseline[1] < first or request.baseline[0] > last:
        raise Refusal(
            f"The baseline {request.baseline[0]}-{request.baseline[1]} is not in the data, which "
            f"covers the years {first} to {last}. Give --baseline FIRST LAST within them."
        )


def _warnings(archive: Archive, request: Request) -> tuple[str, ...]:
    found: list[str] = []
    years, _ = cal.year_and_dayofyear(archive.calendar, archive.days)
    inside = np.unique(years[(years >= request.baseline[0]) & (years <= request.baseline[1])])
    if inside.size < request.years:
        found.append(
            f"The data covers {inside.size} of the {request.years} baseline years "
            f"{request.baseline[0]}-{request.baseline[1]}; the others count as missing."
        )
    if inside.size < SHORT_BASELINE_YEARS:
        found.append(
            f"A baseline of {inside.size} years is short: thresholds need about 30 "
            f"(at least {SHORT_BASELINE_YEARS}) to be steady."
        )
    return tuple(found)


def block_slices(plan: Plan, rows: int) -> Sequence[slice]:
    """The ranges of the first cell dimension that the plan's blocks take."""
    return [slice(s, min(s + plan.block_rows, rows)) for s in range(0, rows, plan.block_rows)]
