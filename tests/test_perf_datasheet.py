"""The table of data sheets: whole, without contradictions, and silent on what it does not know."""

import re

import pytest

from kuroshio.perf.ceilings import datasheet, gpu, gpu_library
from kuroshio.perf.ceilings.ceiling import BANDWIDTHS, GB, GOP

# As drivers call them.
KNOWN = (
    "Tesla V100-SXM2-16GB", "Tesla V100-SXM2-32GB", "Tesla V100-PCIE-32GB", "Tesla V100S-PCIE-32GB",
    "NVIDIA A100-SXM4-40GB", "NVIDIA A100-SXM4-80GB", "A100-SXM4-40GB", "NVIDIA A100-PCIE-40GB",
    "NVIDIA A100 80GB PCIe", "NVIDIA H100 80GB HBM3", "NVIDIA H100 PCIe", "NVIDIA H200",
    "AMD Instinct MI60 / MI50", "AMD Instinct MI50", "AMD Radeon Instinct MI60",
    "AMD Instinct MI100", "AMD Instinct MI210", "AMD Instinct MI250X / MI250",
    "AMD Instinct MI250", "AMD Instinct MI250X", "AMD Instinct MI300A", "AMD Instinct MI300X",
    "AMD Instinct MI325X",
)  # fmt: skip
UNKNOWN = (
    None, "", "NVIDIA", "NVIDIA H200 NVL", "NVIDIA H2000", "NVIDIA H100 NVL",
    "NVIDIA H200 MIG 1g.18gb", "NVIDIA GH200 480GB", "NVIDIA A100X", "Tesla V100-SXM3-32GB",
    "Hygon DCU Z100", "DCU K100_AI", "AMD EPYC", "AMD Radeon Pro VII", "AMD Instinct MI355X",
)  # fmt: skip


@pytest.mark.parametrize("model", UNKNOWN)
def test_no_peak_is_guessed(model):
    assert datasheet.peaks(model) == []


@pytest.mark.parametrize("model", KNOWN)
def test_one_sheet_a_device(model):
    fits = [sheet for sheet in datasheet.SHEETS if re.fullmatch(sheet.model, model)]
    assert len(fits) == 1
    assert datasheet.peaks(f" {model}\n") == datasheet.peaks(model)


@pytest.mark.parametrize("model", KNOWN)
def test_a_device_has_a_bandwidth_and_each_peak_a_source(model):
    found = datasheet.peaks(model)
    memory = [(peak.name, peak.unit) for peak in found if peak.level == "memory"]
    assert memory == [(name, GB) for name in BANDWIDTHS]
    assert all(len(peak.source) > 20 for peak in found)
    names = [(peak.name, peak.level) for peak in found]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("sheet", datasheet.SHEETS, ids=lambda sheet: sheet.model)
def test_a_sheet_speaks_of_what_is_measured(sheet):
    measured = {row[1] for row in gpu._ARITHMETIC}
    measured |= {f"matrix {dtype}" for dtype in gpu_library._TYPES}
    assert set(sheet.rates) <= measured


@pytest.mark.parametrize("sheet", datasheet.SHEETS, ids=lambda sheet: sheet.model)
def test_units_and_order(sheet):
    """GB/s and Gop/s, not TB/s and Tflop/s; and no narrower type is slower, none sparse."""
    assert 500 < sheet.gb_per_s < 10_000
    assert all(5_000 < rate < 2_000_000 for rate in sheet.rates.values())
    order = ("float64 fma", "float32 fma", "float16 fma", "matrix bfloat16", "matrix float16")
    rates = [sheet.rates[name] for name in order if name in sheet.rates]
    assert rates == sorted(rates)
    # Dense: NVIDIA's figures with sparsity are 58 times those of float64 and more.
    if {"float64 fma", "matrix float16"} <= set(sheet.rates):
        assert sheet.rates["matrix float16"] < 33 * sheet.rates["float64 fma"]


def test_a_name_for_two_cards_promises_only_what_they_share():
    for both, one, other in (
        ("AMD Instinct MI60 / MI50", "AMD Instinct MI60", "AMD Instinct MI50"),
        ("AMD Instinct MI250X / MI250", "AMD Instinct MI250X", "AMD Instinct MI250"),
    ):
        assert {peak.name for peak in datasheet.peaks(both)} == set(BANDWIDTHS)
        values = [
            {peak.value for peak in datasheet.peaks(model) if peak.unit == GB}
            for model in (both, one, other)
        ]
        assert values[0] == values[1] == values[2]
        rates = [
            [peak.value for peak in datasheet.peaks(model) if peak.unit == GOP]
            for model in (one, other)
        ]
        assert rates[0] != rates[1]
