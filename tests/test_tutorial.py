"""What the tutorial of the ladder has its readers try comes out as it says."""

from __future__ import annotations

import contextlib
import io
import re

import numpy as np
import pytest

import compilers
from conftest import ROOT
from kuroshio.ladder.problem import SCALES
from kuroshio.ladder.waits import played, rings_by_formula

PAGE = (ROOT / "docs/tutorial/ladder.md").read_text(encoding="utf-8")
KERNEL = next(re.finditer(r"```cpp\n(#include.*?)```", PAGE, re.DOTALL))[1]
ROWS = re.findall(r"^\| (nothing|`-D[^`]*`) \|(.*)\|$", PAGE, re.MULTILINE)


def _compiled(compiler: str, options: list[str]) -> compilers.Kernel:
    try:
        if compiler == "gfx906":
            return compilers.hip(KERNEL, "gfx906", options).kernels["top"]
        text = KERNEL.replace("#include <hip/hip_runtime.h>", "")
        return compilers.nvrtc(text, "sm_90", options).kernels["top"]
    except compilers.CompilerAbsent as absent:
        pytest.skip(str(absent))


@pytest.mark.parametrize("compiler", ["gfx906", "sm_90"])
@pytest.mark.parametrize(("name", "cells"), ROWS, ids=[name for name, _ in ROWS])
def test_what_compilers_say_of_the_kernel(name: str, cells: str, compiler: str) -> None:
    registers, memory, spilled, *nvidia = (
        int(re.findall(r"\d+", cell)[0]) for cell in cells.split("|")
    )
    if compiler == "sm_90":
        registers, memory = nvidia
    kernel = _compiled(compiler, [] if name == "nothing" else name.strip("`").split())
    # Other versions of a compiler choose other numbers; where the array lies is what is taught.
    assert (kernel.stack_bytes > 0) == (memory > 0)
    assert (max(kernel.spilled.values()) > 0) == (spilled > 0)
    assert kernel.registers == pytest.approx(registers, rel=0.3, abs=8)


def test_a_median_is_one_instruction_on_amd() -> None:
    old = "fmaxf(kept[k], fminf(kept[k - 1], x))"
    new = "__builtin_amdgcn_fmed3f(x, kept[k], kept[k - 1])"
    assert old in KERNEL
    assert new in " ".join(PAGE.split())
    try:
        code = compilers.hip(KERNEL.replace(old, new), "gfx906").code.decode()
    except compilers.CompilerAbsent as absent:
        pytest.skip(str(absent))
    assert code.count("v_med3_f32") == 33


def test_the_python_that_loses_the_fourth_moment() -> None:
    program = next(re.finditer(r"```python\n(import numpy.*?)```", PAGE, re.DOTALL))[1]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(program, {})
    right, double, single, about, factor = map(float, printed.getvalue().split())
    assert [round(x, 3) for x in (right, double, about)] == [0.029] * 3
    assert single < 0
    assert round(factor) == -1_227_194


def test_rings_of_the_tables() -> None:
    assert rings_by_formula(2.3, 0.2) == 13
    for rings in (2, 3, 4, 7, 13):
        assert played(rings, [2.3] * 6, 0.0, 0.2).hidden_wait_s == pytest.approx(10.5)
    rows = re.findall(r"^\| (\d) \| ([\d.]+) \| ([\d.]+) \|$", PAGE, re.MULTILINE)
    assert len(rows) == 5
    for rings, wait, total in rows:
        turns = played(int(rings), [0.4, 0.4, 0.4, 1.6, 0.4, 0.4], 0.0, 0.6)
        assert turns.hidden_wait_s == pytest.approx(float(wait))
        assert turns.total_s == pytest.approx(float(total))


def test_sizes_of_the_problem() -> None:
    season = SCALES["season"]
    passing = next(season.passes())
    sizes = [season.map_bytes, passing.maps * season.map_bytes, season.files * season.map_bytes]
    assert [f"{1e-9 * size:.3g}" for size in sizes] == ["0.00831", "5.48", "25.4"]
    maps = [each.maps for each in season.passes()]
    assert (season.largest, season.pool, passing.maps, sum(maps)) == (34, 330, 660, 5160)
    assert 110 * season.map_bytes == pytest.approx(914e6, rel=1e-3)
    rank = np.array([330, 300]) - 1
    assert (rank * 0.9).tolist() == pytest.approx([296.1, 269.1])
