"""Vendors' libraries, whichever of them is there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import TypeVar

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
            said = str(problem).splitlines() or ["no message"]
            whys.append(f"{library}: {type(problem).__name__}: {said[0]}")
    raise Unavailable("; ".join(whys))
