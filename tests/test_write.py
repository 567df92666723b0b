"""Outputs: any order, any bands, both formats; whole or not there; opened by everyone's tools."""

import errno
import itertools
import shutil
import subprocess
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import h5py
import netCDF4
import numpy as np
import pytest
import xarray as xr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kuroshio.archive import write, write_chunks, write_netcdf
from kuroshio.archive.describe import describe
from kuroshio.archive.model import Archive, Field, Grid
from kuroshio.archive.write import choose_cell_chunks, open_output, space_warning
from kuroshio.errors import Refusal
from kuroshio.request import Request

SUFFIXES = [".nc", ".zarr"]


def archive_of(shape=(6, 9)) -> Archive:
    dims = {1: ("cell",), 2: ("lat", "lon"), 3: ("depth", "lat", "lon")}[len(shape)]
    coords = {
        name: Field((name,), np.linspace(-40, 40, size), {"units": units})
        for name, size, units in zip(
            dims[-2:], shape[-2:], ["degrees_north", "degrees_east"], strict=False
        )
        if name != "cell"
    }
    coords["region"] = Field((dims[0],), np.array([f"r{i}" for i in range(shape[0])]), {})
    return Archive(
        variable="sst",
        attrs={"units": "Celsius", "standard_name": "sea_surface_temperature"},
        dtype=np.dtype("int16"),
        grid=Grid(dims, shape, coords),
        calendar="standard",
        days=np.arange(7670, 7670 + 10957),
        pieces=(),
        sources=("a.nc",),
    )


def schema_of(doys=10, shape=(6, 9), **request):
    return describe(archive_of(shape), Request(**request), range(1, doys + 1))


