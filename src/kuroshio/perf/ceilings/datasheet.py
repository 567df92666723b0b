"""Peaks from data sheets, to be shown beside what was measured and never in place of it.

Only devices whose figures can be cited are here; of any other device nothing is said. Figures are
for dense matrices. Matrix peaks of float16 are those of bfloat16 too where the source says so.
"""

from __future__ import annotations

import re

from .ceiling import BANDWIDTHS, GB, GOP, Peak

_ROCM = "ROCm documentation, reference/gpu-arch/{}"
_MI250 = _ROCM.format("mi250") + "; half of the card's: a HIP device is one of its two dies"
_A100 = "NVIDIA A100 data sheet (nvidia-a100-datasheet-us-nvidia-1758950-r4)"
_H200 = "NVIDIA H200 data sheet, as quoted by itkb.uw.cz/2026/06/nvidia-h200-vs-b300 (secondary)"
_MI50 = "AMD's release of 6 November 2018, as quoted by skyne98.github.io/wiki-gfx906 (secondary)"

# What the driver calls a device -> GB/s, Gop/s by name of the ceiling, source.
_SHEETS: tuple[tuple[str, float, dict[str, float], str], ...] = (
    (r"NVIDIA H200", 4800, {"float64 fma": 34e3, "matrix float16": 989e3,
                            "matrix bfloat16": 989e3}, _H200),
    (r"NVIDIA A100-SXM4-40GB", 1555, {"float64 fma": 9.7e3, "float32 fma": 19.5e3,
                                      "matrix float16": 312e3, "matrix bfloat16": 312e3}, _A100),
    (r"NVIDIA A100-SXM4-80GB", 2039, {"float64 fma": 9.7e3, "float32 fma": 19.5e3,
                                      "matrix float16": 312e3, "matrix bfloat16": 312e3}, _A100),
    (r"(AMD )?(Radeon )?Instinct MI60", 1024, {"float64 fma": 7.4e3, "float32 fma": 14.8e3,
                                               "float16 fma": 29.5e3}, _MI50),
    (r"(AMD )?(Radeon )?Instinct MI50", 1024, {"float64 fma": 6.7e3, "float32 fma": 13.4e3,
                                               "float16 fma": 26.8e3}, _MI50),
    (r"(AMD )?Instinct MI100", 1228.8, {"float64 fma": 11.5e3, "float32 fma": 23.1e3,
                                        "matrix float16": 184.6e3}, _ROCM.format("mi100")),
    (r"(AMD )?Instinct MI250", 1638.4, {"float64 fma": 22.65e3, "matrix float16": 181.05e3,
                                        "matrix bfloat16": 181.05e3}, _MI250),
    (r"(AMD )?Instinct MI300X", 5300, {"float64 fma": 81.7e3, "float32 fma": 163.4e3,
                                       "matrix float16": 1307.4e3, "matrix bfloat16": 1307.4e3},
     _ROCM.format("mi300")),
)  # fmt: skip


def peaks(model: str | None) -> list[Peak]:
    """Of the device that the driver calls so; empty for one that is not known."""
    for pattern, bandwidth, rates, source in _SHEETS:
        if model and re.fullmatch(pattern, model.strip()):
            memory = [Peak(name, "memory", GB, bandwidth, source) for name in BANDWIDTHS]
            return memory + [Peak(name, None, GOP, rate, source) for name, rate in rates.items()]
    return []
