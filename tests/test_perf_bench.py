"""Timing a callable: its statistics, the check of what was timed, the verdict, what is refused."""

from __future__ import annotations

import json
import random
import time
from itertools import accumulate, chain, repeat

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kuroshio import perf
from kuroshio.errors import Refusal
from kuroshio.perf import bench_watch, environment_gpu
from kuroshio.perf.bench_case import measure
from kuroshio.perf.bench_check import mismatch
from kuroshio.perf.bench_effort import Effort
from kuroshio.perf.bench_subject import Subject
from kuroshio.perf.clocks import HostClock, Sample
from kuroshio.perf.results import seconds_text
from kuroshio.perf.statistics import drift, median_interval, ratio_interval, summary

QUICK = {"seconds": 0.4, "warm_up_s": 0.2}
SHORT = Effort(most=60, warm_up_s=0.05)
TIMES = st.lists(st.floats(1e-9, 1e3), min_size=1, max_size=50)


class Scripted(HostClock):
    """A clock that shows what it is told, whatever the callable takes."""

    def __init__(self, times, device: str = "cpu") -> None:
        self.times, self.device = iter(times), device

    def time(self, call, calls) -> Sample:
        return Sample(next(self.times), None, call())


def scripted(times, effort: Effort = SHORT, case: perf.Case | None = None):
    """A row of samples that take these seconds; the warm-up takes one each."""
    case = case or perf.Case(lambda: 1, name="scripted")
    subject = Subject(case, Scripted(chain(repeat(1.0, 6), times)))
    return measure(subject, effort)


# Statistics


def test_summary_by_hand() -> None:
    assert summary([4, 1, 2, 3, 100]) == {
        "median": 3,
        "p90": pytest.approx(61.6),
        "min": 1,
        "mad": 1,
    }


@given(TIMES, st.floats(0.1, 10))
def test_summary_scales_and_is_in_order(samples, factor) -> None:
    facts, scaled = summary(samples), summary([factor * each for each in samples])
    assert facts["min"] <= facts["median"] <= facts["p90"] <= max(samples)
    for key, value in facts.items():
        assert scaled[key] == pytest.approx(factor * value, rel=1e-9, abs=1e-12 * max(samples))


@pytest.mark.parametrize("samples", [[], [1.0, float("nan")], [[1.0]]])
def test_summary_of_no_numbers_is_an_error(samples) -> None:
    with pytest.raises(ValueError, match="samples are finite numbers"):
        summary(samples)


def test_median_interval_is_exact() -> None:
    assert median_interval([1, 2, 3, 4, 5]) is None  # 1 - 2/2**5 is less than 95 %
    assert median_interval([6, 1, 5, 2, 4, 3]) == (1, 6)
    assert median_interval(range(1, 31)) == (10, 21)  # from the tables of the sign test
    low, high = median_interval(range(5000))
    assert high - low == pytest.approx(1.96 * 5000**0.5, abs=3)


def test_ratio_intervals_cover_the_truth_as_often_as_they_say() -> None:
    rng = np.random.default_rng()
    missed = {True: 0, False: 0}
    for _ in range(150):
        a, b = rng.lognormal(0, 0.1, (2, 60))
        common = rng.lognormal(0, 0.3, 60)  # what slows both of a pair
        for paired, by in ((True, common), (False, 1.0)):
            ratio, low, high = ratio_interval(1.3 * a * by, b * by, paired=paired, resamples=600)
            assert low <= ratio <= high
            missed[paired] += not low <= 1.3 <= high
    assert max(missed.values()) <= 10  # of 150, where 1 % is 1.5


def test_ratio_interval_says_which_is_longer() -> None:
    ratio, low, high = ratio_interval([2.0, 2.1, 2.0], [1.0, 1.0, 1.0])
    assert ratio == 2
    assert 1.9 < low <= ratio <= high < 2.2


@pytest.mark.parametrize(("a", "b"), [([1], [1, 2]), ([1, 2, 3], [1, 2]), ([0, 1], [1, 2])])
def test_ratio_of_too_little_is_an_error(a, b) -> None:
    with pytest.raises(ValueError, match="samples"):
        ratio_interval(a, b, paired=True)


def test_drift_is_seen_and_chance_is_not() -> None:
    rng = np.random.default_rng()
    rising = np.linspace(1, 1.3, 60) + rng.normal(0, 0.01, 60)
    assert 0.15 < drift(rising) < 0.25
    assert drift(rising[::-1]) < -0.1
    assert sum(drift(rng.lognormal(0, 0.2, 60)) != 0 for _ in range(100)) <= 3


# What is measured


def test_numpy_row_is_complete() -> None:
    values = np.arange(1e5)
    results = perf.bench(
        lambda: values.sum(), name="sum", bytes=values.nbytes, flops=values.size,
        operations="float64 add", check=4999950000.0, size=100_000, dtype="float64", **QUICK,
    )  # fmt: skip
    (row,) = results.rows
    assert (row.case, row.size, row.dtype, row.device) == ("sum", 100_000, "float64", "cpu")
    assert row.repeats == len(row.samples_s) >= 20
    assert row.host_s == summary(row.samples_s)
    assert row.device_s is None
    assert 1e-6 < row.host_s["median"] < 1e-2
    assert row.correct is True
    assert row.checked == 2  # the first that was timed and the last
    assert row.threshold == "equal to the expected output"
    assert "return" in row.boundary
    assert results.environment["cpu"]
    shown = str(results)
    assert "yes" in shown
    assert "GB/s" in shown


