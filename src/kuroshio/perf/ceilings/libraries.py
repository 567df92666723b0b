"""Vendors' libraries, whichever of them is there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import TypeVar

from ..raised import said

T = TypeVar("T")


class Unavailable(Exception):
    """None of the libraries can do it; the text says why, of each."""


def first_of(ways: Sequence[tuple[str, Callable[[], T]]]) -> tuple[str, T]:
    """Name and result of the first library (CuPy, PyTorch) that does it; or raises Unavailable."""
    whys = []
    for library, way in ways:
        if find_spec(library.lower().removeprefix("py")) is None:
            whys.append(f"{library} is not installed")
            continue
        try:
            return library, way()
        except Exception as problem:  # of the library, and of what it calls
            whys.append(f"{library}: {type(problem).__name__}: {said(problem)}")
    raise Unavailable("; ".join(whys))
