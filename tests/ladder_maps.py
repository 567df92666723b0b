"""Maps that rungs are tried on, and what they are held to."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from hypothesis import strategies as st

from kuroshio import reference
from kuroshio.ladder.problem import Problem

# Lists of 34, of 5, of a single value and of all; batches of 5, of 3, 3, 1, and of 2, 1 years. And
# a full pool of 51, for which 50 x 0.58 comes out less than 29.
PROBLEMS = (
    Problem("published", 60.0, (152, 155), pass_days=4),
    Problem("batches differ", 60.0, (152, 156), (1991, 1997), 2, 90.0, 4, 3),
    Problem("largest", 60.0, (152, 155), (1991, 1993), 1, 100.0, 3, 2),
    Problem("smallest", 60.0, (152, 155), (1991, 1993), 1, 0.0, 3, 2),
    Problem("short of whole", 60.0, (152, 155), (1991, 2007), 1, 58.0, 3),
)

problems = st.sampled_from(PROBLEMS)
seeds = st.integers(0, 2**32 - 1)
offsets = st.sampled_from([0.0, 18.0, 273.15, -60.0])
spreads = st.sampled_from([0.05, 1.0, 4.0])
gaps = st.sampled_from([0.0, 0.03, 0.5])


def maps_of(
    problem: Problem, days: int, seed: int, offset: float, spread: float, missing: float
) -> np.ndarray:
    """(slot, year, cell): cells of every kind in turn."""
    rng = np.random.default_rng(seed)
    shape = days + problem.window - 1, problem.number_of_years, problem.cells
    maps = offset + spread * rng.normal(size=shape)
    maps[rng.random(shape) < missing] = np.nan
    maps[..., 0] = np.nan
    maps[..., 1] = offset + spread  # all equal
    maps[..., 2] = np.round(maps[..., 2], 1)  # ties
    one, few = np.full((2, *shape[:2]), np.nan)
    one.flat[rng.integers(one.size)] = offset
    few.flat[rng.integers(few.size, size=3)] = offset + spread * rng.normal(size=3)
    maps[..., 3], maps[..., 4] = one, few
    maps[:, : problem.batch_years, 5] = np.nan  # nothing in the first batch
    # Slots before the last two windows vary, those in them do not: all have the cell's first value,
    # and a slide about that value is left with sums of nothing but rounding.
    maps[0, 0, 6] = maps[max(days - 2, 1) :, :, 6] = offset + 0.07
    maps[..., 7] = np.where(rng.random(shape[:2]) < 0.5, offset, offset + 0.01)
    return maps


def pools_of(problem: Problem, maps: np.ndarray) -> Iterator[tuple[tuple[int, int], np.ndarray]]:
    """((day, cell), values of its window, NaN where missing)."""
    for day in range(maps.shape[0] - problem.window + 1):
        for cell in range(problem.cells):
            yield (day, cell), maps[day : day + problem.window, :, cell].ravel()


def exact(problem: Problem, maps: np.ndarray, method: str = "exact") -> np.ndarray:
    """(mean, threshold, standard deviation; day, cell) by the oracle."""
    days = maps.shape[0] - problem.window + 1
    found = np.empty((3, days, problem.cells))
    for at, pool in pools_of(problem, maps):
        said = reference.statistics_of(pool, [problem.percentile], 0.0, method)
        found[(0, *at)], found[(2, *at)] = said["seas"], said["std"]
        found[(1, *at)] = said["thresh"][0]  # type: ignore[index]
    return found


def float32_step(maps: np.ndarray) -> np.ndarray:
    """(cell,) what float32 resolves at a cell's largest value."""
    return np.spacing(np.nanmax(np.abs(maps), axis=(0, 1), initial=0.0).astype(np.float32))


# -- the published sums, literally -----------------------------------------------------------------


def fused(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """float32 x y + z, rounded once."""
    product, z = x.astype(np.float64) * y, z.astype(np.float64)  # the product is exact
    total = product + z
    back = total - product
    lost = (product - (total - back)) + (z - back)
    # To odd, so that rounding to float32 does not round a second time.
    even = total.view(np.int64) & 1 == 0
    towards = np.nextafter(total, np.copysign(np.inf, lost))
    return np.where((lost != 0) & even, towards, total).astype(np.float32)


def multiplied(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """float32 x y + z, rounded twice."""
    return x * y + z


class PublishedSums:
    """float32 sums of x to x^4 about zero, of every cell; `multiply_add` is one of the above."""

    def __init__(self, cells: int, multiply_add=fused) -> None:
        self.powers = np.zeros((4, cells), np.float32)
        self.count = np.zeros(cells, np.int32)
        self.multiply_add = multiply_add

    def add(self, values: np.ndarray) -> None:
        x = np.nan_to_num(values, nan=0.0).astype(np.float32)
        square = x * x
        self.count += ~np.isnan(values)
        self.powers[0] += x
        for power, (one, other) in enumerate(((x, x), (square, x), (square, square)), start=1):
            self.powers[power] = self.multiply_add(one, other, self.powers[power])

    def estimate(self, terms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and percentile, with the published fourth moment."""
        f = np.float32
        n = self.count.astype(f)
        with np.errstate(all="ignore"):
            mu, e2, e3, e4 = self.powers / n
            square = mu * mu
            variance = e2 - square
            third = e3 - f(3) * mu * variance - square * mu
            fourth = e4 - f(4) * mu * e3 + f(6) * square * variance + square * square
            sigma = np.sqrt(variance)
            skewness = third / (variance * sigma)
            kurtosis = fourth / (variance * variance) - f(3)
            a, b, c, d = terms.astype(f)
            in_sigmas = a + b * skewness + c * kurtosis + d * (skewness * skewness)
            threshold = np.where(variance > 0, mu + sigma * in_sigmas, mu)
        none = self.count == 0
        return np.where(none, f(np.nan), mu), np.where(none, f(np.nan), threshold)
