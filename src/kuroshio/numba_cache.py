"""What is said where Numba cannot keep compiled code, or fetch what it has kept."""

from __future__ import annotations

import traceback

_MODULE = "numba.core.caching"


def cache_trouble(error: BaseException) -> str | None:
    """The reason and what to do, for an exception out of Numba's cache; None for any other."""
    frames = traceback.walk_tb(error.__traceback__)
    if not any(frame.f_globals.get("__name__") == _MODULE for frame, _ in frames):
        return None
    return (
        f"Compiled code cannot be kept or fetched: {error}. Numba's folder for it is full, damaged "
        "or may not be written to. Set the environment variable NUMBA_CACHE_DIR to an empty folder "
        "that may be written to and has 100 MB free."
    )
