"""Running means over results that lie by tile, against a literal mean."""

import os
import subprocess
import sys

import numpy as np
import pytest
import xarray as xr

from kuroshio.archive.synthetic import make_archive
from kuroshio.device.llvm import tile_cells
from kuroshio.kernels.smooth import running_mean


def literal_mean(results, rows, reference, runs, cells):
    """(output, cell) float64."""
    tiles, days, tile = results.shape
    flat = results.swapaxes(0, 1).reshape(days, tiles * tile).astype(np.float64)
    out = np.full((len(rows), cells), np.nan)
    with np.errstate(invalid="ignore"):
        for start, length, place in runs.tolist():
            mine = flat[:, place : place + length]
            out[:, start : start + length] = mine[rows].mean(axis=1) + reference[place:][:length]
    return out


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("round_", range(12))
def test_any_part_of_any_runs_equals_a_literal_mean(round_, hard):
    rng = np.random.default_rng()
    tile, tiles = tile_cells(), int(rng.integers(1, 6))
    days, width = int(rng.integers(1, 60)), int(rng.integers(1, 40))
    results = rng.normal(size=(tiles, 2, days, tile)).astype(np.float32)
    results[rng.random(results.shape) < 0.01] = np.nan
    if hard:
        for wild in (np.inf, -np.inf, 1e30, -1e12):
            results[rng.random(results.shape) < 0.003] = wild
    if rng.random() < 0.5:
        rows = (np.arange(rng.integers(1, 80))[:, None] + np.arange(width)) % days
    else:
        rows = rng.integers(0, days, (5, width))
    reference = rng.normal(size=tiles * tile).astype(np.float32)
    # Tiles in the order of memory, with land between them, the last run cut off.
    starts = np.cumsum(rng.integers(0, 50, tiles)) + np.arange(tiles) * tile
    lengths = np.full(tiles, tile)
    lengths[-1] = rng.integers(1, tile + 1)
    runs = np.stack([starts, lengths, np.arange(tiles) * tile], axis=1).astype(np.int64)
    cells = int(starts[-1] + lengths[-1] + rng.integers(0, 20))
    first, last = sorted(rng.integers(0, cells + 1, 2).tolist())
    out = np.full((len(rows), last - first), -7, np.float32)
    which = int(rng.integers(0, 2))
    running_mean(
        results,
        which,
        rows.astype(np.int64),
        rng.random(len(rows)) < 0.2,
        reference,
        runs,
        first,
        last,
        out,
    )
    expected = literal_mean(results[:, which], rows, reference, runs, cells)[:, first:last]
    with np.errstate(over="ignore"):
        expected = expected.astype(np.float32)
    # A sum of 1e12 and 1 is no better than this, of whichever order.
    scale = np.abs(np.nan_to_num(results[np.isfinite(results)])).max(initial=1) if hard else 1
    np.testing.assert_allclose(out, expected, rtol=2e-6, atol=1e-6 + 1e-15 * scale)


@pytest.mark.parametrize("round_", range(6))
def test_results_may_lie_in_whole_rows(round_):
    """As a device may send them: (statistic, row, cell), seen by tile; the same bits."""
    rng = np.random.default_rng()
    tile, tiles = tile_cells(), int(rng.integers(1, 9))
    rows, cells = int(rng.integers(40, 60)), tiles * tile
    by_row = rng.normal(size=(3, rows, cells + int(rng.integers(0, 50)))).astype(np.float32)
    by_row[rng.random(by_row.shape) < 0.01] = np.nan
    statistic, row, cell = by_row.strides
    seen = np.lib.stride_tricks.as_strided(
        by_row, (tiles, 3, rows, tile), (tile * cell, statistic, row, cell)
    )
    days = (np.arange(90)[:, None] + np.arange(rng.integers(1, 32))) % rows
    reference, anew = rng.normal(size=cells).astype(np.float32), rng.random(90) < 0.1
    # Two runs with land between them, and a part of the whole.
    half = tiles // 2 * tile
    runs = np.array([[3, half, 0], [half + 20, cells - half, half]])
    first, last = sorted(rng.integers(0, cells + 30, 2).tolist())
    found, expected = np.empty((2, len(days), last - first), np.float32)
    for which in range(3):
        running_mean(seen, which, days, anew, reference, runs, first, last, found)
        running_mean(seen.copy(), which, days, anew, reference, runs, first, last, expected)
        np.testing.assert_array_equal(found.view(np.uint32), expected.view(np.uint32))


