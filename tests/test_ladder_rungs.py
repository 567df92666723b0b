"""The ladder's kernels, held to the oracle or, literally, to what was published."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from kuroshio.cornish_fisher import coefficients
from kuroshio.ladder.problem import Problem
from kuroshio.ladder.rungs import direct, heap, registers, sliding
from kuroshio.ladder.rungs.sums import CORRECTED
from ladder_maps import (
    PublishedSums,
    exact,
    float32_step,
    fused,
    gaps,
    maps_of,
    multiplied,
    offsets,
    problems,
    seeds,
    spreads,
)  # fmt: skip
from ladder_places import CpuPlace, GpuPlace, run

few = settings(max_examples=15)
drawn = given(problem=problems, seed=seeds, offset=offsets, spread=spreads, missing=gaps)


def by_heap(place, problem):
    """As strategy A, with the heap that it replaces."""
    macros = heap.macros(problem)
    return registers.Worker(place, problem, "heap", "largest_by_heap", macros)


EXACT = {
    "heap": heap.worker,
    "registers": registers.worker,
    "registers, branchy": lambda place, problem: registers.worker(place, problem, branchy=True),
    "heap of a whole pass": by_heap,
}
MOMENTS = {"direct": direct.worker, "sliding": sliding.worker}


def passes(place, make, problem: Problem, *how):
    """Maps, means and thresholds of two passes of one worker.

    The second has fewer days, and values so far off that whatever is left of the first shows.
    """
    worker = make(place, problem)
    seed, offset, *others = how
    for days, off in ((problem.pass_days, 0), (problem.pass_days - 1, 500)):
        maps = maps_of(problem, days, seed + off, offset + off, *others)
        yield maps, *run(place, worker, problem, maps, days)


def hold_to_the_oracle(place, make, problem: Problem, *how) -> None:
    for maps, means, thresholds in passes(place, make, problem, *how):
        mean, threshold, _ = exact(problem, maps)
        step = float32_step(maps)
        for found, right in ((means, mean), (thresholds, threshold)):
            assert found.dtype == np.float32
            np.testing.assert_array_equal(np.isnan(found), np.isnan(right))
            assert np.nanmax(np.abs(found - right) / step) <= 1


def hold_to_moments(place, make, problem: Problem, *how) -> None:
    for maps, means, thresholds in passes(place, make, problem, *how):
        mean, threshold, std = exact(problem, maps, "moments")
        step = float32_step(maps)
        # Sums about a value of the cell keep so many digits of a fourth moment ...
        away = np.nanmax(maps, axis=(0, 1), initial=-1e9) - np.nanmin(maps, (0, 1), initial=1e9)
        with np.errstate(all="ignore"):
            room = np.nan_to_num(1e-14 * (away / std) ** 4 * std)
        # ... and where too few are left the estimate is the mean.
        flat = std < 1e-4 * away
        room = np.where(flat, problem.pool * std, room)
        np.testing.assert_array_equal(np.isnan(thresholds), np.isnan(threshold))
        assert np.nanmax(np.abs(means - mean) / step) <= 1
        assert np.nanmax(np.abs(thresholds - threshold) / (step + room)) <= 1


def sums_directly(problem: Problem, maps: np.ndarray, multiply_add) -> list[PublishedSums]:
    found = []
    for day in range(maps.shape[0] - problem.window + 1):
        sums = PublishedSums(problem.cells, multiply_add)
        first = 0
        for batch in problem.batches():
            for slot in maps[day : day + problem.window]:
                for values in slot[first : first + len(batch.years)]:
                    sums.add(values)
            first += len(batch.years)
        found.append(sums)
    return found


def sums_sliding(problem: Problem, maps: np.ndarray, multiply_add) -> list[PublishedSums]:
    slots = []
    for slot in maps:
        slots.append(PublishedSums(problem.cells, multiply_add))
        for values in slot:
            slots[-1].add(values)
    window, found = PublishedSums(problem.cells), []
    for number, entering in enumerate(slots):
        window.powers, window.count = window.powers + entering.powers, window.count + entering.count
        if (day := number - problem.window + 1) > 0:
            window.powers = window.powers - slots[day - 1].powers
            window.count = window.count - slots[day - 1].count
        if day >= 0:
            found.append(PublishedSums(problem.cells))
            found[-1].powers, found[-1].count = window.powers, window.count
    return found


def hold_to_what_was_published(place, name: str, multiply_add, problem: Problem, *how) -> None:
    sums_of = {"direct": sums_directly, "sliding": sums_sliding}[name]
    terms = coefficients([problem.percentile / 100])[0]
    for maps, means, thresholds in passes(place, MOMENTS[name], problem, *how):
        for day, sums in enumerate(sums_of(problem, maps, multiply_add)):
            mean, threshold = sums.estimate(terms)
            np.testing.assert_array_equal(means[day], mean)
            np.testing.assert_array_equal(thresholds[day], threshold)


def corrected(name: str):
    return lambda place, problem: MOMENTS[name](place, problem, CORRECTED)


@pytest.mark.parametrize("name", EXACT)
@few
@drawn
def test_largest_values_on_a_device_give_the_percentile(
    gpu, name, problem, seed, offset, spread, missing
):
    hold_to_the_oracle(GpuPlace(gpu), EXACT[name], problem, seed, offset, spread, missing)


@few
@drawn
def test_heaps_on_the_processor_give_the_percentile(problem, seed, offset, spread, missing):
    hold_to_the_oracle(CpuPlace(), heap.worker, problem, seed, offset, spread, missing)


inner = problems.filter(lambda problem: 0 < problem.percentile < 100)
drawn_inner = given(problem=inner, seed=seeds, offset=offsets, spread=spreads, missing=gaps)


@pytest.mark.parametrize("name", MOMENTS)
@few
@drawn_inner
def test_corrected_moments_on_a_device(gpu, name, problem, seed, offset, spread, missing):
    hold_to_moments(GpuPlace(gpu), corrected(name), problem, seed, offset, spread, missing)


@pytest.mark.parametrize("name", MOMENTS)
@few
@drawn_inner
def test_corrected_moments_on_the_processor(name, problem, seed, offset, spread, missing):
    hold_to_moments(CpuPlace(), corrected(name), problem, seed, offset, spread, missing)


@pytest.mark.parametrize("name", MOMENTS)
@few
@drawn_inner
def test_published_moments_on_a_device(gpu, name, problem, seed, offset, spread, missing):
    hold_to_what_was_published(GpuPlace(gpu), name, fused, problem, seed, offset, spread, missing)


@pytest.mark.parametrize("name", MOMENTS)
@few
@drawn_inner
def test_published_moments_on_the_processor(name, problem, seed, offset, spread, missing):
    hold_to_what_was_published(CpuPlace(), name, multiplied, problem, seed, offset, spread, missing)
