"""What samples of a time say: their summary, and intervals that assume no distribution.

Times are never normal: they have a floor and a long tail. So medians, deviations from them, order
statistics and resampling; no means, no standard deviations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

LEVEL = 0.99  # of comparisons: one in a hundred of identical code is called different
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


def median_interval(samples: Sequence[float], level: float = 0.95) -> tuple[float, float] | None:
    """Where the median of what was sampled lies, by order statistics; None for too few samples.

    Exact for independent samples of any distribution: how many of them are below the median is
    binomial.
    """
    values = np.sort(_checked(samples))
    n = len(values)
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
    if below < 0:
        return None
    return float(values[below]), float(values[n - 1 - below])


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
