"""Cases: what is timed, what it moves and computes, and how to tell that it is right."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any

from ..device.names import check_device
from ..errors import Refusal
from .case_module import module_of, split
from .raised import said, traceback_of

_MARK = "__kuroshio_perf_case__"


@dataclass(frozen=True)
class Case:
    """A callable and what its author declares of one call.

    fn          called without arguments or, with `inputs`, with one of them after the other
    bytes       read and written at least, by the algorithm; flops: operations, of the kind that
                `operations` names ("float64 fma", "int popcount", ...)
    check       the expected output, or check(output) -> None or True if right, False or a text if
                wrong (or it raises AssertionError); with `inputs` also their values:
                check(output, *values)
    tolerance   of an expected output: the largest error, as a share of its largest value
    inputs      several tuples of arguments, taken in turn so that none is in a cache
    about       the inputs in words, for the record: shapes, distribution
    device      cpu, cuda:0, ...: where it works, if the arrays that it returns do not tell
    flush       whether a GPU's caches are overwritten before each sample
    """

    fn: Callable[..., Any]
    name: str = ""
    bytes: int | None = None
    flops: int | None = None
    operations: str | None = None
    check: Any = None
    tolerance: float = 0.0
    inputs: Sequence[tuple[Any, ...]] = ()
    size: int | None = None
    dtype: str | None = None
    about: str | None = None
    device: str | None = None
    flush: bool = True

    def __post_init__(self) -> None:
        if not callable(self.fn):
            raise Refusal(
                f"A case needs something to call, and {short(self.fn)} cannot be called. Give a "
                "function: bench(lambda: np.sort(values))."
            )
        if self.device is not None:
            check_device(self.device)
        inputs: Any = self.inputs  # whatever came
        if not isinstance(inputs, (list, tuple)) or not all(
            isinstance(each, (list, tuple)) for each in inputs
        ):
            raise Refusal(
                f"inputs={short(inputs)} are no inputs. Give a list of tuples, each with the "
                "arguments of a call: [(a,), (b,)]."
            )
        if not 0 <= _number(self.tolerance) < math.inf:
            raise Refusal(
                f"tolerance={short(self.tolerance)} is no error that could be allowed. Give a "
                "share of the largest expected value, such as 1e-6, or 0."
            )
        # What numbers and types of NumPy are called in a file.
        plain = {
            "name": " ".join(str(self.name).split()),
            "bytes": _amount("bytes", self.bytes),
            "flops": _amount("flops", self.flops),
            "size": int(self.size) if isinstance(self.size, Integral) else self.size,
            "dtype": _type_name(self.dtype),
            "operations": None if self.operations is None else str(self.operations),
            "about": None if self.about is None else str(self.about),
            "tolerance": float(self.tolerance),
        }
        for field, value in plain.items():
            object.__setattr__(self, field, value)

    @property
    def label(self) -> str:
        """name, size and dtype, for people."""
        about = [str(each) for each in (self.size, self.dtype) if each is not None]
        return f"{self.name} ({', '.join(about)})" if about else self.name


def case(
    made_by: Callable[..., Any] | None = None,
    *,
    sizes: Sequence[int] = (),
    dtypes: Sequence[str] = (),
    name: str | None = None,
) -> Any:
    """Mark a function that makes a case, and say for which sizes and dtypes it is worth timing.

    The function takes what it needs of (size, dtype) and returns a Case, the arguments of one as a
    dict (fn=, bytes=, ...), or a callable. `kuroshio perf bench module` runs all that are marked.
    """

    def mark(function: Callable[..., Any]) -> Callable[..., Any]:
        setattr(function, _MARK, (tuple(sizes), tuple(dtypes), name))
        return function

    return mark if made_by is None else mark(made_by)


def load(where: str) -> list[Callable[..., Any]]:
    """What 'module:function', 'folder/file.py:function' or, for all marked ones, 'module' names."""
    place, attribute = split(where)
    module = module_of(place)
    marked = [each for each in vars(module).values() if callable(each) and hasattr(each, _MARK)]
    if not attribute:
        if not marked:
            raise Refusal(
                f"{place} has no function marked with @perf.case. Mark one, or name the function "
                f"that makes the case: {place}:make_case."
            )
        return marked
    found: Any = module
    for part in attribute.split("."):
        if not hasattr(found, part):
            names = [n for n, v in vars(module).items() if callable(v) and not n.startswith("_")]
            near = get_close_matches(attribute, names, 3) or names[:8]
            raise Refusal(
                f"{place} has nothing called {attribute}. It has "
                f"{', '.join(near) or 'no functions'}. Give module:function."
            )
        found = getattr(found, part)
    if not callable(found):
        raise Refusal(
            f"{where} is {short(found)}, which cannot be called. Name a function that makes a "
            "case, or the function to time."
        )
    return [found]


def make(
    made_by: Callable[..., Any], sizes: Sequence[int] = (), dtypes: Sequence[str] = ()
) -> list[Callable[[], Case]]:
    """A maker of each case: of every size and dtype, given or marked. Each is made when called."""
    own_sizes, own_dtypes, name = getattr(made_by, _MARK, ((), (), None))
    takes = _parameters(made_by)
    name = name or getattr(made_by, "__name__", None) or type(made_by).__name__
    for what, given in (("size", sizes), ("dtype", dtypes)):
        if given and what not in takes:
            raise Refusal(
                f"--{what} was given, but {name}({', '.join(takes)}) takes no {what}. Leave it "
                f"away, or add the parameter `{what}` to the function that makes the case."
            )
    every_size = list(sizes or own_sizes) if "size" in takes else []
    every_dtype = list(dtypes or own_dtypes) if "dtype" in takes else []
    return [
        _maker(made_by, name, size, dtype)
        for size in every_size or [None]
        for dtype in every_dtype or [None]
    ]


def _maker(
    made_by: Callable[..., Any], name: str, size: int | None, dtype: str | None
) -> Callable[[], Case]:
    def build() -> Case:
        arguments = {k: v for k, v in (("size", size), ("dtype", dtype)) if v is not None}
        takes = _parameters(made_by)
        missing = [p for p, needed in takes.items() if needed and p not in arguments]
        if missing:
            hint = "--size or --dtype" if {*missing} <= {"size", "dtype"} else "a default in it"
            raise Refusal(
                f"{name} needs {', '.join(missing)}, and no value was given. Give {hint}."
            )
        try:
            made = made_by(**arguments)
        except (KeyboardInterrupt, Refusal):
            raise
        except BaseException as problem:
            raise Refusal(
                f"{name} raised {type(problem).__name__} while it made its case"
                f"{f' for {arguments}' if arguments else ''}: {said(problem)}. Nothing was timed.",
                traceback_of(problem),
            ) from problem
        if isinstance(made, dict):
            try:
                made = Case(**made)
            except TypeError as problem:
                raise Refusal(
                    f"{name} returned a dict that is no case: {problem}. Its keys are the "
                    "arguments of perf.Case: fn, bytes, flops, check, ..."
                ) from problem
        if not isinstance(made, Case):
            if not callable(made):
                raise Refusal(
                    f"{name} returned {short(made)}, which is no case. Let it return a perf.Case, "
                    "a dict with fn=, or the callable to time; to time the function itself, use "
                    "perf.bench."
                )
            made = Case(made)
        return replace(
            made,
            name=made.name or name,
            size=size if made.size is None else made.size,
            dtype=dtype if made.dtype is None else made.dtype,
        )

    return build


def _parameters(function: Callable[..., Any]) -> dict[str, bool]:
    """Names of its parameters, and whether each needs a value."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # builtins may have none
        return {}
    return {
        p.name: p.default is p.empty
        for p in parameters
        if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    }


def short(value: Any) -> str:
    """Of a value, what fits into a sentence."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."


def _amount(what: str, value: Any) -> int | None:
    """A whole number, also of one such as 2e9 or 2 / 3 * n**3."""
    if value is None:
        return None
    if not 0 < _number(value) < math.inf:
        raise Refusal(
            f"{what}={short(value)} of a case is no amount. Give what one call moves or computes, "
            "a number above 0, or leave it away."
        )
    return int(value) if isinstance(value, Integral) else max(round(float(value)), 1)


def _number(value: Any) -> float:
    """NaN if it is none."""
    return float(value) if isinstance(value, Real) else math.nan


def _type_name(dtype: Any) -> str | None:
    """float32, also of np.float32 and np.dtype("float32")."""
    if dtype is None or isinstance(dtype, str):
        return dtype
    return str(getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or dtype)
