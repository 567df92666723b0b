"""The definition of what is said of a cell's events together: years, trends, ranks.

Literal NumPy that summaries are held to; no other module of the package imports this one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import calendar as cal
from .reference_events import categories_of

_MEANS = (
    "duration", "rate_onset", "rate_decline",
    *(f"intensity_{what}{of}" for what in ("max", "mean", "var", "cumulative")
      for of in ("", "_relThresh", "_abs")),
)  # fmt: skip
_CATEGORIES = tuple(f"days_{number}" for number in range(1, 5))


def by_year(
    events: Sequence[Mapping[str, Any]], values: np.ndarray, days: np.ndarray, calendar: str,
    seas: np.ndarray, thresh: np.ndarray, *, cold: bool = False,
) -> dict[str, np.ndarray]:  # fmt: skip
    """Numbers of each calendar year that the series touches; NaN where there is nothing to average.

    An event belongs to the year in which it starts: `count`, means of `duration`, of the metrics
    and rates, and `intensity_max_max` (of cold spells the lowest). Its days belong to the years in
    which they lie: `total_days` and days in each category; what it accumulates to the one in which
    it ends: `total_icum`. Of all valid days `temp_mean`, `temp_max` and `temp_min`.
    """
    span = np.arange(int(days[0]), int(days[-1]) + 1)
    years, doys = cal.year_and_dayofyear(calendar, span)
    series = np.full(len(span), np.nan)
    series[np.asarray(days) - span[0]] = values
    mean, threshold = (np.asarray(each, np.float64)[doys - 1] for each in (seas, thresh))
    anomaly = np.where(np.isnan(series), 0.0, series - mean)
    inside, accumulated = np.zeros(len(span), bool), np.zeros(len(span))
    for event in events:
        inside[event["start"] - span[0] : event["end"] - span[0] + 1] = True
        accumulated[event["end"] - span[0]] = event["intensity_cumulative"]
    with np.errstate(divide="ignore", invalid="ignore"):
        category = categories_of(anomaly / (threshold - mean) - 1)
    starts = [int(years[event["start"] - span[0]]) for event in events]
    found: dict[str, list[float]] = {"year": []}

    def put(name: str, value: float) -> None:
        found.setdefault(name, []).append(float(value))

    for year in np.unique(years).tolist():
        mine = [event for event, start in zip(events, starts, strict=True) if start == year]
        put("year", year)
        put("count", len(mine))
        for name in _MEANS:
            put(name, np.mean([event[name] for event in mine]) if mine else np.nan)
        peaks = [event["intensity_max"] for event in mine]
        put("intensity_max_max", (min(peaks) if cold else max(peaks)) if mine else np.nan)
        for number, name in enumerate(_CATEGORIES, 1):
            put(name, (category[inside & (years == year)] == number).sum())
        put("total_days", (inside & (years == year)).sum())
        put("total_icum", accumulated[years == year].sum())
        valid = series[(years == year) & ~np.isnan(series)]
        for name, of in (("temp_mean", np.mean), ("temp_max", np.max), ("temp_min", np.min)):
            put(name, of(valid) if len(valid) else np.nan)
    return {name: np.array(column) for name, column in found.items()}


def trend(years: np.ndarray, values: np.ndarray, student: float) -> tuple[float, float, float]:
    """Of the line through the valid years by least squares: its height in the middle of all years,
    its slope a year, and half of the slope's interval.

    student  the quantile of Student's distribution for valid years less 2 degrees of freedom
    """
    x = np.asarray(years, np.float64) - np.mean(years)
    there = ~np.isnan(values)
    x, y = x[there], values[there]
    apart = x - x.mean()
    slope = float((apart * y).sum() / (apart * apart).sum())
    height = float(y.mean() - slope * x.mean())
    left = y - height - slope * x
    error = np.sqrt((left * left).sum() / (len(x) - 2) / (apart * apart).sum())
    return height, slope, float(student * error)


def rank_and_return(values: Sequence[float], days: int) -> tuple[np.ndarray, np.ndarray]:
    """Of events' metric: 1 for the largest, and years between such events, of a record of days."""
    order = np.argsort(-np.asarray(values, np.float64), kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(1, len(order) + 1)
    return rank, (days / 365.25 + 1) / rank