def test_numba_is_compiled_before_the_clock_runs() -> None:
    @numba.njit
    def total(values):
        sum_ = 0.0
        for value in values:
            sum_ += value
        return sum_

    values = np.ones(10_000)
    (row,) = perf.bench(lambda: total(values), check=1e4, **QUICK).rows
    assert row.samples_s[0] < 300 * row.host_s["median"]  # compiling takes longer


def test_short_calls_are_timed_several_at_a_time() -> None:
    (row,) = perf.bench(lambda: None, **QUICK).rows
    assert row.calls_a_sample > 100
    assert row.host_s["median"] < 5e-6


def test_sleep_takes_what_it_takes() -> None:
    (row,) = perf.bench(lambda: time.sleep(0.004), repeats=(6, 12), **QUICK).rows
    assert row.host_s["min"] >= 0.004
    assert row.host_s["median"] < 0.04


def test_repeats_go_on_until_the_median_is_known() -> None:
    case = perf.Case(lambda: time.sleep(1e-3), "sleep")
    quiet = scripted(repeat(1.0), Effort(most=2000, seconds=20, warm_up_s=0), case)
    assert quiet.repeats < 1000  # not to the cap
    assert quiet.uncertainty == 0
    rng = np.random.default_rng()
    noisy = scripted(rng.uniform(1, 9, 2000), Effort(spread=1e-4, most=300, warm_up_s=0))
    assert noisy.repeats == 300
    assert noisy.uncertainty > 1e-4


def test_time_is_a_cap() -> None:
    start = time.perf_counter()
    (row,) = perf.bench(lambda: time.sleep(0.03), seconds=0.05, warm_up_s=0).rows
    assert row.repeats == 6  # those that it gets although its time is over
    assert time.perf_counter() - start < 3


def test_inputs_are_taken_in_turn_and_each_is_checked() -> None:
    seen, checked = [], []

    def work(a, b):
        seen.append(a)
        return a + b

    def check(output, a, b):
        checked.append(a)
        return output == a + b

    (row,) = perf.bench(work, inputs=[(1, 2), (3, 4), (5, 6)], check=check, **QUICK).rows
    assert {1, 3, 5} == {*seen}
    assert checked[:3] == [1, 3, 5]
    assert row.checked == 4
    assert row.calls_a_sample == 1
    assert "3 inputs in turn" in row.caches


# Whether it is right


@pytest.mark.parametrize(
    ("check", "words"),
    [
        (np.array([2.0, 2.0, 2.001]), r"at \(2,\) it is 2 and should be 2.001"),
        (np.ones(4), r"its shape is \(3,\) and not \(4,\)"),
        (lambda output: False, "its check says no"),
        (lambda output: np.allclose(output, 3), "its check says no"),
        (lambda output: "it is blue", "it is blue"),
    ],
)
def test_wrong_result_is_refused(check, words) -> None:
    with pytest.raises(Refusal, match=f"gives a wrong result: .*{words}") as refused:
        perf.bench(lambda: np.full(3, 2.0), name="twos", check=check, **QUICK)
    assert "No time is reported" in str(refused.value)
    assert " us" not in str(refused.value)
    assert " ns" not in str(refused.value)


def test_failed_assertion_is_a_wrong_result() -> None:
    def check(output):
        raise AssertionError("7 is no even number")

    with pytest.raises(Refusal, match="wrong result: 7 is no even number"):
        perf.bench(lambda: 7, check=check, **QUICK)


def test_it_is_the_timed_output_that_is_checked() -> None:
    """Right while it warms up, wrong from the fortieth call on: the last output tells."""
    calls = []

    def work():
        calls.append(1)
        return 1 if len(calls) < 40 else 2

    subject = Subject(perf.Case(work, "late", check=1), Scripted(repeat(1.0)))
    with pytest.raises(Refusal, match="it is 2 and should be 1"):
        measure(subject, SHORT)
    assert subject.checked == 1  # the first was right


def test_check_that_raises_or_says_nothing_clear() -> None:
    with pytest.raises(Refusal, match=r"check of seven raised KeyError.*Correct the check"):
        perf.bench(lambda: 7, name="seven", check=lambda output: {}[output], **QUICK)
    with pytest.raises(Refusal, match="neither yes nor no"):
        perf.bench(lambda: np.ones(3), check=lambda output: output == 1, **QUICK)


