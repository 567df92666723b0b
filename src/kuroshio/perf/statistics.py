"""What samples of a time say: their summary, and intervals that assume no distribution.

Times are never normal: they have a floor and a long tail. So medians, deviations from them, order
statistics and resampling; no means, no standard deviations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from statistics import NormalDist

import numpy as np

LEVEL = 0.99  # of comparisons: one in a hundred of identical code is called different
_FEWEST = 6  # samples that have a 95 % interval of their median
NORMAL_MAD = 1.4826  # a normal distribution's standard deviation is so many times its MAD


def summary(samples: Sequence[float]) -> dict[str, float]:
    """median, p90 (90th percentile), min, mad (median absolute deviation); ValueError if empty."""
    values = _checked(samples)
    median = float(np.median(values))
    return {
        "median": median,
        "p90": float(np.percentile(values, 90)),
        "min": float(values.min()),
        "mad": float(np.median(np.abs(values - median))),
    }


def median_interval(
    samples: Sequence[float], level: float = 0.95, *, in_order: bool = False
) -> tuple[float, float] | None:
    """Where the median of what was sampled lies, by order statistics; None for too few samples.

    Exact for independent samples of any distribution: how many of them are below the median is
    binomial. in_order: they are as they were taken, one after the other, and neighbours are alike
    because a machine is slow for a while; then they count as the fewer independent ones that would
    tell as much (`independent`), six at least.
    """
    values = np.sort(_checked(samples))
    n = len(values)
    count = max(min(int(independent(samples)), n), min(n, _FEWEST)) if in_order else n
    rank = _rank(count, level)
    if rank < 0:
        return None
    below = int((rank + 0.5) * n / count)
    return float(values[below]), float(values[n - 1 - below])


def independent(samples: Sequence[float]) -> float:
    """How many independent samples would tell the median as well as these, in the order taken.

    By how long they stay above or below it: n over the sum of all correlations of these signs,
    which ends where a pair of them is negative (Geyer's initial positive sequence).
    """
    values = _checked(samples)
    n = len(values)
    signs = np.sign(values - np.median(values))
    power = float(signs @ signs)
    if power == 0:
        return float(n)
    total = -1.0
    for lag in range(0, n - 1, 2):
        pair = signs[: n - lag] @ signs[lag:] + signs[: n - lag - 1] @ signs[lag + 1 :]
        if pair <= 0:
            break
        total += 2 * float(pair) / power
    return n / max(total, 1.0)


@cache
def _rank(n: int, level: float) -> int:
    """How many of n samples lie below the interval of the median at either end; -1: too few."""
    tail, below = (1 - level) / 2, -1
    # The log of each term: 2**n exceeds a float from n = 1024.
    total = 0.0
    for k in range(n // 2):
        total += math.exp(
            math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) - n * math.log(2)
        )
        if total > tail:
            break
        below = k
    return below


def ratio_interval(
    a: Sequence[float],
    b: Sequence[float],
    *,
    paired: bool = False,
    level: float = LEVEL,
    resamples: int = 4000,
    seed: int = 0,
) -> tuple[float, float, float]:
    """(ratio, low, high): how many times as long `a` takes as `b`, and its bootstrap interval.

    Of paired samples, a[i] and b[i] taken one after the other, the median of their ratios: what
    slows both is no difference. Blocks of pairs are resampled, since what slows one slows its
    neighbours. Of others, the ratio of the medians. ValueError where samples are not positive, too
    few (2) or, paired, not as many.
    """
    first, second = _checked(a), _checked(b)
    if min(len(first), len(second)) < 2 or min(first.min(), second.min()) <= 0:
        raise ValueError("a ratio needs two positive samples of each at least")
    random = np.random.default_rng(seed)
    edges = [(1 - level) / 2, (1 + level) / 2]
    if not paired:
        medians = [
            np.median(random.choice(each, (resamples, len(each))), axis=1)
            for each in (first, second)
        ]
        low, high = np.quantile(medians[0] / medians[1], edges)
        return float(np.median(first) / np.median(second)), float(low), float(high)
    if len(first) != len(second):
        raise ValueError("paired samples must be as many of each")
    logs = np.log(first / second)
    picked = logs[_blocks(random, len(logs), resamples)]
    low, high = np.exp(np.quantile(np.median(picked, axis=1), edges))
    return float(np.exp(np.median(logs))), float(low), float(high)


def ratio_interval_of_rounds(
    rounds: Sequence[tuple[Sequence[float], Sequence[float]]],
    *,
    level: float = LEVEL,
    resamples: int = 4000,
    seed: int = 0,
) -> tuple[float, float, float]:
    """As `ratio_interval`, of paired samples (a, b) taken in rounds that differ in themselves.

    The mean over rounds of each one's median of ratios; rounds are resampled, and blocks of pairs
    within them. A bootstrap of few rounds is too narrow by what Student's distribution is wider
    than the normal, so it is made wider by that. ValueError for less than two rounds.
    """
    if len(rounds) < 2:
        raise ValueError("rounds are two at least")
    random, n = np.random.default_rng(seed), len(rounds)
    medians, centres = np.empty((n, resamples)), np.empty(n)
    for i, (a, b) in enumerate(rounds):
        logs = np.log(_checked(a) / _checked(b))
        medians[i] = np.median(logs[_blocks(random, len(logs), resamples)], axis=1)
        centres[i] = np.median(logs)
    picked = random.integers(0, n, (resamples, n))
    means = medians[picked, random.integers(0, resamples, (resamples, n))].mean(axis=1)
    centre = centres.mean()
    edges = np.quantile(means, [(1 - level) / 2, (1 + level) / 2]) - centre
    low, high = centre + edges * _student_by_normal(n - 1, level) * math.sqrt(n / (n - 1))
    return float(np.exp(centre)), float(np.exp(low)), float(np.exp(high))


def _student_by_normal(freedom: int, level: float) -> float:
    """How much wider Student's interval of that level is than the normal one (an expansion)."""
    z = NormalDist().inv_cdf((1 + level) / 2)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return (z + first / freedom + second / freedom**2 + third / freedom**3) / z


def drift(samples: Sequence[float]) -> float:
    """How much longer the last third takes than the first, as a share; 0 if it may be chance.

    Chance is judged by ranks (Mann-Whitney), at one in a thousand.
    """
    values = _checked(samples)
    third = len(values) // 3
    if third < 5:
        return 0.0
    early, late = values[:third], values[-third:]
    above = (late[:, None] > early).sum() + 0.5 * (late[:, None] == early).sum()
    deviation = math.sqrt(third * third * (2 * third + 1) / 12)
    if abs(above - third * third / 2) < 3.29 * deviation:
        return 0.0
    return float(np.median(late) / np.median(early) - 1)


def _blocks(random: np.random.Generator, n: int, resamples: int) -> np.ndarray:
    """(resamples, n) indices made of runs of neighbours, circular."""
    length = max(round(n ** (1 / 3)), 1)
    starts = random.integers(0, n, (resamples, -(-n // length), 1))
    return ((starts + np.arange(length)) % n).reshape(resamples, -1)[:, :n]


def _checked(samples: Sequence[float]) -> np.ndarray:
    values = np.asarray(samples, np.float64)
    if values.ndim != 1 or not values.size or not np.isfinite(values).all():
        raise ValueError("samples are finite numbers, one at least")
    return values
