"""The two ways to a percentile, and the networks that one of them is made of."""

from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kuroshio.device.llvm import tile_cells
from kuroshio.kernels import percentile, toplists
from kuroshio.kernels.list_windows import HIGHEST, LONGEST, LOWEST, NEITHER, sides_of
from kuroshio.keys import AFFINE16

SCALE, OFFSET = 0.01, 5.0
WORDS = 3  # a window's


class Numbers:
    """The operations of the lists on plain numbers."""

    max_ = staticmethod(max)
    min_ = staticmethod(min)


@pytest.mark.parametrize("size", range(1, 13))
def test_the_network_sorts_zeros_and_ones_and_so_everything(size):
    """Knuth, vol. 3, 5.3.4, theorem Z."""
    for values in product((0, 1), repeat=size):
        assert toplists.sort(Numbers, values) == sorted(values, reverse=True)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=64))
def test_long_lists_are_sorted(values):
    assert toplists.sort(Numbers, values) == sorted(values, reverse=True)


def test_the_network_for_thirty_years_is_as_small_as_known():
    assert len(list(toplists.sorting_network(30))) == 178
    assert len(toplists.bitonic_network(34)[0]) == 83


@given(st.data())
def test_the_largest_of_two_lists(data):
    a = data.draw(st.lists(st.integers(0, 30), min_size=1, max_size=66))
    b = data.draw(st.lists(st.integers(0, 30), max_size=len(a)))
    joined = toplists.join(Numbers, sorted(a, reverse=True), sorted(b, reverse=True))
    assert joined == sorted(a + b, reverse=True)[: len(a)]


@given(st.floats(0, 1), st.integers(1, 400))
def test_lists_are_long_enough_for_every_smaller_pool(quantile, most):
    sides, longest = sides_of(np.array([quantile]), most)
    for n in range(1, most + 1):
        rank = int((n - 1) * quantile)
        if sides[0] == HIGHEST:
            assert 1 <= n - rank <= longest
        elif sides[0] == LOWEST:
            assert rank + 2 <= longest
        else:
            assert longest == 0
    if sides[0] == NEITHER:
        rank = int((most - 1) * quantile)
        assert min(most - rank, rank + 2) > LONGEST


def numpy_windows(keys, word_rows, first_word, quantiles, least):
    """(percentiles and mean, doy, cell) float64, and counts."""
    out = np.full((len(quantiles) + 1, len(first_word), keys.shape[1]), np.nan)
    counts = np.zeros((len(first_word), keys.shape[1]), np.int32)
    for d, w in enumerate(first_word):
        rows = word_rows[w : w + WORDS].ravel()
        pool = keys[rows[rows > 0]].astype(np.float64)
        pool[pool == 0] = np.nan
        value = (pool - 32768) * SCALE + OFFSET
        n = counts[d] = (~np.isnan(pool)).sum(axis=0)
        good = n >= least[d]
        if good.any():
            out[:-1, d, good] = np.nanquantile(value[:, good], quantiles, axis=0)
            out[-1, d, good] = np.nanmean(value[:, good], axis=0)
    return out, counts


def draw_batch(data, years):
    """Keys (row, cell) with a spare cell's width, the words of a few runs of windows, and least."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    tiles = data.draw(st.integers(1, 3))
    cells = tiles * tile_cells()
    rows = []
    first_word = []
    row = 0
    for days in data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=3)):
        first_word += range(len(rows), len(rows) + days)
        for _ in range(days + WORDS - 1):
            rows.append(np.arange(row + 1, row + years + 1))
            row += years
    word_rows = np.array(rows, np.int32)
    spread = data.draw(st.sampled_from([1, 3, 300, 6000, 30000]))
    keys = np.zeros((row + 1, cells), np.uint16)
    middle = rng.integers(spread + 1, 65536 - spread, cells)
    keys[1:] = middle + rng.integers(-spread, spread, (row, cells))
    if data.draw(st.booleans()):  # days that the archive lacks
        word_rows[rng.random(word_rows.shape) < data.draw(st.sampled_from([0.02, 0.5]))] = 0
    if data.draw(st.booleans()):  # land
        keys[:, rng.random(cells) < 0.3] = 0
    if data.draw(st.booleans()):  # gaps of single cells
        gappy = slice(0, cells // tiles)
        keys[:, gappy][rng.random(keys[:, gappy].shape) < 0.01] = 0
    least = rng.integers(0, WORDS * years + 2, len(first_word)).astype(np.int32)
    return keys, word_rows, np.array(first_word, np.int64), least


@pytest.mark.parametrize(
    ("years", "percentiles"),
    [(5, (90.0,)), (5, (10.0, 25.0, 90.0, 100.0)), (1, (100.0,))],
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_lists_and_planes_agree_to_the_bit_and_with_numpy(years, percentiles, data):
    keys, word_rows, first_word, least = draw_batch(data, years)
    quantiles = np.array(percentiles) / 100
    cells, tile = keys.shape[1], tile_cells()
    reference = np.full(cells, 3.0, np.float32)
    by_lists, sides = percentile.compiled_for(AFFINE16, WORDS, years, quantiles)
    assert NEITHER not in sides
    by_planes = percentile.compiled(AFFINE16, WORDS, years, 0, 0, 0)
    results = []
    for kernel, how in ((by_lists, sides), (by_planes, np.full_like(sides, NEITHER))):
        found = np.full((cells // tile, len(quantiles) + 1, len(first_word), tile), -1, np.float32)
        counts = np.full((len(first_word), cells), -1, np.int32)
        kernel(
            keys, 0, cells // tile, np.unique(word_rows[word_rows > 0]).astype(np.int32), word_rows,
            first_word, 1, bool((word_rows == 0).any()), quantiles, how, least, SCALE, OFFSET,
            reference, found, np.arange(len(first_word), dtype=np.int32), counts,
        )  # fmt: skip
        results.append((found.transpose(1, 2, 0, 3).reshape(len(quantiles) + 1, -1, cells), counts))
    np.testing.assert_array_equal(results[0][0], results[1][0])
    np.testing.assert_array_equal(results[0][1], results[1][1])
    expected, counts = numpy_windows(keys, word_rows, first_word, quantiles, np.maximum(least, 1))
    np.testing.assert_allclose(results[0][0] + 3.0, expected, rtol=1e-6, atol=1e-4)
    np.testing.assert_array_equal(results[0][1], counts)
