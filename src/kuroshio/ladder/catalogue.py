"""The rungs in order: what each is called, how many rings it has, what its kernels cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from .place import Place, Worker
from .predictions import Costs, heap_steps
from .problem import Pass, Problem
from .rungs import direct, heap, registers, sliding
from .rungs.sums import CORRECTED, PUBLISHED, Form

OURS = "ours"
EXACT, MOMENTS, STATED = "exact", "moments", "stated"  # what a rung's results are held to


@dataclass(frozen=True)
class Rung:
    """A strategy as it is run.

    rings     of the reader; 0: the engine has its own
    worker    makes it, for a place and a problem; None for the engine
    costs     of a pass
    room      bytes a cell takes of the device in a pass, beside the two buffers of batches
    buffers   batches on the device at once
    promise   'exact'; 'moments': an estimate without errors of its own; 'stated': as published
    not_on_cpu  why there is no version for the processor, or empty
    """

    key: str
    title: str
    rings: int
    worker: Callable[[Place, Problem], Worker] | None
    costs: Callable[[Problem, Pass], Costs] | None
    room: Callable[[Problem, Pass], int]
    buffers: int = 2
    promise: str = EXACT
    not_on_cpu: str = ""


def _heap_costs(problem: Problem, passing: Pass) -> Costs:
    """A step compares two children, moves one and looks at the next, in memory of its own."""
    days, batches = len(passing.doys), len(passing.batches)
    visits = days * problem.pool
    steps = days * heap_steps(problem.pool, problem.largest)
    kept = 2 * 4 * problem.largest + 2 * 12  # loaded and stored: a heap, its count and sum
    return Costs(visits, {"int32 min/max": visits + 6 * steps}, days * batches * kept, slack=20)


def _list_costs(problem: Problem, passing: Pass) -> Costs:
    """Every value meets every place of the list: a minimum and a maximum each."""
    visits = len(passing.doys) * problem.pool
    return Costs(visits, {"int32 min/max": 2 * problem.largest * visits}, 0, resident=True)


def _sum_costs(problem: Problem, passing: Pass, sums: int, visits: int, kind: str) -> Costs:
    """Four fused multiply-adds a value, each of two operations; sums are read and written."""
    width = 4 if kind == "float32 fma" else 8
    kept = 2 * 5 * width * sums * len(passing.batches)
    return Costs(visits, {kind: 8 * visits}, kept)


def _direct_costs(problem: Problem, passing: Pass) -> Costs:
    days = len(passing.doys)
    return _sum_costs(problem, passing, days, days * problem.pool, "float32 fma")


def _sliding_costs(problem: Problem, passing: Pass, kind: str) -> Costs:
    return _sum_costs(problem, passing, len(passing.slots), passing.maps, kind)


def _results(passing: Pass) -> int:
    return 2 * 4 * len(passing.doys)


def _heap_room(problem: Problem, passing: Pass) -> int:
    return len(passing.doys) * (4 * problem.largest + 12) + _results(passing)


def _list_room(problem: Problem, passing: Pass) -> int:
    return 8 * passing.maps + _results(passing)


def _sums_room(rows: int, form: Form, passing: Pass) -> int:
    """Four sums and a count each of a day or a slot, and a reference."""
    return rows * (4 * np.dtype(form.dtype).itemsize + 4) + 8 + _results(passing)


def _direct_room(problem: Problem, passing: Pass) -> int:
    return _sums_room(len(passing.doys), PUBLISHED, passing)


def _sliding_room(problem: Problem, passing: Pass, form: Form = PUBLISHED) -> int:
    return _sums_room(len(passing.slots), form, passing)


RUNGS = (
    Rung("baseline", "heap in memory", 2, heap.worker, _heap_costs, _heap_room),
    Rung(
        "A", "list in registers", 2, registers.worker, _list_costs, _list_room, buffers=0,
        not_on_cpu="34 values a cell are more registers than a processor's core has",
    ),
    Rung("B", "moments", 2, direct.worker, _direct_costs, _direct_room, promise=STATED),
    Rung("C", "four rings", 4, direct.worker, _direct_costs, _direct_room, promise=STATED),
    Rung(
        "D", "sliding moments", 4, sliding.worker,
        partial(_sliding_costs, kind="float32 fma"), _sliding_room, promise=STATED,
    ),
    Rung(
        "D+", "corrected", 4, partial(sliding.worker, form=CORRECTED),
        partial(_sliding_costs, kind="float64 fma"), partial(_sliding_room, form=CORRECTED),
        promise=MOMENTS,
    ),
    Rung(OURS, "this package's engine", 0, None, None, lambda problem, passing: 0, buffers=0),
)  # fmt: skip
