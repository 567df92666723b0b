"""Statistics of samples (a minimal stand-in)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def summary(samples: Sequence[float]) -> dict[str, float]:
    """Median, 90th percentile, least, and median absolute deviation."""
    values = np.asarray(samples, float)
    median = float(np.median(values))
    return {
        "median": median,
        "p90": float(np.percentile(values, 90)),
        "min": float(values.min()),
        "mad": float(np.median(np.abs(values - median))),
    }
