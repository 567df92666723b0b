"""Every kind of storage gives what xarray decodes from the same files."""

from __future__ import annotations

from pathlib import Path

import h5py
import netCDF4
import numpy as np
import pytest
import xarray as xr
import zarr

from archive_files import FILL, codes, coordinate, read_all, write_oisst, write_series
from kuroshio.archive.badfile import BadFile
from kuroshio.archive.catalog import open_archive
from kuroshio.archive.fetch import close_files, fetch
from kuroshio.archive.model import ArraySlice, ByteRange, FileSlice


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KUROSHIO_CACHE_DIR", str(tmp_path / "cache"))
    yield
    close_files()


def decoded(source: Path, variable: str = "sst") -> np.ndarray:
    """xarray's values with time first, and without dimensions of size one besides time."""
    with xr.open_dataset(source, decode_timedelta=False) as data:
        values = data[variable].transpose("time", ...)
        values = values.squeeze([d for d in values.dims if d != "time" and values.sizes[d] == 1])
        return values.values.astype(np.float64)


def check(source, expected: np.ndarray, kind: type, **options) -> None:
    archive = open_archive(source, **options)
    assert {type(piece.where) for piece in archive.pieces} == {kind}
    found = read_all(archive)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_allclose(found, expected, rtol=3e-7, atol=1e-9)
    assert np.isfinite(found).any()


def test_oisst_days(tmp_path):
    for day in range(5000, 5007):
        write_oisst(tmp_path / f"day{day}.nc", day)
    expected = np.concatenate([decoded(p) for p in sorted(tmp_path.glob("*.nc"))])
    check(tmp_path, expected, ByteRange)


STORED = {
    "chunks hang over every edge": ({"zlib": True, "chunksizes": (7, 5, 4)}, ByteRange),
    "deflate alone": ({"zlib": True, "shuffle": False, "chunksizes": (1, 8, 9)}, ByteRange),
    "chunks, no filter": ({"chunksizes": (3, 8, 9)}, ByteRange),
    "big-endian chunks": ({"zlib": True, "endian": "big", "chunksizes": (3, 8, 9)}, FileSlice),
    "checksum": ({"zlib": True, "fletcher32": True, "chunksizes": (4, 3, 9)}, FileSlice),
    "zstandard": ({"compression": "zstd", "chunksizes": (4, 8, 9)}, FileSlice),
    "contiguous": ({"contiguous": True}, ByteRange),
    "contiguous big-endian": ({"contiguous": True, "endian": "big"}, FileSlice),
}


@pytest.mark.parametrize("dtype", ["i2", "f4", "f8", "i4", "u1"])
@pytest.mark.parametrize("kind", STORED)
def test_netcdf4_storage(tmp_path, kind, dtype):
    storage, expected_kind = STORED[kind]
    values = codes((20, 8, 9))
    if dtype == "u1":
        values = (values % 200).astype("u1")
        storage = {k: v for k, v in storage.items() if k != "endian"}
        expected_kind = ByteRange if "big-endian" in kind else expected_kind
    else:
        values = values.astype(">" + dtype if "endian" in storage else dtype)
    path = tmp_path / "series.nc"
    fill = 255 if dtype == "u1" else FILL
    write_series(path, values, unlimited="contiguous" not in storage, fill_value=fill, **storage)
    check(path, decoded(path), expected_kind)


@pytest.mark.parametrize(
    "format", ["NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA", "NETCDF4_CLASSIC"]
)
@pytest.mark.parametrize("unlimited", [True, False])
def test_other_formats(tmp_path, format, unlimited):
    for i in range(3):
        write_series(
            tmp_path / f"{i}.nc",
            codes((10, 4, 5), i),
            10 * i,
            format=format,
            unlimited=unlimited,
            fill_value=FILL,
        )
    expected = np.concatenate([decoded(p) for p in sorted(tmp_path.glob("*.nc"))])
    check(tmp_path, expected, ByteRange if format == "NETCDF4_CLASSIC" else FileSlice)


