"""Peaks from data sheets, to be shown beside what was measured and never in place of it.

Only devices whose figures can be cited are here; of any other device nothing is said. Arithmetic
is that of vector units unless a name says matrix, and matrices are dense: where a sheet has only a
figure with sparsity, half of it. Float32 of AMD's CDNA 2 is left out: it doubles where a compiler
packs two in an instruction, and which of the two figures a kernel should be held to is not known.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from .ceiling import BANDWIDTHS, GB, GOP, Peak


class Sheet(NamedTuple):
    """What is promised of the devices whose driver calls them so."""

    model: str  # a regular expression of the whole name
    gb_per_s: float  # of memory
    rates: dict[str, float]  # Gop/s by name of the ceiling
    source: str


def _rates(*, matrix16: float = 0, **vector: float) -> dict[str, float]:
    """Of TFLOP/s; `matrix16` is of float16 and of bfloat16."""
    found = {f"{name} fma": 1e3 * value for name, value in vector.items()}
    if matrix16:
        found |= {f"matrix {name}": 1e3 * matrix16 for name in ("float16", "bfloat16")}
    return found


_QUOTED = "; as others quote it"
_V100 = "NVIDIA V100 data sheet (volta-v100-datasheet-update-us-1165301-r5)" + _QUOTED
_A100 = "NVIDIA A100 data sheet (nvidia-a100-datasheet-us-nvidia-1758950-r4)" + _QUOTED
_H100 = "NVIDIA H100 architecture white paper (gtc22-whitepaper-hopper)" + _QUOTED
_H200 = "NVIDIA H200 data sheet (3367400, July 2024), half of those with sparsity" + _QUOTED
_MI60 = "AMD's product pages of MI50 and MI60" + _QUOTED
_MI100 = "ROCm documentation, reference/gpu-arch/mi100; memory: AMD CDNA 2 white paper, MI200-30"
_CDNA2 = "AMD CDNA 2 white paper, table 1 and note MI200-30"
_DIE = _CDNA2 + "; half of the card's: a HIP device is one of its two dies"
_CDNA3 = "AMD CDNA 3 white paper (2258402-B), notes MI300-11, 13 and 14; of a card not partitioned"

_A100_RATES = _rates(float64=9.7, float32=19.5, matrix16=312)
_MI300X_RATES = _rates(float64=81.7, float32=163.4, matrix16=1307.4)

SHEETS = (
    Sheet(r"Tesla V100-SXM2-(16|32)GB", 900,
          _rates(float64=7.8, float32=15.7) | {"matrix float16": 125e3}, _V100),
    Sheet(r"Tesla V100-PCIE-(16|32)GB", 900,
          _rates(float64=7, float32=14) | {"matrix float16": 112e3}, _V100),
    Sheet(r"Tesla V100S-PCIE-32GB", 1134,
          _rates(float64=8.2, float32=16.4) | {"matrix float16": 130e3}, _V100),
    Sheet(r"(NVIDIA )?A100-(SXM4|PCIE)-40GB", 1555, _A100_RATES, _A100),
    Sheet(r"(NVIDIA )?A100-SXM4-80GB", 2039, _A100_RATES, _A100),
    Sheet(r"NVIDIA A100 80GB PCIe", 1935, _A100_RATES, _A100),
    Sheet(r"NVIDIA H100 80GB HBM3", 3352,
          _rates(float64=33.5, float32=66.9, float16=133.8, matrix16=989.4), _H100),
    Sheet(r"NVIDIA H100 PCIe", 2039,
          _rates(float64=25.6, float32=51.2, float16=102.4, matrix16=756), _H100),
    # Of the H200 NVL the data sheet and the product page say different things.
    Sheet(r"NVIDIA H200", 4800, _rates(float64=34, float32=67, matrix16=989.5), _H200),
    # AMD's driver has one name for two cards in places; then only what they share is known.
    Sheet(r"AMD Instinct MI60 / MI50", 1024, {}, _MI60),
    Sheet(r"(AMD )?(Radeon )?Instinct MI60", 1024,
          _rates(float64=7.4, float32=14.7, float16=29.5), _MI60),
    Sheet(r"(AMD )?(Radeon )?Instinct MI50", 1024,
          _rates(float64=6.6, float32=13.3, float16=26.5), _MI60),
    Sheet(r"(AMD )?Instinct MI100", 1228.8,
          _rates(float64=11.5, float32=23.1)
          | {"matrix float16": 184.6e3, "matrix bfloat16": 92.3e3}, _MI100),
    Sheet(r"(AMD )?Instinct MI210", 1638.4, _rates(float64=22.6, matrix16=181.0), _CDNA2),
    Sheet(r"AMD Instinct MI250X / MI250", 1638.4, {}, _DIE),
    Sheet(r"(AMD )?Instinct MI250", 1638.4, _rates(float64=45.3 / 2, matrix16=362.1 / 2), _DIE),
    Sheet(r"(AMD )?Instinct MI250X", 1638.4, _rates(float64=47.9 / 2, matrix16=383.0 / 2), _DIE),
    Sheet(r"(AMD )?Instinct MI300A", 5325,
          _rates(float64=61.3, float32=122.6, matrix16=980.6), _CDNA3),
    Sheet(r"(AMD )?Instinct MI300X", 5325, _MI300X_RATES, _CDNA3),
    Sheet(r"(AMD )?Instinct MI325X", 6000, _MI300X_RATES,
          "AMD CDNA 3 white paper (2258402-B), note MI325-001A; of a card not partitioned"),
)  # fmt: skip


def peaks(model: str | None) -> list[Peak]:
    """Of the device that the driver calls so; empty for one that is not known."""
    for sheet in SHEETS:
        if model and re.fullmatch(sheet.model, model.strip()):
            memory = [Peak(name, "memory", GB, sheet.gb_per_s, sheet.source) for name in BANDWIDTHS]
            return memory + [
                Peak(name, None, GOP, rate, sheet.source) for name, rate in sheet.rates.items()
            ]
    return []
