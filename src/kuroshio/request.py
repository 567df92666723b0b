"""What the user asks for, checked once: every option of the climatology and what it may be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .errors import Refusal

EXTRAS = ("count", "std", "skewness", "kurtosis")
FEB29 = ("mean", "pool")
METHODS = ("exact", "moments")
LONGEST_HALF_WIDTH = 179  # beyond it a 360-day year's window would meet the next year's
LONGEST_PAD = 366  # a line across more than a year says nothing of its days
SHORT_BASELINE_YEARS = 10


@dataclass(frozen=True)
class Request:
    """One climatology: which years, which days of year, which statistics, how smoothed.

    baseline      first and last year, both included
    percentiles   0 to 100, linear interpolation between order statistics (Hyndman and Fan type 7)
    half_width    days on either side of the centre; the window has 2 * half_width + 1
    doys          days of year to write, in this order; None: all of the template year
    smooth_width  odd length in days of the circular running mean of seas and thresh; 1: none
    feb29         'mean': of the results of 28 February and 1 March; 'pool': its own leap-year pool
    min_valid     least share (0 to 1) of a pool that must be valid, else the result is missing
    max_pad       gaps of at most so many days are filled by linear interpolation in time first
    extras        further statistics of the unsmoothed pool, of EXTRAS
    method        of percentiles: 'exact', order statistics; 'moments', estimates from mean,
                  standard deviation, skewness and kurtosis (cornish_fisher.py)
    """

    baseline: tuple[int, int] = (1991, 2020)
    percentiles: tuple[float, ...] = (90.0,)
    half_width: int = 5
    doys: tuple[int, ...] | None = None
    smooth_width: int = 31
    feb29: str = "mean"
    min_valid: float = 0.0
    max_pad: int = 0
    extras: tuple[str, ...] = ()
    method: str = "exact"

    def __post_init__(self) -> None:
        first, last = self.baseline
        if last < first:
            raise Refusal(
                f"The baseline {first} {last} ends before it starts. "
                "Give the first year and then the last, both included."
            )
        if not self.percentiles:
            raise Refusal("No percentile was given. Give one or more numbers from 0 to 100.")
        for p in self.percentiles:
            if not (math.isfinite(p) and 0 <= p <= 100):
                raise Refusal(
                    f"The percentile {p:g} is outside 0 to 100. "
                    "Give percents, not fractions: 90, not 0.9."
                )
        if self.method not in METHODS:
            raise Refusal(f"The method is {self.method!r}; it must be one of {', '.join(METHODS)}.")
        if self.method == "moments" and {0, 100} & set(self.percentiles):
            raise Refusal(
                "Moments tell nothing of the least and the largest value: with method 'moments' "
                "percentiles lie between 0 and 100, both excluded."
            )
        if len(set(self.percentiles)) < len(self.percentiles):
            listed = " ".join(f"{p:g}" for p in self.percentiles)
            raise Refusal(f"A percentile is given twice in {listed}. Give each once.")
        if not 0 <= self.half_width <= LONGEST_HALF_WIDTH:
            raise Refusal(
                f"The half width {self.half_width} is not allowed: it must be a whole number of "
                f"days from 0 to {LONGEST_HALF_WIDTH} (5 makes the usual 11-day window)."
            )
        if self.smooth_width < 1 or self.smooth_width % 2 == 0:
            raise Refusal(
                f"The smoothing width {self.smooth_width} is not allowed: a centred running mean "
                "needs an odd number of days (31 is usual), or 1 for none."
            )
        if self.feb29 not in FEB29:
            raise Refusal(f"feb29 is {self.feb29!r}; it must be one of {', '.join(FEB29)}.")
        if not 0 <= self.min_valid <= 1:
            raise Refusal(
                f"The least valid share {self.min_valid:g} is outside 0 to 1. "
                "Give a fraction: 0.8 asks for 80 % of the pool."
            )
        if not 0 <= self.max_pad <= LONGEST_PAD:
            raise Refusal(
                f"max_pad is {self.max_pad}; it must be 0 (no filling) to {LONGEST_PAD} days."
            )
        for name in self.extras:
            if name not in EXTRAS:
                raise Refusal(f"There is no statistic {name!r}; choose from {', '.join(EXTRAS)}.")

    @property
    def years(self) -> int:
        return self.baseline[1] - self.baseline[0] + 1

    @property
    def window(self) -> int:
        return 2 * self.half_width + 1


def parse_doys(text: str, length: int) -> tuple[int, ...]:
    """Days of year from '153:244', '336:60' (over the year's end), '1,32,60', or a mixture.

    Both ends of a range belong to it. `length` is that of the calendar's template year.
    """
    doys: list[int] = []
    for part in text.split(","):
        ends = part.split(":")
        try:
            numbers = [int(end) for end in ends]
        except ValueError:
            numbers = []
        if not 1 <= len(numbers) <= 2:
            raise Refusal(
                f"The days of year {text!r} could not be read. "
                "Write 153:244 for a range (both ends included) or 1,32,60 for single days."
            )
        first, last = numbers[0], numbers[-1]
        doys.extend(
            range(first, last + 1)
            if first <= last
            else [*range(first, length + 1), *range(1, last + 1)]
        )
    return check_doys(doys, length)


def check_doys(doys: Sequence[int], length: int) -> tuple[int, ...]:
    """The same days as a tuple, each once and inside the template year, or a refusal."""
    for doy in doys:
        if not 1 <= doy <= length:
            raise Refusal(
                f"The day of year {doy} is outside 1 to {length}. Days are counted in a year of "
                f"{length} days: 1 is 1 January, {length} the last day of December."
            )
    twice = next((doy for i, doy in enumerate(doys) if doy in doys[:i]), None)
    if twice is not None:
        raise Refusal(
            f"The day of year {twice} is asked for twice. Give each once; a range such as 153:244 "
            "includes both of its ends."
        )
    if not doys:
        raise Refusal("No day of year was asked for. Give one or more, or nothing for all.")
    return tuple(int(doy) for doy in doys)


def statistics(request: Request) -> list[tuple[str, int | None]]:
    """What is kept for every day of year: (output variable, which percentile of it)."""
    several = len(request.percentiles) > 1
    thresh = [("thresh", i if several else None) for i in range(len(request.percentiles))]
    return [*thresh, ("seas", None), *((name, None) for name in request.extras)]
