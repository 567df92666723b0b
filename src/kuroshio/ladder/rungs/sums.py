"""What rungs that add powers of values have in common: sums, references, and forms of both."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...cornish_fisher import coefficients
from ..place import Array, Launch, Place
from ..problem import Problem


@dataclass(frozen=True)
class Form:
    """Type of the sums, about what the powers are taken, and the formula for the fourth moment.

    fourth  factor of the mean's fourth power
    flat    a variance of no more than this share of the largest mean square that went through the
            sums counts as none: it is what rounding left
    """

    dtype: type[np.floating[Any]]
    about_reference: bool  # a valid value of the cell; else zero
    fourth: float
    flat: float

    def macros(self) -> dict[str, int | str]:
        return {"SUM": "double" if self.dtype is np.float64 else "float"}


PUBLISHED = Form(np.float32, about_reference=False, fourth=1.0, flat=0.0)
# With fewer digits left than `flat` says, kurtosis would be noise: about as wrong as the mean is.
CORRECTED = Form(np.float64, about_reference=True, fourth=3.0, flat=3e-9)


@dataclass
class Sums:
    """Sums of the first four powers and numbers of values, of each row (a day or a slot) and cell.

    The kernels take them as `sums` (row, power, cell), `counts` (row, cell), `references` (cell).
    """

    place: Place
    problem: Problem
    form: Form
    rows: int
    find_references: Launch
    _first: bool = field(init=False, default=True)

    def __post_init__(self) -> None:
        days, cells, zeros = self.problem.pass_days, self.problem.cells, self.place.zeros
        self.sums = zeros((self.rows, 4, cells), self.form.dtype)
        self.counts = zeros((self.rows, cells), np.int32)
        self.references = zeros((cells,), np.float64)
        self.means, self.thresholds = (zeros((days, cells), np.float32) for _ in range(2))

    def clear(self) -> None:
        self._first = True
        self.place.clear(self.sums)
        self.place.clear(self.counts)

    def meet(self, maps: Array) -> None:
        """Before the maps (slot, year, cell) of a batch are added: references for new cells."""
        if self.form.about_reference:
            slots, years, cells = maps.shape
            self.find_references(
                cells, maps, np.int32(cells), np.int32(slots * years), np.int32(self._first),
                self.references,
            )  # fmt: skip
        self._first = False

    def formula(self) -> tuple[np.float64, ...]:
        """`fourth` to `by_skewness_squared` of the kernels."""
        terms = coefficients([self.problem.percentile / 100])[0]
        return tuple(map(np.float64, (self.form.fourth, self.form.flat, *terms)))
