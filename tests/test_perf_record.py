"""`kuroshio perf record`: a program under a profiler, as if it were alone."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import fake_profilers
from cli_runs import Result, assert_refused, left_over, run, run_here, start
from conftest import ROOT
from kuroshio.perf.recording import profilers
from test_perf_record_hook import FAKE, TRAIN

PROGRAM = "import sys; print('out of it'); print('and aside', file=sys.stderr); sys.exit({})"


@pytest.fixture
def place(tmp_path, monkeypatch) -> Path:
    """A folder to record in, with nothing on the PATH but what a test installs."""
    place = tmp_path / "place"
    place.mkdir()
    monkeypatch.chdir(place)
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(profilers, "_PLACES", ())
    return place


def record(*words: object, **options) -> Result:
    """As a process of its own."""
    return run("perf", "record", *words, **options)


def python(status: int = 0) -> tuple[str, ...]:
    return "--", sys.executable, "-c", PROGRAM.format(status)


def with_torch(**more: str) -> dict[str, str]:
    """The environment of a process whose programs find the fake torch."""
    paths = [str(FAKE), *(path or os.getcwd() for path in sys.path)]
    return {"PYTHONPATH": os.pathsep.join(paths), **more}


@pytest.mark.parametrize("name", fake_profilers.NAMES)
def test_what_is_installed_records_and_is_diagnosed(place, name):
    fake_profilers.install(place.parent / "bin", name)
    done = record("-o=--traces", *python())
    assert done.status == 0, done
    assert done.out.startswith("out of it\n")
    assert done.err == "and aside\n"
    found = re.search(r"^Trace: (.*)\nReport: (.*)$", done.out, re.MULTILINE)
    assert found
    assert Path(found[1]).exists()
    assert "saxpy" in Path(found[2]).read_text(encoding="utf-8")
    assert left_over(place) == ["--traces"]


@pytest.mark.parametrize("name", fake_profilers.NAMES)
def test_as_json(place, name):
    fake_profilers.install(place.parent / "bin", name)
    done = record("-o", "traces", "--json", "--profiler", name, *python())
    assert done.status == 0, done
    assert done.err == "out of it\nand aside\n" or sorted(done.err.splitlines()) == [
        "and aside", "out of it",
    ]  # fmt: skip
    said = json.loads(done.out)
    (trace,) = said["traces"]
    assert trace["work"]["kernels"] == fake_profilers.KERNELS
    assert trace["work"]["busy"] == fake_profilers.KERNELS * 900_000
    assert trace["work"]["span"] == (fake_profilers.KERNELS - 1) * 1_000_000 + 900_000


def test_hipprof_s_files_beside_the_program_are_brought(place):
    fake_profilers.install(place.parent / "bin", "hipprof")
    (place / "result_1_copy.json").write_text("of another day")
    os.utime(place / "result_1_copy.json", (1, 1))
    done = record("-o", "traces", *python(), env={"FAKE_HIPPROF": "beside"})
    assert done.status == 0, done
    assert left_over(place) == ["result_1_copy.json", "traces"]
    assert left_over(place / "traces") == ["report.html", "result_18861_copy.json"]


def test_what_the_program_itself_writes_stays_where_it_is(place):
    fake_profilers.install(place.parent / "bin", "hipprof")
    writes = "import json; json.dump({'loss': 0.5}, open('result_1.json', 'w'))"
    program = ("--", sys.executable, "-c", writes)
    done = record("-o", "traces", *program, env={"FAKE_HIPPROF": "beside"})
    assert done.status == 0, done
    assert left_over(place) == ["result_1.json", "traces"]


@pytest.mark.parametrize("name", ["nsys", "rocprofv3"])
def test_the_status_is_the_program_s(place, name):
    fake_profilers.install(place.parent / "bin", name)
    done = record("-o", "traces", *python(7))
    assert done.status == 7
    assert "note: The program ended with status 7" in done.err
    assert "Report: " in done.out


@pytest.mark.parametrize("name", ["nsys", "rocprofv3"])
def test_seconds_are_passed_on(place, name):
    fake_profilers.install(place.parent / "bin", name)
    assert record("--seconds", 2.5, "-o", "traces", *python()).status == 0


def test_torch_comes_first_where_the_program_s_python_has_it(place):
    fake_profilers.install(place.parent / "bin", "nsys")
    (place / "train.py").write_text(TRAIN + "print('trained')\n")
    done = record("-o", "traces", "--", sys.executable, "train.py", env=with_torch())
    assert done.status == 0, done
    assert done.out.startswith("trained\n")
    names = left_over(place / "traces")
    assert len(names) == 2
    assert re.fullmatch(r"trace-\d+\.json\.gz", names[1])
    assert names[0] == "report.html"


def test_ranks_are_diagnosed_together(place):
    (place / "both.py").write_text(
        "import os, subprocess, sys\n"
        "ranks = [subprocess.Popen([sys.executable, 'train.py'], env={**os.environ, 'RANK': r})\n"
        "         for r in '10']\n"
        "sys.exit(max(rank.wait() for rank in ranks))\n"
    )
    (place / "train.py").write_text(TRAIN)
    done = record("-o", "t", "--json", "--", sys.executable, "both.py", env=with_torch())
    assert done.status == 0, done
    assert [each["trace"]["rank"] for each in json.loads(done.out)["traces"]] == [0, 1]


def test_a_folder_is_named_by_the_time_unless_one_is_given(place):
    fake_profilers.install(place.parent / "bin", "nsys")
    assert record(*python()).status == 0
    (name,) = left_over(place)
    assert re.fullmatch(r"trace-\d{8}-\d{6}", name)


# -- signals ---------------------------------------------------------------------------------------

WAITING = (
    TRAIN
    + """
