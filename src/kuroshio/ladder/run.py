"""The rungs one after the other: predicted, run, held to the exact answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..archive.sizes import size_text
from ..device.cpu import available_memory_bytes
from ..errors import Refusal
from . import ours
from .catalogue import Rung
from .exact import Errors, literally
from .files import Files
from .machine import Machine
from .pipeline import Pipeline
from .place import Place
from .problem import Pass, Problem
from .results import RungResult
from .write import write_pass

Say = Callable[[str], None]
_SAMPLE = 200  # cells that the engine's answer is held to NumPy on
_SEED = 1


@dataclass(frozen=True)
class Ground:
    """What all rungs share: the problem, its files, the place, what the machine can do.

    folder  for results, which are removed when they have been looked at
    runs    of each rung, one after the other
    """

    problem: Problem
    files: Files
    place: Place
    machine: Machine
    folder: Path
    runs: int

    @property
    def device(self) -> str:
        return self.place.name

    def run_ours(self) -> ours.Ours:
        return ours.run(
            self.problem, self.files.archive, self.folder / "exact.nc", self.device,
            self.machine.threads,
        )  # fmt: skip


class Exact:
    """The engine's answer, held to NumPy on some cells before anything is held to it."""

    def __init__(self, ground: Ground) -> None:
        ground.run_ours()  # compiles what it needs, so that it can be timed later
        problem = ground.problem
        self.means, self.thresholds = ours.results(problem, ground.folder / "exact.nc")
        first, passing = problem.doys[0], next(problem.passes())
        self._first = first
        random = np.random.default_rng(_SEED)
        cells = random.choice(problem.cells, min(_SAMPLE, problem.cells), replace=False)
        cells.sort()
        errors = Errors()
        rows = self._rows(passing)
        literal = literally(problem, ground.files, passing, cells)
        errors.add(self.means[rows][:, cells], self.thresholds[rows][:, cells], literal)
        self.accuracy = errors.accuracy()
        if not self.accuracy.exact:
            raise Refusal(
                f"The engine's answer is not exact: of {self.accuracy.values:,} values of "
                f"{cells.size} cells the largest difference from NumPy is "
                f"{self.accuracy.largest:.3g}, and {self.accuracy.disagree} are missing in one "
                "only. Please report this; nothing can be measured against it."
            )

    def of(self, passing: Pass) -> tuple[np.ndarray, np.ndarray]:
        rows = self._rows(passing)
        return self.means[rows], self.thresholds[rows]

    def _rows(self, passing: Pass) -> slice:
        start = passing.doys[0] - self._first
        return slice(start, start + len(passing.doys))


def run_engine(rung: Rung, ground: Ground, exact: Exact) -> RungResult:
    """The last rung."""
    done = [ground.run_ours() for _ in range(ground.runs)]
    return RungResult(
        rung.key, rung.title, rings=done[-1].rings, runs=ground.runs,
        passes=[each.times for each in done], accuracy=exact.accuracy,
    )  # fmt: skip


def run_rung(rung: Rung, ground: Ground, exact: Exact) -> RungResult:
    """All passes of the problem, as often as asked; `skipped` says why not, where it cannot be."""
    problem, place = ground.problem, ground.place
    result = RungResult(rung.key, rung.title, rings=rung.rings, runs=ground.runs)
    passes = list(problem.passes())
    if why := _why_not(rung, ground, passes[0]):
        result.skipped = why
        return result
    assert rung.worker
    worker = rung.worker(place, problem)
    pipeline = Pipeline(place, ground.files, passes[0], rung.rings)
    pipeline.warm(worker, passes[0])
    errors = Errors()
    path = ground.folder / "pass.nc"

    def write(passing: Pass, means: np.ndarray, thresholds: np.ndarray) -> None:
        write_pass(path, ground.files.archive, passing, means, thresholds)
        results[:] = [means, thresholds]

    results: list[np.ndarray] = []
    for number in range(ground.runs):
        for passing in passes:
            try:
                result.passes.append(pipeline.run(worker, passing, write))
            finally:
                path.unlink(missing_ok=True)
            if not number:
                errors.add(results[0], results[1], exact.of(passing))
    result.accuracy = errors.accuracy()
    result.resources = [each.resources for each in worker.launches if each.resources]
    return result


def _why_not(rung: Rung, ground: Ground, passing: Pass) -> str:
    """Why a rung cannot be run here; empty if it can."""
    problem, on_cpu = ground.problem, ground.device == "cpu"
    if on_cpu and rung.not_on_cpu:
        return f"not on a processor: {rung.not_on_cpu}"
    batch = len(passing.slots) * problem.batch_years * problem.map_bytes
    room = rung.room(problem, passing) * problem.cells
    there = room + (0 if on_cpu else rung.buffers * batch)
    here = rung.rings * batch + (room if on_cpu else 0)
    free = available_memory_bytes()
    if here > free:
        return f"{size_text(here)} of host memory are needed and {size_text(free)} are free"
    if not on_cpu and there > (free := ground.place.free_bytes()):
        return f"{size_text(there)} are needed on {ground.device} and {size_text(free)} are free"
    return ""
