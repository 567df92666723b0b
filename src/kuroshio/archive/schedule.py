"""The tables of one block: loads, rows and outputs of every batch, in integers."""

from __future__ import annotations

import numpy as np

from .. import calendar as cal
from . import pool
from .cut import stride_cells
from .needs import NEVER, Needs
from .plan import Batch, Block, Fill, Layout, Load, Output, Plan
from .sea import Runs, all_cells


def block_of(
    needs: Needs, layout: Layout, plan: Plan, number: int, sea: Runs | None = None
) -> Block:
    """Block `number` of a plan: what `pipeline` carries out, batch by batch.

    sea  the cells to hold where the block is the whole grid; None: all
    """
    shape = needs.archive.grid.shape or (1,)
    start = number * plan.block_rows
    stop = min(start + plan.block_rows, shape[0])
    cells = (stop - start) * (needs.archive.grid.cells // shape[0])
    runs = sea if sea is not None and sea.grid_cells == cells else all_cells(cells)
    rows = needs.boxes[:, 0]
    inside = (rows[:, 0] < stop) & (rows[:, 1] > start)

    batch_of = needs.batches(plan.batch, layout.output_days)
    first, last = needs.of_steps(batch_of)
    loaded = np.where(inside, needs.of_pieces(first), NEVER)
    arrival = needs.arrival(loaded, first)
    needed = np.flatnonzero(last >= 0)
    key_row = np.zeros(needs.axis.size, np.int32)
    key_row[needed] = pool.assign(arrival[needed], last[needed] + layout.ahead, start=1)
    steps = needs.entry_step
    wanted = (steps >= 0) & (last[steps] >= 0)
    entry_row = np.where(wanted, key_row[steps], -1).tolist()
    edges = needs.entry_edges.tolist()
    held = np.zeros(needs.axis.size, bool)
    mine = inside[needs.entry_piece] & (needs.entry_step >= 0)
    held[needs.entry_step[mine]] = True

    ready, end, finished = needs.of_results(batch_of, layout.output_days)
    assigned = pool.assign(
        np.array(list(ready.values())), np.array(list(end.values())) + layout.ahead
    )
    result_row = dict(zip(ready, assigned.tolist(), strict=True))

    count = int(batch_of[-1]) + 1
    loads = _by_batch(loaded, count)
    clears = _by_batch(np.where((last >= 0) & ~held, arrival, NEVER), count)
    fills = _by_batch(needs.of_members(batch_of), count) if needs.request.max_pad else None
    outputs = _by_batch(finished, count)
    leap_rows = [result_row[d] for d in (60, 59, 61)] if needs.leap_day else []

    batches = []
    for i in range(count):
        part = batch_of == i
        words, first_word = lay_out(needs.windows.steps[part], needs.windows.words_per_offset)
        word_rows = np.where(words >= 0, key_row[words], 0).astype(np.int32)
        doys = needs.order[part]
        batches.append(
            Batch(
                loads=tuple(
                    Load(p, tuple(entry_row[edges[p] : edges[p + 1]])) for p in loads[i].tolist()
                ),
                clear=tuple(key_row[clears[i]].tolist()),
                fills=() if fills is None else _fills(fills[i], key_row, needs.request.max_pad),
                doys=doys,
                first_word=first_word,
                word_rows=word_rows,
                live=np.unique(word_rows[word_rows > 0]).astype(np.int32),
                gaps=bool((word_rows == 0).any()),
                least=least_valid(needs.request.min_valid, needs.windows.size[part]),
                result_rows=np.array([result_row[int(d)] for d in doys], np.int32),
                leap_day=tuple(leap_rows) if leap_rows and ready[cal.LEAP_DAY] == i else None,
                outputs=tuple(
                    Output(
                        position=int(o),
                        rows=tuple(result_row[d] for d in needs.averaged[o].tolist()),
                        first=int(o) % layout.output_days == 0,
                    )
                    for o in outputs[i]
                ),
            )
        )
    return Block(
        rows=slice(start, stop),
        runs=runs,
        stride_cells=stride_cells(runs.cells, layout),
        tiles=-(-runs.cells // layout.tile_cells),
        key_rows=int(key_row.max()) + 1,
        result_rows=int(assigned.max()) + 1,
        batches=tuple(batches),
    )


def _by_batch(first: np.ndarray, count: int) -> list[np.ndarray]:
    """Indices of the items of each batch, given the batch of each item."""
    order = np.argsort(first, kind="stable")
    edges = np.searchsorted(first[order], np.arange(count + 1))
    return [order[edges[i] : edges[i + 1]] for i in range(count)]


def lay_out(steps: np.ndarray, words_per_offset: int) -> tuple[np.ndarray, np.ndarray]:
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


def _fills(steps: np.ndarray, key_row: np.ndarray, pad: int) -> tuple[Fill, ...]:
    nothing = np.zeros(pad, np.int32)
    rows = np.concatenate([nothing, key_row, nothing])
    return tuple(
        Fill(
            int(key_row[s]),
            tuple(rows[s : s + pad][::-1].tolist()),
            tuple(rows[s + pad + 1 : s + 2 * pad + 1].tolist()),
        )
        for s in np.sort(steps).tolist()
    )


def least_valid(share: float, size: np.ndarray) -> np.ndarray:
    """The smallest number of valid values n >= 1 of a pool with n / size >= share."""
    n = np.ceil(share * size).astype(np.int64)
    enough = np.maximum(n - 1, 0) / np.maximum(size, 1) >= share  # rounding of the product
    return np.maximum(n - enough, 1).astype(np.int32)
