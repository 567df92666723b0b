"""Moments of windows on the processor: where sums of powers overflow, or must cancel."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kuroshio.cornish_fisher import coefficients
from kuroshio.kernels import moments
from kuroshio.keys import AFFINE16, FLOAT64, Keys
from kuroshio.reference import statistics_of

NAMES = ("thresh", *moments.STATISTICS)
WORDS, YEARS, DAYS, CELLS = (
    3,
    7,
    4,
    300,
)  # more cells than are taken at once, an odd number of years
ROWS = 1 + (WORDS + DAYS - 1) * YEARS


def found(keys: Keys, rows: np.ndarray, reference: np.ndarray) -> np.ndarray:
    word_rows = np.arange(1, ROWS).reshape(-1, YEARS)
    out = moments.of_windows(
        keys, rows, slice(0, CELLS), word_rows, np.arange(DAYS), WORDS, np.ones(DAYS, np.int32),
        reference, coefficients([0.9]),
    ).astype(np.float64)  # fmt: skip
    out[:2] += reference
    return out


def expected(values: np.ndarray) -> dict[str, np.ndarray]:
    """By the definition; values (row, cell) with NaN missing, row 0 no day."""
    out = {name: np.full((DAYS, CELLS), np.nan) for name in NAMES}
    for day, cell in np.ndindex(DAYS, CELLS):
        pool = values[1 + day * YEARS : 1 + (day + WORDS) * YEARS, cell]
        result = statistics_of(pool, [90.0], 0.0, "moments")
        for name in NAMES:
            out[name][day, cell] = np.squeeze(result[name])
    return out


@given(
    st.sampled_from((0, -32000, 32000)),
    st.sampled_from((0, 1, 2, 30, 800, 20_000, 32_767)),
    st.floats(0, 1),
    st.integers(0, 1 << 32),
)
@example(32000, 1, 0.0, 0)
@example(0, 32_767, 0.0, 0)
@example(0, 800, 0.998046875, 0)  # a window has one value or none
def test_codes_of_any_level_and_spread(level, spread, missing, seed):
    """Sea ice far from 0, and codes all over their range: the latter are summed again."""
    rng = np.random.default_rng(seed)
    codes = np.clip(level + rng.integers(-spread, spread + 1, (ROWS, CELLS)), -32767, 32767)
    keys = Keys(AFFINE16, 0.01, 5.0)
    rows = np.where(rng.random(codes.shape) < missing, 0, codes + keys.half).astype(np.uint16)
    rows[0] = 0
    reference = np.full(CELLS, 5.0 + level * 0.01, np.float32)
    out, right = found(keys, rows, reference), expected(keys.values(rows))
    widest = np.nanmax(right["std"], initial=0.01)
    for i, name in enumerate(NAMES):
        np.testing.assert_array_equal(np.isnan(out[i]), np.isnan(right[name]), name)
        error = np.abs(out[i] - right[name])
        size = 1 + np.abs(right[name])
        if name == "std":
            size = widest
        elif name in ("thresh", "seas"):  # float32, from the reference
            size = widest + np.abs(right[name] - reference)
        assert np.nanmax(error / size, initial=0) < 3e-6, name


def test_a_pool_far_from_its_reference_keeps_its_fourth_moment():
    """What sums of powers about a common value lose: one code of 21 differs, 300 degrees away."""
    rows = np.full((ROWS, CELLS), 30_000 + (1 << 15), np.uint16)
    rows[0], rows[-1] = 0, 30_001 + (1 << 15)
    out = found(Keys(AFFINE16, 0.01), rows, np.zeros(CELLS, np.float32))[:, -1, 0]
    n = WORDS * YEARS
    p = 1 / n  # of a pool of zeros and ones
    kurtosis = (1 - 6 * p * (1 - p)) / (p * (1 - p))
    np.testing.assert_allclose(out[4], (1 - 2 * p) / np.sqrt(p * (1 - p)), rtol=1e-6)
    np.testing.assert_allclose(out[5], kurtosis, rtol=1e-6)
    pool = 0.01 * (np.float64(rows[-n:, 0]) - (1 << 15))
    mean = pool.mean()
    raw = (pool**4).mean() - 4 * mean * (pool**3).mean() + 6 * mean**2 * (pool**2).mean()
    assert (raw - 3 * mean**4) / pool.var() ** 2 - 3 != pytest.approx(kurtosis, rel=0.1)


def test_floats():
    values = np.random.default_rng().normal(280, 3, (ROWS, CELLS))
    bits = values.view(np.uint64)
    rows = np.where(bits >> np.uint64(63), ~bits, bits | np.uint64(1 << 63))
    rows[0] = 0
    keys = Keys(FLOAT64)
    out, right = found(keys, rows, np.full(CELLS, 280, np.float32)), expected(keys.values(rows))
    for i, name in enumerate(NAMES):
        np.testing.assert_allclose(out[i], right[name], rtol=1e-5, atol=1e-5, err_msg=name)
