"""The ladder's texts through the compilers of users' machines, and the file that remembers it."""

from __future__ import annotations

from dataclasses import asdict

import pytest

import ladder_compiling
from kuroshio.ladder import compiled
from kuroshio.ladder.compiled import TEXTS

TARGETS = (
    ("nvrtc", "sm_70"), ("nvrtc", "sm_90"), ("hipcc", "gfx906"), ("hipcc", "gfx90a"),
    ("hiprtc", "gfx906"),
)  # fmt: skip
KERNELS = {
    "heap": {"push_heaps", "from_heaps", "largest_by_heap"},
    "registers": {"largest_in_registers"},
    "direct": {"find_references", "window_sums", "from_sums"},
    "sliding": {"find_references", "slot_sums", "slide"},
}
# What the rungs launch; the lists of 67 are there to spill.
LAUNCHED = [name for name in TEXTS if "67" not in name]
MOST_REGISTERS = 64  # so that four blocks of 256 threads live on a multiprocessor
NEAR = 6  # registers between versions of a compiler


@pytest.mark.parametrize(("compiler", "arch"), TARGETS)
@pytest.mark.parametrize("name", LAUNCHED)
def test_a_text_keeps_to_its_budget(request, name, compiler, arch):
    request.getfixturevalue(compiler)
    made = ladder_compiling.kernels(name, compiler, arch)
    assert set(made) == KERNELS[TEXTS[name][0]]
    for takes in made.values():
        said = f"{takes}"
        assert takes.registers <= MOST_REGISTERS, said
        assert takes.shared_bytes == 0, said
        assert not takes.dynamic_stack, said
        assert takes.spills == 0, said
        assert (takes.stack_bytes > 0) == (name == "heap"), said


@pytest.mark.parametrize(("compiler", "arch"), ladder_compiling.KEPT)
@pytest.mark.parametrize("name", TEXTS)
def test_the_file_says_what_the_compilers_say(request, name, compiler, arch):
    request.getfixturevalue(compiler)
    kept = [
        row for row in compiled.rows() if (row.text, row.architecture) == (name, arch)
    ]  # fmt: skip
    now = ladder_compiling.rows(name, compiler, arch)
    if ladder_compiling.version(compiler) == compiled.versions()[compiler]:
        assert [asdict(row) for row in kept] == [asdict(row) for row in now]
        return
    assert [row.kernel for row in kept] == [row.kernel for row in now]
    for old, new in zip(kept, now, strict=True):
        assert (old.stack_bytes == 0) == (new.stack_bytes == 0)
        assert abs(old.registers - new.registers) <= NEAR


def test_the_file_has_nothing_else():
    archs = {arch for _, arch in ladder_compiling.KEPT}
    for row in compiled.rows():
        assert row.text in TEXTS
        assert row.architecture in archs
        assert 0 < row.occupancy <= 1