def test_tolerance_is_a_share_of_the_largest_value() -> None:
    expected = np.array([1000.0, 1e-9])
    assert mismatch(np.array([1000.0, 0.5]), expected, 1e-3) is None
    assert "0.002" in str(mismatch(np.array([1000.0, 2.0]), expected, 1e-3))
    assert mismatch(np.array([np.nan, 1e-9]), expected, 0.5)
    assert mismatch(np.array([np.nan]), np.array([np.nan]), 0.0) is None
    assert mismatch(np.array([np.inf]), np.array([1.0]), 0.5)
    assert mismatch(2**60 + 1, 2**60, 0.0)  # float64 does not tell them apart
    assert mismatch((1, 2), [1, 3], 0.0).startswith("output 1:")
    assert mismatch(b"ab", b"ab", 0.0) is None


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20), st.data())
def test_any_change_beyond_the_tolerance_is_seen(values, data) -> None:
    expected = np.array(values)
    got = expected.copy()
    assert mismatch(got, expected, 0.0) is None
    got[data.draw(st.integers(0, len(values) - 1))] += 1 + np.abs(expected).max()
    assert mismatch(got, expected, 0.0)
    assert mismatch(got, expected, 0.99)


# Whether it is stable


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
    row = measure(subject, Effort(most=30, seconds=0.1, warm_up_s=0.01))
    assert "not warm" in row.unstable_because
    assert "--warm-up" in row.unstable_because


def test_too_few_repeats_are_not_stable() -> None:
    row = scripted(repeat(1.0), Effort(least=2, most=4, warm_up_s=0.05))
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


# What is refused


def test_callable_that_raises_is_named_with_its_place() -> None:
    def divide():
        return 1 / 0

    with pytest.raises(Refusal, match="divide raised ZeroDivisionError in the warm-up 1") as why:
        perf.bench(divide, **QUICK)
    assert "test_perf_bench.py" in why.value.log
    assert "return 1 / 0" in why.value.log
    assert isinstance(why.value.__cause__, ZeroDivisionError)


def test_callable_that_raises_later() -> None:
    left = iter(range(30))
    subject = Subject(perf.Case(lambda: next(left), "tired"), Scripted(repeat(1.0)))
    with pytest.raises(Refusal, match=r"tired raised StopIteration in repeat 25: no message"):
        measure(subject, SHORT)


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (MemoryError(), "ran out of memory"),
        (RuntimeError("CUDA out of memory. Tried to allocate 20 GiB"), "ran out of memory"),
        (RuntimeError("CUDA error: unspecified launch failure\nmore"), "failed or was lost"),
        (RuntimeError("HIP error: the device was lost"), "failed or was lost"),
        (type("CUDARuntimeError", (RuntimeError,), {})("cudaErrorECCUncorrectable"), "was lost"),
    ],
)
def test_what_a_device_says_is_translated(problem, words) -> None:
    calls = iter(range(100))

    def work():
        if next(calls) > 20:
            raise problem

    subject = Subject(perf.Case(work, "kernel"), Scripted(repeat(1.0), device="cuda:0"))
    with pytest.raises(Refusal, match=words) as refused:
        measure(subject, SHORT)
    assert "repeat 16" in str(refused.value)
    assert "\n" not in refused.value.message


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"fn": 3}, "cannot be called"),
        ({"bytes": 0}, "bytes=0"),
        ({"flops": -1}, "flops=-1"),
        ({"spread": 0}, "spread=0"),
        ({"repeats": (9, 3)}, "repeats from 9 to 3"),
        ({"seconds": 0}, "0 s of samples"),
        ({"device": "gpu0"}, "is no device"),
    ],
)
def test_bad_requests(arguments, words) -> None:
    with pytest.raises(Refusal, match=words):
        perf.bench(**{"fn": lambda: 1, **arguments})


# What is kept


def test_results_come_back_as_saved(tmp_path) -> None:
    results = perf.bench(lambda: 1, name="one", **QUICK)
    path = tmp_path / "results.json"
    results.save(path)
    assert perf.load_results(path) == results
    stored = json.loads(path.read_text())
    assert stored["schema"] == "kuroshio.perf.result/1"
    assert {"case", "size", "dtype", "device", "repeats", "host_s", "device_s", "boundary", "bytes",
            "flops", "operations", "correct", "stable", "unstable_because", "samples_s",
            } <= stored["rows"][0].keys()  # fmt: skip
    assert [each.name for each in tmp_path.iterdir()] == ["results.json"]


def test_results_that_are_none_are_refused(tmp_path) -> None:
    path = tmp_path / "other.json"
    for text, words in (
        ('{"schema": "kuroshio.perf.result/1", "rows": [', "no whole JSON"),
        ('{"a": 1}', "holds no results"),
        ('{"schema": "kuroshio.perf.result/1", "rows": [{}]}', "lacks something"),
    ):
        path.write_text(text)
        with pytest.raises(Refusal, match=words):
            perf.load_results(path)
    with pytest.raises(Refusal, match="cannot be read"):
        perf.load_results(tmp_path / "absent.json")
    with pytest.raises(Refusal, match="cannot be written"):
        perf.Results("", {}, []).save(tmp_path / "no folder" / "r.json")


@settings(max_examples=200)
@given(st.floats(1e-9, 900))
def test_seconds_have_three_figures(seconds) -> None:
    number, unit = seconds_text(seconds).split()
    size = {"s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}[unit]
    assert float(number) * size == pytest.approx(seconds, rel=0.006)
    assert len(number) <= 5