def random_output(schema, seed):
    """Values of every variable with some land: float32 with NaN, or small integers."""
    rng = np.random.default_rng(seed)
    values = {}
    for name, variable in schema.variables.items():
        drawn = rng.normal(15, 5, schema.shape(name)).astype(np.float32)
        drawn[..., : drawn.shape[-1] // 3] = np.nan
        values[name] = (
            drawn
            if variable.dtype.kind == "f"
            else rng.integers(0, 330, drawn.shape).astype(variable.dtype)
        )
    return values


def runs_of_days(schema, name, lengths=None):
    """(position of the first day, index of the days) of every run to put."""
    doys, *further = schema.shape(name)[: -len(schema.cell_dims)]
    lengths = lengths or itertools.repeat(1)
    for which in np.ndindex(*further):
        at = 0
        while at < doys:
            stop = min(at + next(lengths), doys)
            yield ((at, *which) if which else at), (slice(at, stop), *which)
            at = stop


def write_all(writer, schema, values, bands=(slice(None),), order=list, lengths=None):
    for band in bands:
        for name in schema.variables:
            for at, days in order(list(runs_of_days(schema, name, lengths))):
                writer.put(name, at, values[name][days][:, band], band)


def read(path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return xr.open_dataset(path).load()


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    suffix=st.sampled_from(SUFFIXES),
    doys=st.integers(1, 20),
    shape=st.one_of(
        st.tuples(st.integers(1, 40)),
        st.tuples(st.integers(1, 12), st.integers(1, 12)),
        st.tuples(st.integers(1, 3), st.integers(1, 6), st.integers(1, 6)),
    ),
    chunk_doys=st.integers(1, 24),
    percentiles=st.sampled_from([(90.0,), (10.0, 90.0, 99.0)]),
    extras=st.sampled_from([(), ("count", "std")]),
    data=st.data(),
)
def test_what_is_put_is_read_back(
    tmp_path_factory, suffix, doys, shape, chunk_doys, percentiles, extras, data
):
    path = tmp_path_factory.mktemp("out") / f"o{suffix}"
    schema = schema_of(doys, shape, percentiles=percentiles, extras=extras)
    values = random_output(schema, data.draw(st.integers(0, 2**32 - 1)))
    cell_chunks = tuple(data.draw(st.integers(1, size + 2)) for size in shape)
    rows = min(cell_chunks[0], shape[0])
    band = rows * data.draw(st.integers(1, 3))
    bands = [slice(at, min(at + band, shape[0])) for at in range(0, shape[0], band)]
    collected = []
    with (
        ThreadPoolExecutor(2) as pool,
        open_output(
            path, schema, pool=pool, chunk_doys=chunk_doys, cell_chunks=cell_chunks,
            spans=lambda stage, _start, _stop, nbytes: collected.append((stage, nbytes)),
        ) as writer,
    ):  # fmt: skip
        lengths = iter(lambda: data.draw(st.integers(1, 30)), None)
        write_all(writer, schema, values, bands, lambda at: data.draw(st.permutations(at)), lengths)
    dataset = read(path)
    for name, expected in values.items():
        assert dataset[name].dims == schema.variables[name].dims
        assert dataset[name].dtype == expected.dtype
        np.testing.assert_array_equal(dataset[name].values, expected)
    assert {stage for stage, _ in collected} <= {"collect", "compress", "write"}
    assert sum(n for stage, n in collected if stage == "collect") <= schema.nbytes
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_bands_never_put_are_missing(tmp_path, suffix):
    schema = schema_of(extras=("count",))
    values = random_output(schema, 1)
    path = tmp_path / f"o{suffix}"
    with (
        ThreadPoolExecutor(2) as pool,
        open_output(path, schema, pool=pool, cell_chunks=(3, 4)) as writer,
    ):
        write_all(writer, schema, values, [slice(3, 6)])
    dataset = read(path)
    np.testing.assert_array_equal(dataset.seas.values[:, 3:], values["seas"][:, 3:])
    assert dataset.seas[:, :3].isnull().all()
    assert (dataset["count"][:, :3] == 0).all()


def test_land_is_not_stored(tmp_path):
    schema = schema_of(16, (40, 40))
    values = random_output(schema, 1)
    values["seas"][:, :20] = np.nan
    with (
        ThreadPoolExecutor(1) as pool,
        open_output(tmp_path / "o.nc", schema, pool=pool, cell_chunks=(20, 40)) as writer,
    ):
        write_all(writer, schema, values)
    with h5py.File(tmp_path / "o.nc") as file:
        assert file["seas"].id.get_num_chunks() == 2
        assert file["thresh"].id.get_num_chunks() == 4


def test_coordinates_and_attributes_are_the_schema(tmp_path):
    schema = schema_of(percentiles=(10.0, 90.0))
    values = random_output(schema, 2)
    for suffix in SUFFIXES:
        with (
            ThreadPoolExecutor(1) as pool,
            open_output(tmp_path / f"o{suffix}", schema, pool=pool) as writer,
        ):
            write_all(writer, schema, values)
        dataset = read(tmp_path / f"o{suffix}")
        assert set(dataset.coords) == set(schema.coords)
        for name, field in schema.coords.items():
            assert dataset[name].dims == field.dims
            np.testing.assert_array_equal(
                dataset[name].values.astype(field.values.dtype), field.values
            )
            assert dataset[name].attrs == dict(field.attrs)
        for name, value in schema.attrs.items():
            np.testing.assert_array_equal(dataset.attrs[name], value)
        assert dataset.thresh.attrs["units"] == "Celsius"


@pytest.fixture
def climatology(tmp_path):
    path = tmp_path / "clim.nc"
    schema = schema_of(20, (6, 9), extras=("count",))
    values = random_output(schema, 3)
    with ThreadPoolExecutor(2) as pool, open_output(path, schema, pool=pool) as writer:
        write_all(writer, schema, values)
    return path, values


def test_netcdf4_and_h5py_read_it(climatology):
    path, values = climatology
    with netCDF4.Dataset(path) as file:
        assert file.data_model == "NETCDF4"
        assert file["seas"].filters() == file["thresh"].filters()
        assert file["seas"].filters()["zlib"]
        np.testing.assert_array_equal(file["seas"][:].filled(np.nan), values["seas"])
    with h5py.File(path) as file:
        np.testing.assert_array_equal(file["thresh"][:], values["thresh"])
        assert file["seas"].dims[1][0].name == "/lat"


def test_the_command_line_tools_that_are_here_read_it(climatology):
    """ncdump, where it is installed; the Python readers above are always there."""
    path, _ = climatology
    if shutil.which("ncdump"):
        done = subprocess.run(["ncdump", path], capture_output=True, text=True, check=True)
        assert "seas:_FillValue = NaNf" in done.stdout
        assert not done.stderr


@pytest.mark.parametrize("percentiles", [(90.0,), (10.0, 90.0)])
def test_cdo_reads_it_where_it_is_here(tmp_path, percentiles):
    path = tmp_path / "o.nc"
    schema = schema_of(20, percentiles=percentiles)
    values = random_output(schema, 3)
    with ThreadPoolExecutor(2) as pool, open_output(path, schema, pool=pool) as writer:
        write_all(writer, schema, values)
    if shutil.which("cdo"):
        done = subprocess.run(
            ["cdo", "-s", "outputf,%.6g,1", "-seltimestep,7", "-selname,thresh", path],
            capture_output=True,
            text=True,
            check=True,
        )
        got = np.array([float(line) for line in done.stdout.split()])
        expected = values["thresh"][6].ravel()
        np.testing.assert_allclose(
            got[~np.isnan(expected)], expected[~np.isnan(expected)], rtol=1e-5
        )
        assert "skipped" not in done.stderr


def test_chunks_are_even_and_small():
    assert choose_cell_chunks((720, 1440)) == (20, 1440)
    assert choose_cell_chunks((721, 1440)) == (22, 1440)
    assert choose_cell_chunks((50, 720, 1440)) == (1, 20, 1440)
    assert choose_cell_chunks((5, 100_000)) == (1, 25_000)
    assert choose_cell_chunks((0,)) == (1,)
    assert choose_cell_chunks((100_000,)) == (25_000,)
    assert choose_cell_chunks((3, 4)) == (3, 4)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_an_error_leaves_nothing_and_keeps_the_old(tmp_path, suffix, error):
    path = tmp_path / f"o{suffix}"
    schema = schema_of()
    values = random_output(schema, 1)

    def fail_at_the_end():
        with (
            ThreadPoolExecutor(2) as pool,
            open_output(path, schema, pool=pool, overwrite=True) as writer,
        ):
            write_all(writer, schema, {name: v + 1 for name, v in values.items()})
            raise error

    with pytest.raises(error):
        fail_at_the_end()
    assert not list(tmp_path.iterdir())
    with ThreadPoolExecutor(2) as pool, open_output(path, schema, pool=pool) as writer:
        write_all(writer, schema, values)
    with pytest.raises(error):
        fail_at_the_end()
    np.testing.assert_array_equal(read(path).seas.values, values["seas"])
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_overwriting_replaces_at_the_end(tmp_path, suffix):
    path = tmp_path / f"o{suffix}"
    for seed, doys in ((1, 20), (2, 3)):
        schema = schema_of(doys)
        values = random_output(schema, seed)
        with (
            ThreadPoolExecutor(2) as pool,
            open_output(path, schema, pool=pool, overwrite=True) as writer,
        ):
            write_all(writer, schema, values)
            if seed == 2:
                assert read(path).sizes["dayofyear"] == 20
    np.testing.assert_array_equal(read(path).seas.values, values["seas"])
    assert list(tmp_path.iterdir()) == [path]


def test_misuse_is_a_defect_and_leaves_nothing(tmp_path):
    schema = schema_of()
    values = random_output(schema, 1)

    def attempt(act):
        with (
            ThreadPoolExecutor(1) as pool,
            open_output(tmp_path / "o.nc", schema, pool=pool, cell_chunks=(4, 9)) as writer,
        ):
            act(writer)

    with pytest.raises(RuntimeError, match="days are missing"):
        attempt(lambda writer: writer.put("seas", 3, values["seas"][3:4]))
    with pytest.raises(ValueError, match="cut the chunks"):
        attempt(lambda writer: writer.put("seas", 3, values["seas"][3:4, :3], slice(0, 3)))
    with pytest.raises(ValueError, match="put twice"):
        attempt(lambda writer: [writer.put("seas", 3, values["seas"][3:4]) for _ in range(2)])
    with pytest.raises(ValueError, match="put twice"):
        attempt(lambda writer: [writer.put("seas", 0, values["seas"][:8]) for _ in range(2)])
    with pytest.raises(ValueError, match="cut the chunks"):
        attempt(lambda writer: writer.put("seas", 0, values["seas"][:8, 2:6], slice(2, 6)))
    with pytest.raises(ValueError, match="put twice"):
        attempt(lambda writer: [writer.put("seas", at, values["seas"][at:10]) for at in (8, 0)])
    with pytest.raises(ValueError, match="of 10 days"):
        attempt(lambda writer: writer.put("seas", 7, values["seas"][:4]))
    with pytest.raises(ValueError, match="has shape"):
        attempt(lambda writer: writer.put("seas", 3, values["seas"][3:4, :3]))
    assert not list(tmp_path.iterdir())


def test_a_failing_thread_is_heard(tmp_path, monkeypatch):
    def fail(self, name, index, data):
        raise ArithmeticError("from a thread")

    monkeypatch.setattr(write_netcdf.NetcdfStore, "store", fail)
    schema = schema_of()
    with (
        pytest.raises(ArithmeticError, match="from a thread"),
        ThreadPoolExecutor(2) as pool,
        open_output(tmp_path / "o.nc", schema, pool=pool) as writer,
    ):
        write_all(writer, schema, random_output(schema, 1))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("crowded", [False, True])
@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OSError("Can't write data (file write failed: error message = 'No space left on device')"),
    ],
)
def test_a_full_disk_is_a_refusal_with_both_numbers(tmp_path, monkeypatch, error, crowded):
    def fail(self, name, index, data):
        raise error

    monkeypatch.setattr(write_netcdf.NetcdfStore, "store", fail)
    if crowded:
        monkeypatch.setattr(write_chunks, "IN_FLIGHT_BYTES", -1)
    schema = schema_of()
    with (
        pytest.raises(Refusal, match=r"full.*needs up to 4\.3 kB and .*B are free"),
        ThreadPoolExecutor(2) as pool,
        open_output(tmp_path / "o.nc", schema, pool=pool) as writer,
    ):
        write_all(writer, schema, random_output(schema, 1))
    assert not list(tmp_path.iterdir())


