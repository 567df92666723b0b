"""The roofline: its arithmetic, the class of real work on this machine, results, the picture."""

from __future__ import annotations

from dataclasses import replace
from statistics import median
from time import perf_counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from kuroshio.errors import Refusal
from kuroshio.perf import roofline
from kuroshio.perf.ceilings import cpu
from kuroshio.perf.ceilings.ceiling import BANDWIDTHS, GB, GOP, Ceiling
from kuroshio.perf.ceilings.cpu import Effort
from kuroshio.perf.roofline import (
    AT_ROOF,
    BANDWIDTH_BOUND,
    COMPUTE_BOUND,
    NEITHER,
    Point,
    attainable,
    judge,
    roofs,
)  # fmt: skip

positive = st.floats(1e-3, 1e6)
shares = st.floats(0.01, 1.0)


def made(name: str, level: str | None, value: float, threads: int | None = 1) -> Ceiling:
    unit = GOP if level is None else GB
    return Ceiling(name, level, unit, value, 0.9 * value, 1.1 * value, 9, "made up", threads)


def ceilings(memory: float = 20.0, cache: float = 100.0, peak: float = 50.0) -> list[Ceiling]:
    """Copying gets 0.9 of what reading gets; two threads get twice as much."""
    return [
        made(name, level, threads * share * value, threads)
        for threads in (1, 2)
        for level, value in (("L1", cache), ("memory", memory))
        for name, share in zip(BANDWIDTHS, (1.0, 0.9, 0.95), strict=True)
    ] + [made("float64 fma", None, threads * peak, threads) for threads in (1, 2)]


def work(rate: float, intensity: float, **more) -> Point:
    """Gop/s at operations a byte, in a second."""
    return Point(name="work", seconds=1.0, bytes=1e9 * rate / intensity, flops=1e9 * rate,
                 operations="float64 fma", **more)  # fmt: skip


@given(positive, positive, positive)
def test_attainable_is_the_lower_roof(intensity, bandwidth, peak):
    found = attainable(intensity, bandwidth, peak)
    assert found <= peak
    assert found <= intensity * bandwidth
    assert found in (peak, intensity * bandwidth)


@given(positive, positive, positive, shares)
def test_distance_is_that_to_the_lower_roof(intensity, memory, peak, share):
    under = roofs("cpu", ceilings(memory, 5 * memory, peak), 1)
    roof = attainable(intensity, memory, peak)
    found = judge(work(share * roof, intensity), under, "memory")
    if intensity * memory >= peak or share < 0.5:
        assert found.of_roof == pytest.approx(share)
    bandwidth, compute = intensity * memory < peak, intensity * memory >= peak
    if bandwidth and share >= AT_ROOF * 1.001:
        assert found.kind == BANDWIDTH_BOUND
    if compute and share >= AT_ROOF * 1.001:
        assert found.kind == COMPUTE_BOUND
    if share < 0.9 * AT_ROOF * 0.999:
        assert found.kind == NEITHER
    assert found.intensity == pytest.approx(intensity)


def test_what_is_faster_than_memory_came_from_a_cache():
    under = roofs("cpu", ceilings(), 1)
    near = judge(Point(name="near", seconds=1.0, bytes=60e9), under)
    assert (near.level, near.kind) == ("L1", BANDWIDTH_BOUND)
    assert "came from a cache" in near.notes[0]
    far = judge(Point(name="far", seconds=1.0, bytes=18e9), under)
    assert (far.level, far.kind) == ("memory", BANDWIDTH_BOUND)
    assert judge(Point(name="far", seconds=1.0, bytes=18e9), under, "L1").kind == NEITHER


def test_more_than_was_measured_is_doubted():
    under = roofs("cpu", ceilings(), 1)
    assert "check the declared bytes" in judge(work(100, 1000), under).notes[0]
    assert "check the declared bytes" in judge(
        Point(name="x", seconds=1.0, bytes=1e12), under
    ).notes[-1]  # fmt: skip


def test_threads_choose_the_roofs():
    assert roofs("cpu", ceilings(), 1).best("memory").value == 20
    assert roofs("cpu", ceilings()).best("memory").value == 40
    with pytest.raises(Refusal, match="only of 1, 2"):
        roofs("cpu", ceilings(), 3)
    with pytest.raises(Refusal, match="no memory bandwidth"):
        roofs("cpu", [made("float64 fma", None, 1.0)])
    with pytest.raises(Refusal, match="there are L1, memory"):
        judge(work(1, 1), roofs("cpu", ceilings()), "L3")