def test_both_missing_codes_and_per_file_packing(tmp_path):
    """ERA5's files: scale and offset differ from file to file."""
    expected = []
    for i in range(3):
        values = codes((5, 4, 5), i)
        values[0, 0, 0] = -555
        attrs = {
            "scale_factor": 0.01 + 0.001 * i,
            "add_offset": 280.0 + i,
            "missing_value": np.int16(-555),
        }
        write_series(tmp_path / f"{i}.nc", values, 5 * i, attrs=attrs, fill_value=FILL, zlib=True)
        masked = np.where((values == FILL) | (values == -555), np.nan, values.astype(float))
        expected.append(masked * attrs["scale_factor"] + attrs["add_offset"])
    check(tmp_path, np.concatenate(expected), ByteRange)
    assert len({piece.packing for piece in open_archive(tmp_path).pieces}) == 3


def test_float32_packing_is_the_decimal_meant(tmp_path):
    write_oisst(tmp_path / "a.nc", 5000)
    packing = open_archive(tmp_path).pieces[0].packing
    assert (packing.scale, packing.offset, packing.missing) == (0.01, 0.0, (-999.0,))
    assert packing.packed


def test_chunks_never_written_are_missing(tmp_path):
    path = tmp_path / "holes.nc"
    values = codes((12, 6, 6))
    write_series(path, values[:4], fill_value=FILL, zlib=True, chunksizes=(4, 3, 3))
    with netCDF4.Dataset(path, "a") as file:
        file["time"][4:12] = np.arange(4, 12)
        file["sst"].set_auto_maskandscale(False)
        file["sst"][8:12, :3, 3:] = values[8:12, :3, 3:]
    archive = open_archive(path)
    assert {type(p.where) for p in archive.pieces} == {ByteRange, FileSlice}
    np.testing.assert_allclose(read_all(archive), decoded(path), rtol=3e-7)


def test_default_fill_of_netcdf_is_missing(tmp_path):
    """Without _FillValue, what was never written holds NetCDF's own fill value."""
    for format, unlimited in (("NETCDF4", True), ("NETCDF3_CLASSIC", False)):
        path = tmp_path / f"{format}.nc"
        values = np.full((6, 3, 3), 20.0, "f4")
        write_series(path, values, format=format, unlimited=unlimited)
        with netCDF4.Dataset(path, "a") as file:
            file["sst"][2] = netCDF4.default_fillvals["f4"]
        found = read_all(open_archive(path))
        assert np.isnan(found[2]).all()
        assert np.isfinite(np.delete(found, 2, axis=0)).all()


def test_chunk_stored_without_its_filter(tmp_path):
    """HDF5 leaves out a filter that does not pay; the chunk's filter mask says so."""
    path = tmp_path / "mask.nc"
    values = codes((4, 3, 3))
    write_series(path, values, fill_value=FILL, zlib=True, chunksizes=(1, 3, 3))
    with h5py.File(path, "a") as file:
        raw = np.ascontiguousarray(values[2], "<i2").tobytes()
        file["sst"].id.write_direct_chunk((2, 0, 0), raw, filter_mask=0b11)
    archive = open_archive(path)
    assert [type(p.where) for p in archive.pieces].count(FileSlice) == 1
    np.testing.assert_allclose(read_all(archive), decoded(path), rtol=3e-7)


@pytest.mark.parametrize("userblock", [0, 512])
@pytest.mark.parametrize("compression", ["lzf", "gzip"])
def test_hdf5_by_h5py(tmp_path, compression, userblock):
    path = tmp_path / "plain.h5"
    values = np.random.default_rng(1).normal(20, 3, (9, 4, 5)).astype("<f4")
    with h5py.File(path, "w", userblock_size=userblock) as file:
        time = file.create_dataset("time", data=np.arange(9.0))
        time.attrs["units"] = "days since 2000-02-25"
        time.make_scale("time")
        data = file.create_dataset("sst", data=values, chunks=(2, 4, 5), compression=compression)
        data.dims[0].attach_scale(time)
    kind = ByteRange if compression == "gzip" and not userblock else FileSlice
    check(path, values.astype(float), kind)


def test_time_is_not_the_first_dimension(tmp_path):
    path = tmp_path / "last.nc"
    values = codes((4, 5, 10))
    write_series(path, values, dims=("lat", "lon", "time"), unlimited=False, fill_value=FILL)
    check(path, decoded(path), FileSlice)


def test_scalar_time(tmp_path):
    expected = []
    for day in range(3):
        path = tmp_path / f"{day}.nc"
        values = np.random.default_rng(day).normal(size=(3, 4))
        expected.append(values)
        with netCDF4.Dataset(path, "w") as file:
            file.createDimension("y", 3)
            file.createDimension("x", 4)
            time = file.createVariable("time", "f8", ())
            time.units = "days since 1999-12-30"
            time[...] = day
            var = file.createVariable("temp", "f8", ("y", "x"), zlib=True, shuffle=True)
            var.coordinates = "time"
            var[:] = values
    check(tmp_path, np.stack(expected), ByteRange)


