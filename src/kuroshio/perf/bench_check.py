"""Whether an output is right: against an expected one, or by the author's own check."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..errors import Refusal
from .cases import Case, short
from .raised import said, traceback_of


def verify(case: Case, output: Any, arguments: Sequence[Any] = ()) -> None:
    """A Refusal that says what is wrong with an output; nothing if it is right or not checked."""
    if case.check is None:
        return
    if not callable(case.check):
        wrong = mismatch(output, case.check, case.tolerance)
    else:
        wrong = _by_author(case, output, arguments)
    if wrong:
        raise Refusal(
            f"{case.label} gives a wrong result: {wrong}. No time is reported for a wrong result. "
            "Correct the code or, where such an error is allowed, the check (tolerance=)."
        )


def threshold(case: Case) -> str | None:
    """The threshold of correctness, in words, for the record."""
    if case.check is None:
        return None
    if callable(case.check):
        name = getattr(case.check, "__name__", type(case.check).__name__)
        return "a function" if name == "<lambda>" else f"function {name}"
    if not case.tolerance:
        return "equal to the expected output"
    return f"error at most {case.tolerance:g} of the largest expected value"


def mismatch(got: Any, expected: Any, tolerance: float) -> str | None:
    """How an output differs from the expected one, or None.

    Numbers and arrays: by the largest error, as a share of the largest expected value; NaN equals
    NaN, and what is masked equals what is masked. Sequences, dicts, fields: each item. Others: by
    ==. Refuses an array that is compared with itself.
    """
    if isinstance(expected, (tuple, list)) and isinstance(got, (tuple, list)):
        if len(got) != len(expected):
            return f"{len(got)} outputs and not {len(expected)}"
        return _first_wrong(range(len(got)), got, expected, tolerance)
    if isinstance(expected, dict) and isinstance(got, dict):
        if got.keys() != expected.keys():
            return f"outputs called {short([*got])} and not {short([*expected])}"
        return _first_wrong(expected, got, expected, tolerance)
    if expected is None or isinstance(expected, (str, bytes, dict, set, frozenset)):
        same = isinstance(got, type(expected)) and got == expected
        return None if same else f"{short(got)} and not {short(expected)}"
    _check_other_memory(got, expected)
    try:
        a, b = to_host(got), to_host(expected)
    except (TypeError, ValueError) as problem:
        return f"it cannot be compared with the expected output ({said(problem)})"
    if a.shape != b.shape:
        return f"its shape is {a.shape} and not {b.shape}"
    if a.dtype.names or b.dtype.names:
        if a.dtype.names != b.dtype.names:
            return f"its fields are {a.dtype.names} and not {b.dtype.names}"
        return _first_wrong(b.dtype.names or (), a, b, tolerance)
    if isinstance(got, np.ma.MaskedArray) or isinstance(expected, np.ma.MaskedArray):
        hidden, right = np.ma.getmaskarray(got), np.ma.getmaskarray(expected)
        if wrong := int((hidden != right).sum()):
            return f"of {a.size:,} values {wrong:,} are masked and should not be, or the reverse"
        a = np.where(right, b, a)
    if a.dtype.kind not in "biufc" or b.dtype.kind not in "biufc":
        same = (a == b) | ((a != a) & (b != b))  # NaT, too, is no number
        return None if np.all(same) else "it is not equal to the expected output"
    return _numbers(a, b, tolerance)


def to_host(value: Any) -> np.ndarray:
    """As an array of NumPy, from CuPy, PyTorch, JAX, a sparse one of SciPy, or a number."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        if "bfloat16" in str(value.dtype):
            value = value.float()
        value = value.numpy()
    elif type(value).__module__.partition(".")[0] == "cupy":
        value = value.get()
    elif type(value).__module__.startswith("scipy.sparse"):
        value = value.toarray()
    array = np.asarray(value)
    # The small floats of JAX are no numbers of NumPy's.
    return array.astype(np.float32) if re.match("bfloat16|float8", array.dtype.name) else array


def _first_wrong(keys: Iterable[Any], got: Any, expected: Any, tolerance: float) -> str | None:
    for key in keys:
        if wrong := mismatch(got[key], expected[key], tolerance):
            return f"output {key}: {wrong}"
    return None


def _check_other_memory(got: Any, expected: Any) -> None:
    """An expected output that the case itself writes would be right whatever the case does."""
    both = isinstance(got, np.ndarray) and isinstance(expected, np.ndarray)
    same = np.shares_memory(got, expected) if both else got is expected and np.ndim(got) > 0
    if same:
        raise Refusal(
            "The expected output is the very array that the case returns, so a check of it would "
            "say nothing. Give a copy (check=expected.copy()), or one that another code computed."
        )


def _numbers(a: np.ndarray, b: np.ndarray, tolerance: float) -> str | None:
    same = (a == b) | ((a != a) & (b != b))
    if same.all():
        return None
    kind = np.complex128 if "c" in (a.dtype.kind, b.dtype.kind) else np.float64
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(a.astype(kind) - b.astype(kind))
        error = np.where(np.isnan(error), np.inf, error)
        error = np.where(same, -1.0, error)  # float64 may not tell a wrong integer from the right
        sizes = np.abs(b.astype(kind))
        largest = sizes[np.isfinite(sizes)].max(initial=0.0)
        worst = error.max()
        if tolerance and worst <= tolerance * largest:
            return None
        share = f", an error of {worst / largest:.2g} of the largest value" if largest else ""
    at = np.unravel_index(int(error.argmax()), error.shape)
    it_is, should_be = _figures(a[at], b[at])
    place = f"at {tuple(int(i) for i in at)} it is " if a.ndim else "it is "
    return (
        f"{place}{it_is} and should be {should_be}{share} (allowed: {tolerance:g}); "
        f"{int((~same).sum()):,} of {a.size:,} values differ"
    )


def _figures(got: np.generic, expected: np.generic) -> list[str]:
    """Both, with as many digits as tell them apart."""
    for digits in (9, 17):
        texts = [f"{x:.{digits}g}" if x.dtype.kind in "fc" else str(x) for x in (got, expected)]
        if texts[0] != texts[1]:
            break
    return texts


def _by_author(case: Case, output: Any, arguments: Sequence[Any]) -> str | None:
    try:
        answer = case.check(output, *arguments)
    except AssertionError as problem:
        return said(problem) if str(problem) else "the check failed"
    except Exception as problem:
        raise Refusal(
            f"The check of {case.label} raised {type(problem).__name__}: {said(problem)}. "
            "Nothing is reported, since nobody knows whether the result is right. Correct the "
            "check.",
            traceback_of(problem),
        ) from problem
    if answer is None or answer is True or (isinstance(answer, np.bool_) and answer):
        return None
    if isinstance(answer, str):
        return answer
    if answer is False or isinstance(answer, np.bool_):
        return "its check says no"
    try:
        return None if bool(answer) else "its check says no"  # of CuPy, PyTorch, JAX: one value
    except Exception as problem:
        raise Refusal(
            f"The check of {case.label} returned {short(answer)}, which is neither yes nor no. Let "
            "it return True, False or a text, such as np.allclose(output, expected)."
        ) from problem
