"""Several devices share the cells of a run, and give the bits that one alone gives."""

from __future__ import annotations

import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

import strategies
from emulator import EmulatedGpu, kernels_of
from engine import archive_of, compute
from kuroshio.archive.model import Archive, ByteRange
from kuroshio.archive.plan import Block
from kuroshio.archive.sea import Runs
from kuroshio.engines.gpu import GpuEngine
from kuroshio.engines.gpu_share import places_of, stretches
from kuroshio.request import Request

CUT = 128  # cells to a multiple of which shares are cut
REQUEST = Request(
    (2000, 2001), (50.0, 90.0), half_width=1, doys=tuple(range(60, 75)), extras=("count", "std")
)
UNPACKS = {"as stored": "unpack_maps", "as keys": "place_maps", "in parts": None}
FEW_ROWS = 115_200  # bytes of a device: rows are soon taken again
few = settings(max_examples=6, deadline=None, phases=(Phase.explicit, Phase.generate))


def several(gpu, number: int) -> list:
    """Emulated ones, or a real one so many times over."""
    return EmulatedGpu.several(number) if isinstance(gpu, EmulatedGpu) else [gpu] * number


def sample_of(
    rng: np.random.Generator, shape: tuple[int, int], land: np.ndarray
) -> strategies.Sample:
    """Two years of codes with gaps; `land` (cell,) never has a value."""
    days = np.arange(365 * 2 + 1) + 10957  # from 2000
    codes = rng.integers(-100, 3000, (days.size, *shape)).astype(np.int16)
    codes[rng.random(codes.shape) < 0.02] = -999
    codes.reshape(days.size, -1)[:, land] = -999
    values = np.where(codes == -999, np.nan, codes * 0.01)
    return strategies.Sample(values, days, "standard", codes, (), 0.01, 0.0, -999)


def stored(sample: strategies.Sample, path: Path) -> Archive:
    """Whole maps, shuffled and deflated in a file, one after the other."""
    archive = archive_of(sample, tuple(range(1, sample.days.size)))
    chunks = []
    for codes in sample.stored:
        shuffled = np.ascontiguousarray(codes, "<i2").reshape(-1, 1).view(np.uint8).T
        chunks.append(zlib.compress(shuffled.tobytes(), 1))
    path.write_bytes(b"".join(chunks))
    pieces, offset = [], 0
    for piece, chunk in zip(archive.pieces, chunks, strict=True):
        where = ByteRange(
            str(path), offset, len(chunk), (1, *sample.stored.shape[1:]), "<i2", True, True
        )
        pieces.append(piece._replace(where=where))
        offset += len(chunk)
    return replace(archive, pieces=tuple(pieces))


def archive_in(way: str, sample: strategies.Sample, folder: Path) -> Archive:
    if way == "as stored":
        return stored(sample, folder / "maps")
    if way == "as keys":
        return archive_of(sample, tuple(range(1, sample.days.size)))
    return archive_of(sample, tuple(range(7, sample.days.size, 7)), rows=2)


def assert_same(found: dict, same: dict) -> None:
    for name in same:
        np.testing.assert_array_equal(found[name], same[name], name)


def check(gpu, archive: Archive, way: str, number: int, request: Request = REQUEST, **how) -> list:
    """The bits that one device gives, and the processor; returns the devices."""
    gpus = several(gpu, number)
    found = compute(archive, request, gpu=gpus, **how)
    assert_same(found, compute(archive, request, gpu=gpu, **how))
    processor = compute(archive, request, **how)
    for name in ("seas", "thresh", "count"):
        np.testing.assert_array_equal(found[name], processor[name], name)
    if isinstance(gpu, EmulatedGpu):
        for device in gpus:
            unpacked = {"unpack_maps", "place_maps"} & set(device.ran)
            assert unpacked <= {UNPACKS[way]}
            assert bool(unpacked) == (bool(device.ran) and UNPACKS[way] is not None)
    return gpus


@pytest.fixture
def begun(monkeypatch) -> list:
    """Of each run of a GPU's engine that begins, also anew, the number of its devices."""
    runs, begin = [], GpuEngine.begin

    def count(engine, *args):
        runs.append(len(engine.gpus))
        begin(engine, *args)

    monkeypatch.setattr(GpuEngine, "begin", count)
    return runs


