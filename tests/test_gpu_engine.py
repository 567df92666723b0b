"""The engine on every device there is against the oracle and, to the last bit, the processor."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import netCDF4
import numpy as np
import pytest
import xarray as xr
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import strategies
from archive_files import FILL, write_oisst
from engine import compute, drawn_job
from kuroshio.archive.badfile import BadFile
from kuroshio.archive.catalog import open_archive
from kuroshio.archive.model import Archive
from kuroshio.archive.read import Reader
from kuroshio.archive.synthetic import make_archive
from kuroshio.device.cpu import Crew
from kuroshio.device.llvm import tile_cells
from kuroshio.engines.gpu import GpuEngine
from kuroshio.errors import Refusal
from kuroshio.keys import AFFINE16, Keys
from kuroshio.request import Request
from test_engine import compare

# Fewer shapes than for the processor: each is compiled. One value, even and odd numbers of words,
# years that just fill a word, and years that need two.
POOLS = ((0, 1), (1, 3), (2, 12), (5, 7), (5, 32), (2, 40))


@settings(max_examples=25, deadline=None, phases=(Phase.explicit, Phase.generate))
@given(st.data())
def test_a_device_equals_the_oracle_and_the_processor(gpu, data):
    sample, request, archive = drawn_job(data, POOLS)
    try:
        found = compute(archive, request, gpu=gpu)
    except Refusal:
        with pytest.raises(Refusal):
            compute(archive, request)
        return
    compare(found, strategies.oracle(sample, request), sample, request)
    same = compute(archive, request)
    for name in ("seas", "thresh", *(n for n in request.extras if n == "count")):
        np.testing.assert_array_equal(found[name], same[name], name)


# -- jobs from files -------------------------------------------------------------------------------

DOYS = tuple(range(110, 150))
SEASON = range(85, 175)  # the days of year that DOYS needs
YEARS = (1991, 1994)
LAYOUTS = ("oisst", "era5", "f8", "f8-plain")


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    """By layout, four years of a season on a grid of four degrees."""
    found = {layout: tmp_path_factory.mktemp(layout) for layout in LAYOUTS}
    for layout, folder in found.items():
        make_archive(folder, YEARS, 4, layout, SEASON)
    return found


@pytest.fixture
def season(folders, tmp_path) -> Path:
    """The OISST files in a folder of one's own; few bytes are copied."""
    folder = tmp_path / "season"
    shutil.copytree(folders["oisst"], folder, copy_function=os.link)
    return folder


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("KUROSHIO_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))


def request_of(**given) -> Request:
    return Request(**{"baseline": YEARS, "percentiles": (90.0,), "doys": DOYS, **given})


def same_on(gpu, archive: Archive, request: Request, **given) -> dict[str, np.ndarray]:
    """What a device finds, after it has been held to the processor."""
    skip_bad = given.get("skip_bad", False)
    expected = compute(archive, request, skip_bad=skip_bad)
    found = compute(archive, request, gpu=gpu, **given)
    assert list(found) == list(expected)
    for name, field in found.items():
        assert np.isfinite(expected[name]).any(), name
        if name in ("seas", "thresh", "count"):
            np.testing.assert_array_equal(field, expected[name], name)
        else:
            np.testing.assert_allclose(field, expected[name], rtol=1e-5, atol=1e-5, err_msg=name)
    return found


def change(path: Path, code: int, at: tuple[int, int]) -> None:
    """Another code in a file that others share the bytes of."""
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data)
    with netCDF4.Dataset(path, "a") as file:
        file["sst"].set_auto_maskandscale(False)
        file["sst"][0, 0, at[0], at[1]] = code


@pytest.mark.parametrize("layout", LAYOUTS)
def test_files_of_every_layout(gpu, folders, layout):
    same_on(gpu, open_archive(folders[layout]), request_of())


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_plain_floats_become_keys_on_the_device(gpu, tmp_path, dtype):
    """Of either sign, subnormal, zeros of both signs, infinite; missing by NaN and by a value.

    Half the cells are land on all but one day that no sample looks at; of some others all results
    are subnormal.
    """
    random = np.random.default_rng()
    fill = random.choice([0.0, -0.0, 7.25, np.nan])
    tiny = float(np.finfo(dtype).smallest_subnormal)
    odd = np.array([0.0, -0.0, tiny, -tiny, 7.25, -7.25, np.inf, -np.inf, np.nan])
    archive = make_archive(tmp_path, (1991, 1992), 4, "f8-plain", range(105, 140))
    surprise = int(random.integers(1, len(archive) - 1))
    for number, path in enumerate(archive):
        with xr.open_dataset(path) as dataset:
            dataset = dataset.load()
        values = random.normal(0, 5, dataset.sst.shape)
        values = np.where(
            random.random(values.shape) < 0.3, random.choice(odd, values.shape), values
        )
        values[..., :9] = random.choice([tiny, -tiny, 3e-39, -1e-44], values[..., :9].shape)
        if number != surprise:
            values[..., 45:] = np.nan
        dataset["sst"] = dataset.sst.copy(data=values.astype(dtype))
        dataset.to_netcdf(path, encoding={"sst": {"dtype": dtype, "_FillValue": None}})
        with netCDF4.Dataset(path, "a") as file:
            file["sst"].setncattr("missing_value", np.dtype(dtype).type(fill))
    request = request_of(
        baseline=(1991, 1992), doys=tuple(range(110, 135)), extras=("count",), smooth_width=1
    )
    with np.errstate(invalid="ignore"):  # of infinities
        same_on(gpu, open_archive(tmp_path), request)
    if hasattr(gpu, "ran"):  # an emulated device tells
        assert "unpack_maps" in gpu.ran


