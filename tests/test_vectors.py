"""Vectors as wide as Numba may make them, on whatever processor."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import kuroshio as ks
from archive_files import write_series
from cli_runs import daily_codes
from kuroshio.device import llvm

VARIABLES = ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "NUMBA_ENABLE_AVX")


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    yield
    llvm._features.cache_clear()


@pytest.mark.parametrize(
    ("variables", "lanes"),
    [
        ({"NUMBA_CPU_NAME": "generic"}, 4),
        ({"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx2,+bmi,-avx512f"}, 8),
        ({"NUMBA_CPU_FEATURES": "+avx512f,+avx512bw,+avx512vl"}, 16),
        ({"NUMBA_ENABLE_AVX": "0"}, 4),
    ],
)
def test_lanes_are_those_that_numba_compiles_for(monkeypatch, variables, lanes):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    llvm._features.cache_clear()
    assert llvm.native_lanes.__wrapped__() == lanes
    assert llvm._has_avx512() == (lanes == 16)


def test_results_are_the_same_with_the_least_of_instructions(tmp_path: Path, monkeypatch):
    path, output = tmp_path / "a.nc", tmp_path / "clim.nc"
    write_series(path, daily_codes(731))
    monkeypatch.setenv("NUMBA_CPU_NAME", "generic")
    command = [
        sys.executable, "-m", "kuroshio", "climatology", path, "--baseline", "2001", "2002", "-q",
        "-o", output,
    ]  # fmt: skip
    subprocess.run(command, check=True)
    monkeypatch.delenv("NUMBA_CPU_NAME")
    with pytest.warns(UserWarning, match="short"):
        usual = ks.climatology(path, baseline=(2001, 2002))
    with xr.open_dataset(output) as found:
        for name in ("seas", "thresh"):
            np.testing.assert_array_equal(found[name], usual[name])
