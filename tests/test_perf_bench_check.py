"""Whether an output is right, of outputs of every kind; what is no output yet."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from kuroshio import perf
from kuroshio.errors import Refusal
from kuroshio.perf.bench_check import mismatch
from perf_runs import QUICK

FIELDS = [("x", "f4"), ("y", "i4")]


def masked(values: list[float], hidden: list[int]) -> Any:
    return np.ma.masked_array(values, hidden)


def fields(x: float, y: int = 0) -> np.ndarray:
    return np.array([(x, y)] * 3, FIELDS)


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (masked([1, 7, 3], [0, 1, 0]), masked([1, 9, 3], [0, 1, 0])),  # hidden values do not count
        (masked([1, 2], [0, 0]), np.array([1, 2])),
        (fields(np.nan), fields(np.nan)),
        (np.array(["NaT", "2020-01-01"], "M8[D]"), np.array(["NaT", "2020-01-01"], "M8[D]")),
        ({"a": np.ones(3), "b": [1, 2]}, {"a": np.ones(3), "b": [1, 2]}),
        ({1, 2}, {2, 1}),
        (np.empty((0, 3)), np.empty((0, 3))),
        (np.array(3.0), 3),
        (np.array([complex(1, np.nan)]), np.array([complex(2, np.nan)])),
        ([[1], [2, 3]], [[1], [2, 3]]),
        (np.array([1, None, "a"], object), np.array([1, None, "a"], object)),
    ],
)
def test_right_outputs_of_every_kind(got, expected) -> None:
    assert mismatch(got, expected, 0.0) is None


@pytest.mark.parametrize(
    ("got", "expected", "words"),
    [
        (masked([1, 2, 3], [0, 1, 0]), masked([1, 2, 3], [0, 0, 0]), "1 are masked and should not"),
        (masked([1, 2], [0, 0]), np.array([1, 3]), "it is 2 and should be 3"),
        (fields(1), fields(1, 4), "output y: at (0,) it is 0 and should be 4"),
        (fields(1), np.zeros(3, [("x", "f4")]), "its fields are ('x', 'y') and not ('x',)"),
        (np.array(["NaT"], "M8[D]"), np.array(["2020-01-01"], "M8[D]"), "not equal"),
        ({"a": np.ones(3)}, {"a": np.zeros(3)}, "output a: at (0,) it is 1 and should be 0"),
        ({"a": 1}, {"b": 1}, "outputs called ['a'] and not ['b']"),
        (np.ones(3), "text", "and not 'text'"),
        ({1}, {2}, "{1} and not {2}"),
        ([[1], [2, 3]], np.ones(3), "cannot be compared with the expected output"),
        (np.empty((0, 3)), np.empty((3, 0)), "its shape is (0, 3) and not (3, 0)"),
        (0.25 + 2**-40, 0.25, "it is 0.2500000000009094"),  # as many digits as tell them apart
    ],
)
def test_wrong_outputs_of_every_kind(got, expected, words) -> None:
    assert words in str(mismatch(got, expected, 0.0))


def test_array_that_is_compared_with_itself_is_refused() -> None:
    """The expected output was made in the buffer that each call writes to."""
    a, out = np.ones(4), np.empty(4)
    for check in (np.add(a, a, out=out), out[:]):
        with pytest.raises(Refusal, match="is the very array that the case returns"):
            perf.bench(lambda: np.add(a, a, out=out), check=check, **QUICK)
    (row,) = perf.bench(lambda: np.add(a, a, out=out), check=out.copy(), **QUICK).rows
    assert row.correct


async def late() -> int:
    return 1


def begun() -> Future:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(int)


@pytest.mark.parametrize(
    ("work", "kind"),
    [
        (lambda: (i for i in range(3)), "generator"),
        (lambda: [map(abs, [1])], "map"),
        (late, "coroutine"),
        (begun, "Future"),
        (lambda: pytest.importorskip("dask.array").ones(9), "Array"),
    ],
)
def test_what_has_its_work_still_to_do_is_refused(work, kind) -> None:
    with pytest.raises(Refusal, match=rf"lazy returns a {kind}, whose work is not done yet"):
        perf.bench(work, name="lazy", **QUICK)


class Silent(Exception):
    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (Silent(), "raised Silent in the warm-up 1: no message"),
        (GeneratorExit("over"), "raised GeneratorExit in the warm-up 1: over"),
        (SystemExit(3), "raised SystemExit in the warm-up 1: 3"),
    ],
)
def test_whatever_is_raised_is_a_refusal(problem, words) -> None:
    def work():
        raise problem

    with pytest.raises(Refusal, match=words):
        perf.bench(work, **QUICK)


def test_interruption_is_none() -> None:
    def work():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        perf.bench(work, **QUICK)
