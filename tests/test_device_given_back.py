"""Whole runs from files, on every device there is: whatever ends them, all is given back.

Of a run in this process memory on the device and pinned memory, to a few MB that a context may
keep; of a process that a signal ends, also its output. test_given_back.py does so operation by
operation, on the emulated device.
"""

from __future__ import annotations

import errno
import gc
import os
import random
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import kuroshio as ks
from cli_runs import left_over, start
from emulator import EmulatedGpu
from kuroshio.archive.badfile import BadFile
from kuroshio.archive.catalog import open_archive
from kuroshio.archive.synthetic import make_archive
from kuroshio.archive.write_netcdf import NetcdfStore
from kuroshio.device import cuda
from kuroshio.errors import Refusal
from kuroshio.interrupt import FAREWELL
from kuroshio.job import Job
from kuroshio.request import Request

pytestmark = pytest.mark.filterwarnings(
    "ignore:.* are absent and count as missing", "ignore:A baseline of 4 years is short"
)

YEARS, DOYS = (1991, 1994), (110, 149)
SEASON = range(DOYS[0] - 5, DOYS[1] + 6)
STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -signal.SIGKILL}

CONTEXT_BYTES = 16 << 20  # that a device may keep after a job it has done before
AT_MOST_S = 5.0  # from a signal to the end: what a driver is at must come to its end
SOON_S = 5.0  # after that, until memory is free


def emulated(gpu: Any) -> bool:
    return isinstance(gpu, EmulatedGpu)


@pytest.fixture(scope="module")
def device(gpu) -> Iterator[str]:
    """The device as --device calls it."""
    with pytest.MonkeyPatch.context() as patch:
        if emulated(gpu):
            patch.setattr(cuda, "named", lambda name: [gpu])
        yield "cuda:0" if emulated(gpu) else gpu.name