# Land that begins and ends just where two shares meet, or a little before or after it.
AT_THE_CUT = [(252, 400), (248, 400), (256, 400), (257, 321), (120, 392), (0, 256), (384, 640)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("maps")


@pytest.mark.parametrize("way", UNPACKS)
@few
@given(
    seed=st.integers(0, 2**32 - 1),
    number=st.sampled_from([2, 3]),
    shape=st.tuples(st.integers(1, 5), st.integers(1, 200)),
    land=st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 200)), max_size=3),
)
@example(seed=1, number=3, shape=(1, 1), land=[])
@example(seed=2, number=3, shape=(2, CUT), land=[])
@example(seed=3, number=2, shape=(1, CUT + 1), land=[])
@example(seed=4, number=3, shape=(3, CUT), land=[])
def test_several_devices_give_the_bits_of_one(gpu, folder, way, seed, number, shape, land):
    rng = np.random.default_rng(seed)
    cells = shape[0] * shape[1]
    gone = np.zeros(cells, bool)
    for start, length in land:
        gone[start % cells :][:length] = True
    gone[rng.integers(cells)] = False  # a grid without any value is refused
    check(gpu, archive_in(way, sample_of(rng, shape, gone), folder), way, number)


@pytest.mark.parametrize("way", ["as stored", "as keys"])
@pytest.mark.parametrize(("first", "last"), AT_THE_CUT)
def test_land_where_shares_meet(gpu, tmp_path, begun, way, first, last):
    land = np.zeros(640, bool)
    land[first:last] = True
    sample = sample_of(np.random.default_rng(), (20, 32), land)
    for number in (2, 3):
        check(gpu, archive_in(way, sample, tmp_path), way, number)
    assert begun == [2, 1, 3, 1]  # none had to begin anew


@pytest.mark.parametrize("way", UNPACKS)
def test_fewer_cells_than_devices_can_share(tmp_path, way):
    """Those without any have nothing to do."""
    for cells, busy in ((1, 1), (CUT, 1), (CUT + 1, 2), (2 * CUT, 2), (2 * CUT + 1, 3)):
        sample = sample_of(np.random.default_rng(), (1, cells), np.zeros(cells, bool))
        gpus = check(EmulatedGpu(), archive_in(way, sample, tmp_path), way, 3)
        assert [bool(gpu.ran) for gpu in gpus] == [True] * busy + [False] * (3 - busy)


@pytest.mark.parametrize("way", ["as keys", "in parts"])
def test_blocks_are_shared_anew(tmp_path, way):
    """Where the host has little memory, there are several."""
    sample = sample_of(np.random.default_rng(), (12, 64), np.zeros(768, bool))
    gpus = check(EmulatedGpu(), archive_in(way, sample, tmp_path), way, 2, memory_bytes=400_000)
    assert all(gpu.ran.count("find_references") > 1 for gpu in gpus)


@pytest.mark.parametrize("way", ["as stored", "as keys"])
@pytest.mark.parametrize("cell", [128, 287, 512, 575])
def test_a_value_on_land_is_seen_by_whichever_device_has_it(gpu, tmp_path, begun, way, cell):
    """And the run begins anew with all cells."""
    land = np.zeros(640, bool)
    land[124:320] = land[500:600] = True
    sample = sample_of(np.random.default_rng(), (20, 32), land)
    sample.stored.reshape(-1, 640)[68:78, cell] = 1234  # not on a day that was sampled
    check(gpu, archive_in(way, sample, tmp_path), way, 2)
    assert begun == [2, 2, 1, 1]


@pytest.mark.parametrize("cell", [0, 319, 639])
def test_a_code_without_a_key_is_seen_by_whichever_device_has_it(gpu, tmp_path, begun, cell):
    """And the run begins anew with wider keys."""
    sample = sample_of(np.random.default_rng(), (20, 32), np.zeros(640, bool))
    sample.stored.reshape(-1, 640)[68:78, cell] = -32768  # not on a day that was sampled
    gpus = several(gpu, 2)
    found = compute(stored(sample, tmp_path / "maps"), REQUEST, gpu=gpus)
    assert_same(found, compute(stored(sample, tmp_path / "maps"), REQUEST, gpu=gpu))
    assert found["thresh"].reshape(2, -1, 640)[:, :, cell].min() < -5  # others are -1 and more
    assert begun == [2, 2, 1, 1]
    if isinstance(gpu, EmulatedGpu):
        assert all({"unpack_maps", "place_maps"} <= set(device.ran) for device in gpus)


