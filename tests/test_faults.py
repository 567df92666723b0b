"""Interrupted runs, full disks, several runs at once: nothing half-written, nothing left behind."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import kuroshio as ks
from archive_files import write_series
from cli_runs import Result, assert_refused, daily_codes, left_over, run, run_here, start
from kuroshio import Refusal
from kuroshio.api import Job
from kuroshio.archive.catalog import open_archive
from kuroshio.request import Request

YEARS = ("--baseline", "1991", "1993")
AT_MOST_S = 2.0  # from the signal to the end
STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}

# A disk so slow that a run can be met in its middle.
SLOW_DISK = """
import time
from kuroshio.archive import read
quick = read.Reader.load
def slow(*args):
    time.sleep(0.02)
    return quick(*args)
read.Reader.load = slow
"""


@pytest.fixture(scope="module")
def archive(tmp_path_factory) -> Path:
    """Three years of two-degree days, made once."""
    folder = tmp_path_factory.mktemp("archive")
    made = run("synth", folder, "--grid", 2, "--years", "1991-1993", "-q")
    assert made.status == 0, made
    return folder


@pytest.fixture(scope="module")
def warm(tmp_path_factory, archive) -> Path:
    """A cache folder that knows the archive, so that runs begin to read at once."""
    cache = tmp_path_factory.mktemp("warm")
    known = run("plan", archive, *YEARS, env={"KUROSHIO_CACHE_DIR": str(cache)})
    assert known.status == 0, known
    return cache


@pytest.fixture
def place(tmp_path) -> Path:
    (tmp_path / "place").mkdir()
    return tmp_path / "place"


def wait_for(what, process: subprocess.Popen) -> None:
    end = time.monotonic() + 60
    while not what():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.01)


def stop(process: subprocess.Popen, number: signal.Signals) -> tuple[Result, float]:
    """Send a signal to the one process, and how long it then lived. No process outlives it."""
    begun = time.monotonic()
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    took = time.monotonic() - begun
    assert_alone(process)
    return Result(process.returncode, out.decode(), err.decode()), took


def assert_alone(process: subprocess.Popen) -> None:
    """No process is left of the session that the ended one led."""
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, 0)
            states = subprocess.run(
                ["ps", "-o", "state=", "-s", str(process.pid)], capture_output=True, text=True,
                check=False,
            ).stdout.split()  # fmt: skip
            if set(states) - {"Z"}:  # those of the dead remain until somebody asks for them
                time.sleep(0.02)
                continue
        return
    os.killpg(process.pid, signal.SIGKILL)
    pytest.fail("a process was left behind")


def assert_stopped(ended: tuple[Result, float], number: signal.Signals) -> None:
    result, took = ended
    assert result.status == STATUS[number], result
    assert result.err == "kuroshio: Stopped. Nothing half-written was left behind.\n"
    assert result.out == ""
    assert took < AT_MOST_S


# -- signals ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
@pytest.mark.parametrize("number", list(STATUS))
def test_a_signal_in_the_middle_of_reading(archive, warm, place, suffix, number):
    output = place / f"clim{suffix}"
    process = start("climatology", archive, *YEARS, "-o", output, code=SLOW_DISK,
                    env={"KUROSHIO_CACHE_DIR": str(warm)})  # fmt: skip
    wait_for(lambda: left_over(place), process)
    assert [n.startswith(f".{output.name}.") for n in left_over(place)] == [True]
    time.sleep(0.5)
    assert_stopped(stop(process, number), number)
    assert left_over(place) == []


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_a_signal_leaves_the_old_output(archive, warm, place, suffix):
    output = place / f"clim{suffix}"
    env = {"KUROSHIO_CACHE_DIR": str(warm)}
    assert run("climatology", archive, *YEARS, "--doys", 1, "-q", "-o", output, env=env).status == 0
    before = contents(output)
    process = start("climatology", archive, *YEARS, "-o", output, "--overwrite", code=SLOW_DISK,
                    env=env)  # fmt: skip
    wait_for(lambda: len(left_over(place)) == 2, process)
    time.sleep(0.3)
    assert_stopped(stop(process, signal.SIGINT), signal.SIGINT)
    assert left_over(place) == [output.name]
    assert contents(output) == before


def contents(path: Path) -> dict[str, bytes]:
    files = [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]
    return {str(file): file.read_bytes() for file in files}


def test_a_signal_while_worker_processes_look_at_the_files(archive, place, tmp_path):
    process = start("climatology", archive, *YEARS, "-o", place / "c.nc",
                    env={"KUROSHIO_CACHE_DIR": str(tmp_path / "cache")})  # fmt: skip
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    if not children.exists():
        process.kill()
        process.communicate()
        pytest.skip("needs Linux, to see a process's children")
    wait_for(lambda: children.read_text().strip(), process)
    assert_stopped(stop(process, signal.SIGTERM), signal.SIGTERM)
    assert left_over(place) == []


def test_a_signal_while_kernels_are_compiled(archive, warm, place, tmp_path):
    """The compiler cannot be interrupted; the process ends all the same."""
    env = {"KUROSHIO_CACHE_DIR": str(warm), "NUMBA_CACHE_DIR": str(tmp_path)}
    process = start("climatology", archive, *YEARS, "-o", place / "c.nc", env=env)
    wait_for(lambda: left_over(place), process)
    time.sleep(0.3)
    assert_stopped(stop(process, signal.SIGINT), signal.SIGINT)
    assert left_over(place) == []


def test_a_thread_that_hangs_does_not_hold_the_process(archive, warm, place):
    """A network disk that does not answer."""
    hanging = SLOW_DISK.replace("time.sleep(0.02)", "time.sleep(1000)")
    process = start("climatology", archive, *YEARS, "-o", place / "c.nc", code=hanging,
                    env={"KUROSHIO_CACHE_DIR": str(warm)})  # fmt: skip
    wait_for(lambda: left_over(place), process)
    time.sleep(0.2)
    assert_stopped(stop(process, signal.SIGINT), signal.SIGINT)
    assert left_over(place) == []


def test_impatient_people_press_it_several_times(archive, warm, place):
    process = start("climatology", archive, *YEARS, "-o", place / "c.zarr", code=SLOW_DISK,
                    env={"KUROSHIO_CACHE_DIR": str(warm)})  # fmt: skip
    wait_for(lambda: left_over(place), process)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(number)
        time.sleep(random.uniform(0, 0.02))
    _, err = process.communicate(timeout=10)
    assert process.returncode in (130, 143)
    assert b"Traceback" not in err
    assert left_over(place) == []
    assert_alone(process)


@pytest.mark.parametrize("attempt", range(4))
def test_a_signal_at_any_moment(archive, warm, place, attempt):
    """Whenever it comes: either the run had ended and its output is whole, or there is none."""
    output = place / random.choice(["clim.nc", "clim.zarr"])
    process = start("climatology", archive, *YEARS, "-q", "-o", output,
                    env={"KUROSHIO_CACHE_DIR": str(warm)})  # fmt: skip
    time.sleep(0.4 + random.uniform(0, 1.6))  # Python itself must have begun
    result, took = stop(process, signal.SIGINT)
    assert took < AT_MOST_S
    assert "Traceback" not in result.err
    assert result.status in (0, 130, -signal.SIGINT)  # the last: while Python itself ended
    if result.status == 130:
        assert left_over(place) == []
    else:
        assert left_over(place) == [output.name]
        with xr.open_dataset(output, engine="zarr" if output.suffix == ".zarr" else None) as made:
            assert np.isfinite(made.seas).any("dayofyear").any()
            assert made.sizes["dayofyear"] == 366


def test_synth_stops_too(place):
    process = start("synth", place, "--grid", 0.5, "--years", "1991-2000")
    wait_for(lambda: len(left_over(place)) > 5, process)
    assert_stopped(stop(process, signal.SIGINT), signal.SIGINT)
    assert not [name for name in left_over(place) if name.endswith(".part")]


def test_no_thread_outlives_a_refusal_or_an_interrupt(tmp_path, monkeypatch):
    path = tmp_path / "a.nc"
    write_series(path, daily_codes(731), zlib=True, chunksizes=(20, 2, 3))
    before = threading.active_count()
    for error in (KeyboardInterrupt, MemoryError, OSError(errno.EIO, "Input/output error")):
        with monkeypatch.context() as patch:
            patch.setattr("kuroshio.pipeline.smooth.reference_values", raiser(error))
            with pytest.raises((KeyboardInterrupt, Refusal, OSError)):
                ks.climatology(path, baseline=(2001, 2002), output=tmp_path / "c.nc")
        assert threading.active_count() == before
        assert left_over(tmp_path) == ["a.nc"]


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
        assert_refused(result, "The disk is full", "MB are free", "Free space")
        assert left_over(folder) == []
        if disk:
            (folder / "filling").write_bytes(bytes(shutil.disk_usage(folder).free))
            result = run_here("climatology", archive, *YEARS, "-q", "-o", folder / f"c{suffix}")
            assert_refused(result, "No space left on device", "another folder")
            assert left_over(folder) == ["filling"]


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
        shutil.rmtree(place)
        return usual(*args)

    monkeypatch.setattr("kuroshio.pipeline.smooth.reference_values", remove)
    for suffix in (".nc", ".zarr"):
        place.mkdir(exist_ok=True)
        result = run_here("climatology", archive, *YEARS, "-q", "-o", place / f"c{suffix}")
        assert result.status in (0, 2)  # Zarr makes folders as it needs them
        assert "Traceback" not in result.err


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