@pytest.fixture(scope="module")
def season(gpu, tmp_path_factory) -> Path:
    """Four years of fifty days; for a real device so large that it notices."""
    folder = tmp_path_factory.mktemp("season")
    make_archive(folder, YEARS, 4 if emulated(gpu) else 0.5, "oisst", SEASON)
    return folder


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory) -> Iterator[Path]:
    """Of what is known of files; ours alone, and the same for all tests."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cache")
        patch.setenv("KUROSHIO_CACHE_DIR", str(folder))
        yield folder


# -- in this process -------------------------------------------------------------------------------


@pytest.fixture
def pinned_bytes(gpu, monkeypatch) -> Callable[[], int]:
    """Tells how much pinned memory is held."""
    if emulated(gpu):
        return lambda: gpu.held_bytes(pinned=True)
    import cupy

    held: dict[int, int] = {}
    numbers = count()

    class Counted(cupy.cuda.PinnedMemory):
        """Counted until it is freed."""

        def __init__(self, size: int, flags: int = 0) -> None:
            super().__init__(size, flags)
            number = next(numbers)
            held[number] = size
            weakref.finalize(self, held.pop, number)

    def register(self, address: int, nbytes: int, taken=cuda.CupyGpu._register) -> bool:
        done = taken(self, address, nbytes)
        held.update({-address: nbytes} if done else {})
        return done

    def unregister(self, address: int, given_back=cuda.CupyGpu._unregister) -> None:
        given_back(self, address)
        del held[-address]

    monkeypatch.setattr(cupy.cuda, "PinnedMemory", Counted)
    monkeypatch.setattr(cuda.CupyGpu, "_register", register)
    monkeypatch.setattr(cuda.CupyGpu, "_unregister", unregister)
    return lambda: sum(list(held.values()))


@contextmanager
def nothing_is_kept(gpu: Any, pinned_bytes: Callable[[], int]) -> Iterator[None]:
    gc.collect()
    free, pinned = gpu.free_bytes(), pinned_bytes()
    yield
    most = 0 if emulated(gpu) else CONTEXT_BYTES
    end = time.monotonic() + SOON_S  # an interrupted thread may still be at its last files
    while gc.collect() >= 0 and (pinned_bytes() > pinned or free - gpu.free_bytes() > most):
        assert time.monotonic() < end, f"{pinned_bytes():,} pinned, {free - gpu.free_bytes():,}"
        time.sleep(0.02)


def climatology(device: str, folder: Path, output: Path | None) -> str:
    """The name of what ended a run, with which its traceback and what that holds are gone."""
    try:
        ks.climatology(
            folder, baseline=YEARS, doys=range(DOYS[0], DOYS[1] + 1), smooth_width=1,
            output=output, overwrite=True, device=device,
        ).close()  # fmt: skip
    except Refusal as problem:
        return type(problem).__name__
    return ""


def followed(device: str, folder: Path, output: Path, progress: Any) -> str:
    """As `climatology`, with somebody who follows it."""
    doys = tuple(range(DOYS[0], DOYS[1] + 1))
    request = Request(YEARS, (90.0,), doys=doys, smooth_width=1)
    try:
        Job(request, output=output, overwrite=True, device=device).run(
            open_archive(folder), progress=progress
        )
    except KeyboardInterrupt as stopped:
        return type(stopped).__name__
    return ""


@pytest.fixture
def attempts(gpu, device, season, output) -> int:
    """How often to try; the device has done the job before."""
    assert climatology(device, season, output) == ""
    output.unlink()
    return 3 if emulated(gpu) else 5


def test_after_whole_runs(gpu, device, season, output, attempts, pinned_bytes):
    """And while they last, more is held than may be kept."""
    seen = []

    def progress(*_: object) -> None:
        seen.append((gpu.free_bytes(), pinned_bytes()))

    free = gpu.free_bytes()
    with nothing_is_kept(gpu, pinned_bytes):
        assert climatology(device, season, output) == ""
        assert climatology(device, season, None) == ""
        assert followed(device, season, output, progress) == ""
    assert free - min(least for least, _ in seen) > (0 if emulated(gpu) else 2 * CONTEXT_BYTES)
    assert max(most for _, most in seen) > 0


def test_after_a_damaged_file(gpu, device, season, output, attempts, pinned_bytes, tmp_path):
    with nothing_is_kept(gpu, pinned_bytes):
        for attempt in range(attempts):
            folder = tmp_path / str(attempt)
            shutil.copytree(season, folder, copy_function=os.link)
            damage(folder)
            assert climatology(device, folder, output) == BadFile.__name__
    assert left_over(output.parent) == []


def damage(folder: Path) -> None:
    """Some file of which others share the bytes."""
    where = random.choice(open_archive(folder).pieces).where
    path = Path(where.path)
    data = bytearray(path.read_bytes())
    middle = where.offset + where.nbytes // 2
    data[middle : middle + 8] = b"\xff\x00" * 4
    path.unlink()
    path.write_bytes(data)


def test_after_an_output_that_fails(
    gpu, device, season, output, attempts, pinned_bytes, monkeypatch
):
    store, last, calls = NetcdfStore.store, 0, count(1)

    def full(self: NetcdfStore, *chunk: Any) -> None:
        if next(calls) > last:
            raise OSError(errno.ENOSPC, "No space left on device")
        store(self, *chunk)

    monkeypatch.setattr(NetcdfStore, "store", full)
    with nothing_is_kept(gpu, pinned_bytes):
        for _ in range(attempts):
            last, calls = random.randrange(9), count(1)
            assert climatology(device, season, output) == Refusal.__name__
    assert left_over(output.parent) == []


def interrupt() -> None:
    raise KeyboardInterrupt


def press_ctrl_c() -> None:
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)


@pytest.mark.parametrize("stop", [interrupt, press_ctrl_c])
def test_after_an_interrupt(gpu, device, season, output, attempts, pinned_bytes, stop):
    """Wherever it is raised: in the thread that tells of progress, or wherever the main one is."""
    with nothing_is_kept(gpu, pinned_bytes):
        for _ in range(attempts):
            at, calls = random.uniform(0, 0.9), count()

            def progress(
                stage: str, done: int, total: int, at: float = at, calls: count = calls
            ) -> None:
                if stage == "read" and done >= at * total and not next(calls):
                    stop()

            ended = followed(device, season, output, progress)
            assert ended == "KeyboardInterrupt", f"not after {at:.3f} of the files"
    assert left_over(output.parent) == []


# -- a process that a signal ends ------------------------------------------------------------------

SAYS_SO = """
from kuroshio.commands import climatology
run = climatology.run
def say_so(arguments):
    print("begun", flush=True)
    run(arguments)
