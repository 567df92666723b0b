"""Damaged files are named, or skipped on the user's word."""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path

import netCDF4
import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from archive_files import FILL, codes, read_all, write_oisst, write_series
from kuroshio.archive.badfile import BadFile
from kuroshio.archive.catalog import open_archive
from kuroshio.archive.fetch import fetch
from kuroshio.errors import Refusal


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("KUROSHIO_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))


def day_number(text: str) -> int:
    return (date.fromisoformat(text) - date(1970, 1, 1)).days


@pytest.fixture
def week(tmp_path) -> Path:
    """Seven OISST days from 1 March 2000, whose names say nothing of their order."""
    for i, day in enumerate(range(8095, 8102)):
        write_oisst(tmp_path / f"{(i * 5) % 7}.nc", day)
    return tmp_path


# -- bad files -----------------------------------------------------------------------------------


def spoil(path: Path, how: str) -> None:
    data = path.read_bytes()
    if how == "truncated":
        path.write_bytes(data[: len(data) * 2 // 3])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "not data":
        path.write_bytes(b"<html>The server is busy</html>")
    elif how == "damaged header":
        path.write_bytes(data[:96] + bytes(400) + data[496:])
    elif how == "gone":
        path.unlink()
        path.symlink_to(path.with_suffix(".absent"))


@pytest.mark.parametrize("which", ["0.nc", "5.nc"])
@pytest.mark.parametrize("how", ["truncated", "empty", "not data", "damaged header", "gone"])
def test_bad_file_is_named_or_skipped(week, how, which):
    spoil(week / which, how)
    with pytest.raises(BadFile, match=rf"{which} cannot be used: .*--skip-bad"):
        open_archive(week)
    archive = open_archive(week, skip_bad=True)
    assert archive.days.size == 6
    assert len(archive.skipped) == 1
    assert archive.skipped[0].startswith(f"{week / which}: ")
    assert np.isfinite(read_all(archive)).any()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_named_like_data_is_not_waited_for(week):
    os.mkfifo(week / "8.nc")
    # Somebody at its other end: without this a failure would hang for ever.
    other = os.open(week / "8.nc", os.O_RDWR)
    try:
        os.write(other, b"anything at all")
        with pytest.raises(BadFile, match=r"8\.nc cannot be used: it is a pipe"):
            open_archive(week)
        assert open_archive(week, skip_bad=True).days.size == 7
    finally:
        os.close(other)


@pytest.mark.parametrize("unlimited", [True, False])
@pytest.mark.parametrize(
    "format", ["NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA"]
)
def test_truncated_netcdf3(tmp_path, format, unlimited):
    """The NetCDF library would read zeros."""
    path = tmp_path / "a.nc"
    write_series(path, codes((5, 3, 3)), format=format, unlimited=unlimited)
    data = path.read_bytes()
    path.write_bytes(data[:-4])
    with pytest.raises(BadFile, match="truncated"):
        open_archive(path)
    path.write_bytes(data[:40])
    with pytest.raises(BadFile, match=r"a\.nc"):
        open_archive(path)


@given(seed=st.integers(0, 2**32 - 1))
def test_random_damage_never_ends_in_another_error(tmp_path_factory, seed):
    """Whatever bytes are wrong, a file is refused with its name, or read."""
    folder = tmp_path_factory.mktemp("damage")
    rng = np.random.default_rng(seed)
    write_oisst(folder / "a.nc", 8095)
    write_oisst(folder / "b.nc", 8096)
    path = folder / rng.choice(["a.nc", "b.nc"])
    data = np.fromfile(path, np.uint8)
    start = rng.integers(data.size)
    data[start : start + rng.integers(1, 64)] = rng.integers(256)
    data.tofile(path)
    said = path.name
    try:
        for piece in open_archive(folder, cache=False).pieces:
            fetch(piece.where)
    except Refusal as refusal:
        said = str(refusal)
    assert path.name in said


def test_all_bad(week):
    for path in week.glob("*.nc"):
        spoil(path, "truncated")
    with pytest.raises(Refusal, match="None of the 7 files can be used"):
        open_archive(week, skip_bad=True)


def test_file_without_steps(tmp_path):
    write_series(tmp_path / "a.nc", codes((0, 2, 2)))
    with pytest.raises(Refusal, match="no time steps"):
        open_archive(tmp_path)
    write_series(tmp_path / "b.nc", codes((2, 2, 2)))
    assert open_archive(tmp_path).days.size == 2


def test_damaged_zarr_chunk_is_named(tmp_path):
    data = xr.DataArray(
        np.arange(24.0).reshape(6, 4),
        dims=("time", "cell"),
        name="sst",
        coords={"time": np.arange("2000-01-01", "2000-01-07", dtype="M8[D]").astype("M8[ns]")},
    )
    store = tmp_path / "a.zarr"
    data.to_dataset().to_zarr(
        store, zarr_format=2, consolidated=False, encoding={"sst": {"chunks": (3, 4)}}
    )
    (store / "sst" / "1.0").write_bytes(b"not a chunk")
    good, bad = open_archive(store).pieces
    assert fetch(good.where).shape == (3, 4)
    with pytest.raises(BadFile, match=r"a\.zarr.*a chunk cannot be read"):
        fetch(bad.where)


def test_bad_zarr_store_is_skipped_on_request(tmp_path):
    write_oisst(tmp_path / "a.nc", 8095)
    (tmp_path / "b.zarr").mkdir()
    with pytest.raises(BadFile, match=r"b\.zarr"):
        open_archive([tmp_path / "a.nc", tmp_path / "b.zarr"])
    archive = open_archive([tmp_path / "a.nc", tmp_path / "b.zarr"], skip_bad=True)
    assert archive.skipped[0].startswith(str(tmp_path / "b.zarr"))


def test_dates_without_data_are_missing_days(tmp_path):
    """A run that stopped may have written its dates and not its last fields."""
    path = tmp_path / "a.nc"
    write_series(path, codes((5, 3, 3)), fill_value=FILL, zlib=True, chunksizes=(1, 3, 3))
    with netCDF4.Dataset(path, "a") as file:
        file["time"][5:9] = np.arange(5, 9)
    assert open_archive(path, cache=False).days.size == 5
