"""The exact answer, and how far a rung is from it."""

from __future__ import annotations

import numpy as np

from .files import Files
from .problem import Pass, Problem
from .results import Accuracy

LIMITS = (0.1, 0.3, 0.5)
_UNITS = 2
Maps = tuple[np.ndarray, np.ndarray]  # means and thresholds, (day, cell)


def literally(problem: Problem, files: Files, passing: Pass, cells: np.ndarray) -> Maps:
    """Means and thresholds of some cells by NumPy, float64."""
    years = [year for batch in passing.batches for year in batch.years]
    values = files.read_cells(passing.slots, years, cells)
    found = np.full((2, len(passing.doys), cells.size), np.nan)
    for day in range(len(passing.doys)):
        pool = values[day : day + problem.window].reshape(-1, cells.size)
        there = ~np.isnan(pool).all(axis=0)
        found[0, day, there] = np.nanmean(pool[:, there], axis=0)
        found[1, day, there] = np.nanpercentile(pool[:, there], problem.percentile, axis=0)
    return found[0], found[1]


class Errors:
    """Differences of a rung's results from others, summed up pass by pass.

    units  in the last place of float32, of the largest value: what exact results may be off
    """

    def __init__(self, units: int = _UNITS) -> None:
        self._units = units
        self._values = self._disagree = 0
        self._largest = self._largest_of_mean = self._squares = self._magnitude = 0.0
        self._within = np.zeros(len(LIMITS), np.int64)

    def add(self, found: Maps, right: Maps) -> None:
        of_mean, off = (self._differences(*pair) for pair in zip(found, right, strict=True))
        if not off.size or not of_mean.size:
            return
        self._values += off.size
        self._largest = max(self._largest, float(off.max()))
        self._largest_of_mean = max(self._largest_of_mean, float(of_mean.max()))
        self._squares += float(np.square(off).sum())
        self._magnitude = max(self._magnitude, float(np.nanmax(np.abs(right[1]))))
        self._within += [int((off <= limit).sum()) for limit in LIMITS]

    def _differences(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Of values that both have; what only one has is counted."""
        has, ought = ~np.isnan(one), ~np.isnan(other)
        self._disagree += int((has != ought).sum())
        both = has & ought
        return np.abs(one[both].astype(np.float64) - other[both])

    def accuracy(self) -> Accuracy:
        allowed = self._units * float(np.spacing(np.float32(self._magnitude)))
        n = max(self._values, 1)
        return Accuracy(
            values=self._values,
            disagree=self._disagree,
            largest=self._largest,
            root_mean_square=float(np.sqrt(self._squares / n)),
            within={f"{x:g}": int(k) / n for x, k in zip(LIMITS, self._within, strict=True)},
            largest_of_mean=self._largest_of_mean,
            exact=self._values > 0 and not self._disagree
            and max(self._largest, self._largest_of_mean) <= allowed,
        )  # fmt: skip
