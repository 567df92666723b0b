"""The definition of a marine heatwave: slow, literal NumPy that detection is held to.

Hobday et al. (2016), https://doi.org/10.1016/j.pocean.2015.12.014; categories of Hobday et al.
(2018), https://doi.org/10.5670/oceanog.2018.205. Of one cell; a series at a time. No other module
of the package imports this one.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import calendar as cal
from .reference import on_every_day

CATEGORIES = ("Moderate", "Strong", "Severe", "Extreme")
# Of the larger of the two: a threshold that is no further above the mean is the mean, rounded to
# float32. Under ice of one temperature nothing exceeds it but rounding.
FLAT = 4 * float(np.finfo(np.float32).eps)
_MEASURES = {"": "anomaly", "_relThresh": "excess", "_abs": "value"}


def events(
    values: np.ndarray, days: np.ndarray, calendar: str, seas: np.ndarray, thresh: np.ndarray, *,
    min_duration: int = 5, max_gap: int = 2, cold: bool = False,
) -> list[dict[str, Any]]:  # fmt: skip
    """Heatwaves, or cold spells, of a series, in order.

    Parameters
    ----------
    values, days, calendar : (time,), as `reference.climatology`; NaN is missing
    seas, thresh : (dayofyear,), the mean and the threshold of each day of the template year
    min_duration : days that must exceed the threshold, one after the other
    max_gap : days between two such runs that make them one event
    cold : spells below `thresh`, a low percentile; the series is judged with its sign turned

    Returns
    -------
    dicts with `start`, `end`, `peak` (day numbers), `duration`, `missing` (its days without a
    value), `category` (1 to 4) and days in each (`days_1` to `days_4`), `rate_onset` and
    `rate_decline` (a day), and for the anomaly, its excess over the threshold (`_relThresh`) and
    the value (`_abs`): `intensity_max` (at the peak), `_mean`, `_var` (a standard deviation,
    divisor n), `_cumulative`.

    A missing day has the mean's value: it ends a run and may be a gap. A day of year whose
    threshold is not above its mean (FLAT) has no exceedance.
    """
    sign = -1.0 if cold else 1.0
    series = sign * on_every_day(values, days)
    _, doys = cal.year_and_dayofyear(calendar, np.arange(days[0], days[-1] + 1))
    mean, threshold = (sign * np.asarray(each, np.float64)[doys - 1] for each in (seas, thresh))
    missing = np.isnan(series)
    series = np.where(missing, mean, series)
    spread = threshold - mean
    flat = spread <= FLAT * np.maximum(np.abs(threshold), np.abs(mean))
    with np.errstate(invalid="ignore"):
        exceeds = (series > threshold) & ~flat & ~missing
    measures = {"anomaly": series - mean, "excess": series - threshold, "value": series}
    found: list[dict[str, Any]] = []
    for start, end in joined(runs(exceeds, min_duration), max_gap):
        event = _metrics({name: each[start : end + 1] for name, each in measures.items()}, sign)
        peak = start + int(np.argmax(measures["anomaly"][start : end + 1]))
        ratio = measures["excess"][start : end + 1] / spread[start : end + 1]
        when: dict[str, Any] = {
            "start": int(days[0]) + start,
            "end": int(days[0]) + end,
            "peak": int(days[0]) + peak,
            "duration": end - start + 1,
            "missing": int(missing[start : end + 1].sum()),
        }
        rates = _rates(measures["anomaly"], start, peak, end)
        found.append({**when, **event, **rates, **_categories(ratio)})
    return found


def runs(exceeds: np.ndarray, min_duration: int) -> list[tuple[int, int]]:
    """First and last of each run of at least so many days that exceed."""
    found, start = [], 0
    for above, group in itertools.groupby(exceeds.tolist()):
        length = len(list(group))
        if above and length >= min_duration:
            found.append((start, start + length - 1))
        start += length
    return found


def joined(kept: Sequence[tuple[int, int]], max_gap: int) -> list[tuple[int, int]]:
    """Runs between which lie at most so many days are one."""
    found: list[tuple[int, int]] = []
    for start, end in kept:
        if found and start - found[-1][1] - 1 <= max_gap:
            found[-1] = found[-1][0], end
        else:
            found.append((start, end))
    return found


def _metrics(measures: Mapping[str, np.ndarray], sign: float) -> dict[str, float]:
    """Of an event's days; spreads have no sign."""
    peak = int(np.argmax(measures["anomaly"]))
    found = {}
    for suffix, name in _MEASURES.items():
        days = measures[name]
        found[f"intensity_max{suffix}"] = sign * float(days[peak])
        found[f"intensity_mean{suffix}"] = sign * float(days.mean())
        found[f"intensity_var{suffix}"] = float(days.std())
        found[f"intensity_cumulative{suffix}"] = sign * float(days.sum())
    return found


def _rates(anomaly: np.ndarray, start: int, peak: int, end: int) -> dict[str, float]:
    """From half way to the day before, and to half way to the day after; where there is none, from
    the first day and to the last, and a day at least.
    """
    top = anomaly[peak]
    if start > 0:
        onset = (top - (anomaly[start] + anomaly[start - 1]) / 2) / (peak - start + 0.5)
    else:
        onset = (top - anomaly[start]) / max(peak - start, 1)
    if end < len(anomaly) - 1:
        decline = (top - (anomaly[end] + anomaly[end + 1]) / 2) / (end - peak + 0.5)
    else:
        decline = (top - anomaly[end]) / max(end - peak, 1)
    return {"rate_onset": float(onset), "rate_decline": float(decline)}


def categories_of(ratio: np.ndarray) -> np.ndarray:
    """Of days, by the excess over how far the threshold is from the mean: under 1 is 1, Moderate.

    Below the threshold it is 0 or less; 4, Extreme, has no end.
    """
    return np.minimum(np.floor(1 + ratio), len(CATEGORIES))


def _categories(ratio: np.ndarray) -> dict[str, int]:
    number = categories_of(ratio)
    days = {f"days_{each}": int((number == each).sum()) for each in range(1, len(CATEGORIES) + 1)}
    return {"category": int(number[np.argmax(ratio)]), **days}
