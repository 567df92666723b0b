"""Facts kept between runs: used while true, made anew when stale, never in the way."""

from __future__ import annotations

import gc
import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import netCDF4
import numpy as np
import pytest

from archive_files import FILL, codes, read_all, write_oisst, write_series
from kuroshio.archive import catalog, index, workers
from kuroshio.archive.catalog import open_archive
from kuroshio.archive.model import Archive
from kuroshio.archive.scan import Scanner
from kuroshio.errors import Refusal


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("KUROSHIO_CACHE_DIR", str(folder))
    return folder


@pytest.fixture
def days(tmp_path) -> Path:
    folder = tmp_path / "days"
    folder.mkdir()
    for day in range(8095, 8105):
        write_oisst(folder / f"{day}.nc", day)
    return folder


@pytest.fixture
def scanned(monkeypatch) -> list[str]:
    """The names of the files scanned, in order."""
    names: list[str] = []
    scan = Scanner.scan

    def counting(self, path):
        names.append(os.path.basename(path))
        return scan(self, path)

    monkeypatch.setattr(Scanner, "scan", counting)
    return names


def same(one: Archive, two: Archive) -> None:
    assert one.pieces == two.pieces
    assert one.sources == two.sources
    assert (one.variable, one.attrs, one.dtype, one.calendar) == (
        two.variable,
        two.attrs,
        two.dtype,
        two.calendar,
    )
    assert {type(v) for v in one.attrs.values()} == {type(v) for v in two.attrs.values()}
    assert (one.grid.dims, one.grid.shape) == (two.grid.dims, two.grid.shape)
    np.testing.assert_array_equal(one.days, two.days)
    assert one.grid.coords.keys() == two.grid.coords.keys()
    for name, mine in one.grid.coords.items():
        other = two.grid.coords[name]
        assert (mine.dims, mine.attrs, mine.values.dtype) == (
            other.dims,
            other.attrs,
            other.values.dtype,
        )
        np.testing.assert_array_equal(mine.values, other.values)


def test_second_open_scans_nothing(days, scanned):
    first = open_archive(days)
    assert len(scanned) == 10
    second = open_archive(days)
    assert len(scanned) == 10
    same(first, second)


@pytest.mark.parametrize(
    "storage",
    [
        {"chunksizes": (4, 2, 3), "zlib": True},
        {"contiguous": True},
        {"fletcher32": True},
        {},
    ],
)
def test_every_storage_survives(tmp_path, scanned, storage):
    path = tmp_path / "a.nc"
    attrs = {
        "scale_factor": np.float32(0.01),
        "flag_values": np.array([1, 2], "i1"),
        "long_name": "température",
        "level": np.float64("nan"),
        "missing_value": 7,
    }
    write_series(
        path,
        codes((9, 4, 5)),
        attrs=attrs,
        fill_value=FILL,
        unlimited="contiguous" not in storage,
        **storage,
    )
    first = open_archive(path)
    second = open_archive(path)
    assert scanned == ["a.nc"]
    assert np.isnan(second.attrs["level"])
    assert second.attrs["flag_values"].dtype == np.int8
    assert first.pieces == second.pieces
    np.testing.assert_array_equal(read_all(first), read_all(second))


def test_changed_file_alone_is_scanned_again(days, scanned):
    open_archive(days)
    scanned.clear()
    values = write_oisst(days / "8099.nc", 8099, codes((4, 6), seed=77))
    archive = open_archive(days)
    assert scanned == ["8099.nc"]
    expected = np.where(values == FILL, np.nan, values * 0.01)
    np.testing.assert_allclose(read_all(archive)[4], expected)
    state = os.stat(days / "8101.nc")
    os.utime(days / "8101.nc", ns=(state.st_atime_ns, state.st_mtime_ns + 1))
    scanned.clear()
    open_archive(days)
    assert scanned == ["8101.nc"]


@pytest.mark.parametrize("what", ["removed", "replaced"])
def test_a_file_changes_right_after_its_scan(days, monkeypatch, what):
    scan, path = Scanner.scan, days / "8100.nc"

    def changing(self, name):
        facts = scan(self, name)
        if Path(name) == path:
            path.unlink()
            if what == "replaced":
                write_oisst(path, 8200)
        return facts

    with monkeypatch.context() as patch:
        patch.setattr(Scanner, "scan", changing)
        assert open_archive(days).days.size == 10  # as it was a moment ago
    if what == "removed":
        write_oisst(path, 8200)
    same(open_archive(days), open_archive(days, cache=False))


def test_changed_grid_is_seen(days):
    open_archive(days)
    write_oisst(days / "8099.nc", 8099, lat0=30.0)
    with pytest.raises(Refusal, match=r"8099\.nc"):
        open_archive(days)


