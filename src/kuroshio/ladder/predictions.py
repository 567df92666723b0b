"""What a rung is held to take, computed before it runs: operations, bytes and waits.

A kernel takes at least what the device needs to fetch its maps once, or to carry out its
operations, whichever is more: the low end. The high end fetches a value anew at every visit, and
grants a factor for what the compiler and the caches do not manage. What a pass takes follows by
playing the turns of reader, link and device through (`waits.py`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from .machine import Machine
from .problem import Pass, Problem
from .waits import played

_READER = 0.15  # that the reader's rate differs from when it was measured
_CPU_SLACK = 8  # a compiler that makes no vectors of it loses so much


@dataclass(frozen=True)
class Costs:
    """What a cell's kernels do in a pass.

    visits      values that are fetched, each of 8 bytes
    operations  by name of `Machine.giga_operations`
    bytes       fetched and stored besides
    slack       how many times what bounds it a kernel may take
    resident    maps lie on the device before the first kernel begins
    """

    visits: float
    operations: Mapping[str, float]
    bytes: float
    slack: float = 4.0
    resident: bool = False


@dataclass(frozen=True)
class Predicted:
    """Of a pass: seconds, lowest and highest; None is what was not predicted.

    io_s, copy_s  of a batch; of the engine, which has none, of a pass
    counted       what the seconds were computed from, in a sentence
    """

    gpu_s: tuple[float, float] | None
    total_s: tuple[float, float]
    hidden_wait_s: float | None
    io_s: float
    copy_s: float
    counted: str = ""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def text(self) -> str:
        least, most = self.total_s
        takes = f"a pass takes {least:.3g} to {most:.3g} s"
        if self.gpu_s is None or self.hidden_wait_s is None:
            seconds = (
                f"Of a pass its share is read in {self.io_s:.3g} s and copied in {self.copy_s:.3g} "
                "s. Between reading alone, and twice reading, copying and writing one after the "
                f"other, {takes}; fixed costs of a run are not in it."
            )
        else:
            low, high = self.gpu_s
            seconds = (
                f"So kernels take {low:.3g} to {high:.3g} s a pass. A batch is read in "
                f"{self.io_s:.3g} s and copied in {self.copy_s:.3g} s, so the device waits "
                f"{self.hidden_wait_s:.3g} s and {takes}."
            )
        return f"{self.counted} {seconds}".strip()


def predicted(
    costs: Costs, rings: int, problem: Problem, passing: Pass, machine: Machine
) -> Predicted:
    """Of a rung with so many rings."""
    cells, batches = problem.cells, len(passing.batches)
    bytes_once = 8 * passing.maps + costs.bytes
    bytes_each = 8 * costs.visits + costs.bytes
    memory = 1e9 * machine.memory_gb / cells
    at_work = max(
        (n * cells / (1e9 * machine.giga_operations[name]) for name, n in costs.operations.items()),
        default=0.0,
    )
    slack = costs.slack * (1 if machine.link_gb else _CPU_SLACK)
    gpu = max(bytes_once / memory, at_work), slack * max(bytes_each / memory, at_work)
    batch_bytes = problem.map_bytes * passing.maps / batches
    io_s = batch_bytes / (1e9 * machine.library_gb)
    copy_s = batch_bytes / (1e9 * machine.link_gb) if machine.link_gb else 0.0
    results_bytes = 2 * 4 * len(passing.doys) * cells
    end_s = machine.write_s + (results_bytes / (1e9 * machine.link_gb) if machine.link_gb else 0.0)
    totals, waits = [], []
    for kernels, factor in zip(gpu, (1 - _READER, 1 + _READER), strict=True):
        each = 0.0 if costs.resident else kernels / batches
        turns = played(rings, [factor * io_s] * batches, copy_s, each)
        totals.append(turns.total_s + (kernels if costs.resident else 0.0) + end_s)
        waits.append(turns.hidden_wait_s)
    return Predicted(
        gpu, (totals[0], totals[1]), sum(waits) / 2, io_s, copy_s,
        _counted(costs, problem, passing, machine),
    )  # fmt: skip


def _counted(costs: Costs, problem: Problem, passing: Pass, machine: Machine) -> str:
    operations = ", ".join(
        f"{n:,.0f} operations of {name} at {machine.giga_operations[name]:,.0f} x 10^9 a second"
        for name, n in costs.operations.items()
    )
    besides = f", and {costs.bytes:,.0f} bytes besides" if costs.bytes else ""
    return (
        f"A cell's kernels fetch {costs.visits:,.0f} values, {passing.maps:,} different ones"
        f"{besides}, at {machine.memory_gb:,.0f} GB/s, and do {operations}, in "
        f"{problem.cells:,} cells."
    )


def engine(problem: Problem, machine: Machine) -> Predicted:
    """Of this package's engine, which reads each file once and with all threads, for 12 days.

    The low end is reading alone; the high end has reading, copying and writing one after the other,
    and twice as long as they take.
    """
    nbytes = problem.files * problem.map_bytes
    passes = (problem.doys[1] - problem.doys[0] + 1) / problem.pass_days
    read_s = nbytes / (1e9 * machine.bytes_gb) / passes
    copy_s = nbytes / (1e9 * machine.link_gb) / passes if machine.link_gb else 0.0
    total_s = (1 - _READER) * read_s, 2 * (read_s + copy_s + machine.write_s)
    counted = (
        f"{problem.files:,} files are read once, {1e-9 * nbytes / passes:.3g} GB for each 12 days, "
        f"at {machine.bytes_gb:.3g} GB/s."
    )
    return Predicted(None, total_s, None, read_s, copy_s, counted)


def heap_steps(pool: int, largest: int) -> float:
    """Steps down a heap for a pool in any order: of n values K (1 + ln(n / K)) enter it."""
    entering = largest * (1 + math.log(max(pool / largest, 1)))
    return entering * math.log2(max(largest, 2))