@pytest.mark.parametrize("chunks", [(2, 1, 4, 5), (2, 3, 4, 5), None])
def test_depth_is_chosen(tmp_path, chunks):
    path = tmp_path / "deep.nc"
    values = codes((6, 3, 4, 5))
    storage = {"chunksizes": chunks, "zlib": True} if chunks else {"contiguous": True}
    write_series(
        path,
        values,
        dims=("time", "depth", "lat", "lon"),
        unlimited=bool(chunks),
        fill_value=FILL,
        **storage,
    )
    kind = ByteRange if chunks == (2, 1, 4, 5) else FileSlice
    for depth in (0, 2, -1):
        check(path, decoded(path)[:, depth], kind, select={"depth": depth})
    archive = open_archive(path, select={"depth": 1})
    assert archive.grid.coords["depth"].values == 10.0
    assert archive.grid.coords["depth"].dims == ()


def test_dimension_without_coordinate_and_like_named_variable(tmp_path):
    """NetCDF-4 keeps such a variable under another name in the HDF5 file."""
    path = tmp_path / "names.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("time", 4)
        file.createDimension("sst", 3)
        file.createDimension("n", 2)
        coordinate(file, "time", np.arange(4), units="days since 2000-01-01")
        var = file.createVariable("sst", "f4", ("time", "n", "sst"))
        var[:] = np.arange(24).reshape(4, 2, 3)
    check(path, np.arange(24.0).reshape(4, 2, 3), FileSlice, variable="sst")


def dataset(dtype: str = "f4") -> xr.Dataset:
    values = np.random.default_rng(3).normal(15, 5, (23, 6, 7)).astype(dtype)
    values[4, 2] = np.nan
    return xr.Dataset(
        {"sst": (("time", "lat", "lon"), values, {"units": "Celsius"})},
        {
            "time": np.arange("2003-12-20", "2004-01-12", dtype="M8[D]").astype("M8[ns]"),
            "lat": np.arange(6.0),
            "lon": np.arange(7.0),
        },
    )


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(("version", "shards"), [(2, None), (3, None), (3, (10, 6, 7))])
def test_zarr(tmp_path, version, shards, packed):
    store = tmp_path / "archive.zarr"
    data = dataset()
    encoding = {"chunks": (5, 3, 7), **({"shards": shards} if shards else {})}
    if packed:
        encoding |= {"dtype": "int16", "scale_factor": 0.01, "add_offset": 3.0, "_FillValue": -999}
    else:
        encoding |= {"_FillValue": np.nan}
    data.to_zarr(store, zarr_format=version, consolidated=False, encoding={"sst": encoding})
    with xr.open_zarr(store, consolidated=False) as back:
        expected = back.sst.values.astype(float)
    check(store, expected, ArraySlice)


def test_zarr_without_xarray_attributes(tmp_path):
    """Zarr 2 by hand: the metadata's fill value is the missing one, as xarray has it."""
    store = str(tmp_path / "hand")
    group = zarr.open_group(store, mode="w", zarr_format=2)
    time = group.create_array("time", shape=(5,), dtype="i4")
    time.attrs.update(units="days since 2010-01-01", _ARRAY_DIMENSIONS=["time"])
    time[:] = np.arange(5)
    sst = group.create_array("sst", shape=(5, 3), dtype="i2", chunks=(2, 2), fill_value=-7)
    sst.attrs["_ARRAY_DIMENSIONS"] = ["time", "cell"]
    values = codes((5, 3))
    values[1, 1] = -7
    sst[:] = values
    expected = np.where(values == -7, np.nan, values.astype(float))
    check(store, expected, ArraySlice)


def test_zarr_stores_in_a_row(tmp_path):
    data = dataset()
    for i, part in enumerate((data.isel(time=slice(0, 10)), data.isel(time=slice(10, None)))):
        part.to_zarr(tmp_path / f"{i}.zarr", consolidated=False)
    check(str(tmp_path / "*.zarr"), data.sst.values.astype(float), ArraySlice)


