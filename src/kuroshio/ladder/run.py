"""The rungs one after the other: predicted, run, held to the exact answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..device.cpu import available_memory_bytes
from ..errors import Refusal
from ..sizes import size_text
from . import ours
from .catalogue import EXACT, MOMENTS, Rung
from .exact import Errors, Maps, literally
from .files import Files
from .machine import Machine
from .pipeline import Pipeline
from .place import Place
from .problem import Pass, Problem
from .results import Accuracy, RungResult
from .write import write_pass

Say = Callable[[str], None]
_SAMPLE = 200  # cells that the engine's answer is held to NumPy on
_SEED = 1
_MOMENTS_UNITS = 16  # of float32's last place, that two ways from moments to results may differ


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

    def run_ours(self, method: str = EXACT) -> ours.Ours:
        return ours.run(
            self.problem, self.files.archive, self.folder / f"{method}.nc", self.device,
            self.machine.threads, method,
        )  # fmt: skip


class Answers:
    """The engine's answers that rungs are held to: the exact one, and the one from moments.

    The exact one is held to NumPy on some cells before anything is held to it. Both runs compile
    what the engine needs, so that it can be timed later.
    """

    def __init__(self, ground: Ground) -> None:
        self._ground, self._problem = ground, ground.problem
        self._found: dict[str, Maps] = {}
        self.accuracy = self._held_to_numpy()

    def of(self, passing: Pass, method: str = EXACT) -> Maps:
        """Means and thresholds, float32 (day, cell)."""
        if method not in self._found:
            self._ground.run_ours(method)
            path = self._ground.folder / f"{method}.nc"
            self._found[method] = ours.results(self._problem, path)
            path.unlink()
        start = passing.doys[0] - self._problem.doys[0]
        means, thresholds = self._found[method]
        return means[start:][: len(passing.doys)], thresholds[start:][: len(passing.doys)]

    def _held_to_numpy(self) -> Accuracy:
        passing = next(self._problem.passes())
        random = np.random.default_rng(_SEED)
        number = min(_SAMPLE, self._problem.cells)
        cells = np.sort(random.choice(self._problem.cells, number, replace=False))
        means, thresholds = self.of(passing)
        errors = Errors()
        literal = literally(self._problem, self._ground.files, passing, cells)
        errors.add((means[:, cells], thresholds[:, cells]), literal)
        accuracy = errors.accuracy()
        if not accuracy.exact:
            raise Refusal(
                f"The engine's answer is not exact: of {accuracy.values:,} values of {number} "
                f"cells the largest difference from NumPy is {accuracy.largest:.3g}, and "
                f"{accuracy.disagree} are missing in one only. Please report this; nothing can be "
                "measured against it."
            )
        return accuracy


def run_engine(rung: Rung, ground: Ground, answers: Answers, runs: int) -> RungResult:
    """The last rung; its results are those that `answers` held to NumPy."""
    done = []
    for _ in range(runs):
        done.append(ground.run_ours())
        (ground.folder / f"{EXACT}.nc").unlink()  # the next would wait until its pages are freed
    return RungResult(
        rung.key, rung.title, rings=done[-1].rings, runs=runs,
        passes=[each.times for each in done], accuracy=answers.accuracy, kept=True,
    )  # fmt: skip


def run_rung(rung: Rung, ground: Ground, answers: Answers) -> RungResult:
    """All passes of the problem, as often as asked; see `why_not`."""
    result = RungResult(rung.key, rung.title, rings=rung.rings, runs=ground.runs)
    passes = list(ground.problem.passes())
    assert rung.worker
    worker = rung.worker(ground.place, ground.problem)
    pipeline = Pipeline(ground.place, ground.files, passes[0], rung.rings)
    pipeline.warm(worker, passes[0])
    errors, from_moments = Errors(), Errors(_MOMENTS_UNITS)
    path = ground.folder / "pass.nc"
    found: list[Maps] = []

    def write(passing: Pass, means: np.ndarray, thresholds: np.ndarray) -> None:
        write_pass(path, ground.files.archive, passing, means, thresholds)
        found[:] = [(means, thresholds)]

    for number in range(ground.runs):
        for passing in passes:
            try:
                result.passes.append(pipeline.run(worker, passing, write))
            finally:
                path.unlink(missing_ok=True)
            if number:
                continue
            errors.add(found[0], answers.of(passing))
            if rung.promise == MOMENTS:
                from_moments.add(found[0], answers.of(passing, MOMENTS))
    result.accuracy = errors.accuracy()
    promises = {EXACT: errors, MOMENTS: from_moments}
    if rung.promise in promises:
        result.kept = promises[rung.promise].accuracy().exact
    result.resources = [each.resources for each in worker.launches if each.resources]
    return result


def why_not(rung: Rung, ground: Ground) -> str:
    """Why a rung cannot be run here; empty if it can."""
    problem, on_cpu = ground.problem, ground.device == "cpu"
    passing = next(problem.passes())
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