def test_operations_without_a_ceiling_are_said():
    under = roofs("cpu", ceilings(), 1)
    point = replace(work(10, 1), operations="int8 dot")
    found = judge(point, under)
    assert "int8 dot" in found.notes[0]
    assert "float64 fma" in found.notes[0]
    assert found.kind == NEITHER  # 10 of 20 GB/s, and nothing to hold its operations to


def test_other_operations_on_floats_are_held_to_fma():
    under = roofs("cpu", ceilings(), 1)
    found = judge(replace(work(40, 100), operations="float64 add"), under)
    assert (found.kind, found.of_roof) == (COMPUTE_BOUND, pytest.approx(0.8))
    assert "attain half" in found.notes[0]
    assert judge(work(40, 100), under).notes == ()
    assert judge(replace(work(40, 100), operations="float32 add"), under).of_roof != 0.8


def test_counted_bytes_count():
    under = roofs("cpu", ceilings(), 1)
    point = replace(work(1, 0.5), counted_bytes=18e9)
    found = judge(point, under)
    assert found.kind == BANDWIDTH_BOUND
    assert judge(replace(point, counted_bytes=None), under).kind == NEITHER
    assert found.ratio == pytest.approx(9)
    assert "far more" in found.ratio_says
    assert found.declared_intensity == pytest.approx(0.5)
    assert found.intensity == pytest.approx(1 / 18)


@pytest.mark.parametrize(
    ("ratio", "word"),
    [(None, ""), (0.5, "fewer"), (1.0, "as declared"), (1.3, "somewhat"), (4.0, "far more")],
)
def test_ratios_are_judged(ratio, word):
    assert word in roofline.ratio_says(ratio)
    assert bool(roofline.ratio_says(ratio)) == (ratio is not None)


@njit(nogil=True)
def scale(source, target):
    for i in range(source.size):
        target[i] = 3.0 * source[i] + 1.0


@njit(nogil=True, fastmath={"contract"})
def polynomials(values, passes):
    for _ in range(passes):
        for i in range(values.size):
            x = values[i]
            y = x * x + 0.25
            y = y * x + 0.5
            y = y * x + 0.75
            y = y * x + 0.25
            y = y * x + 0.5
            y = y * x + 0.75
            y = y * x + 0.25
            y = y * x + 0.5
            y = y * x + 0.75
            y = y * x + 0.25
            y = y * x + 0.5
            y = y * x + 0.75
            y = y * x + 0.25
            y = y * x + 0.5
            y = y * x + 0.75
            y = y * x + 0.25
            y = y * x + 0.5
            y = y * x + 0.75
            y = y * x + 0.25
            y = y * x + 0.5
            values[i] = y * 1e-3


FREE = 2 << 30  # bytes: arrays, and those that ceilings are measured with, take a quarter


def timed(function, *arguments, calls: int) -> float:
    function(*arguments)
    found = []
    for _ in range(7):
        start = perf_counter()
        for _ in range(calls):
            function(*arguments)
        found.append((perf_counter() - start) / calls)
    return median(found)


def here() -> tuple[roofline.Judgement, roofline.Judgement]:
    """Work that streams and work that computes, under ceilings measured just before."""
    effort = Effort(9, 4e-3)
    found = [c for c in cpu.memory(1, effort, ("memory",)) if isinstance(c, Ceiling)]
    found += cpu.compute(1, effort, ("float64 fma",))
    under = roofs("cpu", found)
    # As far from the processor as what the ceiling is measured with.
    items = max(place.nbytes for place in cpu.places(cpu.caches(), 1, FREE)) // 16
    source, target = np.ones(items), np.zeros(items)
    streaming = Point(
        name="scale", seconds=timed(scale, source, target, calls=1), bytes=16 * items,
        flops=2 * items, operations="float64 fma",
    )  # fmt: skip
    near = np.full(2048, 0.5)
    computing = Point(
        name="polynomials", seconds=timed(polynomials, near, 1000, calls=1), bytes=16 * 2048,
        flops=1000 * 41 * 2048, operations="float64 fma",
    )  # fmt: skip
    return judge(streaming, under), judge(computing, under)


def test_real_work_is_classed_rightly(monkeypatch):
    """Others may be at work on this machine, so a try may fail; wrong rules fail every one."""
    monkeypatch.setattr(cpu, "available_memory_bytes", lambda: FREE)
    tries = []
    for _ in range(8):
        streaming, computing = here()
        tries.append((streaming, computing))
        if (streaming.kind, computing.kind) == (BANDWIDTH_BOUND, COMPUTE_BOUND):
            assert streaming.level == "memory"
            return
    pytest.fail("\n".join(f"{s}\n{c}" for s, c in tries))
