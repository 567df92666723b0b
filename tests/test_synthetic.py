"""The invented archive: valid files, in each layout, the same day for the same seed and date."""

import warnings

import h5py
import netCDF4
import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from kuroshio import calendar
from kuroshio.archive import synthetic
from kuroshio.archive.synthetic import make_archive
from kuroshio.archive.synthetic_layouts import LAYOUTS, grid_of
from kuroshio.archive.synthetic_world import FREEZING, LAND_SHARE, make_world
from kuroshio.errors import Refusal


def day_of(year: int, doy: int) -> int:
    return int(calendar.day_number("standard", year, doy))


@pytest.fixture(scope="module")
def world():
    return make_world(*grid_of(5, LAYOUTS["oisst"]), seed=3, last_year=2022)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_files_open_everywhere_and_agree_with_the_world(layout, tmp_path):
    paths = make_archive(tmp_path, (2003, 2004), 5, layout, [59, 60, 61], seed=3)
    assert [path.name[-11:-3] for path in paths] == [
        "20030228", "20030301", "20040228", "20040229", "20040301"
    ]  # fmt: skip
    assert sorted(tmp_path.iterdir()) == sorted(paths)
    spec = LAYOUTS[layout]
    world = make_world(*grid_of(5, spec), seed=3, last_year=2022)
    for path in paths:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            dataset = xr.open_dataset(path).load()
        assert dataset.sst.dims == spec.dims
        assert str(dataset.time.values[0])[:13] == f"{path.name[-11:-7]}-{path.name[-7:-5]}-" + (
            f"{path.name[-5:-3]}T12"
        )
        expected = np.empty(world.land.shape, np.float64)
        world.fill(int(dataset.time.values[0].astype("datetime64[D]").astype(int)), expected)
        if dataset.sst.attrs["units"] == "K":
            expected += 273.15
        step = {"oisst": 0.01, "era5": 0.001, "f8": 1e-5, "f8-plain": 1e-5}[layout]
        got = dataset.sst.values.reshape(expected.shape)
        np.testing.assert_allclose(got, expected, atol=0.51 * step, rtol=1e-6)
        assert np.isnan(got).mean() == pytest.approx(LAND_SHARE, abs=0.01)
        with netCDF4.Dataset(path) as raw:
            raw["sst"].set_auto_maskandscale(False)
            assert raw["sst"].chunking() == list(raw["sst"].shape)
            assert raw["sst"].filters()["shuffle"] == spec.deflated
            assert raw["sst"].filters()["zlib"] == spec.deflated


def test_era5_packing_differs_from_file_to_file(tmp_path):
    paths = make_archive(tmp_path, (2003, 2003), 5, "era5", [1, 100, 200])
    scales, codes = set(), []
    for path in paths:
        with h5py.File(path) as file:
            scales.add(float(file["sst"].attrs["scale_factor"].item()))
            assert file["sst"].attrs["scale_factor"].dtype == np.float64
            raw = file["sst"][:]
            codes.append(raw[raw != -32767])
            assert np.diff(file["latitude"][:]).max() < 0
            assert file["latitude"].shape == (37,)
    assert len(scales) == 3
    assert min(c.min() for c in codes) == -32766
    assert max(c.max() for c in codes) == 32766


def test_f8_uses_all_its_digits(tmp_path):
    (path,) = make_archive(tmp_path, (2003, 2003), 5, "f8", [100])
    with h5py.File(path) as file:
        values = file["sst"][:]
    values = values[np.isfinite(values) & (values > FREEZING)]
    low_bits = values.view(np.uint64) & np.uint64(0xFFF)
    assert np.unique(low_bits).size > 0.8 * low_bits.size


def test_all_variables_of_oisst(tmp_path):
    (path,) = make_archive(tmp_path, (2003, 2003), 5, "oisst", [40], all_variables=True)
    dataset = xr.open_dataset(path).load()
    assert set(dataset.data_vars) == {"sst", "anom", "err", "ice"}
    assert (dataset.anom.notnull() == dataset.sst.notnull()).all()
    assert dataset.ice.max() <= 1
    assert (dataset.sst.where(dataset.ice.notnull()).max()) < FREEZING + 0.32


@settings(max_examples=8, deadline=None)
@given(first=st.integers(2000, 2003), doys=st.sets(st.integers(1, 366), min_size=1, max_size=2),
       threads=st.integers(1, 3))  # fmt: skip
def test_a_day_does_not_depend_on_what_else_is_made(first, doys, threads, tmp_path_factory):
    one, other = tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("other")
    wide = make_archive(one, (first, 2004), 20, doys=doys | {1, 200}, threads=threads)
    bytes_of = {path.name: path.read_bytes() for path in wide}
    for path in make_archive(other, (2004, 2004), 20, doys=doys, threads=1):
        assert bytes_of[path.name] == path.read_bytes()