@pytest.mark.parametrize("kind", ["numpy", "dask", "lazy", "lazy dask", "undecoded"])
def test_xarray_objects(tmp_path, kind):
    data = dataset()
    expected = data.sst.values.astype(float)
    if "lazy" in kind or kind == "undecoded":
        path = tmp_path / "x.nc"
        data.to_netcdf(path, encoding={"sst": {"zlib": True, "chunksizes": (6, 6, 7)}})
        data = xr.open_dataset(path, decode_cf=kind != "undecoded")
    if "dask" in kind:
        data = data.chunk({"time": 6, "lat": 4})
    check(data, expected, ArraySlice)
    check(data.sst, expected, ArraySlice)
    data.close()


def test_xarray_time_last_and_odd_calendar():
    data = dataset().transpose("lat", "lon", "time")
    times = xr.date_range("2001-02-25", periods=23, calendar="360_day", use_cftime=True)
    data = data.assign_coords(time=times)
    archive = open_archive(data)
    assert archive.calendar == "360_day"
    np.testing.assert_allclose(
        read_all(archive), data.sst.transpose("time", ...).values.astype(float)
    )


def test_large_arrays_are_cut_in_time(monkeypatch):
    monkeypatch.setattr("kuroshio.archive.arrays.LARGE_BYTES", 6 * 7 * 4 * 5)
    archive = open_archive(dataset().sst)
    assert [len(p.steps) for p in archive.pieces] == [5, 5, 5, 5, 3]


def test_real_files(shared):
    for name, variable in (("oisst_short", "oisst_short"), ("oisst_2003_2004", "sst")):
        path = shared / "sst" / f"{name}.nc"
        archive = open_archive(path)
        assert archive.variable == variable
        with xr.open_dataset(path) as data:
            found = read_all(archive)
            np.testing.assert_array_equal(found, data[variable].values.astype(float))
            dates = data.time.values.astype("M8[D]").astype(int)
            np.testing.assert_array_equal(archive.days, dates)
    archive = open_archive(shared / "sst" / "land.nc")
    assert np.isnan(read_all(archive)).all()


def flip_bytes(path: Path, offset: int, count: int) -> None:
    with open(path, "r+b") as file:
        file.seek(offset)
        data = file.read(count)
        file.seek(offset)
        file.write(bytes(b ^ 0xFF for b in data))


def test_damaged_chunk_is_named(tmp_path):
    path = tmp_path / "damaged.nc"
    write_oisst(path, 5000)
    where = open_archive(path).pieces[0].where
    flip_bytes(path, where.offset + 4, 8)
    with pytest.raises(BadFile, match=r"damaged\.nc.*chunk at byte"):
        fetch(where)


def test_damage_behind_a_checksum_is_named(tmp_path):
    path = tmp_path / "sum.nc"
    write_series(path, codes((4, 5, 6)), fill_value=FILL, fletcher32=True, chunksizes=(4, 5, 6))
    piece = open_archive(path).pieces[0]
    with h5py.File(path) as file:
        offset = file["sst"].id.get_chunk_info(0).byte_offset
    flip_bytes(path, offset, 8)
    with pytest.raises(BadFile, match=r"sum\.nc.*sst cannot be read"):
        fetch(piece.where)


def test_file_that_shrank_or_went_is_named(tmp_path):
    path = tmp_path / "gone.nc"
    write_oisst(path, 5000)
    where = open_archive(path).pieces[0].where
    path.write_bytes(path.read_bytes()[: where.offset + 3])
    with pytest.raises(BadFile, match=r"gone\.nc.*ends before"):
        fetch(where)
    path.unlink()
    with pytest.raises(BadFile, match=r"gone\.nc"):
        fetch(where)
    with pytest.raises(BadFile, match=r"gone\.nc"):
        fetch(FileSlice(str(path), "sst", (0, 0, slice(0, 2), slice(0, 2)), None))


@pytest.mark.parametrize("locking", [None, False, True])
def test_files_open_elsewhere_in_this_process(tmp_path, locking):
    """HDF5 wants the same locking of all who hold a file; and we must not hold it afterwards."""
    path = tmp_path / "a.nc"
    write_series(path, codes((4, 3, 3)), fill_value=FILL, fletcher32=True, chunksizes=(4, 3, 3))
    with h5py.File(path, locking=locking):
        archive = open_archive(path, cache=False)
        assert np.isfinite(read_all(archive)).any()
    close_files()
    with h5py.File(path, "a", locking=True) as file:
        file.attrs["changed"] = 1
