"""Strategy 4: sums of disjoint sets add, so each value is added once and not once a window."""

from __future__ import annotations

from typing import Any

from ..place import Worker
from ..run import Ground
from ..rungs import direct, sliding
from ..study import Study
from .common import batch_seconds, filled, first_pass, judged, usual_s

KEY, TITLE = "operations", "Values added for every window, or once, and a window that slides"
CLAIM = "3,960 values a cell are added for 12 days of year; 660 if once each; then 12 steps slide."
COLUMNS = ["kernel", "values a cell", "fused multiply-adds a cell", "ms a pass", "G values/s"]
_LOW, _HIGH = 0.4, 1.1  # of the ratio of values, that the ratio of times may be
_SLIDE = 4  # times what its bytes take: it works on few cells' sums at a time, and divides


def run(ground: Ground) -> Study:
    """Kernels of a pass, strategies B and D, and D's last one, from those of a batch."""
    problem, passing, place = ground.problem, first_pass(ground), ground.place
    days, batches = len(passing.doys), len(passing.batches)
    every, once = days * problem.pool, passing.maps
    slots, kept = len(passing.slots), 4 * 4 + 4  # bytes of a slot's sums and its count
    # A slot's sums are read as it enters and as it leaves; they were read and written each batch.
    fetched = 2 * slots * kept / (8 * once + 2 * slots * kept * batches)
    predicted = (
        f"{every:,} values a cell against {once:,}: {every / once:.2g} times the operations, so "
        f"{_LOW * every / once:.2g} to {_HIGH * every / once:.2g} times the time, the less the "
        "more of the values come out of a cache. Sliding fetches "
        f"{fetched:.0%} of the bytes, so it takes at most {_SLIDE * fetched:.0%} of the sums' time."
    )
    maps = filled(ground, passing, place, batches=1)
    workers: list[tuple[str, int, Worker]] = [
        ("sums of windows (B)", every, direct.worker(place, problem)),
        ("sums of slots (D)", once, sliding.worker(place, problem)),
    ]
    rows: list[list[Any]] = []
    for name, visits, worker in workers:
        worker.begin(len(passing.slots), days)
        seconds = batches * batch_seconds(place, worker, maps)
        rows.append(_row(name, visits, 4 * visits, seconds, problem.cells))
    steps = slots + days - 1  # that enter, and that leave
    rows.append(_row("slide (D)", steps, 0, usual_s(place, workers[1][2].finish), problem.cells))
    ratio = rows[0][3] / rows[1][3]
    finding = (
        f"Once each is {ratio:.2g} times as fast as once a window; the slide, {steps} sums that "
        f"enter or leave, takes {rows[2][3] / rows[1][3]:.0%} of the sums' time."
    )
    verdict = judged(
        (ratio, _LOW * every / once, _HIGH * every / once),
        (rows[2][3] / rows[1][3], 0, _SLIDE * fetched),
    )
    return Study(KEY, TITLE, CLAIM, predicted, COLUMNS, rows, finding, verdict)


def _row(name: str, visits: int, operations: int, seconds: float, cells: int) -> list[Any]:
    return [name, visits, operations, 1e3 * seconds, 1e-9 * visits * cells / seconds]
