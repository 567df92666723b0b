"""Medians, intervals and drift: by hand, by their properties, by how often they are right."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuroshio.perf.statistics import (
    drift,
    independent,
    median_interval,
    ratio_interval,
    summary,
)

TIMES = st.lists(st.floats(1e-9, 1e3), min_size=1, max_size=50)


def test_summary_by_hand() -> None:
    assert summary([4, 1, 2, 3, 100]) == {
        "median": 3,
        "p90": pytest.approx(61.6),
        "min": 1,
        "mad": 1,
    }


@given(TIMES, st.floats(0.1, 10))
def test_summary_scales_and_is_in_order(samples, factor) -> None:
    facts, scaled = summary(samples), summary([factor * each for each in samples])
    assert facts["min"] <= facts["median"] <= facts["p90"] <= max(samples)
    for key, value in facts.items():
        assert scaled[key] == pytest.approx(factor * value, rel=1e-9, abs=1e-12 * max(samples))


@pytest.mark.parametrize("samples", [[], [1.0, float("nan")], [[1.0]]])
def test_summary_of_no_numbers_is_an_error(samples) -> None:
    with pytest.raises(ValueError, match="samples are finite numbers"):
        summary(samples)


def test_median_interval_is_exact() -> None:
    assert median_interval([1, 2, 3, 4, 5]) is None  # 1 - 2/2**5 is less than 95 %
    assert median_interval([6, 1, 5, 2, 4, 3]) == (1, 6)
    assert median_interval(range(1, 31)) == (10, 21)  # from the tables of the sign test
    low, high = median_interval(range(5000))
    assert high - low == pytest.approx(1.96 * 5000**0.5, abs=3)


def alike(rng: np.random.Generator, n: int, correlation: float) -> np.ndarray:
    """Samples whose neighbours are alike, around a median of 1."""
    steps = rng.normal(0, 1, n)
    values = np.empty(n)
    values[0] = steps[0]
    for i in range(1, n):
        fresh = (1 - correlation**2) ** 0.5 * steps[i]
        values[i] = correlation * values[i - 1] + fresh
    return np.exp(0.1 * values)


@pytest.mark.parametrize(
    ("correlation", "least"), [(0.0, 0.89), (0.5, 0.87), (0.9, 0.85)]
)  # of 95 %
def test_median_interval_of_a_machine_that_is_slow_for_a_while(correlation, least) -> None:
    """Timings here are alike by 0.5; as if independent, the interval held the median in 3 of 4."""
    rng = np.random.default_rng()
    held = 0
    for _ in range(150):
        low, high = median_interval(alike(rng, 400, correlation), in_order=True)
        held += low <= 1 <= high
    assert held >= least * 150


def test_samples_that_count_as_fewer() -> None:
    rng = np.random.default_rng()
    assert independent(np.ones(30)) == 30
    assert independent(rng.permutation(1000)) > 500
    assert independent(np.arange(1000)) < 10
    assert independent([1, 2] * 50) == 100
    assert median_interval(np.arange(5), in_order=True) is None
    assert median_interval([1, 1, 1, 2, 2, 2], in_order=True) == (1, 2)


def test_ratio_intervals_cover_the_truth_as_often_as_they_say() -> None:
    rng = np.random.default_rng()
    missed = {True: 0, False: 0}
    for _ in range(150):
        a, b = rng.lognormal(0, 0.1, (2, 60))
        common = rng.lognormal(0, 0.3, 60)  # what slows both of a pair
        for paired, by in ((True, common), (False, 1.0)):
            ratio, low, high = ratio_interval(1.3 * a * by, b * by, paired=paired, resamples=600)
            assert low <= ratio <= high
            missed[paired] += not low <= 1.3 <= high
    assert max(missed.values()) <= 10  # of 150, where 1 % is 1.5


def test_ratio_interval_says_which_is_longer() -> None:
    ratio, low, high = ratio_interval([2.0, 2.1, 2.0], [1.0, 1.0, 1.0])
    assert ratio == 2
    assert 1.9 < low <= ratio <= high < 2.2


@pytest.mark.parametrize(("a", "b"), [([1], [1, 2]), ([1, 2, 3], [1, 2]), ([0, 1], [1, 2])])
def test_ratio_of_too_little_is_an_error(a, b) -> None:
    with pytest.raises(ValueError, match="samples"):
        ratio_interval(a, b, paired=True)


def test_drift_is_seen_and_chance_is_not() -> None:
    rng = np.random.default_rng()
    rising = np.linspace(1, 1.3, 60) + rng.normal(0, 0.01, 60)
    assert 0.15 < drift(rising) < 0.25
    assert drift(rising[::-1]) < -0.1
    assert sum(drift(rng.lognormal(0, 0.2, 60)) != 0 for _ in range(100)) <= 3
