"""What the published program had wrong: each mistake beside what is right."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

import ladder_compiling
from kuroshio.cornish_fisher import coefficients
from kuroshio.device.occupancy import ARCHITECTURES, occupancy, registers_for_waves
from kuroshio.ladder.problem import Problem
from kuroshio.ladder.rungs import direct, heap, sliding
from kuroshio.ladder.rungs.sums import CORRECTED, Form
from ladder_maps import exact
from ladder_places import CpuPlace, GpuPlace, run

PROBLEM = Problem("published", 60.0, (152, 163))
DAYS = PROBLEM.pass_days
SHAPE = (DAYS + PROBLEM.window - 1, PROBLEM.number_of_years, PROBLEM.cells)
# The published form with one thing after the other put right.
TERM_WRONG = Form(np.float64, about_reference=False, fourth=1.0, flat=0.0)
ABOUT_ZERO = Form(np.float32, about_reference=False, fourth=3.0, flat=0.0)
ABOUT_REFERENCE = Form(np.float32, about_reference=True, fourth=3.0, flat=0.0)


def thresholds(place, module, maps: np.ndarray, form: Form) -> np.ndarray:
    return run(place, module.worker(place, PROBLEM, form), PROBLEM, maps, DAYS)[1]


def errors(gpu, module, maps: np.ndarray, forms: Iterable[Form]) -> list[np.ndarray]:
    """(day, cell) from what the moments really say, by form."""
    right = exact(PROBLEM, maps, "moments")[1]
    return [np.abs(thresholds(GpuPlace(gpu), module, maps, form) - right) for form in forms]


def sea(mean: float, spread: float) -> np.ndarray:
    return mean + spread * np.random.default_rng().normal(size=SHAPE)


def test_the_fourth_moment_has_three_of_the_means_fourth_power(gpu):
    maps = sea(20.0, 1.0)
    mean, right, std = exact(PROBLEM, maps, "moments")
    wrong = thresholds(GpuPlace(gpu), direct, maps, TERM_WRONG)
    # Two are lacking, and kurtosis stands in the expansion with the factor c.
    predicted = coefficients([0.9])[0][2] * -2 * mean**4 / std**3
    assert predicted.min() > 10_000
    np.testing.assert_allclose(wrong - right, predicted, rtol=1e-5)
    assert errors(gpu, direct, maps, [CORRECTED])[0].max() < 1e-5


def test_float32_sums_about_zero_lose_what_is_small_beside_the_mean(gpu):
    for mean, least in ((20.0, 0.05), (293.15, 100.0)):  # degrees Celsius, kelvin
        maps = sea(mean, 0.5)
        zero, about, right = errors(gpu, direct, maps, (ABOUT_ZERO, ABOUT_REFERENCE, CORRECTED))
        assert zero.max() > least
        assert about.max() < 1e-3
        assert right.max() < 5e-5  # what float32 resolves of a result


def test_a_slide_keeps_the_rounding_of_what_has_left(gpu):
    """Slots that vary much go; of those that come, the sums are small beside what was rounded."""
    maps = sea(0.0, 0.05)
    maps[: DAYS - 1] *= 400
    slid, added = (errors(gpu, module, maps, [ABOUT_ZERO])[0] for module in (sliding, direct))
    assert slid[0].max() < 0.01  # the first window has only added
    assert slid[-1].max() > 100 * added[-1].max()
    assert added[-1].max() < 1e-5
    assert errors(gpu, sliding, maps, [CORRECTED])[0].max() < 1e-4


@pytest.mark.parametrize(("compiler", "arch"), [("hipcc", "gfx906"), ("nvrtc", "sm_90")])
def test_no_spills_are_no_sign_that_an_array_is_in_registers(request, compiler, arch):
    request.getfixturevalue(compiler)
    by_heap = ladder_compiling.kernels("heap", compiler, arch)["largest_by_heap"]
    assert by_heap.spills == 0
    assert by_heap.stack_bytes >= 4 * PROBLEM.largest  # the array, and nothing calls it spilled
    sorted_list = ladder_compiling.kernels("registers", compiler, arch)["largest_in_registers"]
    assert (sorted_list.spills, sorted_list.stack_bytes) == (0, 0)
    assert sorted_list.registers > PROBLEM.largest


@pytest.mark.parametrize(("compiler", "arch"), ladder_compiling.KEPT)
def test_a_list_of_67_spills_where_bounds_leave_64_registers(request, compiler, arch):
    """Without bounds it costs occupancy instead; 64 are left on gfx906 and by CUDA."""
    request.getfixturevalue(compiler)
    name = "registers, list of 67"
    free = ladder_compiling.kernels(name, compiler, arch)["largest_in_registers"]
    bound = ladder_compiling.kernels(f"{name}, bounds 256, 4", compiler, arch)[
        "largest_in_registers"
    ]
    assert (free.spills, free.stack_bytes) == (0, 0)
    assert free.registers > 67
    if arch == "gfx90a":  # a SIMD has twice the registers
        assert (bound.spills, bound.registers) == (0, free.registers)
    else:
        assert bound.spills > 0
        assert bound.stack_bytes > 0
        assert bound.registers <= 64


def test_the_34th_largest_is_not_the_percentile():
    values = np.sort(np.random.default_rng().normal(20, 1, PROBLEM.pool))
    percentile = np.percentile(values, 90)
    assert PROBLEM.largest == 34
    assert values[-34] < percentile < values[-33]
    np.testing.assert_allclose(percentile, values[-34] + 0.1 * (values[-33] - values[-34]))


def test_missing_values_move_the_rank():
    maps = sea(20.0, 1.0)
    maps[:, :10] = np.nan  # a third of the years
    right = exact(PROBLEM, maps)[1]
    place = CpuPlace()
    _, found = run(place, heap.worker(place, PROBLEM), PROBLEM, maps, DAYS)
    np.testing.assert_allclose(found, right, rtol=2e-7)
    for day in range(DAYS):
        rising = np.sort(maps[day : day + PROBLEM.window, 10:].reshape(-1, PROBLEM.cells), axis=0)
        assert len(rising) == 220
        assert (rising[-34] < right[day]).all()  # which is the 84.9th percentile now
        assert (rising[-23] <= right[day]).all()
        assert (right[day] <= rising[-22]).all()


def test_a_compute_unit_has_256_kb_of_registers():
    unit = ARCHITECTURES["gfx906"]
    assert 4 * unit.registers == 256 << 10
    assert 4 * unit.registers // unit.simds == 64 << 10
    assert unit.max_waves * unit.wave_size == 2560  # threads, as was said
    # 64 KB a unit would be room for 256 registers of one wavefront, or 4 wavefronts of 64.
    lives = occupancy(unit, block=256, registers=64, shared_bytes=0)
    assert (lives.blocks, lives.waves) == (4, 16)


def test_launch_bounds_of_256_and_4_leave_64_registers():
    """4 is blocks a multiprocessor for CUDA, wavefronts a SIMD for HIP: one of 256 threads."""
    assert registers_for_waves(ARCHITECTURES["sm_90"], 4 * 256 // 32) == 64
    assert registers_for_waves(ARCHITECTURES["gfx906"], 4 * 4) == 64
    assert registers_for_waves(ARCHITECTURES["gfx90a"], 4 * 4) == 128
    # With blocks of 128 threads the same 4 means two things.
    assert registers_for_waves(ARCHITECTURES["sm_90"], 4 * 128 // 32) == 128
