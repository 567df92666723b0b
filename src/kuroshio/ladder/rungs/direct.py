"""Strategies B and C: moments of each window, every value added for every day that has it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..place import Array, Launch, Place
from ..problem import Problem
from .sums import PUBLISHED, Form, Sums

NAME = "direct"
KERNELS = ("find_references", "window_sums", "from_sums")


@dataclass
class Worker:
    """Sums a day and cell; a launch a batch, see place.Worker."""

    place: Place
    problem: Problem
    form: Form
    days: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self._kernels = self.place.kernels(NAME, self.form.macros(), KERNELS)
        find_references = self._kernels["find_references"]
        days = self.problem.pass_days
        self._sums = Sums(self.place, self.problem, self.form, days, find_references)

    def begin(self, slots: int, days: int) -> None:
        self.days = days
        self._sums.clear()

    def target(self, batch: int) -> Array | None:
        return None

    def batch(self, maps: Array, years: int) -> None:
        cells, held = self.problem.cells, self._sums
        held.meet(maps)
        self._kernels["window_sums"](
            cells, maps, np.int32(cells), np.int32(years), np.int32(self.days),
            np.int32(self.problem.window), held.references, held.sums, held.counts,
        )  # fmt: skip

    def finish(self) -> tuple[Array, Array]:
        cells, held = self.problem.cells, self._sums
        self._kernels["from_sums"](
            cells, np.int32(cells), np.int32(self.days), *held.formula(),
            held.sums, held.counts, held.references, held.means, held.thresholds,
        )  # fmt: skip
        return held.means[: self.days], held.thresholds[: self.days]

    @property
    def launches(self) -> Sequence[Launch]:
        return list(self._kernels.values())


def worker(place: Place, problem: Problem, form: Form = PUBLISHED) -> Worker:
    return Worker(place, problem, form)
