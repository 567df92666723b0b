"""A processor's ceilings: bandwidth of each cache level and of memory, and arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...device.cpu import available_memory_bytes
from . import cpu_kernels as kernels
from .caches import Cache, caches
from .ceiling import BANDWIDTHS, GB, GOP, Ceiling, Missing, ceiling
from .team import passes_for, rates

_LINE = 64
_FALLBACK = 256 << 20  # bytes to go through where nobody tells how large caches are
_ITEMS = 2048  # of arithmetic: 16 KB of float64
_BURSTS = 3
_STREAMS = (
    (BANDWIDTHS[0], kernels.read, 1, np.int64),
    (BANDWIDTHS[1], kernels.copy, 2, np.int64),
    (BANDWIDTHS[2], kernels.triad, 3, np.float64),
)


class Effort(NamedTuple):
    """How many samples a ceiling takes, and how long each."""

    samples: int
    sample_s: float


# Many short ones: where others want the processor, a long one is always interrupted.
FULL, QUICK = Effort(30, 0.005), Effort(9, 0.004)


class Place(NamedTuple):
    """Where arrays are to live: bytes of all arrays of one thread."""

    level: str
    nbytes: int
    note: str

    def items(self, arrays: int) -> int:
        """Of 8 bytes in each of so many arrays: whole cache lines."""
        return self.nbytes // (8 * arrays) // 8 * 8


def memory(
    threads: int, effort: Effort, levels: tuple[str, ...] = (), names: tuple[str, ...] = ()
) -> Iterator[Ceiling | Missing]:
    """Read, copy and triad of each level, or those named, by so many threads at once."""
    cases = []
    for place in places(caches(), threads, available_memory_bytes()):
        if levels and place.level not in levels:
            continue
        if not place.nbytes:
            yield Missing(f"{place.level} bandwidth", place.note)
            continue
        for name, kernel, arrays, dtype in _STREAMS:
            if names and name not in names:
                continue
            items = place.items(arrays)
            how = (
                f"{arrays} array{'s' if arrays > 1 else ''} of {8 * items:,} bytes a thread"
                f"{place.note}; 8 bytes an item and array"
            )
            make = partial(_arrays, arrays, items, dtype)
            cases.append(_Case(name, place.level, GB, kernel, make, 8e-9 * arrays * items, how))
    yield from _measured(cases, threads, effort)


def compute(threads: int, effort: Effort, names: tuple[str, ...] = ()) -> Iterator[Ceiling]:
    """Arithmetic on values in the nearest cache, as Numba compiles it for this processor."""
    chain = f"{kernels.CHAIN} a value between its load and its store, in the nearest cache"
    fused = f"y = a y + b counts as 2; {chain}"
    counts = "of 64-bit words, each with a load and an addition, in the nearest cache"
    cases = [
        _Case(name, None, GOP, kernel, make, 1e-9 * operations * make()[0].size, how)
        for name, kernel, make, operations, how in (
            ("float64 fma", kernels.fma, partial(_fma, np.float64), 2 * kernels.CHAIN, fused),
            ("float32 fma", kernels.fma, partial(_fma, np.float32), 2 * kernels.CHAIN, fused),
            ("int32 min/max", kernels.min_max, _min_max, kernels.CHAIN, chain),
            ("int64 popcount", kernels.popcount, _popcount, 1, counts),
        )
        if not names or name in names
    ]
    yield from _measured(cases, threads, effort)


class _Case(NamedTuple):
    """What `rates` is to measure, and what its ceiling is called."""

    name: str
    level: str | None
    unit: str
    kernel: Callable[..., Any]
    make: Callable[[], tuple]
    amount: float
    how: str


def _measured(cases: list[_Case], threads: int, effort: Effort) -> Iterator[Ceiling]:
    """In bursts, all cases in each: what else the machine does comes and goes.

    How many passes a sample takes is asked once: filling arrays larger than all caches takes longer
    than the samples do.
    """
    passes = [passes_for(case.kernel, case.make(), effort.sample_s) for case in cases]
    samples: list[list[float]] = [[] for _ in cases]
    for burst in range(_BURSTS):
        share = len(range(burst, effort.samples, _BURSTS))
        for found, case, number in zip(samples, cases, passes, strict=True):
            found += rates(case.kernel, case.make, threads, case.amount, share, number)
    for found, case in zip(samples, cases, strict=True):
        how = f"{case.how}; in {_BURSTS} bursts"
        yield ceiling(case.name, case.level, case.unit, found, how, threads)


def places(known: list[Cache], threads: int, free_bytes: int) -> list[Place]:
    """Sizes that lie in each level: half of a thread's share, and more than the level before.

    Memory is four times all caches of the last level, or what a quarter of the free bytes allows.
    """
    found: list[Place] = []
    before = 0
    for cache in known:
        share = cache.nbytes // max(1, min(cache.sharers, -(-threads // cache.count)))
        nbytes = share // 2
        if nbytes <= before:
            why = f"a thread's share, {share:,} bytes, holds no more than the level before it"
            found.append(Place(cache.level, 0, why))
            continue
        found.append(Place(cache.level, nbytes, ""))
        before = share
    last = known[-1] if known else None
    wanted = 4 * last.nbytes * min(last.count, threads) if last else _FALLBACK
    nbytes = min(wanted, free_bytes // 4)
    note = "" if last else " (the sizes of the caches are not known)"
    if last and nbytes < 2 * last.nbytes:
        note = f", hardly more than the {last.level} holds: memory is short"
    return [*found, Place("memory", max(nbytes // threads, 1 << 20), note)]


def _arrays(count: int, items: int, dtype: type) -> tuple:
    return tuple(_aligned(items, np.dtype(dtype), number) for number in range(count))


def _aligned(items: int, dtype: np.dtype, number: int) -> np.ndarray:
    """Ones on a cache line; arrays start at different places of a page, or they hinder another."""
    raw = np.empty(items * dtype.itemsize + 4096 + 5 * _LINE * number, np.uint8)
    skip = -raw.ctypes.data % 4096 + 5 * _LINE * number if raw.nbytes > 1 << 18 else (
        -raw.ctypes.data % _LINE
    )  # fmt: skip
    array = raw[skip : skip + items * dtype.itemsize].view(dtype)
    array[:] = 1
    return array


def _fma(dtype: type) -> tuple:
    return (np.linspace(0, 1, _ITEMS).astype(dtype), dtype(0.5), dtype(1.0))


def _min_max() -> tuple:
    random = np.random.default_rng(1)
    values = random.integers(-(1 << 30), 1 << 30, 2 * _ITEMS, np.int32)
    return values, random.integers(-(1 << 30), 1 << 30, 8).astype(np.int32)


def _popcount() -> tuple:
    return (np.frombuffer(np.random.default_rng(2).bytes(8 * _ITEMS), np.int64),)
