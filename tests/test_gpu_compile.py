"""Every kernel's text through the compilers of users' machines, and what it takes there."""

from __future__ import annotations

import pytest

from kuroshio.device.occupancy import ARCHITECTURES
from kuroshio.kernels.gpu import programs
from kuroshio.kernels.gpu.programs import Program, Windows
from kuroshio.keys import AFFINE16, AFFINE32, FLOAT32, FLOAT64, KEY_BITS

TARGETS = (
    ("nvrtc", "sm_70"), ("nvrtc", "sm_90"), ("hipcc", "gfx906"), ("hipcc", "gfx90a"),
    ("hiprtc", "gfx906"),
)  # fmt: skip
# As device/cuda.py asks for.
OPTIONS = {
    "nvrtc": ("-std=c++17", "--fmad=false"),
    "hipcc": ("-std=c++17", "-ffp-contract=off"),
    "hiprtc": ("-std=c++17", "-ffp-contract=off"),
}
NVIDIA, AMD = ("sm_70", "sm_90"), ("gfx906", "gfx90a")

# The usual window: 11 days, 30 years, and the mean.
USUAL = {"words": 11, "years": 30, "before": 1, "mean": True}
ONE = Windows(wanted=(0,), count=0, **USUAL)


def planes(kind: int, most: int, in_registers: bool) -> Program:
    return programs.planes_program(kind, ONE, (0, most), in_registers)


def lists(largest: bool, moves: bool, fewest: int = 1) -> Program:
    return programs.lists_program(ONE, [34], 34, largest, moves, fewest)


KINDS = {"affine16": AFFINE16, "affine32": AFFINE32, "float32": FLOAT32, "float64": FLOAT64}
PROGRAMS: dict[str, Program] = {
    "planes in registers": planes(AFFINE16, 12, True),
    "lists of the largest": lists(True, False),
    "lists of the smallest": lists(False, False, fewest=0),
    "lists moved": lists(True, True),
    **{f"planes of {name}": planes(kind, KEY_BITS[kind], False) for name, kind in KINDS.items()},
    **{f"rows of {name}": programs.rows_program(kind) for name, kind in KINDS.items()},
    **{f"moments of {name}": programs.moments_program(k, 11, 30, 2) for name, k in KINDS.items()},
}

# By the beginning of a program's name: the most registers that a thread may take, and where none
# of its memory may lie outside of them. Lists are for NVIDIA's newer devices: older ones and AMD's
# have not the shared memory, or the registers, and take planes (windows.py asks for local_bytes).
# Planes that are kept in memory claim no registers, and a compiler may spill a few bytes.
BUDGET: dict[str, tuple[dict[str, int], tuple[str, ...]]] = {
    "planes in registers": (
        {"sm_70": 255, "sm_90": 255, "gfx906": 256, "gfx90a": 512}, (*NVIDIA, *AMD)
    ),
    "lists of": ({"sm_90": 255}, ("sm_90",)),
    "lists moved": ({"sm_90": 255}, ()),
    "planes": ({"sm_70": 255, "sm_90": 255, "gfx906": 256, "gfx90a": 512}, ()),
    "rows": ({"sm_70": 64, "sm_90": 64, "gfx906": 64, "gfx90a": 64}, (*NVIDIA, *AMD)),
    "moments": ({"sm_70": 128, "sm_90": 128, "gfx906": 128, "gfx90a": 128}, (*NVIDIA, *AMD)),
    "extremes": ({"sm_70": 64, "sm_90": 64, "gfx906": 64, "gfx90a": 64}, (*NVIDIA, *AMD)),
}  # fmt: skip


def test_the_budget_is_within_what_there_is():
    for most, _ in BUDGET.values():
        for arch, registers in most.items():
            assert registers <= ARCHITECTURES[arch].max_registers_per_thread


@pytest.mark.parametrize(("compiler", "arch"), TARGETS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_keeps_to_its_budget(request, name, compiler, arch):
    compile_for = request.getfixturevalue(compiler)
    program = PROGRAMS[name]
    made = compile_for(program.text, arch, OPTIONS[compiler])
    assert set(made.kernels) == set(program.kernels)
    for kernel, takes in made.kernels.items():
        which = kernel if kernel in BUDGET else name
        most, nothing_outside = next(b for start, b in BUDGET.items() if which.startswith(start))
        said = f"{kernel}: {takes}"
        assert takes.registers <= most.get(arch, takes.registers), said
        if arch in nothing_outside:
            assert (takes.stack_bytes, takes.dynamic_stack) == (0, False), said
        if arch in NVIDIA and arch in nothing_outside:
            assert takes.spills == 0, said
        assert takes.shared_bytes == 0, said
