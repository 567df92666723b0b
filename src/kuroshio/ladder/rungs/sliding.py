"""Strategy D: every value added once, to the sums of its slot; then the window slides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..place import Array, Launch, Place
from ..problem import Problem
from .sums import PUBLISHED, Form, Sums

NAME = "sliding"
KERNELS = ("find_references", "slot_sums", "slide")


@dataclass
class Worker:
    """Sums a slot and cell; a launch a batch, and one that slides, see place.Worker."""

    place: Place
    problem: Problem
    form: Form
    slots: int = field(init=False, default=0)
    days: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self._kernels = self.place.kernels(NAME, self.form.macros(), KERNELS)
        find_references = self._kernels["find_references"]
        slots = self.problem.pass_days + self.problem.window - 1
        self._sums = Sums(self.place, self.problem, self.form, slots, find_references)

    def begin(self, slots: int, days: int) -> None:
        self.slots, self.days = slots, days
        self._sums.clear()

    def target(self, batch: int) -> Array | None:
        return None

    def batch(self, maps: Array, years: int) -> None:
        cells, held = self.problem.cells, self._sums
        held.meet(maps)
        self._kernels["slot_sums"](
            cells, maps, np.int32(cells), np.int32(years), np.int32(self.slots),
            held.references, held.sums, held.counts,
        )  # fmt: skip

    def finish(self) -> tuple[Array, Array]:
        cells, held = self.problem.cells, self._sums
        self._kernels["slide"](
            cells, np.int32(cells), np.int32(self.days), np.int32(self.problem.window),
            *held.formula(), held.sums, held.counts, held.references, held.means, held.thresholds,
        )  # fmt: skip
        return held.means[: self.days], held.thresholds[: self.days]

    @property
    def launches(self) -> Sequence[Launch]:
        return list(self._kernels.values())


def worker(place: Place, problem: Problem, form: Form = PUBLISHED) -> Worker:
    return Worker(place, problem, form)
