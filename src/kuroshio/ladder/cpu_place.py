"""The processor as a place: rings are worked on where they are, by all threads at once."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from time import perf_counter
from typing import Any

import numpy as np

from ..device.cpu import Crew, available_memory_bytes
from .place import Feed, Launch, Resources, Span, Worker, empty_host

_SHARES = 4  # of the cells, a thread


class _CpuLaunch:
    resources: Resources | None = None

    def __init__(self, crew: Crew, function: Any) -> None:
        self._crew, self._function = crew, function

    def __call__(self, cells: int, *args: Any) -> None:
        edges = np.linspace(0, cells, _SHARES * self._crew.threads + 1).astype(int).tolist()
        shares = [
            (np.int64(first), np.int64(last), *args)
            for first, last in itertools.pairwise(edges)
            if first < last
        ]
        self._function(*(np.int64(0), np.int64(0), *args))  # compiles it, in one thread
        self._crew.run(self._function, shares)


class CpuPlace:
    """As `place.Place`; use as a context, so that its threads end."""

    name = "cpu"

    def __init__(self, model: str, threads: int) -> None:
        self.model, self.threads = model, threads
        self._crew = Crew(threads)

    def __enter__(self) -> CpuPlace:
        return self

    def __exit__(self, *_: object) -> None:
        self._crew.dismiss()

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        return np.zeros(shape, dtype)

    def clear(self, array: np.ndarray) -> None:
        array[...] = 0

    def kernels(
        self, name: str, macros: Mapping[str, int | str], kernels: Sequence[str]
    ) -> Mapping[str, Launch]:
        module = import_module(f".rungs.{name}_cpu", __package__)
        return {kernel: _CpuLaunch(self._crew, getattr(module, kernel)) for kernel in kernels}

    def host(self, shape: tuple[int, ...]) -> np.ndarray:
        return empty_host(shape, np.float64)

    def free_bytes(self) -> int:
        return available_memory_bytes()

    def seconds(self, begin: Callable[[], Any]) -> float:
        start = perf_counter()
        begin()
        return perf_counter() - start

    def feed(self, maps: int, cells: int) -> Feed:
        return _CpuFeed()


class _CpuFeed:
    """As `place.Feed`: work is done when it is begun."""

    def __init__(self) -> None:
        self._computes: list[Span] = []

    def send(self, worker: Worker, maps: np.ndarray, number: int) -> Any:
        start = perf_counter()
        worker.batch(maps, maps.shape[1])
        self._computes.append((start, perf_counter()))
        return lambda: None

    def finish(self, worker: Worker) -> tuple[np.ndarray, np.ndarray]:
        start = perf_counter()
        found = worker.finish()
        self._computes.append((start, perf_counter()))
        return found

    def spans(self) -> tuple[list[Span], list[Span]]:
        computes, self._computes = self._computes, []
        return [], computes
