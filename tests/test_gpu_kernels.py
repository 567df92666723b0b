"""Every kernel by itself, on each device there is, against NumPy and against its siblings."""

from __future__ import annotations

import zlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from kernel_runs import DIRTY, Case, by_numpy, case_of, download, finish, on_device
from kuroshio.cornish_fisher import coefficients
from kuroshio.engines.gpu_inflation import SUMMERS
from kuroshio.kernels import fill, moments, smooth
from kuroshio.kernels.gpu import programs, windows
from kuroshio.kernels.gpu.programs import BLOCK
from kuroshio.kernels.gpu.windows import MAP
from kuroshio.keys import AFFINE16, AFFINE32, FLOAT32, FLOAT64, Keys

KEYS = {
    AFFINE16: Keys(AFFINE16, 0.01, 0.0), AFFINE32: Keys(AFFINE32, 1e-5, 273.15),
    FLOAT32: Keys(FLOAT32), FLOAT64: Keys(FLOAT64),
}  # fmt: skip
THREADS = 256

# Words, years, percentiles from both ends and the middle. Few, for each is compiled; one value,
# windows of one, two and more words, one year, the usual window, and lists too long for some.
LISTS = (
    (1, 1, (0.0, 0.5, 1.0)),
    (1, 7, (0.9, 0.1)),
    (2, 5, (1.0, 0.0, 0.3)),
    (3, 1, (0.8,)),
    (3, 9, (0.05, 0.5, 1.0)),
    (11, 30, (0.9, 0.95)),
    (11, 12, (0.9, 0.02, 0.5)),
)
PLANES = (
    (AFFINE16, 1, 1, 1, (0.0, 1.0)),
    (AFFINE16, 4, 20, 2, (0.9, 0.5)),
    (AFFINE32, 3, 5, 1, (0.25, 1.0)),
    (FLOAT32, 2, 32, 1, (0.9,)),
    (FLOAT64, 5, 3, 1, (0.0, 0.37)),
)
some = settings(max_examples=20, deadline=None, phases=(Phase.explicit, Phase.generate))


