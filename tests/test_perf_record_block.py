"""`with perf.record() as r`: a block of this process under torch.profiler."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import pytest

from cli_runs import left_over
from kuroshio import Refusal, perf
from test_perf_record_hook import FAKE, steps


@pytest.fixture
def torch(monkeypatch):
    """The fake one, importable; it is gone afterwards."""
    monkeypatch.syspath_prepend(FAKE)
    import torch

    yield torch
    for name in [name for name in sys.modules if name.partition(".")[0] == "torch"]:
        del sys.modules[name]


def test_a_block_with_steps(torch):
    with perf.record() as r:
        assert r.path is None
        for _ in range(3):
            r.step()
    assert r.path is not None
    assert len(steps(r.path)) == 4
    assert len(r.trace().events) == 16
    found = r.diagnose()
    assert found.analyses[0].work.kernels == 4
    folder = r.path.parent
    del r, found
    gc.collect()
    assert not folder.exists()


def test_a_trace_is_kept_where_it_is_asked_for(torch, tmp_path):
    path = tmp_path / "trace.json.gz"
    with perf.record(path) as r:
        pass
    assert r.path == path
    assert left_over(tmp_path) == ["trace.json.gz"]


def test_a_block_that_raises_leaves_nothing(torch, tmp_path):
    r = perf.record(tmp_path / "trace.json")
    with pytest.raises(ZeroDivisionError), r:
        1 / 0  # noqa: B018
    assert left_over(tmp_path) == []
    with pytest.raises(Refusal, match="Nothing has been recorded"):
        r.diagnose()
    with perf.record() as again:  # the profiler has been given back
        pass
    assert again.path is not None


def test_a_disk_that_is_full(torch, tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_TORCH", "full")
    with pytest.raises(OSError, match="No space left"), perf.record(tmp_path / "trace.json"):
        pass
    assert left_over(tmp_path) == []


def test_one_at_a_time(torch):
    with perf.record(), pytest.raises(Refusal, match="one at a time"), perf.record():
        pass


def test_a_step_outside_of_the_block(torch):
    with perf.record() as r:
        pass
    with pytest.raises(Refusal, match="only while it is recorded"):
        r.step()


@pytest.mark.parametrize(
    ("path", "words"),
    [("trace.txt", "must end in .json"), ("absent/trace.json", "cannot be written")],
)
def test_a_path_that_cannot_be_written(tmp_path, path, words):
    with pytest.raises(Refusal, match=words):
        perf.record(tmp_path / path)


def test_without_torch(monkeypatch):
    monkeypatch.setattr("kuroshio.perf.recording.in_process.find_spec", lambda name: None)
    with pytest.raises(Refusal, match="pip install torch"), perf.record():
        pass
    assert not Path("trace.json.gz").exists()
