"""Whether an output is right: against an expected one, or by the author's own check."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import Refusal
from .cases import Case, traceback_of


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
        return f"function {getattr(case.check, '__name__', type(case.check).__name__)}"
    if not case.tolerance:
        return "equal to the expected output"
    return f"error at most {case.tolerance:g} of the largest expected value"


def mismatch(got: Any, expected: Any, tolerance: float) -> str | None:
    """How an output differs from the expected one, or None.

    Numbers and arrays: by the largest error, as a share of the largest expected value; NaN equals
    NaN. Sequences: each item. Others: by ==.
    """
    if isinstance(expected, (tuple, list)) and isinstance(got, (tuple, list)):
        if len(got) != len(expected):
            return f"{len(got)} outputs and not {len(expected)}"
        pairs = enumerate(zip(got, expected, strict=True))
        wrong = ((i, mismatch(a, b, tolerance)) for i, (a, b) in pairs)
        return next((f"output {i}: {why}" for i, why in wrong if why), None)
    if expected is None or isinstance(expected, (str, bytes, dict)):
        return None if got == expected else f"{_short(got)} and not {_short(expected)}"
    a, b = to_host(got), to_host(expected)
    if a.shape != b.shape:
        return f"its shape is {a.shape} and not {b.shape}"
    if a.dtype.kind not in "biufc" or b.dtype.kind not in "biufc":
        return None if (a == b).all() else "it is not equal to the expected output"
    return _numbers(a, b, tolerance)


def to_host(value: Any) -> np.ndarray:
    """As an array of NumPy, from CuPy, PyTorch, JAX or a number."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        if "bfloat16" in str(value.dtype):
            value = value.float()
        value = value.numpy()
    elif type(value).__module__.partition(".")[0] == "cupy":
        value = value.get()
    return np.asarray(value)


def _numbers(a: np.ndarray, b: np.ndarray, tolerance: float) -> str | None:
    same = (a == b) | ((a != a) & (b != b))
    if same.all():
        return None
    kind = np.complex128 if "c" in (a.dtype.kind, b.dtype.kind) else np.float64
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.where(same, 0.0, np.abs(a.astype(kind) - b.astype(kind)))
    error = np.where(np.isnan(error), np.inf, error)
    sizes = np.abs(b.astype(kind))
    largest = float(sizes[np.isfinite(sizes)].max(initial=0.0))
    if tolerance and float(error.max()) <= tolerance * largest:
        return None
    at = np.unravel_index(int(error.argmax()), error.shape)
    place = f"at {tuple(int(i) for i in at)} it is " if a.ndim else "it is "
    share = f", an error of {error.max() / largest:.2g} of the largest value" if largest else ""
    return (
        f"{place}{a[at]:.9g} and should be {b[at]:.9g}{share} (allowed: {tolerance:g}); "
        f"{int((~same).sum()):,} of {a.size:,} values differ"
    )


def _by_author(case: Case, output: Any, arguments: Sequence[Any]) -> str | None:
    try:
        said = case.check(output, *arguments)
    except AssertionError as problem:
        return str(problem).strip().splitlines()[0] if str(problem).strip() else "the check failed"
    except Exception as problem:
        raise Refusal(
            f"The check of {case.label} raised {type(problem).__name__}: {problem}. Nothing is "
            "reported, since nobody knows whether the result is right. Correct the check.",
            traceback_of(problem),
        ) from problem
    if said is None or said is True or (isinstance(said, np.bool_) and said):
        return None
    if isinstance(said, str):
        return said
    if said is False or isinstance(said, np.bool_):
        return "its check says no"
    try:
        return None if bool(said) else "its check says no"  # of CuPy, PyTorch, JAX: one value
    except Exception as problem:
        raise Refusal(
            f"The check of {case.label} returned {_short(said)}, which is neither yes nor no. Let "
            "it return True, False or a text, such as np.allclose(output, expected)."
        ) from problem


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