open("ready", "w").close()
try:
    time.sleep(60)
except KeyboardInterrupt:
    print("stopped by a person")
    sys.exit(5)
"""
)


def begun(place: Path, **options) -> subprocess.Popen:
    (place / "train.py").write_text(WAITING)
    process = start("perf", "record", "-o", "traces", "--", sys.executable, "train.py",
                    env=with_torch(), **options)  # fmt: skip
    until = time.monotonic() + 60
    while not (place / "ready").exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.01)
    return process


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 5), (signal.SIGTERM, 143)])
def test_a_signal_goes_on_to_the_program_and_the_trace_is_diagnosed(place, number, status):
    process = begun(place)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == status, err
    assert (b"stopped by a person" in out) == (number == signal.SIGINT)
    assert b"Report: traces/report.html" in out
    assert b"Traceback" not in err


def test_ctrl_c_reaches_the_program_once(place):
    ours, theirs = pty.openpty()
    process = begun(place, stdin=theirs, preexec_fn=lambda: _take_terminal(theirs))
    os.write(ours, b"\x03")
    out, err = process.communicate(timeout=60)
    os.close(ours)
    os.close(theirs)
    assert process.returncode == 5, err
    assert b"stopped by a person" in out
    assert b"Traceback" not in err


def _take_terminal(number: int) -> None:
    import fcntl
    import termios

    fcntl.ioctl(number, termios.TIOCSCTTY, 0)


# -- when it cannot be -----------------------------------------------------------------------------


def refused(*words: object) -> Result:
    return run_here("perf", "record", *words)


def test_nothing_is_installed(place):
    done = refused(*python())
    assert_refused(done, *fake_profilers.NAMES, "has no torch", "CUDA toolkit", "DTK", "--trace")
    assert left_over(place) == []


def test_a_program_that_is_no_python_needs_a_profiler_of_its_own(place):
    program = place.parent / "bin" / "simulate"
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o755)
    assert_refused(refused("--", "simulate"), "is no Python program")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--",), "There is no program to record"),
        ((), "There is no program to record"),
        (("--", "no-such-program"), "There is no program no-such-program"),
        (("--profiler", "nsys", *python()), "There is no nsys: it is NVIDIA"),
        (("--profiler", "torch", *python()), "cannot import torch"),
        (("--profiler", "rocprof", *python()), "There is no rocprof"),
    ],
)
def test_refused(place, words, said):
    assert_refused(refused(*words), said)
    assert left_over(place) == []


@pytest.mark.parametrize(
    ("name", "words", "said"),
    [
        ("nsys", ("--steps", 3), "--steps count an optimizer's steps"),
        ("nsys", ("--skip", 3), "--profiler torch"),
        ("hipprof", ("--seconds", 3), "from its start to its end"),
        ("rocprof", ("--seconds", 3), "from its start to its end"),
    ],
)
def test_limits_that_a_profiler_does_not_have(place, name, words, said):
    fake_profilers.install(place.parent / "bin", name)
    assert_refused(refused(*words, *python()), said)
    assert left_over(place) == []


def test_a_folder_that_holds_anything_is_left_alone(place):
    fake_profilers.install(place.parent / "bin", "nsys")
    (place / "mine").mkdir()
    (place / "mine" / "work.txt").write_text("mine")
    assert_refused(refused("-o", "mine", *python()), "is not empty")
    assert_refused(refused("-o", "absent/traces", *python()), "cannot be made")
    assert_refused(refused("-o", "mine/work.txt", *python()), "cannot be made")
    assert left_over(place / "mine") == ["work.txt"]


@pytest.mark.parametrize("program", ["pass", "import torch"])
def test_a_program_of_which_nothing_was_recorded(place, program):
    words = ("--skip", 5, "--", sys.executable, "-c", program)
    done = record("-o", "traces", *words, env=with_torch())
    assert_refused(
        done, "Nothing was recorded", "had not begun" if "torch" in program else "import"
    )
    assert left_over(place) == []
    failed = record("-o", "traces", *words[:-1], "raise SystemExit(4)", env=with_torch())
    assert failed.status == 4
    assert "It ended with status 4" in failed.err


@pytest.mark.parametrize("words", [("--skip", "many"), ("--steps", "-1"), ("--seconds", "nan")])
def test_arguments_that_cannot_be_read(place, words):
    done = refused(*words, *python())
    assert done.status == 2
    assert words[1] in done.err


def test_the_hook_is_in_the_package():
    """It must be there once installed, beside the modules."""
    assert (ROOT / "src/kuroshio/perf/recording/hook/sitecustomize.py").is_file()