def test_put_works_from_the_pool_itself(tmp_path, monkeypatch):
    """No deadlock when every thread of the pool is busy putting."""
    monkeypatch.setattr(write_chunks, "IN_FLIGHT_BYTES", 4000)
    schema = schema_of(40)
    values = random_output(schema, 5)
    with (
        ThreadPoolExecutor(2) as pool,
        open_output(tmp_path / "o.nc", schema, pool=pool, chunk_doys=2) as writer,
    ):
        futures = [
            pool.submit(writer.put, name, at, values[name][days])
            for name in schema.variables
            for at, days in runs_of_days(schema, name)
        ]
        for future in futures:
            future.result(timeout=60)
    np.testing.assert_array_equal(read(tmp_path / "o.nc").thresh.values, values["thresh"])


def test_memory_in_flight_is_bounded(tmp_path, monkeypatch):
    """With threads that are stuck, put does the work itself instead of piling it up."""
    monkeypatch.setattr(write_chunks, "IN_FLIGHT_BYTES", 10_000)
    release = threading.Event()
    schema = schema_of(200, (10, 10))
    values = random_output(schema, 6)
    most = 0
    with ThreadPoolExecutor(1) as pool:
        pool.submit(release.wait)
        with open_output(tmp_path / "o.nc", schema, pool=pool, chunk_doys=2) as writer:
            for at in range(200):
                for name in ("seas", "thresh"):
                    writer.put(name, at, values[name][at : at + 1])
                most = max(most, writer._waiting_bytes)
            release.set()
    assert 0 < most <= 10_000 + 800
    np.testing.assert_array_equal(read(tmp_path / "o.nc").seas.values, values["seas"])


def test_little_space_is_a_warning_only(tmp_path, monkeypatch):
    schema = schema_of(366, (100, 100))
    assert space_warning(tmp_path / "o.nc", schema) is None
    usage = type("usage", (), {"free": 5_000_000})
    monkeypatch.setattr(write.shutil, "disk_usage", lambda folder: usage)
    assert "up to 29.3 MB" in space_warning(tmp_path / "o.nc", schema)
    assert "5.0 MB free" in space_warning(tmp_path / "o.nc", schema)
