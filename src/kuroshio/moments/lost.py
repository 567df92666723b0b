"""Whether a part of some moments is lost: seen by what the variables say of each other.

Chunks that hold nothing are not stored, so one that was lost reads as nothing.
"""

from __future__ import annotations

import numpy as np

from ..kernels import kept_codes, kept_values

_TINY = 1e-200  # a power sum of floats below may come of underflow


def lost(kept: kept_codes.Kept | kept_values.Kept) -> str:
    """The variables that contradict each other, '' where none do."""
    there = kept.number > 0
    if isinstance(kept, kept_codes.Kept):
        varies = kept.sum2 != 0
        wrong = {
            "count or mean": there != (kept.mean != kept_codes.NOTHING),
            "sum2 or sum4": varies != ((kept.sum4 != 0) | (kept.high != 0)),
            "sum1 or sum3": ((kept.sum1 ^ kept.sum3) & 1).astype(bool),  # odd numbers' cubes are
        }
    else:
        varies = kept.sum2 != 0
        wrong = {
            "count or mean": np.isnan(kept.mean) & there & ~np.isnan(kept.sum2),
            "count": ~np.isnan(kept.mean) & ~there,
            "sum2": ~varies & (kept.sum4 > _TINY),
            "sum4": (kept.sum2 > np.sqrt(_TINY)) & (kept.sum4 == 0),
        }
    return next((names for names, pools in wrong.items() if pools.any()), "")