@pytest.mark.parametrize(
    "given",
    [
        {"half_width": 0, "percentiles": (10.0, 90.0)},
        {"half_width": 20, "percentiles": (50.0, 90.0), "doys": tuple(range(120, 140))},
        {"max_pad": 3, "half_width": 2},
        {"extras": ("kurtosis", "count", "std", "skewness"), "smooth_width": 1},
        {"min_valid": 0.8, "smooth_width": 5},
    ],
    ids=str,
)
def test_every_option_on_files(gpu, season, given):
    """With a year's files of some days absent, so that windows have gaps."""
    for path in sorted(season.iterdir())[7:13]:
        path.unlink()
    same_on(gpu, open_archive(season), request_of(**given))


def test_more_years_than_a_word_holds(gpu, tmp_path):
    make_archive(tmp_path, (1985, 2019), 10, "oisst", range(100, 118))
    request = request_of(
        baseline=(1985, 2019), percentiles=(90.0, 50.0), doys=(107, 108, 109), half_width=3,
        smooth_width=3,
    )  # fmt: skip
    same_on(gpu, open_archive(tmp_path), request)


def test_a_value_on_land(gpu, tmp_path):
    """A third of the grid is never sent to memory, until a day has a value there: all anew."""
    rng = np.random.default_rng()
    for year in range(3):
        for day in range(185, 236):
            codes = rng.integers(500, 2500, (20, 32)).astype(np.int16)
            codes[7:15] = FILL
            number = 8035 + 365 * year + (year > 0) + day - 1  # from 2000, in days from 1978
            write_oisst(tmp_path / f"{number}.nc", number, codes)

    def kept(archive: Archive) -> np.ndarray:
        with Crew(2) as crew:
            runs = Reader(archive, Keys(AFFINE16, 0.01), lambda *_: None).sea(
                tile_cells(), crew.run
            )
        return runs.expand(np.ones(runs.cells), 0.0).reshape(20, 32) > 0

    request = request_of(baseline=(2000, 2002), doys=tuple(range(190, 231)), smooth_width=1)
    archive = open_archive(tmp_path)
    place = tuple(int(i) for i in np.argwhere(~kept(archive))[-1])
    same_on(gpu, archive, request)

    change(sorted(tmp_path.iterdir())[45], 1234, place)  # in no sample
    archive = open_archive(tmp_path)
    assert not kept(archive)[place]
    here = same_on(gpu, archive, request)["seas"][(slice(None), *place)]
    assert 1 <= np.isfinite(here).sum() <= 11
    np.testing.assert_allclose(here[np.isfinite(here)], 12.34, rtol=1e-6)


def test_a_code_that_has_no_key(gpu, season):
    """-32768 is a value here: 16 bits of keys do not suffice, with 0 for missing."""
    values = compute(open_archive(season), request_of(smooth_width=1))["seas"]
    sea = tuple(int(i) for i in np.argwhere(np.isfinite(values).all(axis=0))[0])
    change(sorted(season.iterdir())[45], -32768, sea)
    found = same_on(gpu, open_archive(season), request_of(smooth_width=1, percentiles=(0.0,)))
    assert np.nanmin(found["thresh"]) == pytest.approx(-327.68)


def test_a_damaged_file(gpu, season):
    archive = open_archive(season)
    where = archive.pieces[50].where
    path = Path(where.path)
    data = bytearray(path.read_bytes())
    path.unlink()
    middle = where.offset + where.nbytes // 2
    data[middle : middle + 8] = b"\xff\x00" * 4
    path.write_bytes(data)
    with pytest.raises(BadFile, match=f"{path.name} cannot be used: its compressed data is dam"):
        compute(archive, request_of(), gpu=gpu)
    same_on(gpu, archive, request_of(extras=("count",)), skip_bad=True)


# -- devices with little memory --------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["oisst", "f8"])
def test_a_device_with_little_memory_takes_blocks(gpu, folders, layout, monkeypatch):
    blocks, block = [], GpuEngine.block
    monkeypatch.setattr(GpuEngine, "block", lambda *args: blocks.append(1) or block(*args))
    archive = open_archive(folders[layout])
    size = 200_000 * archive.dtype.itemsize // 2
    same_on(gpu, archive, request_of(percentiles=(50.0, 95.0)), device_bytes=size)
    assert len(blocks) > 2


def test_a_device_with_too_little_memory(gpu, folders):
    words = r"the smallest block .* needs .* on the device, where 5\.0 kB may be used.*--device cpu"
    with pytest.raises(Refusal, match=words):
        compute(open_archive(folders["oisst"]), request_of(), gpu=gpu, device_bytes=5000)
