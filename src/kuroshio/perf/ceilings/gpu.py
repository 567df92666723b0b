"""A GPU's ceilings through the device layer: memory, L2, arithmetic, host link, latencies."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from time import perf_counter

import numpy as np

from ...device.gpu import Gpu
from .ceiling import BANDWIDTHS, GB, GOP, US, Ceiling, Missing, ceiling
from .gpu_clock import EVENTS, HOST, Clock, Sizes
from .gpu_program import CHAINS, KERNELS, STEPS, UNROLL, text

BLOCK = 256
_FOUR = 16  # bytes of an item
# Kernel, name, operations a step and chain, bytes a thread leaves, its numbers (see `_arguments`).
_ARITHMETIC = (
    ("fma_float64", "float64 fma", 2, np.float64, "y = a y + b counts as 2"),
    ("fma_float32", "float32 fma", 2, np.float32, "y = a y + b counts as 2"),
    ("fma_float16", "float16 fma", 4, np.uint32, "y = a y + b counts as 2, two halves at a time"),
    ("min_max_int32", "int32 min/max", 1, np.uint32, "a minimum or a maximum counts as 1"),
    ("min_max_uint16", "uint16 min/max", 2, np.uint32, "two at a time in a word"),
    ("popcount_words", "int32 popcount", 1, np.uint32, "each with an addition"),
)


def wanted(name: str, only: tuple[str, ...]) -> bool:
    return not only or any(each in name for each in only)


def measure(
    gpu: Gpu, sizes: Sizes, l2_bytes: int | None, only: tuple[str, ...] = ()
) -> Iterator[Ceiling | Missing]:
    """All that the device layer can measure, or what has one of `only` in its name."""
    with gpu.use():
        kernels = gpu.kernels(text(), KERNELS)
        clock = Clock(gpu, gpu.stream(), sizes.effort)
        for part in (memory, arithmetic, latency):
            yield from part(gpu, kernels, clock, sizes, only)
        if wanted("memory read", only) or wanted("L2", only):
            yield from level_two(gpu, kernels, clock, l2_bytes)
        yield from link(gpu, clock, sizes, only)


def all_threads(gpu: Gpu) -> int:
    """As many as the device holds at once, in whole blocks."""
    limits = gpu.limits
    most = limits.multiprocessors * limits.max_waves * limits.wave_size
    return max(most // BLOCK, 1) * BLOCK


def memory(gpu, kernels, clock, sizes, only) -> Iterator[Ceiling | Missing]:  # type: ignore[no-untyped-def]
    """Read, copy and triad of arrays far larger than any cache."""
    stretch = BLOCK * UNROLL
    items = min(sizes.memory_bytes, gpu.free_bytes() // 4) // _FOUR // stretch * stretch
    if not items:
        yield Missing("memory bandwidth", f"only {gpu.free_bytes():,} bytes of its memory are free")
        return
    if not any(wanted(name, only) for name in BANDWIDTHS):
        return
    nbytes = items * _FOUR
    a, b, c = (gpu.zeros((nbytes,), np.uint8) for _ in range(3))
    found = gpu.zeros((1,), np.uint32)
    for name, arrays, kernel, blocks, given in (
        (BANDWIDTHS[0], 1, "read_once", items // stretch, [a, np.uint32(1), found]),
        (BANDWIDTHS[1], 2, "copy_all", items // BLOCK, [a, b]),
        (BANDWIDTHS[2], 3, "triad_all", items // stretch, [a, b, c, np.float64(2)]),
    ):  # fmt: skip
        if wanted(name, only):
            launch = partial(kernels[kernel], clock.stream, blocks, BLOCK, given)
            samples = [1e-9 * arrays * nbytes / s for s in clock.on_device(launch)]
            how = f"{arrays} array{'s' if arrays > 1 else ''} of {nbytes >> 20} MB; {EVENTS}"
            yield ceiling(name, "memory", GB, samples, how)


def level_two(gpu, kernels, clock, l2_bytes) -> Iterator[Ceiling | Missing]:  # type: ignore[no-untyped-def]
    """An array of half the L2 or less, read over and over, by other multiprocessors every time."""
    if not l2_bytes:
        yield Missing("L2 bandwidth", "the driver does not tell how large the L2 is")
        return
    nbytes, passes = _power_of_two(max(l2_bytes // 2, BLOCK * UNROLL * _FOUR)), 64
    items, threads = nbytes // _FOUR, _power_of_two(all_threads(gpu))
    source, sums = gpu.zeros((nbytes,), np.uint8), gpu.zeros((64,), np.uint32)
    skew = np.int64(items // 16 + BLOCK)
    given = [source, np.int64(items), np.int64(threads), np.int32(passes), skew, sums]
    a_pass = _FOUR * max(items, UNROLL * threads)
    launch = partial(kernels["read_again"], clock.stream, threads // BLOCK, BLOCK, given)
    seconds = clock.on_device(launch)
    how = f"{nbytes >> 10:,} KB of {l2_bytes >> 10:,} KB, {passes} times a launch; {EVENTS}"
    yield ceiling(BANDWIDTHS[0], "L2", GB, [1e-9 * passes * a_pass / s for s in seconds], how)


def arithmetic(gpu, kernels, clock, sizes, only) -> Iterator[Ceiling]:  # type: ignore[no-untyped-def]
    """Independent chains in registers, in as many threads as the device holds."""
    threads = all_threads(gpu)
    for kernel, name, operations, dtype, counted in _ARITHMETIC:
        if not wanted(name, only):
            continue
        out = gpu.zeros((threads,), dtype)
        given = [out, *arguments(gpu, kernel), np.int32(sizes.rounds)]
        seconds = clock.on_device(
            partial(kernels[kernel], clock.stream, threads // BLOCK, BLOCK, given)
        )
        work = 1e-9 * operations * CHAINS * STEPS * sizes.rounds * threads
        how = f"{counted}; {CHAINS} chains in each of {threads:,} threads; {EVENTS}"
        yield ceiling(name, None, GOP, [work / s for s in seconds], how)


def arguments(gpu: Gpu, kernel: str) -> list:
    """What an arithmetic kernel takes between its output and the number of rounds."""
    if kernel == "fma_float16":
        return [np.uint32(0x38003800), np.uint32(0x3C003C00)]  # 0.5 and 1, twice
    if kernel.startswith("fma"):
        dtype = np.dtype(kernel.removeprefix("fma_")).type
        return [dtype(0.5), dtype(1)]
    if kernel.startswith("min_max"):
        bounds = np.random.default_rng(3).integers(0, 1 << 31, 16, np.uint32)
        return [gpu.array(bounds)]
    return []


def latency(gpu, kernels, clock, sizes, only) -> Iterator[Ceiling]:  # type: ignore[no-untyped-def]
    """What a launch and a synchronisation cost, Python's and CuPy's part included."""
    nothing, samples = kernels["nothing"], clock.effort.samples
    by_name: dict[str, list[float]] = {
        "launch": [], "kernel back to back": [], "synchronisation": [], "launch to end": [],
    }  # fmt: skip
    if not any(wanted(name, only) for name in by_name):
        return

    def timed(work) -> float:  # type: ignore[no-untyped-def]
        start = perf_counter()
        work()
        return 1e6 * (perf_counter() - start)

    def launch() -> None:
        nothing(clock.stream, 1, 64, [None])

    def many() -> None:
        for _ in range(sizes.launches):
            launch()

    def to_the_end() -> None:
        launch()
        clock.stream.synchronize()

    to_the_end()
    for _ in range(samples):
        begun = timed(many)
        by_name["launch"].append(begun / sizes.launches)
        rest = timed(clock.stream.synchronize)
        by_name["kernel back to back"].append((begun + rest) / sizes.launches)
        by_name["synchronisation"].append(timed(clock.stream.synchronize))
        by_name["launch to end"].append(timed(to_the_end))
    for name, how in (
        ("launch", f"host time of a call that launches, of {sizes.launches} in a row"),
        ("kernel back to back", f"{sizes.launches} empty kernels in a row until all have ended"),
        ("synchronisation", "of a stream with nothing to do"),
        ("launch to end", "an empty kernel and the synchronisation after it"),
    ):
        if wanted(name, only):
            how += "; host clock, with what Python and CuPy take"
            yield ceiling(name, None, US, by_name[name], how)


def link(gpu, clock, sizes, only) -> Iterator[Ceiling]:  # type: ignore[no-untyped-def]
    """Copies between host and device, from and to pinned memory and any other."""
    nbytes = min(sizes.link_bytes, gpu.free_bytes() // 4)
    there = None
    for kind in ("pinned", "pageable"):
        names = f"host to device, {kind}", f"device to host, {kind}"
        if not any(wanted(name, only) for name in names):
            continue
        if there is None:
            there = gpu.zeros((nbytes,), np.uint8)
        pinned = kind == "pinned"
        here = gpu.pinned((nbytes,), np.uint8) if pinned else np.zeros(nbytes, np.uint8)
        here[:] = 1  # every page is there
        for name, work in (
            (names[0], partial(gpu.upload, there, here, clock.stream)),
            (names[1], partial(gpu.download, here, there, clock.stream)),
        ):
            if not wanted(name, only):
                continue
            seconds = clock.on_device(work) if pinned else clock.on_host(work)
            how = f"{nbytes >> 20} MB at a time; {EVENTS if pinned else HOST}"
            rates = [1e-9 * nbytes / s for s in seconds]
            yield ceiling(name, "link", GB, rates, how, message_bytes=nbytes)


def _power_of_two(most: int) -> int:
    """The highest that is no more: what `read_again` needs."""
    return 1 << (max(most, 1).bit_length() - 1)
