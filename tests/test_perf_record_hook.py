"""torch.profiler put into a program from outside: what it records, and that all else stays."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cli_runs import left_over
from conftest import ROOT
from kuroshio.perf.recording import found, torch_hook
from kuroshio.perf.recording.launch import launch
from kuroshio.perf.recording.torch_hook import Limits

FAKE = ROOT / "tests" / "fake_torch"
TRAIN = """
import sys, time
import torch
one, other = torch.optim.SGD(), torch.optim.SGD()
for _ in range(20):
    one.step()
    other.step()
"""


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """Run a program; its status, the names of steps in each trace, and what was noted."""
    monkeypatch.setenv("PYTHONPATH", str(FAKE))

    def run(program: str, limits: Limits | None = None, *, words=(), **env: str):
        for name, value in env.items():
            monkeypatch.setenv(name, value)
        script, folder = tmp_path / "train.py", tmp_path / "traces"
        script.write_text(program)
        folder.mkdir(exist_ok=True)
        environment = torch_hook.environment(folder, limits or Limits())
        status = launch([sys.executable, *words, str(script)], environment)
        notes = torch_hook.notes(folder)
        traces = found.traces("torch", folder, 0.0)
        assert left_over(folder) == [path.name for path in traces]
        return status, [steps(path) for path in traces], notes

    return run


def steps(path: Path) -> list[str]:
    with gzip.open(path) as file:
        events = json.load(file)["traceEvents"]
    return [each["name"] for each in events if each["cat"] == "user_annotation"]


def test_a_whole_program(recorded):
    status, traces, notes = recorded(TRAIN)
    assert (status, notes) == (0, [])
    (names,) = traces
    assert len(names) == 21  # those of one optimizer, and what came after the last


@pytest.mark.parametrize(("limits", "number"), [((5, 0, 0), 16), ((5, 4, 0), 4), ((0, 3, 0), 3)])
def test_steps_are_skipped_and_counted(recorded, limits, number):
    status, traces, notes = recorded(TRAIN, Limits(*limits))
    assert (status, notes) == (0, [])
    assert [len(names) for names in traces] == [number]


def test_seconds_end_it_and_the_program_goes_on(recorded):
    program = TRAIN + "for _ in range(40):\n    time.sleep(0.05)\n    one.step()\nsys.exit(7)\n"
    status, traces, notes = recorded(program, Limits(0, 0, 0.5))
    assert (status, notes) == (7, [])
    assert 21 < len(traces[0]) < 55


def test_more_is_skipped_than_there_is(recorded):
    assert recorded(TRAIN, Limits(100, 0, 0)) == (0, [], [])


def test_a_program_without_torch_is_left_alone(recorded):
    assert recorded("import sys; sys.exit(4)") == (4, [], None)


def test_the_program_s_failure_is_its_own(recorded):
    status, traces, notes = recorded(TRAIN + "raise SystemExit(9)")
    assert (status, len(traces), notes) == (9, 1, [])


@pytest.mark.parametrize(
    ("how", "words"), [("broken", "could not begin: no activities"), ("full", "No space left")]
)
def test_a_profiler_that_fails_does_not_fail_the_program(recorded, how, words):
    status, traces, notes = recorded(TRAIN, FAKE_TORCH=how)
    assert (status, traces) == (0, [])
    assert len(notes) == 1
    assert words in notes[0]


def test_a_program_that_profiles_itself_does_so(recorded):
    own = """
record = torch.profiler.ProfilerAction.RECORD
with_own = torch.profiler.profile(activities=[], schedule=lambda n: record)
with_own.start()
one.step()
with_own.stop()
one.step()
"""
    status, traces, notes = recorded(TRAIN + own)
    assert status == 0
    assert [len(names) for names in traces] == [21]
    assert notes == ["the program began a profiler of its own, and recording ended there"]


def test_ranks_have_traces_of_their_own(recorded):
    program = (
        """
import os, subprocess, sys
if "RANK" not in os.environ:
    ranks = [subprocess.Popen([sys.executable, __file__], env={**os.environ, "RANK": str(rank)})
             for rank in range(2)]
    sys.exit(max(rank.wait() for rank in ranks))
"""
        + TRAIN
    )
    status, traces, notes = recorded(program)
    assert (status, notes) == (0, [])
    assert [len(names) for names in traces] == [21, 21]


def test_workers_that_multiprocessing_spawns_are_not_recorded(recorded):
    program = """
import multiprocessing
import torch
def work(n):
    return n + 1
if __name__ == "__main__":
    for way in ("spawn", "fork"):
        with multiprocessing.get_context(way).Pool(1) as pool:
            assert pool.map(work, [1]) == [2]
"""
    status, traces, notes = recorded(program)
    assert (status, len(traces), notes) == (0, 1, [])


def test_a_sitecustomize_that_was_there_is_run(recorded, tmp_path, monkeypatch):
    there = tmp_path / "site"
    there.mkdir()
    (there / "sitecustomize.py").write_text("import os\nos.environ['WAS_RUN'] = 'yes'\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(there), str(FAKE)]))
    program = "import os, sys, sitecustomize\nassert 'hook' not in sitecustomize.__file__\n"
    program += "assert not any('hook' in path for path in sys.path)\n"
    program += "sys.exit(5 if os.environ.get('WAS_RUN') == 'yes' else 6)\n"
    status, _, notes = recorded(program)
    assert (status, notes) == (5, None)


def test_a_python_that_ignores_the_environment(recorded):
    status, traces, notes = recorded("print('on its own')", words=("-I",))
    assert (status, traces, notes) == (0, [], None)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_program_as_ever_and_leaves_a_trace(tmp_path, number):
    folder = tmp_path / "traces"
    folder.mkdir()
    script = tmp_path / "train.py"
    script.write_text(TRAIN + "open(sys.argv[1], 'w').close()\ntime.sleep(60)\n")
    ready = tmp_path / "ready"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(FAKE))
        env = torch_hook.environment(folder, Limits())
    process = subprocess.Popen(
        [sys.executable, str(script), str(ready)], env=env, stderr=subprocess.DEVNULL
    )
    while not ready.exists():
        time.sleep(0.01)
    process.send_signal(number)
    assert process.wait(30) == -number
    assert torch_hook.notes(folder) == []
    (trace,) = found.traces("torch", folder, 0.0)
    assert len(steps(trace)) == 21


def test_a_handler_of_the_program_s_own_stays(recorded):
    program = """
import os, signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
import torch
os.kill(os.getpid(), signal.SIGTERM)
"""
    status, traces, _ = recorded(program)
    assert (status, len(traces)) == (3, 1)


def test_steps_of_another_thread_do_not_end_what_the_main_one_began(recorded):
    program = (
        TRAIN
        + """
import threading
work = threading.Thread(target=lambda: [one.step() for _ in range(10)])
work.start()
work.join()
"""
    )
    status, traces, notes = recorded(program, Limits(0, 25, 0))
    assert (status, notes) == (0, [])
    assert [len(names) for names in traces] == [21]
