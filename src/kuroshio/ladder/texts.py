"""The rungs' kernels as text for a GPU's run-time compiler."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from .. import device

_PORTABLE = Path(device.__file__).with_name("portable.h")
_RUNGS = Path(__file__).with_name("rungs")
_PARTS = {
    "heap": ("ranks.h", "heap.h"),
    "registers": ("ranks.h", "registers.h"),
    "direct": ("sums.h", "direct.h"),
    "sliding": ("sums.h", "sliding.h"),
}


def text(name: str, macros: Mapping[str, int | str]) -> str:
    """All of `rungs/NAME`, after `macros` and the portable part.

    macros  as the rung's module gives them. BOUNDS, the arguments of __launch_bounds__, may be
            among them: '256' is what kernels are compiled for otherwise. A second number is read
            differently: CUDA takes it for blocks a multiprocessor, HIP for wavefronts a SIMD.
    """
    head = [f"#define {macro} {value}" for macro, value in {"BOUNDS": "256", **macros}.items()]
    paths = [_PORTABLE, *(_RUNGS / part for part in _PARTS[name])]
    return "\n".join([*head, *map(_part, paths)])


@cache
def _part(path: Path) -> str:
    return path.read_text(encoding="utf-8")