def test_variable_and_selection_have_their_own_facts(tmp_path, scanned):
    path = tmp_path / "a.nc"
    write_series(
        path,
        codes((3, 4, 2, 2)),
        dims=("time", "depth", "lat", "lon"),
        fill_value=FILL,
        chunksizes=(1, 1, 2, 2),
        zlib=True,
    )
    with netCDF4.Dataset(path, "a") as file:
        file.createVariable("other", "f4", ("time", "lat", "lon"))[:] = 3.0
    one = open_archive(path, variable="sst", select={"depth": 1})
    two = open_archive(path, variable="sst", select={"depth": 2})
    three = open_archive(path, variable="other")
    assert len(scanned) == 3
    assert len({p.where for a in (one, two, three) for p in a.pieces}) == 9
    assert not np.array_equal(read_all(one), read_all(two))
    assert (read_all(three) == 3.0).all()
    same(one, open_archive(path, variable="sst", select={"depth": 1}))
    assert len(scanned) == 3


def test_cache_not_wanted(days, cache, scanned):
    open_archive(days, cache=False)
    open_archive(days, cache=False)
    assert len(scanned) == 20
    assert not cache.exists()


@pytest.mark.parametrize("how", ["text", "half", "other tables", "nonsense rows", "half a zip"])
def test_corrupt_cache_is_made_anew(days, cache, scanned, how):
    first = open_archive(days)
    (path,) = cache.iterdir()
    data = path.read_bytes()
    if how == "text":
        path.write_text("not a database, but long enough to look like one " * 100)
    elif how == "half":
        path.write_bytes(data[: len(data) // 2])
    elif how == "other tables":
        path.unlink()
        with sqlite3.connect(path) as database:
            database.execute("CREATE TABLE file (a, b)")
        database.close()
    else:
        change = {
            "nonsense rows": "UPDATE file SET packing = '[1', ranges = x'00'",
            "half a zip": "UPDATE layout SET arrays = substr(arrays, 1, length(arrays) / 2)",
        }
        with sqlite3.connect(path) as database:
            database.execute(change[how])
        database.close()
    same(first, open_archive(days))
    scanned.clear()
    same(first, open_archive(days))
    assert scanned == []


def test_unwritable_cache_is_no_error(days, tmp_path, monkeypatch):
    blocker = tmp_path / "file"
    blocker.write_text("in the way")
    monkeypatch.setenv("KUROSHIO_CACHE_DIR", str(blocker / "cache"))
    assert open_archive(days).days.size == 10


def test_locked_cache_is_no_error_and_stays(days, cache, monkeypatch, scanned):
    first = open_archive(days)
    (path,) = cache.iterdir()
    monkeypatch.setattr(index, "_PATIENCE_S", 0.05)
    lock = sqlite3.connect(path, isolation_level=None)
    lock.execute("BEGIN EXCLUSIVE")
    before = path.stat().st_ino
    same(first, open_archive(days))
    assert path.stat().st_ino == before
    lock.execute("ROLLBACK")
    lock.close()
    scanned.clear()
    same(first, open_archive(days))
    assert scanned == []


def test_cache_folder(monkeypatch):
    assert index.cache_folder() == Path(os.environ["KUROSHIO_CACHE_DIR"])
    monkeypatch.delenv("KUROSHIO_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", "/x/cache")
    assert index.cache_folder() == Path("/x/cache/kuroshio")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(sys, "platform", "linux")
    assert index.cache_folder() == Path.home() / ".cache" / "kuroshio"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert index.cache_folder() == Path.home() / "Library" / "Caches" / "kuroshio"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", "/local")
    assert index.cache_folder() == Path("/local/kuroshio/Cache")


@pytest.mark.parametrize("running", [True, False])
def test_the_collector_goes_on_as_before(days, running):
    before = gc.isenabled()
    try:
        (gc.enable if running else gc.disable)()
        open_archive(days)
        assert gc.isenabled() == running
        with pytest.raises(Refusal):
            open_archive(days, variable="nothing of the kind")
        assert gc.isenabled() == running
    finally:
        (gc.enable if before else gc.disable)()


def test_progress_counts_what_is_scanned(days):
    calls: list[tuple[int, int]] = []
    open_archive(days, progress=lambda *counts: calls.append(counts))
    assert calls == [(i, 9) for i in range(1, 10)]
    calls.clear()
    open_archive(days, progress=lambda *counts: calls.append(counts))
    assert calls == []


# -- worker processes ------------------------------------------------------------------------


@pytest.fixture
def many(monkeypatch) -> None:
    """So few files are many."""
    monkeypatch.setattr(catalog, "MANY_FILES", 3)
    monkeypatch.setattr(workers, "_BATCH", 2)


@pytest.mark.usefixtures("many")
def test_workers_find_the_same(days, scanned):
    calls: list[tuple[int, int]] = []
    found = open_archive(days, progress=lambda *counts: calls.append(counts))
    assert len(scanned) == 1
    assert calls[-1] == (9, 9)
    scanned.clear()
    same(found, open_archive(days))
    assert scanned == []
    same(found, open_archive(days, cache=False))


@pytest.mark.usefixtures("many")
def test_workers_refuse_and_skip_alike(days):
    (days / "8101.nc").write_bytes((days / "8101.nc").read_bytes()[:-200])
    with pytest.raises(Refusal, match=r"8101\.nc.*--skip-bad"):
        open_archive(days)
    archive = open_archive(days, skip_bad=True)
    assert len(archive.skipped) == 1
    assert archive.days.size == 9
    with netCDF4.Dataset(days / "8103.nc", "a") as file:
        file.renameVariable("sst", "tos")
    with pytest.raises(Refusal, match=r"no variable 'sst' in .*8103\.nc"):
        open_archive(days, skip_bad=True)


@pytest.mark.usefixtures("many")
def test_dead_workers_lose_no_file(days, monkeypatch):
    def dies() -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-c", "raise SystemExit(3)"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    monkeypatch.setattr(workers, "_start", dies)
    assert open_archive(days).days.size == 10


@pytest.mark.usefixtures("many")
def test_an_interrupt_ends_the_workers_and_keeps_what_was_learned(days, monkeypatch, scanned):
    started = []
    start = workers._start
    monkeypatch.setattr(workers, "_start", lambda: started.append(start()) or started[-1])

    def interrupt(done: int, total: int) -> None:
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        open_archive(days, progress=interrupt)
    assert started
    assert all(worker.poll() is not None for worker in started)
    monkeypatch.setattr(catalog, "MANY_FILES", 100)
    scanned.clear()
    open_archive(days)
    assert 0 < len(scanned) <= 6


@pytest.mark.usefixtures("many")
def test_an_unguarded_script_may_open_many_files(days, tmp_path):
    """A script without `if __name__ == '__main__'` must not start itself again."""
    script = tmp_path / "script.py"
    script.write_text(
        "from kuroshio.archive import catalog\n"
        "catalog.MANY_FILES = 3\n"
        f"print('days', catalog.open_archive({str(days)!r}).days.size)\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert done.stdout == "days 10\n"
    assert done.stderr == ""


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize(
    "hook",
    [
        "import os\ndel os.fork",
        "import os\ndef fork():\n    raise BlockingIOError(11, 'no more')\nos.fork = fork",
    ],
    ids=["no such thing", "too many processes"],
)
def test_without_a_fork_one_process_does_the_work(days, monkeypatch, tmp_path, scanned, hook):
    (tmp_path / "sitecustomize.py").write_text(hook)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert open_archive(days).days.size == 10
    assert len(scanned) == 1


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("printed", ["hello", "hello to all of you", "*****N.", "*****(t."])
@pytest.mark.parametrize("flush", [True, False])
def test_what_a_start_up_hook_prints_is_no_answer(days, monkeypatch, tmp_path, printed, flush):
    """Not even where it is a pickle of something."""
    (tmp_path / "sitecustomize.py").write_text(f"print({printed!r}, flush={flush})")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert open_archive(days).days.size == 10


@pytest.mark.usefixtures("many")
def test_answers_longer_than_a_frame(tmp_path, monkeypatch, scanned):
    for i in range(8):  # 800 chunks a file
        values = np.random.default_rng(i).integers(0, 9, (2, 20, 20)).astype(np.float32)
        write_series(tmp_path / f"{i}.nc", values, 2 * i, chunksizes=(1, 1, 1), zlib=True)
    found = open_archive(tmp_path, cache=False)
    assert len(scanned) == 1
    monkeypatch.setattr(catalog, "MANY_FILES", 100)
    same(found, open_archive(tmp_path, cache=False))
    assert len(found.pieces) == 8 * 800


@pytest.mark.usefixtures("many")
def test_workers_end_with_their_parent(days):
    """Also where it has no time to end them."""
    script = (
        "import os, signal, sys\n"
        "from kuroshio.archive import catalog, workers\n"
        "catalog.MANY_FILES, workers._BATCH, start = 3, 1, workers._start\n"
        "def told():\n"
        "    server = start()\n"
        "    print(server.pid, flush=True)\n"
        "    return server\n"
        "workers._start = told\n"
        "def progress(done, total):\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "catalog.open_archive(sys.argv[1], cache=False, progress=progress)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(days)], capture_output=True, text=True, check=False
    )
    group = int(done.stdout)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.02)
    pytest.fail("workers outlive their parent")
