"""Sums of codes that are kept, where they overflow and where they must cancel."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kuroshio.kernels import kept_codes
from kuroshio.keys import AFFINE16, Keys

WORDS, YEARS, DAYS, CELLS = 10, 9, 4, 300  # more cells than are taken at once
KEYS = Keys(AFFINE16, 0.01)
FIRST_WORD = np.array([0, 1, 2, 10])  # the last window does not go on from the one before


def nothing() -> kept_codes.Kept:
    shape = DAYS, CELLS + 7
    kinds = (np.int32, np.int16, np.int32, np.int64, np.int64, np.int64, np.int32)
    kept = kept_codes.Kept._make([np.zeros(shape, kind) for kind in kinds])
    kept.mean[:] = kept_codes.NOTHING
    return kept


def change(kept: kept_codes.Kept, keys: np.ndarray, rows: np.ndarray, sign: int) -> None:
    """Of cells from 7 on; rows (word, year)."""
    signs = np.full(WORDS, sign)
    kept_codes.change(KEYS, keys, 0, rows, FIRST_WORD, signs, kept, slice(7, CELLS + 7))


@settings(max_examples=25)
@given(
    st.sampled_from((0, -32000, 32000)),
    st.sampled_from((0, 1, 30, 800, 4000, 20_000, 65_534)),
    st.floats(0, 1),
    st.integers(0, 1 << 32),
)
@example(32000, 1, 0.0, 0)
@example(0, 65_534, 0.0, 0)
def test_levels_and_spreads(level, spread, missing, seed):
    rng = np.random.default_rng(seed)
    rows = np.arange(1, 1 + 20 * YEARS, dtype=np.int32).reshape(20, YEARS)
    codes = level + rng.integers(-spread, spread + 1, (rows.size + 1, CELLS))
    codes = np.clip(codes, -32767, 32767)
    keys = np.where(rng.random(codes.shape) < missing, 0, codes + KEYS.half).astype(np.uint16)
    keys[0] = 0
    kept = nothing()
    change(kept, keys, rows, 1)

    found = np.empty((DAYS, 5, CELLS))
    kept_codes.central(7, *kept, found)
    values = np.where(keys == 0, np.nan, codes)
    for day, word in enumerate(FIRST_WORD):
        pool = values[rows[word : word + WORDS].reshape(-1)]
        number = (~np.isnan(pool)).sum(axis=0)
        some = number > 0
        mean = np.nansum(pool, axis=0) / np.maximum(number, 1)
        np.testing.assert_array_equal(found[day, 0], number)
        np.testing.assert_allclose(found[day, 1][some], mean[some], rtol=1e-14, atol=1e-12)
        for power in (2, 3, 4):
            right = np.nansum((pool - mean) ** power, axis=0)
            size = np.nansum(np.abs(pool - mean) ** power, axis=0) + 1e-9
            assert np.all(np.abs(found[day, power] - right)[some] <= 1e-9 * size[some]), power
    if spread == 65_534 and missing == 0:
        assert kept.high[:, 7:].min() > 0

    other = nothing()
    for part in rng.permutation(YEARS).reshape(3, 3):
        change(other, keys, np.ascontiguousarray(rows[:, part]), 1)
    back = np.ascontiguousarray(rows[:, : rng.integers(1, YEARS)])
    change(other, keys, back, 1)
    change(other, keys, back, -1)
    for name, one, again in zip(kept._fields, kept, other, strict=True):
        np.testing.assert_array_equal(one, again, name)
    change(other, keys, rows, -1)
    for name, one, again in zip(kept._fields, nothing(), other, strict=True):
        np.testing.assert_array_equal(one, again, name)
