"""The text of a GPU's kernels (kernels.h), ready for a run-time compiler."""

from __future__ import annotations

from pathlib import Path

KERNELS = (
    "read_once", "read_again", "copy_all", "triad_all", "fma_float64", "fma_float32", "fma_float16",
    "min_max_int32", "min_max_uint16", "popcount_words", "nothing",
)  # fmt: skip
UNROLL, CHAINS, STEPS = 4, 8, 16  # as in kernels.h

_HERE = Path(__file__).resolve().parent


def text() -> str:
    """For CUDA and HIP alike."""
    portable = _HERE.parent.parent / "device" / "portable.h"
    return portable.read_text(encoding="utf-8") + (_HERE / "kernels.h").read_text(encoding="utf-8")
