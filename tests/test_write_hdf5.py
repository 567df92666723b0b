"""Chunks handed to HDF5 by address: the same file as by h5py, and the same errors."""

import zlib
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import h5py
import numpy as np
import pytest

from kuroshio.archive import write_hdf5, write_netcdf
from kuroshio.archive.write import open_output
from kuroshio.archive.write_hdf5 import StoredChunk, store_chunks
from test_write import random_output, read, schema_of

SHAPE, STEP = (4, 6), (2, 3)
FURTHER = (4, 2, 6), (2, 1, 3)  # of another variable of the same file


@pytest.fixture
def by_h5py(monkeypatch):
    monkeypatch.setattr(write_hdf5, "_function", lambda: None)


def file_at(path) -> h5py.File:
    file = h5py.File(path, "w")
    for name, (shape, chunks) in {"flat": (SHAPE, STEP), "deep": FURTHER}.items():
        file.create_dataset(name, shape, np.float32, chunks=chunks, compression=1, shuffle=True)
    return file


def stored(values: np.ndarray) -> bytes:
    planes = values.reshape(-1).view(np.uint8).reshape(-1, 4).T
    return zlib.compress(planes.tobytes(), 1)


def all_chunks(file: h5py.File, values: dict[str, np.ndarray]) -> list[StoredChunk]:
    """Every chunk of `values`, as bytes and as parts of a larger array by turns."""
    chunks = []
    for name, dataset in file.items():
        for corner in dataset.iter_chunks():
            data = stored(values[name][corner])
            if len(chunks) % 2:
                data = np.frombuffer(b"..." + data, np.uint8)[3:].data
            chunks.append(StoredChunk(dataset.id, tuple(s.start for s in corner), data, None))
    return chunks


def drawn() -> dict[str, np.ndarray]:
    rng = np.random.default_rng()
    return {
        name: rng.normal(size=shape).astype(np.float32)
        for name, shape in {"flat": SHAPE, "deep": FURTHER[0]}.items()
    }


def test_it_is_found_here():
    """Else all other tests here would pass without it."""
    assert write_hdf5._function() is not None


@pytest.mark.parametrize("round_", range(20))
def test_any_order_in_any_portions_is_read_back(tmp_path, round_):
    rng, values = np.random.default_rng(), drawn()
    with file_at(tmp_path / "o.nc") as file:
        chunks = all_chunks(file, values)
        waiting = [chunks[i] for i in rng.permutation(len(chunks))]
        while waiting:
            number = int(rng.integers(0, len(waiting) + 1))
            store_chunks(waiting[:number])
            waiting = waiting[number:]
    assert_holds(tmp_path / "o.nc", values)


def assert_holds(path, values: dict[str, np.ndarray]) -> None:
    with h5py.File(path) as file:
        for name, expected in values.items():
            np.testing.assert_array_equal(file[name][:], expected)


def test_h5py_alone_writes_the_same_file(tmp_path, request):
    values = drawn()
    for name in ("ours.nc", "theirs.nc"):
        with file_at(tmp_path / name) as file:
            store_chunks(all_chunks(file, values))
        if name == "ours.nc":
            request.getfixturevalue("by_h5py")
    assert (tmp_path / "ours.nc").read_bytes() == (tmp_path / "theirs.nc").read_bytes()


def test_what_hdf5_refuses_h5py_says(tmp_path, capfd):
    """The chunks before it are stored, HDF5 itself prints nothing, in no thread."""
    with file_at(tmp_path / "o.nc") as file, ThreadPoolExecutor(1) as pool:
        chunks = all_chunks(file, drawn())
        chunks[3] = chunks[3]._replace(offset=(1, 0, 1))  # no chunk begins there
        with pytest.raises((OSError, RuntimeError, ValueError), match="offset"):
            pool.submit(store_chunks, chunks).result()
        assert [chunk_count(file, name) for name in ("deep", "flat")] == [3, 0]
    assert capfd.readouterr() == ("", "")


def chunk_count(file: h5py.File, name: str) -> int:
    return file[name].id.get_num_chunks()


@pytest.mark.parametrize("refused", [{0}, {2, 3}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}])
def test_what_h5py_takes_after_all_is_no_error(tmp_path, monkeypatch, refused):
    """A disk that was full and is not any more."""
    usual, count = write_hdf5._by_address, 0

    def now_and_then(function, chunks):
        nonlocal count
        total = len(everything) - len(chunks)
        until = next((i for i in range(len(chunks)) if total + i in refused), len(chunks))
        count += 1
        return usual(function, chunks[:until]) if until else 0

    monkeypatch.setattr(write_hdf5, "_by_address", now_and_then)
    values = drawn()
    with file_at(tmp_path / "o.nc") as file:
        everything = all_chunks(file, values)
        store_chunks(everything)
    assert count >= len(refused)
    assert_holds(tmp_path / "o.nc", values)


@pytest.mark.parametrize("late_bytes", [0, 5000, 1 << 20])
@pytest.mark.parametrize("way", ["by_address", "by_h5py"])
def test_many_threads_and_memory_used_again(tmp_path, monkeypatch, request, late_bytes, way):
    """What lies in memory that is used again has been stored before."""
    if way == "by_h5py":
        request.getfixturevalue(way)
    monkeypatch.setattr(write_netcdf, "_LATE_BYTES", late_bytes)
    monkeypatch.setattr(write_netcdf, "_AT_ONCE", 5)
    schema = schema_of(50, (40, 16), percentiles=(50.0, 90.0))
    values = random_output(schema, None)
    puts = deque()
    for band in (slice(at, at + 8) for at in range(0, 40, 8)):
        for at in range(0, 50, 25):
            days = slice(at, at + 25)
            puts.append(("seas", at, values["seas"][days, band], band))
            for which in range(2):
                part = values["thresh"][days, which, band]
                puts.append(("thresh", (at, which), part, band))
    with (
        ThreadPoolExecutor(8) as pool,
        open_output(
            tmp_path / "o.nc", schema, pool=pool, chunk_doys=4, cell_chunks=(8, 16)
        ) as writer,
    ):
        for future in [pool.submit(writer.put, *put) for put in puts]:
            future.result(timeout=60)
    made = read(tmp_path / "o.nc")
    for name, expected in values.items():
        np.testing.assert_array_equal(made[name].values, expected)
