"""Full disks and several runs at once: nothing half-written, nothing left behind."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import kuroshio as ks
from archive_files import write_series
from cli_runs import YEARS, assert_refused, daily_codes, left_over, run, run_here, start
from kuroshio import Refusal
from kuroshio.archive.catalog import open_archive
from kuroshio.archive.describe import describe
from kuroshio.archive.write import _store_of, open_output
from kuroshio.job import Job
from kuroshio.request import Request


def raiser(error):
    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


# -- the disk --------------------------------------------------------------------------------------


@contextlib.contextmanager
def small_disk(folder: Path, size: str):
    """A file system of its own in memory where we may mount one, else None."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)]
    if os.geteuid() or shutil.which("mount") is None:
        yield None
        return
    mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    try:
        yield folder if mounted else None
    finally:
        if mounted:
            subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_a_full_disk(archive, warm, tmp_path, monkeypatch, suffix):
    """On a small file system where one can be had, else with writing made to fail."""
    monkeypatch.setenv("KUROSHIO_CACHE_DIR", str(warm))
    with small_disk(tmp_path / "disk", "2m") as disk:
        folder = disk or tmp_path / "disk"
        if disk is None:
            store = {".nc": "write_netcdf.NetcdfStore", ".zarr": "write_zarr.ZarrStore"}[suffix]
            monkeypatch.setattr(
                f"kuroshio.archive.{store}.store",
                raiser(OSError(errno.ENOSPC, "No space left on device")),
            )
        result = run_here("climatology", archive, *YEARS, "-q", "-o", folder / f"c{suffix}")
        assert_refused(result, "The disk is full", "B are free now", "Free space")
        assert left_over(folder) == []
        if disk:
            (folder / "filling").write_bytes(bytes(shutil.disk_usage(folder).free))
            result = run_here("climatology", archive, *YEARS, "-q", "-o", folder / f"c{suffix}")
            assert_refused(result, "No space left on device", "another folder")
            assert left_over(folder) == ["filling"]


NO_CACHE = {
    "no folder": "caching.CacheImpl._locator_classes = []",
    "full": "def full(*_):\n    raise OSError(28, 'No space left on device')\n"
    "caching.IndexDataCacheFile._save_data = full",
    "damaged": "def short(*_):\n    raise EOFError('Ran out of input')\n"
    "caching.IndexDataCacheFile._load_data = short",
}


@pytest.mark.parametrize("how", NO_CACHE)
def test_compiled_code_cannot_be_kept(archive, warm, place, tmp_path, how):
    code = f"from numba.core import caching\n{NO_CACHE[how]}"
    env = {"KUROSHIO_CACHE_DIR": str(warm)}
    if how == "full":  # nothing is kept yet
        env["NUMBA_CACHE_DIR"] = str(tmp_path / "numba")
    result = run("climatology", archive, *YEARS, "-q", "-o", place / "c.nc", code=code, env=env)
    assert_refused(result, "Compiled code cannot be kept or fetched", "NUMBA_CACHE_DIR")
    assert left_over(place) == []


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_a_file_may_not_grow_further(archive, warm, place, suffix):
    """A quota on the size of files: real errors from the real libraries, without being root."""
    limited = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))\n"
    result = run("climatology", archive, *YEARS, "-q", "-o", place / f"c{suffix}", code=limited,
                 env={"KUROSHIO_CACHE_DIR": str(warm)})  # fmt: skip
    if suffix == ".nc":
        assert_refused(result, "cannot be written", "File too large")
        assert left_over(place) == []
    else:
        assert result.status in (0, 2)  # its chunks are small files
        assert left_over(place) in ([], [f"c{suffix}"])


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_a_read_only_disk(archive, tmp_path, suffix):
    with small_disk(tmp_path / "disk", "2m") as disk:
        if disk is None:
            return  # test_bad_input has it without a mount
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        result = run_here("climatology", archive, *YEARS, "-o", disk / f"c{suffix}")
        assert_refused(result, "cannot be written to", "Read-only file system", "another folder")
        result = run_here("synth", disk / "made", "--years", 2000, "--grid", 30)
        assert_refused(result, "cannot be made", "Read-only file system")


def test_synth_on_a_full_disk(tmp_path, monkeypatch):
    monkeypatch.setattr("pathlib.Path.write_bytes", raiser(OSError(errno.ENOSPC, "No space left")))
    result = run_here("synth", tmp_path / "made", "--years", 2000, "--grid", 30, "-q")
    assert_refused(result, "cannot be written", "No space left")
    assert left_over(tmp_path / "made") == []


