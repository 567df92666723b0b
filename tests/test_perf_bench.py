"""Timing a callable: the check of what was timed, what is refused, what is kept."""

from __future__ import annotations

import json
import time
import timeit
import weakref
from itertools import cycle, repeat

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kuroshio import perf
from kuroshio.errors import Refusal
from kuroshio.perf.bench_case import measure
from kuroshio.perf.bench_check import mismatch
from kuroshio.perf.bench_effort import Effort
from kuroshio.perf.bench_subject import Subject
from kuroshio.perf.results import seconds_text
from kuroshio.perf.statistics import summary
from perf_runs import QUICK, SHORT, Scripted, scripted

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


def test_case_whose_parts_are_replaced() -> None:
    case = perf.Case(lambda: 3, "three", bytes=8, check=3)
    (row,) = perf.bench(case, name="another", size=5, **QUICK).rows
    assert (row.case, row.size, row.bytes, row.correct) == ("another", 5, 8, True)
    with pytest.raises(Refusal, match="wrong result"):
        perf.bench(case, check=4, **QUICK)


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


def test_what_is_timed_is_the_call_alone() -> None:
    """Nothing is called between: an empty function takes some 30 ns, and took 150."""

    def nothing() -> None:
        pass

    by_hand = min(timeit.repeat(nothing, number=1000, repeat=50)) / 1000
    (row,) = perf.bench(nothing, **QUICK).rows
    assert row.host_s["min"] < 2.5 * by_hand + 20e-9


def test_a_quick_call_among_slow_ones_makes_no_long_sample() -> None:
    slow = cycle([False, False, True])
    start = time.perf_counter()
    (row,) = perf.bench(lambda: time.sleep(0.02) if next(slow) else None, **QUICK).rows
    assert row.calls_a_sample == 1
    assert time.perf_counter() - start < 4


def test_garbage_that_refers_to_itself_goes_while_it_is_timed() -> None:
    alive: list[weakref.ref] = []
    most = 0

    class Knot:
        pass

    def work() -> None:
        nonlocal most
        knot = Knot()
        knot.itself = knot
        alive.append(weakref.ref(knot))
        most = max(most, sum(each() is not None for each in alive[-1000:]))
        time.sleep(0.002)

    (row,) = perf.bench(work, seconds=0.8, repeats=(300, 400), warm_up_s=0.1).rows
    assert most < row.repeats  # those of a quarter of a second


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
    assert "it is True and should be False" in mismatch(np.array(True), False, 0.0)
    wrong = mismatch(np.array([2**60, 2**60 + 1]), np.array([2**60, 2**60]), 0.0)
    assert wrong.startswith(f"at (1,) it is {2**60 + 1} and should be {2**60}")
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
    with pytest.raises(Refusal, match=r"tired raised StopIteration in repeat 30: no message"):
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
    calls = iter(range(1000))

    def work():
        if next(calls) == 16:
            raise problem

    subject = Subject(perf.Case(work, "kernel"), Scripted(repeat(1.0), device="cuda:0"))
    with pytest.raises(Refusal, match=words) as refused:
        measure(subject, SHORT)
    assert "repeat 16" in str(refused.value)
    assert "\n" not in refused.value.message


def test_no_device_at_all_is_not_called_lost() -> None:
    def work():
        raise RuntimeError("Found no NVIDIA driver on your system.")

    with pytest.raises(Refusal, match="work needs a GPU, and there is none that works: Found no"):
        perf.bench(work, **QUICK)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"fn": 3}, "cannot be called"),
        ({"bytes": 0}, "bytes=0"),
        ({"bytes": "many"}, "bytes='many' of a case is no amount"),
        ({"flops": float("nan")}, "flops=nan"),
        ({"inputs": [np.ones(2)]}, "are no inputs"),
        ({"inputs": np.ones((2, 2))}, "are no inputs"),
        ({"inputs": [1, 2]}, r"inputs=\[1, 2\] are no inputs"),
        ({"tolerance": -1}, "tolerance=-1"),
        ({"tolerance": "0.1"}, "tolerance='0.1'"),
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


def test_numbers_and_types_of_numpy_are_kept_as_plain_ones(tmp_path) -> None:
    case = perf.Case(
        lambda: 1, name="a\nb", bytes=np.int64(8), flops=2e9, size=np.int32(4), dtype=np.float32,
    )  # fmt: skip
    results = perf.bench(case, **QUICK)
    results.save(tmp_path / "r.json")
    (row,) = perf.load_results(tmp_path / "r.json").rows
    assert (row.case, row.bytes, row.flops, row.size, row.dtype) == (
        "a b", 8, 2_000_000_000, 4, "float32",
    )  # fmt: skip
    assert perf.Case(int, dtype=np.dtype("int16")).dtype == "int16"
    assert perf.Case(int, flops=2 / 3 * 10**3).flops == 667


@pytest.mark.parametrize(
    "change",
    [
        {"rows": {"a": 1}},
        {"environment": None},
        {"samples_s": [-1.0, 2.0]},
        {"samples_s": [float("nan")]},
        {"samples_s": ["a"]},
        {"samples_s": None},
        {"device_s": {"median": 1}},
        {"host_s": {}},
        {"device": 5},
        {"case": [1]},
    ],
)
def test_results_that_somebody_changed_are_refused(tmp_path, change) -> None:
    whole = scripted(repeat(1.0))
    stored = perf.Results("x", {}, [whole]).to_json()
    where = stored if {*change} <= {"rows", "environment"} else stored["rows"][0]
    where |= change
    path = tmp_path / "r.json"
    path.write_text(json.dumps(stored))
    with pytest.raises(Refusal, match=r"lacks something that results have .* Measure again"):
        perf.load_results(path)


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
        (json.dumps(perf.Results("", {}, []).to_json()), "holds no rows"),
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
