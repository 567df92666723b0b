"""The definition of every result: slow, literal NumPy that the engine is held to.

Nothing here is clever, so that it can be read beside the paper: Hobday et al. (2016), A
hierarchical approach to defining marine heatwaves, Progress in Oceanography 141,
https://doi.org/10.1016/j.pocean.2015.12.014. Where the paper leaves a choice open, the function
that makes the choice says which. No other module of the package imports this one.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from . import calendar as cal


def climatology(
    values: np.ndarray,
    days: np.ndarray,
    calendar: str,
    *,
    baseline: tuple[int, int],
    percentiles: Sequence[float] = (90.0,),
    half_width: int = 5,
    smooth_width: int = 31,
    feb29: str = "mean",
    min_valid: float = 0.0,
    max_pad: int = 0,
    doys: Sequence[int] | None = None,
    method: str = "exact",
) -> dict[str, np.ndarray]:
    """Mean, percentiles and moments of a sliding window, for each day of year and cell.

    Parameters
    ----------
    values : (time, *cell)
        Daily values in any unit; NaN is missing.
    days : int64 (time,)
        Day numbers in `calendar` (see `calendar.day_number`), strictly increasing. A day between
        the first and the last that is not listed is a day of missing values.
    calendar : 'standard', 'noleap', 'all_leap' or '360_day'
    baseline : first and last year, both included
    percentiles : 0 to 100
    half_width : days on either side of the centre of the window
    smooth_width : odd number of days of the running mean over `seas` and `thresh`; 1: none
    feb29 : 'mean' or 'pool', for the standard calendar only (in the others 29 February is either an
        ordinary day or absent). 'mean': the results of day 60 are the mean of those of days 59 and
        61, set before smoothing. 'pool': its centres are the 29 Februaries of the baseline.
    min_valid : share of the pool, 0 to 1, below which every result but `count` is NaN
    max_pad : longest run of missing days that is filled by interpolation before all else
    doys : days of year to return; None: all of the template year. Smoothing always sees them all.
    method : 'exact' or 'moments': how percentiles come about, see `statistics_of`

    Returns
    -------
    dict of float64 arrays, in the unit of `values` where they have one
        seas      (dayofyear, *cell)              mean, smoothed
        thresh    (percentile, dayofyear, *cell)  percentiles, smoothed
        count     (dayofyear, *cell)              valid values in the pool
        std       (dayofyear, *cell)              standard deviation, divisor n
        skewness  (dayofyear, *cell)              third standardised moment
        kurtosis  (dayofyear, *cell)              fourth standardised moment minus 3
    """
    first = int(days[0])
    series = fill_gaps(on_every_day(values, days), max_pad)  # (day of the span, *cell)
    length = cal.template_length(calendar)
    cells = series.shape[1:]
    daily = {name: np.full((length, *cells), np.nan) for name in _STATISTICS}
    thresh = np.full((len(percentiles), length, *cells), np.nan)

    for doy in range(1, length + 1):
        members = pool_of(doy, first, len(series), calendar, baseline, half_width)
        pools = series[members]  # (pool, *cell)
        for cell in np.ndindex(*cells):
            result = statistics_of(pools[(slice(None), *cell)], percentiles, min_valid, method)
            for name in _STATISTICS:
                daily[name][(doy - 1, *cell)] = result[name]
            thresh[(slice(None), doy - 1, *cell)] = result["thresh"]

    if calendar == "standard" and feb29 == "mean":
        set_leap_day(daily, thresh)

    wanted = np.arange(length) if doys is None else np.asarray(doys, np.int64) - 1
    out = {name: daily[name][wanted] for name in _STATISTICS}
    out["seas"] = running_mean(daily["seas"], smooth_width)[wanted]
    smooth = [running_mean(one, smooth_width)[wanted] for one in thresh]
    out["thresh"] = np.stack(smooth) if smooth else thresh[:, wanted]
    return out


_STATISTICS = ("seas", "count", "std", "skewness", "kurtosis")  # a number a day of year and cell


def on_every_day(values: np.ndarray, days: np.ndarray) -> np.ndarray:
    """The series on every day from the first to the last, NaN on those that are not listed."""
    days = np.asarray(days, np.int64)
    values = np.asarray(values, np.float64)
    if len(days) == 0 or len(days) != len(values) or np.any(np.diff(days) <= 0):
        raise ValueError("days must be strictly increasing, one for each time of values")
    series = np.full((days[-1] - days[0] + 1, *values.shape[1:]), np.nan)
    series[days - days[0]] = values
    return series


def fill_gaps(series: np.ndarray, max_pad: int) -> np.ndarray:
    """Runs of at most `max_pad` NaN days between two valid days, filled on a straight line.

    A longer run stays whole, and so does a run at either end of the series: there is no value on
    its far side.
    """
    out = series.copy()
    if max_pad == 0:
        return out
    for cell in np.ndindex(*series.shape[1:]):
        column = series[(slice(None), *cell)]
        valid = np.flatnonzero(~np.isnan(column))
        for before, after in itertools.pairwise(valid):
            if 1 <= after - before - 1 <= max_pad:
                gap = np.arange(before + 1, after)
                line = np.interp(gap, [before, after], [column[before], column[after]])
                out[(gap, *cell)] = line
    return out


def pool_of(
    doy: int, first: int, span: int, calendar: str, baseline: tuple[int, int], half_width: int
) -> list[int]:
    """Positions in the series, 0 to span - 1, of the pool of a day of year.

    The centres are the days of the baseline that have this day of year and lie inside the series.
    A centre brings every consecutive calendar day within `half_width` of it that lies inside the
    series: so a window crosses the year's end in real time, holds 29 February where there is one,
    and reaches outside the baseline where the series has data there.
    """
    members: list[int] = []
    for year in range(baseline[0], baseline[1] + 1):
        if calendar == "standard" and doy == cal.LEAP_DAY and not cal.is_leap(year):
            continue
        centre = int(cal.day_number(calendar, year, doy)) - first
        if 0 <= centre < span:
            members += [
                day
                for day in range(centre - half_width, centre + half_width + 1)
                if 0 <= day < span
            ]
    return members


def statistics_of(
    pool: np.ndarray, percentiles: Sequence[float], min_valid: float, method: str = "exact"
) -> dict[str, float | np.ndarray]:
    """The statistics of one pool of one cell, before 29 February and smoothing.

    pool : (n,) with NaN where a day that belongs to the pool has no value

    Percentiles are linear between the order statistics at the 0-based position (n - 1) * p / 100
    of the n valid values (Hyndman and Fan type 7). All but `count` is NaN for a pool without a
    valid value, and where valid / n is below `min_valid`. Where all values are equal, the mean
    is that value, `std` is 0, and `skewness` and `kurtosis` are NaN, being 0 / 0.

    With method 'moments' percentiles are those of `estimated`, and of equal values that value.
    """
    x = pool[~np.isnan(pool)]
    result: dict[str, float | np.ndarray] = dict.fromkeys(_STATISTICS, np.nan)
    result["thresh"] = np.full(len(percentiles), np.nan)
    result["count"] = float(len(x))
    if len(x) == 0 or len(x) / len(pool) < min_valid:
        return result
    result["thresh"] = np.percentile(x, percentiles, method="linear")
    if x.min() == x.max():
        result["seas"], result["std"] = x[0], 0.0
        return result
    mean = x.mean()
    variance = np.mean((x - mean) ** 2)
    result["seas"] = mean
    result["std"] = np.sqrt(variance)
    result["skewness"] = np.mean((x - mean) ** 3) / variance**1.5
    result["kurtosis"] = np.mean((x - mean) ** 4) / variance**2 - 3
    if method == "moments":
        four = [float(result[name]) for name in ("seas", "std", "skewness", "kurtosis")]
        result["thresh"] = np.array([estimated(p, *four) for p in percentiles])
    return result


def estimated(
    percentile: float, mean: float, std: float, skewness: float, kurtosis: float
) -> float:
    """A percentile from moments, by the expansion of Cornish and Fisher (1938).

    `kurtosis` is excess kurtosis; a normal distribution has 0 of both.
    """
    z = NormalDist().inv_cdf(percentile / 100)
    return mean + std * (
        z
        + (z**2 - 1) * skewness / 6
        + (z**3 - 3 * z) * kurtosis / 24
        - (2 * z**3 - 5 * z) * skewness**2 / 36
    )


def set_leap_day(daily: dict[str, np.ndarray], thresh: np.ndarray) -> None:
    """29 February as the mean of the results of 28 February and 1 March; `count`: the smaller."""
    day, before, after = (cal.LEAP_DAY - 1 + shift for shift in (0, -1, 1))
    for name in _STATISTICS:
        results = daily[name]
        if name == "count":
            results[day] = np.minimum(results[before], results[after])
        else:
            results[day] = (results[before] + results[after]) / 2
    thresh[:, day] = (thresh[:, before] + thresh[:, after]) / 2


def running_mean(values: np.ndarray, width: int) -> np.ndarray:
    """Centred mean over `width` days of the circular template year; a NaN spreads to all it meets.

    values : (dayofyear, *cell), the whole template year
    """
    if width == 1:
        return values.copy()
    length = len(values)
    out = np.empty_like(values)
    for doy in range(length):
        around = [(doy + shift) % length for shift in range(-(width // 2), width // 2 + 1)]
        out[doy] = values[around].mean(axis=0)
    return out
