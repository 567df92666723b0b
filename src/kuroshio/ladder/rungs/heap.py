"""The baseline: the largest values of each day and cell in a heap, which lies in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..place import Array, Launch, Place
from ..problem import Problem

NAME = "heap"
KERNELS = ("push_heaps", "from_heaps")


def macros(problem: Problem) -> dict[str, int | str]:
    return {"LARGEST": problem.largest}


@dataclass
class Worker:
    """A heap a day and cell in the device's memory; a launch a batch, see place.Worker."""

    place: Place
    problem: Problem
    days: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        shape = self.problem.pass_days, self.problem.cells
        zeros = self.place.zeros
        self._heaps = zeros((shape[0], self.problem.largest, shape[1]), np.float32)
        self._counts, self._sums = zeros(shape, np.int32), zeros(shape, np.float64)
        self._means, self._thresholds = zeros(shape, np.float32), zeros(shape, np.float32)
        self._kernels = self.place.kernels(NAME, macros(self.problem), KERNELS)

    def begin(self, slots: int, days: int) -> None:
        self.days = days
        self.place.clear(self._counts)  # a heap of no values counts as empty, whatever it holds
        self.place.clear(self._sums)

    def target(self, batch: int) -> Array | None:
        return None

    def batch(self, maps: Array, years: int) -> None:
        cells = self.problem.cells
        self._kernels["push_heaps"](
            cells, maps, np.int32(cells), np.int32(years), np.int32(self.days),
            np.int32(self.problem.window), self._heaps, self._counts, self._sums,
        )  # fmt: skip

    def finish(self) -> tuple[Array, Array]:
        cells = self.problem.cells
        self._kernels["from_heaps"](
            cells, np.int32(cells), np.int32(self.days), np.float64(self.problem.percentile / 100),
            self._heaps, self._counts, self._sums, self._means, self._thresholds,
        )  # fmt: skip
        return self._means[: self.days], self._thresholds[: self.days]

    @property
    def launches(self) -> Sequence[Launch]:
        return list(self._kernels.values())


def worker(place: Place, problem: Problem) -> Worker:
    return Worker(place, problem)
