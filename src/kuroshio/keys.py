"""Keys: unsigned integers that sort like the values they stand for, 0 meaning missing.

The reader makes them (archive.decode), the kernels select among them, and nothing else is ever
sorted: an exact percentile is a key, or lies between two neighbouring ones.

- AFFINE16: value = (key - 2^15) * scale + offset. Packed 16-bit integers of one scale and offset,
  or floats that are such integers to within one unit in the last place. Half the memory of float32.
- AFFINE32: the same about 2^31: wider integers, and packed integers whose scale differs from file
  to file, put on one common lattice 2^32 fine.
- FLOAT32, FLOAT64: the float's own bits, sign folded, so that nothing is rounded.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

YEARS_PER_WORD = 32  # keys of one cell and offset from the centre that are selected together
AFFINE16, AFFINE32, FLOAT32, FLOAT64 = range(4)
KEY_BITS = {AFFINE16: 16, AFFINE32: 32, FLOAT32: 32, FLOAT64: 64}


class NotCodes(Exception):
    """A value does not fit the kind of key chosen from the archive's head; choose a wider one."""


@dataclass(frozen=True)
class Keys:
    """A kind of key and, for the affine kinds, what turns it back to a value."""

    kind: int
    scale: float = 1.0
    offset: float = 0.0
    lossless: bool = True  # False only for the common lattice

    @property
    def bits(self) -> int:
        return KEY_BITS[self.kind]

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(f"u{self.bits // 8}")

    @property
    def affine(self) -> bool:
        return self.kind in (AFFINE16, AFFINE32)

    @property
    def exact_sums(self) -> bool:
        """Whether sums of powers are kept as integers (kernels.kept_codes)."""
        return self.kind == AFFINE16

    @property
    def half(self) -> int:
        """The key of code 0."""
        return 1 << (self.bits - 1)

    def values(self, key: np.ndarray) -> np.ndarray:
        """Keys back to values, float64, NaN where missing."""
        if self.affine:
            value = (key.astype(np.float64) - self.half) * self.scale + self.offset
        else:
            sign = self.dtype.type(self.half)
            raw = np.where(key & sign, key ^ sign, ~key)
            value = raw.view(f"f{self.bits // 8}").astype(np.float64)
        return np.where(key == 0, np.nan, value)
