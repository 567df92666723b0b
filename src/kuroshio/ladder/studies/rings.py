"""Strategy 6: how many rings, for readers of different speed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..files import BYTES, LIBRARY
from ..pipeline import Pipeline
from ..place import Worker
from ..results import PassTimes
from ..run import Ground
from ..rungs import direct
from ..study import CONFIRMED, REFUTED, UNDECIDED, Study
from ..waits import played, rings_by_formula
from .common import first_pass, no_file

KEY, TITLE = "rings", "How many rings"
CLAIM = "With R rings nothing waits if (R - 1) T_gpu >= T_io."
COLUMNS = [
    "reader", "threads", "R", "T_io ms", "copy ms", "T_gpu ms", "R by formula", "predicted s",
    "waited s", "pass s",
]  # fmt: skip
RINGS = (2, 3, 4, 7, 12)
_NEAR = 0.1  # of a pass and of what was predicted, that a wait may be off
_MOST = 0.8  # of all waits are to be near
_SHORT_S = 0.1


def run(ground: Ground) -> Study:
    """Strategy B with batches of a year, so that a pass has enough of them for 12 rings."""
    problem = replace(ground.problem, batch_years=1)
    ground = replace(ground, problem=problem)
    passing = first_pass(ground)
    predicted = (
        "From the times of a batch in a pass with 2 rings, T_io to read it, to copy it, and T_gpu "
        "of its kernels, played through batch by batch: where the reader is the slower side, "
        "waiting hardly depends on R. The formula would have as many rings as the column says."
    )
    worker = direct.worker(ground.place, problem)
    rows: list[list[Any]] = []
    near, totals = 0, {}
    crews = {(LIBRARY, 1), (BYTES, 1), (BYTES, 2), (BYTES, ground.machine.threads)}
    for how, threads in sorted(crews, key=lambda crew: (crew[0] != LIBRARY, crew[1])):
        before = _pass(ground, worker, RINGS[0], how, threads, warm=True)
        batches = len(passing.batches)
        copy = before.copy_s / batches
        for rings in RINGS:
            expected = played(rings, [before.io_s] * batches, copy, before.gpu_s).hidden_wait_s
            times = _pass(ground, worker, rings, how, threads)
            waited = times.parts["hidden wait"]
            near += abs(waited - expected) <= _NEAR * (times.total_s + expected)
            totals[how, threads, rings] = times.total_s
            rows.append(
                [how, threads, rings, 1e3 * before.io_s, 1e3 * copy, 1e3 * before.gpu_s,
                 rings_by_formula(before.io_s, before.gpu_s), expected, waited, times.total_s]
            )  # fmt: skip
    by_rings = max(totals[(*crew, RINGS[0])] / totals[(*crew, RINGS[-1])] for crew in crews)
    slow, fast = (LIBRARY, 1, RINGS[0]), (BYTES, ground.machine.threads, RINGS[0])
    finding = (
        f"{RINGS[-1]} rings instead of {RINGS[0]} make a pass {by_rings:.2f} times as fast at "
        f"best; {fast[1]} threads that read bytes, instead of one in the library, "
        f"{totals[slow] / totals[fast]:.2f} times. Of {len(rows)} waits {near} came out as "
        "predicted."
    )
    verdict = CONFIRMED if near >= _MOST * len(rows) else REFUTED
    if min(totals.values()) < _SHORT_S:
        finding += f" Passes of less than {_SHORT_S} s are too short to judge by."
        verdict = UNDECIDED
    return Study(KEY, TITLE, CLAIM, predicted, COLUMNS, rows, finding, verdict)


def _pass(
    ground: Ground, worker: Worker, rings: int, how: str, threads: int, warm: bool = False
) -> PassTimes:
    passing = first_pass(ground)
    pipeline = Pipeline(ground.place, ground.files, passing, rings, how, threads)
    if warm:
        pipeline.warm(worker, passing)
    return pipeline.run(worker, passing, no_file)
