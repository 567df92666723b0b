"""Where the tests run rungs: kernels on a device of theirs, and compiled loops, at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from kernel_runs import download
from kuroshio.device.gpu import Gpu
from kuroshio.ladder import texts
from kuroshio.ladder.place import Resources, Worker
from kuroshio.ladder.problem import Problem


@dataclass
class GpuLaunch:
    place: GpuPlace
    kernel: Any
    resources: Resources | None = None

    def __call__(self, cells: int, *args: Any) -> None:
        self.kernel(self.place.stream, -(-cells // 64), 64, args)


class GpuPlace:
    def __init__(self, gpu: Gpu) -> None:
        self.gpu, self.stream = gpu, gpu.stream()
        self.name, self.model = gpu.name, gpu.model

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> Any:
        return self.gpu.zeros(shape, dtype)

    def clear(self, array: Any) -> None:
        self.gpu.clear(array, self.stream)

    def kernels(
        self, name: str, macros: Mapping[str, int | str], kernels: Sequence[str]
    ) -> dict[str, GpuLaunch]:
        compiled = self.gpu.kernels(texts.text(name, macros), kernels)
        return {each: GpuLaunch(self, compiled[each]) for each in kernels}

    def upload(self, target: Any, maps: np.ndarray) -> None:
        self.gpu.upload(target, maps, self.stream)

    def download(self, array: Any) -> np.ndarray:
        self.stream.synchronize()
        return download(self.gpu, array)


@dataclass
class CpuLaunch:
    function: Any
    resources: Resources | None = None

    def __call__(self, cells: int, *args: Any) -> None:
        half = cells // 2  # in two parts, as threads share the cells
        self.function(0, half, *args)
        self.function(half, cells, *args)


class CpuPlace:
    name, model = "cpu", "the processor"

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        return np.zeros(shape, dtype)

    def clear(self, array: np.ndarray) -> None:
        array.fill(0)

    def kernels(
        self, name: str, macros: Mapping[str, int | str], kernels: Sequence[str]
    ) -> dict[str, CpuLaunch]:
        module = import_module(f"kuroshio.ladder.rungs.{name}_cpu")
        return {each: CpuLaunch(getattr(module, each)) for each in kernels}

    def upload(self, target: np.ndarray, maps: np.ndarray) -> None:
        target[...] = maps

    def download(self, array: np.ndarray) -> np.ndarray:
        return array.copy()


def run(
    place: GpuPlace | CpuPlace, worker: Worker, problem: Problem, maps: np.ndarray, days: int
) -> tuple[np.ndarray, np.ndarray]:
    """Means and thresholds (day, cell) of a pass of maps (slot, year, cell), batch by batch."""
    slots = maps.shape[0]
    worker.begin(slots, days)
    first = 0
    for batch in problem.batches():
        years = len(batch.years)
        target = worker.target(batch.number)
        if target is None:
            target = place.zeros((slots, years, problem.cells), np.float64)
        place.upload(target, np.ascontiguousarray(maps[:, first : first + years]))
        worker.batch(target, years)
        first += years
    means, thresholds = worker.finish()
    return place.download(means), place.download(thresholds)