@pytest.mark.parametrize("way", ["as stored", "as keys"])
def test_a_map_that_cannot_be_read_is_missing_on_all(gpu, tmp_path, way):
    sample = sample_of(np.random.default_rng(), (20, 32), np.zeros(640, bool))
    archive = stored(sample, tmp_path / "maps")
    where = archive.pieces[66].where
    pieces = list(archive.pieces)
    pieces[66] = pieces[66]._replace(where=where._replace(offset=where.offset + 3))
    if way == "as keys":  # pieces that are not stored alike
        plain = archive_of(sample, tuple(range(1, sample.days.size))).pieces
        pieces = [p if i == 66 else plain[i] for i, p in enumerate(pieces)]
    archive = replace(archive, pieces=tuple(pieces))
    gpus = several(gpu, 2)
    found = compute(archive, REQUEST, gpu=gpus, skip_bad=True, device_bytes=FEW_ROWS)
    gone = replace(sample, stored=sample.stored.copy())
    gone.stored[66] = -999
    assert_same(found, compute(stored(gone, tmp_path / "gone"), REQUEST, gpu=gpu))
    whole = compute(stored(sample, tmp_path / "maps"), REQUEST, gpu=gpu)
    fewer = (found["count"] < whole["count"]).any(axis=0)
    np.testing.assert_array_equal(fewer, sample.stored[66] != -999)
    if isinstance(gpu, EmulatedGpu):
        assert all(UNPACKS[way] in device.ran for device in gpus)


@pytest.mark.parametrize("way", UNPACKS)
def test_a_day_that_is_absent_is_missing_on_all(gpu, tmp_path, way):
    sample = sample_of(np.random.default_rng(), (20, 32), np.zeros(640, bool))
    there = np.ones(sample.days.size, bool)
    there[[66, 67, 435]] = False
    part = replace(
        sample, values=sample.values[there], days=sample.days[there], stored=sample.stored[there]
    )
    archive = archive_in(way, part, tmp_path)
    check(gpu, archive, way, 2, device_bytes=FEW_ROWS)
    if way == "as stored":  # gaps are filled with values between the codes
        way = "as keys"
    padded = replace(REQUEST, max_pad=1)  # one day of the two stays missing, in a row of its own
    check(gpu, archive, way, 2, padded, device_bytes=4 * FEW_ROWS)


# -- how cells are shared --------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.integers(0, 300), st.integers(1, 300)), min_size=1, max_size=8),
    st.integers(0, 100), st.integers(0, 63), st.integers(1, 9),
)  # fmt: skip
@example([(0, 128), (5, 128)], 0, 0, 2)
def test_stretches_share_all_cells_and_the_whole_grid(runs, land_after, padding, number):
    table, grid, kept = [], 0, 0
    for land, length in runs:
        table.append((grid + land, length, kept))
        grid, kept = grid + land + length, kept + length
    grid += land_after
    cells = kept + padding
    table = Runs(np.array(table, np.int64), kept, grid)
    block = Block(slice(0, 1), table, cells, 0, 1, 0, ())
    cut = stretches(block, cells, number)
    assert 1 <= len(cut) <= number
    for of, count in (("cells", cells), ("grid", grid)):
        edges = [getattr(stretch, of) for stretch in cut]
        assert edges[0].start == 0
        assert edges[-1].stop == count
        assert all(a.stop == b.start for a, b in pairwise(edges))
    sizes = [stretch.cells.stop - stretch.cells.start for stretch in cut]
    assert all(size % CUT == 0 for size in sizes[:-1])
    assert 0 < max(sizes) <= -(-cells // number) + CUT
    places = places_of(block)
    for stretch in cut:
        mine = places[stretch.grid]
        mine = mine[mine >= 0]
        assert ((mine >= stretch.cells.start) & (mine < stretch.cells.stop)).all()


def test_stretches_are_even():
    """A device's share is what all others' are, but for whole lines of memory."""
    block = Block(slice(0, 1), Runs(np.array([[0, 9999, 0]]), 9999, 9999), 9999, 0, 1, 0, ())
    sizes = [s.cells.stop - s.cells.start for s in stretches(block, 9999, 3)]
    assert sizes == [3456, 3456, 3087]


COUNTING = """
KERNEL(64) count_up(int n, int* counts) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) counts[i]++;
}
"""


def test_emulated_devices_do_not_disturb_each_other():
    """Their kernels are the same library's, whose launches keep their threads' numbers in it."""
    count_up = kernels_of(COUNTING, ("count_up",))["count_up"]

    def launch(_: int) -> bool:
        counts = np.zeros(20_000, np.int32)
        for _ in range(20):
            count_up(313, 64, (np.int32(counts.size), counts))
        return bool((counts == 20).all())

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(launch, range(8)))
