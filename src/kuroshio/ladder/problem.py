"""What every rung computes, and how the published program cut it.

Maps of float64 of the days of year 152 to 243, and the window's half width on either side, of 30
years. Days of year are worked off in *passes* of 12, as one device of the published program had
them: with their windows 22 *slots* of all years, 660 maps. A pass comes in *batches* of five years:
110 maps, 915 MB for 721 x 1440 cells, which is what one ring holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..errors import Refusal

FIRST_DOY, LAST_DOY = 152, 243  # on the leap-year template: no 29 February is near


@dataclass(frozen=True)
class Batch:
    """Years of a pass that come together: maps (slot, year, cell)."""

    number: int
    years: tuple[int, ...]


@dataclass(frozen=True)
class Pass:
    """Days of year that are worked off together, and the slots that their windows take."""

    doys: tuple[int, ...]
    slots: tuple[int, ...]  # days of year, half a window before the first day to after the last
    batches: tuple[Batch, ...]

    @property
    def maps(self) -> int:
        return len(self.slots) * sum(len(batch.years) for batch in self.batches)


@dataclass(frozen=True)
class Problem:
    """The maps, the days of year and how they are cut; `shape` is (latitude, longitude)."""

    name: str
    grid: float  # degrees
    doys: tuple[int, int]
    years: tuple[int, int] = (1991, 2020)
    half_width: int = 5
    percentile: float = 90.0
    pass_days: int = 12
    batch_years: int = 5

    @property
    def shape(self) -> tuple[int, int]:
        """Poles included, as the files have them."""
        return round(180 / self.grid) + 1, round(360 / self.grid)

    @property
    def cells(self) -> int:
        return self.shape[0] * self.shape[1]

    @property
    def window(self) -> int:
        return 2 * self.half_width + 1

    @property
    def number_of_years(self) -> int:
        return self.years[1] - self.years[0] + 1

    @property
    def pool(self) -> int:
        """Values of a full window: 330 for 11 days of 30 years."""
        return self.window * self.number_of_years

    @property
    def largest(self) -> int:
        """How many of the largest values of a pool are enough for the percentile: 34.

        It lies between the values at places floor((n - 1) q) and one above, from 0 upwards; with
        missing values the pool is smaller and the lower of the two is no further from the end.
        """
        return self.pool - (self.pool - 1) * round(self.percentile * 100) // 10_000

    @property
    def slots(self) -> tuple[int, ...]:
        first, last = self.doys
        return tuple(range(first - self.half_width, last + self.half_width + 1))

    @property
    def files(self) -> int:
        return len(self.slots) * self.number_of_years

    @property
    def map_bytes(self) -> int:
        return 8 * self.cells

    def batches(self) -> tuple[Batch, ...]:
        years = range(self.years[0], self.years[1] + 1)
        return tuple(
            Batch(number, tuple(years[i : i + self.batch_years]))
            for number, i in enumerate(range(0, len(years), self.batch_years))
        )

    def passes(self) -> Iterator[Pass]:
        first, last = self.doys
        for start in range(first, last + 1, self.pass_days):
            stop = min(start + self.pass_days - 1, last)
            slots = range(start - self.half_width, stop + self.half_width + 1)
            yield Pass(tuple(range(start, stop + 1)), tuple(slots), self.batches())


SCALES = {
    problem.name: problem
    for problem in (
        Problem("small", 5.0, (FIRST_DOY, FIRST_DOY + 11)),
        Problem("pass", 0.25, (FIRST_DOY, FIRST_DOY + 11)),
        Problem("season", 0.25, (FIRST_DOY, LAST_DOY)),
    )
}


def problem_of(scale: str) -> Problem:
    """The problem of a scale; Refusal that names those there are."""
    if scale not in SCALES:
        raise Refusal(f"There is no scale {scale!r}; choose from {', '.join(SCALES)}.")
    return SCALES[scale]