@st.composite
def cases(draw: st.DrawFn, keys: Keys, words: int, years: int, quantiles: tuple, **given) -> Case:
    return case_of(
        np.random.default_rng(draw(st.integers(0, 2**32 - 1))), keys, words, years, quantiles,
        cells=2 * draw(st.integers(32, 80)),
        runs=tuple(draw(st.lists(st.integers(1, 2 * words + 3), min_size=1, max_size=3))),
        missing=draw(st.sampled_from((0.0, 0.01, 0.3, 0.49))),
        absent=draw(st.sampled_from((0.0, 0.0, 0.2))),
        fewest=draw(st.sampled_from((1, words * years // 2 + 1, 0))), **given,
    )  # fmt: skip


@some
@given(st.data())
def test_lists_and_planes_give_the_bits_that_numpy_gives(gpu, data):
    shape = data.draw(st.sampled_from(LISTS))
    case = data.draw(cases(KEYS[AFFINE16], *shape))
    expected = by_numpy(case)
    ways = {
        "lists": on_device(gpu, case),
        "planes": on_device(gpu, case, lists=False),
        "planes in memory": on_device(gpu, case, lists=False, registers=False),
    }
    for name, found in ways.items():
        np.testing.assert_array_equal(found, expected, name)


@some
@given(st.data())
def test_planes_of_every_kind_of_key(gpu, data):
    kind, words, years, step, quantiles = data.draw(st.sampled_from(PLANES))
    case = data.draw(cases(KEYS[kind], words, years, quantiles, step=step))
    found = on_device(
        gpu, case, registers=data.draw(st.booleans()), slice_cells=data.draw(st.integers(1, 200))
    )
    np.testing.assert_array_equal(found, by_numpy(case))


@pytest.mark.parametrize("shape", LISTS[-3:])
def test_lists_are_what_is_tested(gpu, shape):
    """And only blocks with gaps, all of those, are left to the second launch."""
    rng = np.random.default_rng()
    case = case_of(rng, KEYS[AFFINE16], *shape, cells=4 * 2 * BLOCK)
    case.rows[1:] = np.maximum(case.rows[1:], 1)
    case.rows[case.word_rows[:, 1:], 2 * BLOCK] = 0  # one year of all is left
    found = windows.GpuWindows(gpu, case.job)
    assert found.lists
    assert len(found.planes) == (2 if shape == LISTS[-1] else 0)
    launched = on_device_again(gpu, case)
    for again in launched:
        assert again.tolist() == [0, 1, 0, 0]
    np.testing.assert_array_equal(on_device(gpu, case), by_numpy(case))


def on_device_again(gpu, case: Case) -> list[np.ndarray]:
    """Which blocks are left to the second launch, of each side's lists."""
    kept: list[windows._ListsWay] = []
    launch = windows._ListsWay.launch

    def keeping(way, *args):
        kept.append(way)
        launch(way, *args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(windows._ListsWay, "launch", keeping)
        on_device(gpu, case)
    return [download(gpu, way.again) for way in kept]


def test_a_cell_goes_to_the_planes_that_it_needs(gpu):
    """Each by one of the two kernels: what the other alone would leave."""
    case = case_of(np.random.default_rng(), KEYS[AFFINE16], 3, 9, (0.5,), cells=128)
    edge = windows._FEW_PLANES
    base = 30_000
    tops = [0, 1, edge - 1, edge, edge + 1, 15]
    for cell, planes in enumerate(tops):
        case.rows[1:, cell] = base
        case.rows[case.word_rows[0, 0], cell] = base + (1 << planes) - 1
    launch = windows._PlanesWay.launch
    for in_registers in (True, False):

        def only(way, *args, in_registers=in_registers):
            if (way.memory is None) == in_registers:
                launch(way, *args)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(windows._PlanesWay, "launch", only)
            done = on_device(gpu, case, lists=False)[0, 0, : len(tops)] != DIRTY
        assert done.tolist() == [(top <= edge) == in_registers for top in tops]


def test_the_mean_is_correctly_rounded(gpu):
    """`quotient` of lists.h for every number of values that a window may have, and many sums."""
    case = programs.Windows(11, 30, (0,), 1, True, 0)
    text = (
        programs.lists_program(case, [34], 34, True, False, 1).text
        + """
KERNEL(256) quotients(const u32* x, const int* n, int count, double* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = quotient(x[i], n[i]);
}
"""
    )
    rng = np.random.default_rng()
    n = np.repeat(np.arange(1, 401, dtype=np.int32), 1500)
    x = (rng.random(n.size) * n * 65_535).astype(np.uint32)
    x[::3] = x[::3] // n[::3] * n[::3] + rng.integers(-1, 2, x[::3].size)  # near whole numbers
    x = np.clip(x.astype(np.int64), 0, n.astype(np.int64) * 65_535).astype(np.uint32)
    (kernel,) = gpu.kernels(text, ("quotients",)).values()
    out, stream = gpu.empty(x.shape, np.float64), gpu.stream()
    kernel(stream, -(-x.size // THREADS), THREADS,
           (gpu.array(x), gpu.array(n), np.int32(x.size), out))  # fmt: skip
    finish(gpu, stream)
    np.testing.assert_array_equal(download(gpu, out), x / n)


# -- rows ------------------------------------------------------------------------------------------


def launch(gpu, program, name, cells, args):
    stream = gpu.stream()
    gpu.kernels(program.text, program.kernels)[name](stream, -(-cells // THREADS), THREADS, args)
    finish(gpu, stream)


def table_of(gpu, table: np.ndarray):
    return gpu.array(table.view(np.uint8))


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_unpack_maps(gpu, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    cells, n_maps = data.draw(st.integers(1, 700)), data.draw(st.integers(1, 4))
    codes = rng.integers(-32768, 32768, (n_maps, cells)).astype(np.int16)
    fills = rng.choice([-999, -32768, 32767], n_maps)
    filled = rng.random(n_maps) < 0.7
    many = rng.random((n_maps, cells)) < data.draw(st.sampled_from((0.0, 0.5, 1.0)))
    codes[many] = np.broadcast_to(fills[:, None], codes.shape)[many]
    if not data.draw(st.booleans()):
        codes[codes == -32768] = 5
    kept = rng.random(cells) < data.draw(st.sampled_from((0.3, 1.0)))
    places = np.where(kept, kept.cumsum() - 1, -1).astype(np.int32)
    stride = int(kept.sum()) + 3
    rows = rng.permutation(6)[:n_maps].astype(np.int32)
    rows[rng.random(n_maps) < 0.2] = -1
    table = np.zeros(n_maps, MAP)
    table["row"], table["fill"], table["filled"] = (
        rows,
        fills.astype(np.int16).view(np.uint16),
        filled,
    )

    valid = ~(filled[:, None] & (codes == fills[:, None]))
    expected = np.full((6, stride), 9, np.uint16)
    odd = 0
    for m, row in enumerate(rows):
        if row >= 0:
            keys = np.where(valid[m], codes[m].view(np.uint16) ^ 0x8000, 0)
            expected[row, : stride - 3] = keys[kept]
            odd |= 1 if (valid[m] & kept & (codes[m] == -32768)).any() else 0
            odd |= 2 if (valid[m] & ~kept).any() else 0

    apart, beyond = data.draw(st.integers(0, 40)), data.draw(st.integers(0, 40))
    spread = rng.integers(0, 256, (n_maps, 2 * cells + apart + beyond)).astype(np.uint8)
    spread[:, :cells] = codes.view(np.uint8)[:, 0::2]
    spread[:, cells + apart : 2 * cells + apart] = codes.view(np.uint8)[:, 1::2]
    there, seen = gpu.array(np.full((6, stride), 9, np.uint16)), gpu.zeros((1,), np.uint32)
    launch(gpu, programs.rows_program(AFFINE16), "unpack_maps", cells,
           (gpu.array(spread), np.int64(spread.shape[1]), np.int64(cells + apart),
            np.int32(n_maps), np.int32(cells), gpu.array(places), table_of(gpu, table), there,
            np.int64(stride), seen))  # fmt: skip
    np.testing.assert_array_equal(download(gpu, there), expected)
    assert download(gpu, seen)[0] == odd


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_judge_maps(gpu, data):
    """Against zlib's own Adler-32, with every kind of fault."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    n_maps, nbytes = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 30_000))
    stride = -(-nbytes // 8) * 8 + 8 * data.draw(st.integers(0, 3))
    maps = rng.integers(data.draw(st.sampled_from((0, 255))), 256, (n_maps, stride), np.uint8)
    checksums = np.array([zlib.adler32(each[:nbytes]) for each in maps], np.uint32)
    inflated, statuses = np.full(n_maps, nbytes, np.uint64), np.zeros(n_maps, np.int32)
    faults = rng.integers(0, 5, n_maps)
    for m in np.flatnonzero(faults):
        if faults[m] == 1:
            maps[m, rng.integers(nbytes)] ^= 1 << rng.integers(8)
        elif faults[m] == 2:
            checksums[m] ^= 1 << int(rng.integers(32))
        elif faults[m] == 3:
            inflated[m] += rng.choice([-1, 1])
        else:
            statuses[m] = rng.choice([-1, 12])
    table = np.zeros(n_maps, MAP)
    table["row"], table["fill"] = 7, 9

    program = programs.rows_program(AFFINE16)
    there, judged = table_of(gpu, table), gpu.array(np.full(n_maps, 9, np.uint8))
    maps, sums = gpu.array(maps), gpu.zeros((n_maps, 2), np.uint32)
    counts = (np.int32(n_maps), np.int64(nbytes))
    launch(gpu, program, "sum_bytes", n_maps * SUMMERS, (maps, np.int64(stride), *counts, sums))
    launch(gpu, program, "judge_maps", n_maps,
           (*counts, sums, gpu.array(checksums), gpu.array(inflated), gpu.array(statuses), there,
            judged))  # fmt: skip
    np.testing.assert_array_equal(download(gpu, judged), np.array([0, 1, 1, 2, 2])[faults])
    table["row"][faults != 0] = -1
    np.testing.assert_array_equal(download(gpu, there).view(MAP), table)


@pytest.mark.parametrize("kind", KEYS)
def test_place_maps(gpu, kind):
    rng = np.random.default_rng()
    cells, stride, map_stride, dtype = 300, 310, 305, KEYS[kind].dtype
    maps = rng.integers(0, 2**16, (4, map_stride)).astype(dtype)
    table = np.zeros(4, MAP)
    table["row"] = [4, -1, 0, 2]
    there = gpu.array(np.full((5, stride), 3, dtype))
    launch(gpu, programs.rows_program(kind), "place_maps", cells,
           (gpu.array(maps), np.int64(map_stride), np.int32(4), np.int32(cells),
            table_of(gpu, table), there, np.int64(stride)))  # fmt: skip
    expected = np.full((5, stride), 3, dtype)
    expected[[4, 0, 2], :cells] = maps[[0, 2, 3], :cells]
    np.testing.assert_array_equal(download(gpu, there), expected)


def extreme_floats(rng: np.random.Generator, keys: Keys, shape: tuple) -> np.ndarray:
    """Keys of values of any size, infinities and both zeros among them."""
    with np.errstate(over="ignore"):
        value = (rng.normal(size=shape) * 10.0 ** rng.integers(-300, 300, shape)).astype(
            f"f{keys.bits // 8}"
        )
    value[rng.random(shape) < 0.1] = rng.choice([np.inf, -np.inf, 0.0, -0.0])
    raw = value.view(keys.dtype)
    found = np.where(raw & keys.dtype.type(keys.half), ~raw, raw | keys.dtype.type(keys.half))
    found[rng.random(shape) < 0.3] = 0
    return found


@settings(max_examples=30, deadline=None)
@given(kind=st.sampled_from(list(KEYS)), seed=st.integers(0, 2**32 - 1), n=st.integers(0, 17))
def test_find_references(gpu, kind, seed, n):
    rng, keys, cells = np.random.default_rng(seed), KEYS[kind], 300
    case = case_of(rng, keys, 3, 6, (0.5,), cells=cells, missing=0.4)
    there = case.rows if keys.affine else extreme_floats(rng, keys, case.rows.shape)
    rows = rng.permutation(len(there))[:n].astype(np.int32)
    table = gpu.array(np.append(rows, 0).astype(np.int32))  # a device keeps no empty table
    found = gpu.empty((cells,), np.float32)
    launch(gpu, programs.rows_program(kind), "find_references", cells,
           (gpu.array(there), np.int64(cells), np.int32(cells), table,
            np.int32(n), np.float64(keys.scale), np.float64(keys.offset), found))  # fmt: skip
    expected = smooth.reference_values(keys, there, rows)
    np.testing.assert_array_equal(download(gpu, found), expected)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), longest=st.integers(1, 9))
def test_fill_gaps(gpu, seed, longest):
    """As the processor fills them, in an order of rows that is not that of time."""
    rng, cells, days = np.random.default_rng(seed), 300, 40
    keys = KEYS[FLOAT64]
    row = np.concatenate(
        [np.zeros(longest, int), rng.permutation(days) + 1, np.zeros(longest, int)]
    )
    there = np.zeros((days + 1, cells), np.uint64)
    value = rng.normal(15, 20, (days, cells))
    raw = value.view(np.uint64)
    there[1:] = np.where(raw >> np.uint64(63), ~raw, raw | np.uint64(keys.half))
    there[1:][rng.random((days, cells)) < rng.choice([0.1, 0.5, 0.9])] = 0
    at = np.arange(longest, longest + days)
    rows = row[at].astype(np.int32)
    near = np.arange(1, longest + 1)
    before, after = (row[at[:, None] + sign * near].astype(np.int32) for sign in (-1, 1))
    found = gpu.array(there)
    launch(gpu, programs.rows_program(FLOAT64), "fill_gaps", cells,
           (found, np.int64(cells), np.int32(cells), gpu.array(rows), np.int32(days),
            gpu.array(before), gpu.array(after), np.int32(longest)))  # fmt: skip
    fill.fill_gaps(0, cells, there, *(t.astype(np.int64) for t in (rows, before, after)))
    np.testing.assert_array_equal(download(gpu, found), there)


@some
@given(st.data())
def test_moments(gpu, data):
    """Beside the other statistics, whichever are wanted, in any order."""
    kind, words, years = data.draw(st.sampled_from([(AFFINE16, 3, 9), (FLOAT64, 4, 2)]))
    wanted = data.draw(st.permutations(["std", "skewness", "kurtosis", "count"]))
    wanted = tuple(wanted[: data.draw(st.integers(1, 4))])
    case = data.draw(cases(KEYS[kind], words, years, (1.0,)))
    estimated = data.draw(st.booleans())
    quantiles = tuple(data.draw(st.lists(st.floats(0.01, 0.99), min_size=1, max_size=2)))
    case.job = replace(case.job, quantiles=quantiles, extras=wanted, by_moments=estimated)
    found = on_device(gpu, case, slice_cells=data.draw(st.sampled_from((0, 50))))
    expected = moments.of_windows(
        KEYS[kind], case.rows, slice(0, case.job.cells), case.word_rows, case.first_word, words,
        case.least, case.reference, coefficients(quantiles if estimated else ()),
    )  # fmt: skip
    given = moments.places(case.job.names, len(quantiles) if estimated else 0)
    for at, row in given:
        np.testing.assert_allclose(
            found[at], expected[row], rtol=1e-6, atol=1e-5, err_msg=str(case.job.names[at])
        )
    plain = [at for at in range(len(found)) if at not in dict(given)]
    assert bool(plain) != estimated
    np.testing.assert_array_equal(found[plain], by_numpy(case)[plain])