climatology.run = say_so
"""
EMULATED = """
from emulator import EmulatedGpu
from kuroshio.device import cuda
cuda.named = lambda name: [EmulatedGpu()]
"""


def begun(gpu: Any, device: str, folder: Path, output: Path) -> subprocess.Popen:
    """A process whose run has just begun: signals are heard."""
    process = start(
        "climatology", folder, "--baseline", *YEARS, "--doys", f"{DOYS[0]}:{DOYS[1]}",
        "--no-smooth", "--device", device, "-q", "-o", output,
        code=SAYS_SO + EMULATED * emulated(gpu),
    )  # fmt: skip
    said = process.stdout.readline()
    assert said == b"begun\n", process.communicate()
    return process


def values(path: Path) -> dict[str, np.ndarray]:
    with xr.open_dataset(path) as made:
        return {name: made[name].values for name in ("seas", "thresh")}


def until_it_writes(process: subprocess.Popen, output: Path) -> None:
    """Until there is something of an output, or no process."""
    while not left_over(output.parent) and process.poll() is None:
        time.sleep(0.002)


@pytest.fixture(scope="module")
def whole(gpu, device, season, tmp_path_factory) -> tuple[float, float, dict[str, np.ndarray]]:
    """Seconds of a run, all being compiled and known: since it has begun, and since it writes.

    And what it finds.
    """
    output = tmp_path_factory.mktemp("whole") / "clim.nc"
    for _ in range(2):
        output.unlink(missing_ok=True)
        process = begun(gpu, device, season, output)
        start_s = time.monotonic()
        until_it_writes(process, output)
        writes_s = time.monotonic()
        _, err = process.communicate(timeout=120)
        stop_s = time.monotonic()
        assert process.returncode == 0, err
    return stop_s - start_s, stop_s - writes_s, values(output)


@pytest.mark.parametrize("number", list(STATUS))
def test_a_process_killed_at_any_moment(gpu, device, season, whole, tmp_path, number):
    took, wrote, expected = whole
    free = gpu.free_bytes()
    for writing in (False, True) if emulated(gpu) else (False, False, True, True):
        output = Path(tempfile.mkdtemp(dir=tmp_path)) / "clim.nc"
        process = begun(gpu, device, season, output)
        if writing:
            until_it_writes(process, output)
        moment = random.random() * (wrote if writing else took)
        time.sleep(moment)
        at = time.monotonic()
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
        since = f"of {wrote:.3f} s of writing" if writing else f"of {took:.3f} s"
        what = f"{number!r} after {moment:.3f} {since}: {err.decode()}"
        assert time.monotonic() - at < AT_MOST_S, what
        check_end(process, output, number, expected, what)
        check_given_back(gpu, free, what)

    if number == signal.SIGKILL:  # what the last one has left is in nobody's way
        output.unlink(missing_ok=True)
        process = begun(gpu, device, season, output)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        assert_same(values(output), expected)


def check_end(process: Any, output: Path, number: int, expected: dict, what: str) -> None:
    """An output that has its name is whole; nothing else is left but by SIGKILL."""
    named = output.exists()
    if named:
        assert_same(values(output), expected)
    if process.returncode == 0:
        assert named, what
    elif process.returncode != STATUS[number]:
        assert process.returncode == -number, what
        assert named, what  # while Python itself ended
    elif number != signal.SIGKILL:
        assert FAREWELL in what
        assert "Traceback" not in what
    others = [name for name in left_over(output.parent) if name != output.name]
    if number == signal.SIGKILL:
        assert all(n.startswith(f".{output.name}.") and n.endswith(".part") for n in others), what
    else:
        assert others == [], what
    with pytest.raises(ProcessLookupError):  # none is left of those that it led
        os.killpg(process.pid, 0)


def check_given_back(gpu: Any, free: int, what: str) -> None:
    end = time.monotonic() + SOON_S
    while free - gpu.free_bytes() > CONTEXT_BYTES:
        assert time.monotonic() < end, f"{free - gpu.free_bytes():,} bytes are held; {what}"
        time.sleep(0.05)


def assert_same(found: dict, expected: dict) -> None:
    for name, field in expected.items():
        np.testing.assert_array_equal(found[name], field, name)