def test_the_last_bit_does_not_depend_on_the_cells_beside():
    """Nor on what was averaged before the sum was made anew; of values that would show it.

    Means of 31 of them lie, one in 62, right between two float32, but for what was lost of a tiny
    one when it was added.
    """
    rng = np.random.default_rng()
    tile, tiles, days, outputs = tile_cells(), 20, 80, 48
    results = (0.5 + rng.integers(0, 1 << 23, (days, tiles * tile)) * 2.0**-24).astype(np.float32)
    tiny = rng.random(results.shape) < 0.05
    results[tiny] = rng.integers(1, 8, results.shape)[tiny] * 2.0**-50
    results[rng.random(results.shape) < 0.0005] = np.inf
    rows, runs = np.arange(outputs)[:, None] + np.arange(31), np.array([[0, tiles * tile, 0]])
    reference = np.ones(tiles * tile, np.float32)

    def mean(flat, first, anew):
        found = np.empty((outputs - first, tiles * tile), np.float32)
        by_tile = np.ascontiguousarray(flat.reshape(days, tiles, tile).swapaxes(0, 1))[:, None]
        some = (rows[first:], anew[first:], reference, runs)
        running_mean(by_tile, 0, *some, 0, tiles * tile, found)
        return found.view(np.uint32)

    eighth, never = np.arange(outputs) % 8 == 0, np.zeros(outputs, bool)
    whole, beside = mean(results, 0, eighth), rng.permutation(tiles * tile)
    np.testing.assert_array_equal(mean(results[:, beside], 16, eighth), whole[16:, beside])
    assert (mean(results, 16, never) != mean(results, 0, never)[16:]).any()  # they do show it


def test_a_sum_that_falls_in_steps_keeps_no_trace_of_what_it_was():
    tile = tile_cells()
    results = np.full((1, 1, 40, tile), 1e-6, np.float32)
    results[0, 0, :3] = np.array([1e12, 1e6, 1.0], np.float32)[:, None]
    rows = np.arange(30)[:, None] + np.arange(5)
    out = np.empty((30, tile), np.float32)
    runs = np.array([[0, tile, 0]])
    running_mean(
        results, 0, rows, np.zeros(30, bool), np.zeros(tile, np.float32), runs, 0, tile, out
    )  # fmt: skip
    np.testing.assert_allclose(out[3:], np.float32(1e-6), rtol=1e-6)


@pytest.mark.parametrize("percentile", ["50", "90"])
@pytest.mark.parametrize(
    "setting", [{"MALLOC_ARENA_MAX": "1"}, {"MALLOC_TRIM_THRESHOLD_": "65536"}]
)
def test_kernels_keep_their_scratch_memory(tmp_path_factory, setting, percentile):
    """An allocator that gives memory away soon, as containers set it, must not show."""
    folder = tmp_path_factory.getbasetemp() / "scratch_f8"
    if not folder.exists():
        make_archive(folder, (2001, 2003), 10, "f8")
    found = []
    for number, (variables, threads) in enumerate((({}, "1"), (setting, "8"))):
        output = tmp_path_factory.mktemp("scratch") / f"{number}.nc"
        command = [sys.executable, "-m", "kuroshio", "climatology", str(folder), "-o", str(output)]
        options = ["--quiet", "--percentile", percentile, "--threads", threads, "--memory", "3M"]
        subprocess.run([*command, *options], env={**os.environ, **variables}, check=True)
        found.append(xr.load_dataset(output))
    np.testing.assert_array_equal(found[0].thresh, found[1].thresh)
    np.testing.assert_array_equal(found[0].seas, found[1].seas)
