"""How a job is cut: days of year at a time, and blocks of the grid, within a memory budget."""

from __future__ import annotations

import numpy as np

from ..errors import Refusal
from ..sizes import size_text
from . import pool
from .needs import NEVER, Needs
from .plan import Layout, Plan

BATCHES = (24, 16, 8, 4, 2, 1)  # days of year computed at a time; whole chunks or even parts
LINE_BYTES = 64

# Rates of one ordinary thread, only to weigh cuts against each other.
_DECODE_BYTES_PER_S = 1e9
_LISTS_S_PER_BYTE = 1.5e-9  # a cell and word, by the bytes of its keys
_PLANES_S_PER_BYTE = 2.5e-9
_FRESH_MEMORY_S_PER_GB = 0.7


def choose(needs: Needs, layout: Layout, memory_bytes: int) -> Plan:
    """The quickest cut that fits, or a Refusal with both numbers."""
    sizes = _Sizes(needs, layout)
    block, best = sizes.shape[0], None
    smallest: Plan | None = None
    while block:
        plans = [sizes.plan(block, batch) for batch in BATCHES]
        smallest = min(plans, key=lambda plan: plan.memory_bytes)
        fitting = [plan for plan in plans if _fits(plan, layout, memory_bytes)]
        best = min([*fitting, *([best] if best else [])], key=sizes.cost, default=None)
        # Smaller blocks can only help where whole chunks were kept too long for lack of memory.
        if best and (best.amplification == 1.0 or block < best.block_rows // 2):
            break
        block = sizes.next_block(block)
    if best is None:
        assert smallest is not None
        raise Refusal(_too_little(smallest, needs, layout, memory_bytes))
    return best


def _fits(plan: Plan, layout: Layout, memory_bytes: int) -> bool:
    if layout.device_bytes is None:
        return plan.memory_bytes <= memory_bytes
    on_host = plan.memory_bytes - plan.key_bytes
    return on_host <= memory_bytes and plan.key_bytes + plan.batch_bytes <= layout.device_bytes


def _too_little(plan: Plan, needs: Needs, layout: Layout, memory_bytes: int) -> str:
    """What the smallest plan needs and what there is."""
    cells = needs.archive.grid.cells // (needs.archive.grid.shape or (1,))[0]
    block = f"the smallest block (one row of the grid, {cells:,} cells)"
    if layout.device_bytes is None:
        return (
            f"There is not enough memory: {block} needs {size_text(plan.memory_bytes)} and "
            f"{size_text(memory_bytes)} may be used. Raise --memory (memory_bytes), close other "
            "programs, narrow the window or ask for fewer days of year at a time."
        )
    on_device = size_text(plan.key_bytes + plan.batch_bytes)
    on_host = size_text(plan.memory_bytes - plan.key_bytes)
    return (
        f"There is not enough memory: {block} needs {on_device} on the device, where "
        f"{size_text(layout.device_bytes)} may be used, and {on_host} of {size_text(memory_bytes)} "
        "on the host. End what else uses the device, raise --memory (memory_bytes), or use "
        "--device cpu."
    )


def stride_cells(cells: int, layout: Layout) -> int:
    """Cells a row takes, padded to whole tiles and to an odd number of cache lines.

    Rows a multiple of many cache lines apart would all compete for the same few cache sets.
    """
    per_line = max(LINE_BYTES // layout.key_bytes, layout.tile_cells)
    return (-(-cells // per_line) | 1) * per_line


class _Sizes:
    """Bytes and rows of an archive's pieces, and what a cut of them costs."""

    def __init__(self, needs: Needs, layout: Layout) -> None:
        self.needs, self.layout = needs, layout
        archive = needs.archive
        self.shape = archive.grid.shape or (1,)
        self.rows = needs.boxes[:, 0]
        self.inner = archive.grid.cells // self.shape[0]
        times = np.diff(needs.entry_edges)
        cells = np.diff(needs.boxes)[:, :, 0].prod(axis=1)
        self.nbytes = times * cells * archive.dtype.itemsize
        starts = np.unique(self.rows[:, 0])
        self.chunk_rows = int(np.diff(starts).max()) if starts.size > 1 else 0
        self._lifetimes: dict[int, tuple] = {}

    def plan(self, block: int, batch: int) -> Plan:
        key_rows, result_rows, used, days_read = self._of_batch(batch)
        needs, layout = self.needs, self.layout
        stride = stride_cells(block * self.inner, layout)
        key_bytes = stride * (key_rows + 1) * layout.key_bytes
        memory = key_bytes + stride * (
            result_rows * layout.statistics * 4
            + batch * 4  # counts
            + layout.output_days * layout.statistics * 4
        )
        visits = (self.rows[:, 1] - 1) // block - self.rows[:, 0] // block + 1
        once, read = int(self.nbytes[used].sum()), int((self.nbytes * visits)[used].sum())
        return Plan(
            doys=needs.doys,
            walk=tuple(needs.order.tolist()),
            block_rows=block,
            batch=batch,
            blocks=-(-self.shape[0] // block),
            memory_bytes=memory,
            key_bytes=key_bytes,
            row_bytes=stride * layout.key_bytes,
            batch_bytes=stride * batch * layout.statistics * 4,
            read_bytes=read,
            amplification=read / once if once else 1.0,
            pieces=int(used.sum()),
            loads=int(visits[used].sum()),
            days_read=days_read,
            days_missing=needs.days_missing,
            warnings=needs.warnings,
        )

    def cost(self, plan: Plan) -> float:
        """Seconds of an imagined thread; fresh memory costs time, too."""
        words = self.needs.windows.steps.shape[1]
        cells, key_bytes = self.needs.archive.grid.cells, self.layout.key_bytes
        prepared = plan.computed * (1 + (words - 1) / plan.batch) * cells * key_bytes
        fresh = plan.memory_bytes  # of the host's
        if self.layout.device_bytes is not None:
            fresh -= plan.key_bytes
        return (
            plan.read_bytes / _DECODE_BYTES_PER_S
            + prepared * (_LISTS_S_PER_BYTE if key_bytes == 2 else _PLANES_S_PER_BYTE)
            + fresh / 1e9 * _FRESH_MEMORY_S_PER_GB
        )

    def next_block(self, block: int) -> int:
        """The next smaller cut, in whole chunks of the archive while it can be; 0 after one row."""
        half = block // 2
        if self.chunk_rows and block > self.chunk_rows:
            return max(
                -(-half // self.chunk_rows) * self.chunk_rows if half else 0, self.chunk_rows
            )
        return half

    def _of_batch(self, batch: int) -> tuple:
        if batch not in self._lifetimes:
            needs = self.needs
            batches = needs.batches(batch, self.layout.output_days)
            first, last = needs.of_steps(batches)
            loaded = needs.of_pieces(first)
            arrival = needs.arrival(loaded, first)
            needed = last >= 0
            ready, end, _ = needs.of_results(batches, self.layout.output_days)
            self._lifetimes[batch] = (
                pool.peak(arrival[needed], last[needed] + self.layout.ahead),
                pool.peak(
                    np.array(list(ready.values())),
                    np.array(list(end.values())) + self.layout.ahead,
                ),
                loaded < NEVER,
                int((needed & needs.present).sum()),
            )
        return self._lifetimes[batch]