def test_the_folder_goes_away_during_the_run(archive, warm, place, monkeypatch):
    monkeypatch.setenv("KUROSHIO_CACHE_DIR", str(warm))
    from kuroshio.kernels import smooth

    usual = smooth.reference_values

    def remove(*args):
        shutil.rmtree(place, ignore_errors=True)  # several threads may
        return usual(*args)

    monkeypatch.setattr("kuroshio.kernels.smooth.reference_values", remove)
    for suffix in (".nc", ".zarr"):
        place.mkdir(exist_ok=True)
        result = run_here("climatology", archive, *YEARS, "-q", "-o", place / f"c{suffix}")
        assert result.status in (0, 2)  # Zarr makes folders as it needs them
        assert "Traceback" not in result.err


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_a_disk_full_for_one_thread_while_another_stores(place, monkeypatch, suffix):
    """What is being stored is waited for before the partial output is removed."""
    kind = _store_of(place / f"c{suffix}")
    usual, begun = kind.store, threading.Event()

    def store(self, name, *rest):
        if name == "thresh":
            begun.wait(10)
            raise OSError(errno.ENOSPC, "No space left on device")
        begun.set()
        time.sleep(0.2)
        usual(self, name, *rest)

    monkeypatch.setattr(kind, "store", store)
    schema = describe(open_archive(series(), cache=False), Request((2001, 2002)), range(1, 9))
    values = np.ones(schema.shape("seas"), np.float32)
    with (
        ThreadPoolExecutor(2) as pool,
        open_output(place / f"c{suffix}", schema, pool=pool) as writer,
    ):
        slow = pool.submit(writer.put, "seas", 0, values)
        full = pool.submit(writer.put, "thresh", 0, values)
        with pytest.raises(Refusal, match="The disk is full"):
            full.result()
        assert isinstance(slow.exception(), Refusal | None)
    assert left_over(place) == []


def series() -> xr.DataArray:
    days = np.arange("2001-01-01", "2003-01-01", dtype="datetime64[D]").astype("datetime64[ns]")
    return xr.DataArray(np.ones((730, 3, 4)), {"time": days}, ("time", "lat", "lon"), "sst")


# -- several at once -------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_two_processes_into_one_output(archive, warm, place, suffix):
    output = place / f"clim{suffix}"
    env = {"KUROSHIO_CACHE_DIR": str(warm)}
    both = [
        start("climatology", archive, *YEARS, "-q", "--overwrite", "--percentile", percentile,
              "-o", output, env=env)
        for percentile in (80, 90)
    ]  # fmt: skip
    for process in both:
        _, err = process.communicate(timeout=100)
        assert process.returncode == 0, err
    assert left_over(place) == [output.name]
    assert_whole(output, archive)


def assert_whole(output: Path, archive: Path) -> None:
    """The output is one run's throughout: its attribute says whose, its values are that run's."""
    with xr.open_dataset(output, engine="zarr" if output.suffix == ".zarr" else None) as made:
        percentile = float(made.percentile)
        again = Job(Request(baseline=(1991, 1993), percentiles=(percentile,)))
        expected = again.run(open_archive(archive)).fields
        np.testing.assert_array_equal(made.seas, expected["seas"])
        np.testing.assert_array_equal(made.thresh, expected["thresh"])


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_several_threads_into_one_output(tmp_path, suffix):
    path, output = tmp_path / "a.nc", tmp_path / "out" / f"clim{suffix}"
    output.parent.mkdir()
    write_series(path, daily_codes(731), zlib=True, chunksizes=(20, 2, 3))
    archive = open_archive(path, cache=False)
    errors = []

    def once(percentile: int) -> None:
        try:
            for _ in range(3):
                request = Request(baseline=(2001, 2002), percentiles=(float(percentile),))
                Job(request, output=output, overwrite=True, threads=1).run(archive)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=once, args=(p,)) for p in (10, 50, 90)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert left_over(output.parent) == [output.name]
    with xr.open_dataset(output, engine="zarr" if suffix == ".zarr" else None) as made:
        request = Request(baseline=(2001, 2002), percentiles=(float(made.percentile),))
        expected = Job(request).run(archive).fields
        np.testing.assert_array_equal(made.thresh, expected["thresh"])


def test_no_thread_outlives_a_refusal_or_an_interrupt(tmp_path, monkeypatch):
    path = tmp_path / "a.nc"
    write_series(path, daily_codes(731), zlib=True, chunksizes=(20, 2, 3))
    before = threading.active_count()
    for error in (KeyboardInterrupt, MemoryError, OSError(errno.EIO, "Input/output error")):
        with monkeypatch.context() as patch:
            patch.setattr("kuroshio.kernels.smooth.reference_values", raiser(error))
            with pytest.raises((KeyboardInterrupt, Refusal, OSError)):
                ks.climatology(path, baseline=(2001, 2002), output=tmp_path / "c.nc")
        assert threading.active_count() == before
        assert left_over(tmp_path) == ["a.nc"]
