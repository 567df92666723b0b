"""Interrupted runs: they end at once, nothing half-written, nothing left behind."""

from __future__ import annotations

import contextlib
import os
import pty
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from cli_runs import YEARS, Result, left_over, run, start

AT_MOST_S = 2.0  # from the signal to the end
STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}

# A disk so slow that a run can be met in its middle.
SLOW_DISK = """
import time
from kuroshio.archive import read
quick = read.Reader.load_together
def slow(reader, loads, *args):
    time.sleep(0.02 * len(loads))
    return quick(reader, loads, *args)
read.Reader.load_together = slow
"""


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
    command = ["ps", "-o", "pid=,state=,args=", "-s", str(process.pid)]
    end = time.monotonic() + 0.5
    left = ["unknown"]
    while left and time.monotonic() < end:
        lines = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        # What is dead remains listed until somebody asks for it.
        left = [line for line in lines.splitlines() if line.split()[1] != "Z"]
    assert not left


def assert_stopped(ended: tuple[Result, float], number: signal.Signals) -> None:
    result, took = ended
    assert result.status == STATUS[number], result
    assert result.err == "kuroshio: Stopped. Nothing half-written was left behind.\n"
    assert result.out == ""
    assert took < AT_MOST_S


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
    process = start(
        "climatology", archive, *YEARS, "-o", output, "--overwrite", code=SLOW_DISK, env=env
    )
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


@pytest.mark.parametrize("attempt", range(2))
def test_ctrl_c_reaches_all_processes_of_a_terminal(archive, place, tmp_path, attempt):
    """Workers that have just been started say nothing of it."""
    process = start("climatology", archive, *YEARS, "-o", place / "c.nc",
                    env={"KUROSHIO_CACHE_DIR": str(tmp_path / "cache")})  # fmt: skip
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    if children.exists():
        wait_for(lambda: children.read_text().strip(), process)
    time.sleep(random.uniform(0, 0.3))
    begun = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=30)
    ended = Result(process.returncode, out.decode(), err.decode()), time.monotonic() - begun
    assert_stopped(ended, signal.SIGINT)
    assert_alone(process)


def test_ctrl_c_under_a_progress_bar(archive, warm, place):
    """The terminal is as it was: the cursor is back, whichever way the process ended."""
    for code in (SLOW_DISK, SLOW_DISK.replace("0.02", "1000")):
        ours, theirs = pty.openpty()
        env = {"KUROSHIO_CACHE_DIR": str(warm), "TERM": "xterm"}
        process = start(
            "climatology", archive, *YEARS, "-o", place / "c.nc", code=code, stderr=theirs, env=env
        )
        os.close(theirs)
        wait_for(lambda: left_over(place), process)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        said = b""
        with contextlib.suppress(OSError):  # the end of a terminal
            while True:
                said += os.read(ours, 4096)
        os.close(ours)
        assert process.wait(10) == 130
        process.communicate()
        assert b"\x1b[?25l" in said  # hidden by the bar
        assert said.rfind(b"\x1b[?25h") > said.rfind(b"\x1b[?25l")
        assert b"Stopped. Nothing half-written" in said
        assert b"Traceback" not in said
        assert left_over(place) == []


def test_what_is_ignored_stays_ignored(archive, warm, place):
    """nohup kuroshio ..."""
    ignore = "import signal\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
    process = start("climatology", archive, *YEARS, "-q", "-o", place / "c.nc", code=ignore,
                    env={"KUROSHIO_CACHE_DIR": str(warm)})  # fmt: skip
    wait_for(lambda: left_over(place), process)
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert left_over(place) == ["c.nc"]


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
    hanging = SLOW_DISK.replace("0.02", "1000")
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


# The main thread hears of a signal after this only, and the watcher at once.
LONG_CALL = """
import hashlib
from kuroshio.interrupt import stopping_on_signals
with stopping_on_signals():
    print("now", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"", b"", 1_000_000)
"""


def test_a_second_signal_before_the_first_was_heard():
    process = subprocess.Popen(
        [sys.executable, "-c", LONG_CALL], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout.readline() == b"now\n"
    for number in (signal.SIGINT, signal.SIGTERM):
        process.send_signal(number)
        time.sleep(0.05)
    _, err = process.communicate(timeout=30)
    assert b"wakeup" not in err


@pytest.mark.parametrize("attempt", range(4))
def test_a_signal_at_any_moment(archive, warm, place, attempt):
    """Whenever it comes: either the run had ended and its output is whole, or there is none."""
    output = place / random.choice(["clim.nc", "clim.zarr"])
    process = start(
        "climatology", archive, *YEARS, "-q", "-o", output, env={"KUROSHIO_CACHE_DIR": str(warm)}
    )
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


# A module of such a name holds the main thread for half a second, as Numba's import does.
LOSING = """
import sys, time, types
from kuroshio.interrupt import Stopped, stopping_on_signals
numba = types.ModuleType("numba")
exec('''
def hold(end, clock):
    print("now", flush=True)
    while clock() < end: pass
    print("went on", flush=True)
''', numba.__dict__)
try:
    with stopping_on_signals():
        numba.hold(time.monotonic() + 0.5, time.monotonic)
        time.sleep(0.5)
        print("was not heard", flush=True)
except Stopped as stopped:
    sys.exit(stopped.status)
"""


@pytest.mark.parametrize("number", list(STATUS))
def test_a_signal_that_would_be_lost_comes_again(number):
    process = subprocess.Popen(
        [sys.executable, "-c", LOSING], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout.readline() == b"now\n"
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert process.returncode == STATUS[number]
    assert out == b"went on\n"
    assert err == b""


# A library's handler of another signal: Python tells the watcher of that, too.
ANOTHERS = """
import signal, sys, time
from kuroshio import interrupt
interrupt.PATIENCE_S = 0.1
heard = []
signal.signal(signal.SIGALRM, lambda *_: heard.append(1))
try:
    with interrupt.stopping_on_signals():
        signal.raise_signal(signal.SIGALRM)
        time.sleep(0.4)
        print("goes on", len(heard), flush=True)
        signal.raise_signal(signal.SIGTERM)
        time.sleep(0.4)
except interrupt.Stopped as stopped:
    sys.exit(stopped.status)
"""


def test_a_signal_that_is_anothers_stops_nothing():
    ended = subprocess.run([sys.executable, "-c", ANOTHERS], capture_output=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (143, b"goes on 1\n", b"")