def test_seeds_differ(tmp_path):
    fields = []
    for seed in (0, 1):
        world = make_world(*grid_of(10, LAYOUTS["oisst"]), seed=seed, last_year=2000)
        fields.append(world.climate(0))
    assert np.abs(fields[0] - fields[1]).max() > 0.1


def test_it_looks_like_an_ocean(world):
    field = np.empty(world.land.shape, np.float32)
    winter, summer = np.empty_like(field), np.empty_like(field)
    world.fill(day_of(2003, 50), winter)
    world.fill(day_of(2003, 235), summer)
    lat = world.latitude
    assert np.nanmin(winter) == np.float32(FREEZING)  # sea ice
    assert 25 < np.nanmean(winter[np.abs(lat) < 10]) < 31
    assert np.nanmean((summer - winter)[(lat > 30) & (lat < 50)]) > 4
    assert np.nanmean((summer - winter)[(lat < -30) & (lat > -50)]) < -3
    assert np.nanmax(np.abs(winter)) < 40


def test_weather_remembers_and_forgets_and_the_sea_warms(world):
    days = np.arange(day_of(1991, 1), day_of(2021, 1), 3)
    series = np.empty((days.size, *world.land.shape), np.float32)
    for i, day in enumerate(days):
        world.fill(int(day), series[i])
        series[i] -= world.climate(int(day))
    middle = series[:, (np.abs(world.latitude) < 50)][:, :, ::3].reshape(days.size, -1)
    middle = middle[:, np.isfinite(middle[0])]
    slope = np.polyfit(days / 365.2425, middle, 1)[0]
    assert 0.014 < slope.mean() < 0.026
    anomaly = middle - middle.mean(0)
    variance = (anomaly**2).mean(0)
    near = ((anomaly[1:] * anomaly[:-1]).mean(0) / variance).mean()
    far = ((anomaly[70:] * anomaly[:-70]).mean(0) / variance).mean()
    assert near > 0.7
    assert far < 0.35


def test_heatwaves_occur(world):
    on = [world._heatwaves(day)[0].shape[0] for day in range(day_of(2000, 1), day_of(2004, 1), 7)]
    assert min(on) < max(on)
    assert 1 <= np.mean(on) <= 4


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"years": (2004, 2003)}, "in this order"),
        ({"years": (1700, 2003)}, "1850"),
        ({"grid": 0.7}, "divide 180"),
        ({"grid": 0}, "divide 180"),
        ({"layout": "netcdf"}, "oisst, era5, f8, f8-plain"),
        ({"layout": "f8", "all_variables": True}, "oisst"),
        ({"doys": [0]}, "1 to 366"),
        ({"doys": []}, "at least one"),
        ({"doys": [60]}, "29 February"),
    ],
)
def test_refusals(arguments, words, tmp_path):
    with pytest.raises(Refusal, match=words):
        make_archive(tmp_path / "a", **{"years": (2003, 2003), "grid": 30, **arguments})
    assert not (tmp_path / "a").exists()


def test_existing_files_are_kept_unless_overwrite(tmp_path):
    paths = make_archive(tmp_path, (2003, 2003), 30, doys=[5])
    before = paths[0].read_bytes()
    with pytest.raises(Refusal, match="exist"):
        make_archive(tmp_path, (2003, 2003), 30, doys=[5, 6], seed=1)
    assert paths[0].read_bytes() == before
    make_archive(tmp_path, (2003, 2003), 30, doys=[5, 6], seed=1, overwrite=True)
    assert paths[0].read_bytes() != before


def test_too_small_a_disk_is_refused_early(tmp_path, monkeypatch):
    usage = type("usage", (), {"free": 1000})
    monkeypatch.setattr(synthetic.shutil, "disk_usage", lambda folder: usage)
    with pytest.raises(Refusal, match=r"about [\d.]+ kB more .* has 1.0 kB free. Choose"):
        make_archive(tmp_path, (2003, 2003), 30, doys=range(1, 30))
    assert len(list(tmp_path.iterdir())) == 1


def test_progress_counts_and_an_interrupt_leaves_whole_files(tmp_path):
    seen = []

    def stop(done, total):
        seen.append((done, total))
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_archive(tmp_path, (2003, 2003), 10, doys=range(1, 100), progress=stop, threads=2)
    assert seen == [(1, 98), (2, 98), (3, 98)]
    made = list(tmp_path.iterdir())
    assert 3 <= len(made) < 98
    for path in made:
        assert path.suffix == ".nc"
        xr.open_dataset(path).load()
