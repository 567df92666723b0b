"""Whether a measurement is called stable; why not, and what is said to do."""

from __future__ import annotations

import random
import time
from itertools import accumulate, chain, repeat

import numpy as np
import pytest

from kuroshio import perf
from kuroshio.perf import bench_watch, environment_gpu
from kuroshio.perf.bench_case import measure
from kuroshio.perf.bench_effort import Effort
from kuroshio.perf.bench_subject import Subject
from perf_runs import QUICK, SHORT, Scripted, scripted


def test_quiet_samples_are_stable() -> None:
    rng = np.random.default_rng()
    row = scripted(rng.normal(1, 0.005, 60))
    assert row.stable, row.unstable_because
    assert row.unstable_because is None


def test_noisy_callable_is_unstable() -> None:
    (row,) = perf.bench(lambda: time.sleep(random.choice((0.001, 0.004))), **QUICK).rows
    assert not row.stable
    assert "noisy" in row.unstable_because
    assert "end other work" in row.unstable_because
    assert "NO" in str(perf.Results("", {}, [row]))


def test_scatter_is_noise_however_well_the_median_is_known() -> None:
    rng = np.random.default_rng()
    row = scripted(rng.uniform(0.7, 1.3, 2000), Effort(spread=0.1, most=400, warm_up_s=0))
    assert row.uncertainty < 0.1
    assert "noisy: times scatter by" in row.unstable_because


def test_rare_long_calls_are_noise() -> None:
    row = scripted([1.0, 1.0, 1.0, 1.0, 3.0] * 12)
    assert "one call in ten takes 3.0 medians" in row.unstable_because


@pytest.mark.parametrize(("step", "words"), [(1.01, "longer"), (1 / 1.01, "less")])
def test_drift_is_unstable(step, words) -> None:
    times = accumulate(repeat(step, 60), lambda a, b: a * b)
    row = scripted(times)
    assert "drifting: the last third takes" in row.unstable_because
    assert words in row.unstable_because


def test_what_gets_faster_is_not_warm() -> None:
    halves = accumulate(repeat(0.9), lambda a, b: a * b)
    subject = Subject(perf.Case(lambda: time.sleep(1e-4), "faster"), Scripted(halves))
    row = measure(subject, Effort(most=30, seconds=0.1, warm_up_s=0.2))
    assert "not warm" in row.unstable_because
    assert "--warm-up" in row.unstable_because


def test_too_few_repeats_are_not_stable() -> None:
    row = scripted(repeat(1.0), Effort(least=2, most=4, warm_up_s=0))
    assert row.repeats == 4
    assert "only 4 repeats" in row.unstable_because


class Gpu:
    """A device whose clock and throttling are told."""

    def __init__(self, clocks, reasons=()) -> None:
        self.clocks, self.reasons = iter(clocks), list(reasons)

    def clock_mhz(self):
        return next(self.clocks)

    def throttling(self):
        return self.reasons

    def now(self):
        return {"processes": [{"pid": 1}, {"pid": 2}]}


@pytest.mark.parametrize(
    ("clocks", "reasons", "words"),
    [
        (repeat(1980), ["heat (hardware)"], "throttled: heat (hardware) in "),
        (chain([1980], repeat(1200)), [], "throttled: its clock went between 1980 and 1200 MHz"),
        (repeat(1980), [], None),
    ],
)
def test_throttling_that_is_seen_is_told(monkeypatch, clocks, reasons, words) -> None:
    monkeypatch.setattr(environment_gpu, "find", lambda name: Gpu(clocks, reasons))
    monkeypatch.setattr(bench_watch, "_EVERY_S", 0.0)
    subject = Subject(perf.Case(lambda: 1, "x"), Scripted(repeat(1.0), device="cuda:0"))
    row = measure(subject, SHORT)
    if words is None:
        assert row.stable, row.unstable_because
    else:
        assert words in row.unstable_because
        assert "lock clocks" in row.unstable_because
    assert row.watched["looks"] > 20


def test_container_limit_is_throttling(monkeypatch, tmp_path) -> None:
    stat = tmp_path / "cpu.stat"
    stat.write_text("nr_periods 5\nnr_throttled 2\n")
    monkeypatch.setattr(bench_watch, "_CGROUP", stat)

    def work():
        stat.write_text("nr_periods 9\nnr_throttled 6\n")

    row = scripted(repeat(1.0), case=perf.Case(work, "limited"))
    # The warm-up writes, too: what counts is before and after the samples.
    assert row.stable
    stat.write_text("nr_throttled 2\n")
    watch = bench_watch.Watch("cpu")
    work()
    assert "limit of processor time stopped it 4 times" in watch.throttled()


def test_other_processes_are_named_as_the_cause(monkeypatch) -> None:
    monkeypatch.setattr(environment_gpu, "find", lambda name: Gpu(repeat(1980)))
    monkeypatch.setattr(bench_watch, "load", lambda: 99.0)
    watch = bench_watch.Watch("cuda:0")
    assert "load 99 on" in watch.company()
    assert "2 processes on cuda:0" in watch.company()


@pytest.mark.parametrize(("busy", "least", "most"), [(True, 0.3, 1.3), (False, 0.0, 0.2)])
def test_how_many_processors_were_kept_busy(busy, least, most):
    def work():
        if busy:
            end = time.perf_counter() + 0.01
            while time.perf_counter() < end:
                pass
        else:
            time.sleep(0.01)

    (row,) = perf.bench(work, seconds=0.5, warm_up_s=0).rows
    assert least <= row.watched["processors"] <= most
