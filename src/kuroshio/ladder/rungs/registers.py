"""Strategy A: all maps of a pass on the device, the largest values of a window in registers.

There is no version for processors: what it shows is where a GPU keeps an array.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..place import Array, Launch, Place
from ..problem import Problem

NAME = "registers"
KERNEL = "largest_in_registers"


def macros(problem: Problem, branchy: bool = False) -> dict[str, int | str]:
    """branchy: values no larger than those kept are passed over by a branch."""
    return {"LARGEST": problem.largest, "BRANCHY": int(branchy)}


@dataclass
class Worker:
    """Maps (batch; slot, year, cell) kept until all are there; a launch a day of year.

    Other kernels that take a whole pass as this one does can be put in its place: `name` of the
    module, `kernel`, and the macros for it.
    """

    place: Place
    problem: Problem
    name: str = NAME
    kernel: str = KERNEL
    macros: dict[str, int | str] = field(default_factory=dict)
    slots: int = field(init=False, default=0)
    days: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        problem, zeros = self.problem, self.place.zeros
        days, cells = problem.pass_days, problem.cells
        most_slots = days + problem.window - 1
        self._years = [len(batch.years) for batch in problem.batches()]
        self._maps = zeros((most_slots * problem.number_of_years * cells,), np.float64)
        self._means, self._thresholds = (zeros((days, cells), np.float32) for _ in range(2))
        self._kernels = self.place.kernels(self.name, self.macros, (self.kernel,))

    def begin(self, slots: int, days: int) -> None:
        self.slots, self.days = slots, days

    def target(self, batch: int) -> Array | None:
        a_year = self.slots * self.problem.cells
        start, years = a_year * sum(self._years[:batch]), self._years[batch]
        part = self._maps[start : start + a_year * years]
        return part.reshape(self.slots, years, self.problem.cells)

    def batch(self, maps: Array, years: int) -> None:
        """Nothing before all maps are there."""

    def finish(self) -> tuple[Array, Array]:
        problem, cells = self.problem, self.problem.cells
        for day in range(self.days):
            self._kernels[self.kernel](
                cells, self._maps, np.int32(cells), np.int32(self.slots),
                np.int32(problem.number_of_years), np.int32(problem.batch_years), np.int32(day),
                np.int32(problem.window), np.float64(problem.percentile / 100),
                self._means, self._thresholds,
            )  # fmt: skip
        return self._means[: self.days], self._thresholds[: self.days]

    @property
    def launches(self) -> Sequence[Launch]:
        return list(self._kernels.values())


def worker(place: Place, problem: Problem, branchy: bool = False) -> Worker:
    return Worker(place, problem, macros=macros(problem, branchy))
