"""Percentiles estimated from the first four moments.

The expansion of Cornish and Fisher (1938), Moments and cumulants in the specification of
distributions, to the terms of skewness and kurtosis. It is exact for a normal distribution and a
correction for what is near one; it is no order statistic, and for a strong skewness or kurtosis it
may even fall as the percentile rises.
"""

from __future__ import annotations

from collections.abc import Iterable
from statistics import NormalDist

import numpy as np


def coefficients(quantiles: Iterable[float]) -> np.ndarray:
    """(quantile, 4) a, b, c, d: mean + std (a + b skewness + c kurtosis + d skewness^2).

    quantiles  above 0 and below 1; kurtosis is excess kurtosis, 0 of a normal distribution
    """
    z = np.array([NormalDist().inv_cdf(q) for q in quantiles])
    return np.stack([z, (z**2 - 1) / 6, (z**3 - 3 * z) / 24, -(2 * z**3 - 5 * z) / 36], axis=-1)
