"""What linking adds to a kernel, and versions of formats, as compilers' files tell them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import compilers
from kuroshio.errors import Refusal
from kuroshio.perf.compiled import amd_metadata
from kuroshio.perf.compiled.files import read
from test_perf_occupancy_files import KERNELS, PRINTED, REMARKS, by_name

# And of a program with recursion that was linked: a function that is no kernel, and no stack size.
LINKED = """
Fatbin elf code:
================
arch = sm_90

Resource usage:
 Common:
  GLOBAL:0
 Function _Z4deepPKfPfi$3:
  REG:0 STACK:0 SHARED:0 LOCAL:0 TEXTURE:0 SURFACE:0 SAMPLER:0
 Function recurses:
  REG:35 STACK:UNKNOWN SHARED:0 LOCAL:0 CONSTANT[0]:548 TEXTURE:0 SURFACE:0 SAMPLER:0
"""


def test_cuobjdump_of_recursion(tmp_path):
    (tmp_path / "usage").write_text(LINKED)
    (found,) = read(str(tmp_path / "usage")).kernels
    assert (found.name, found.registers, found.stack_bytes) == ("recurses", 35, 0)
    assert "Stack of unknown size" in found.remarks()[0]


def test_cuobjdump_of_several_files(tmp_path):
    """Of a cubin no architecture is printed; that of the file before it is not its."""
    cubin = PRINTED[PRINTED.rindex("Resource usage:") :]
    (tmp_path / "usage").write_text(PRINTED + cubin)
    with pytest.raises(Refusal, match="does not name its architecture"):
        read(str(tmp_path / "usage"))
    found = read(str(tmp_path / "usage"), "sm_80").kernels
    assert [each.architecture for each in found] == ["sm_80", "sm_80", "sm_90", "sm_80"]
    assert found[-1].shared_bytes == 2048


# As nvcc 13.0 -rdc=true -Xptxas -v -Xnvlink -v printed it, for one device.
RELOCATED = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z3tplIdLi1024EEvPT_' for 'sm_90'
ptxas info    : Function properties for _Z3tplIdLi1024EEvPT_
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 12 registers, used 1 barriers
ptxas info    : Compile time = 1.071 ms
ptxas info    : Compiling entry function 'recurses' for 'sm_90'
ptxas info    : Function properties for recurses
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 24 registers, used 0 barriers
ptxas info    : Compile time = 1.071 ms
ptxas info    : Function properties for _Z4deepPKfPfi
    48 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads
ptxas info    : Compile time = 2.899 ms
nvlink warning : Stack size for entry function 'recurses' cannot be statically determined
nvlink info    : 0 bytes gmem
nvlink info    : Function properties for 'recurses':
nvlink info    : used 35 registers, used 0 barriers, 0 stack, 0 bytes smem, 548 bytes cmem[0]
nvlink info    : Function properties for '_Z3tplIdLi1024EEvPT_':
nvlink info    : used 12 registers, used 1 barriers, 0 stack, 9216 bytes smem, 536 bytes cmem[0]
"""


def test_what_the_linker_knows_better(tmp_path):
    (tmp_path / "log").write_text(RELOCATED)
    shared, recurses = read(str(tmp_path / "log")).kernels
    assert (shared.registers, shared.shared_bytes, shared.dynamic_stack) == (12, 8192, False)
    assert (recurses.registers, recurses.shared_bytes, recurses.dynamic_stack) == (35, 0, True)
    # Of several devices the linker does not say which it speaks of.
    (tmp_path / "log").write_text(RELOCATED + RELOCATED.replace("sm_90", "sm_80"))
    found = read(str(tmp_path / "log")).kernels
    assert [(each.registers, each.shared_bytes) for each in found] == [(12, 0), (24, 0)] * 2


def test_a_cubin_that_is_not_linked(nvrtc, tmp_path):
    (tmp_path / "cubin").write_bytes(nvrtc(KERNELS, "sm_90", ["-rdc=true"]).code)
    assert set(by_name(tmp_path / "cubin")) == {"wandering", "settled"}


def test_assembly_of_two_architectures(hipcc, tmp_path):
    """hipcc -S writes it, one after the other."""
    parts = {arch: hipcc(KERNELS, arch) for arch in ("gfx906", "gfx90a")}
    both = b"\n".join(part.code for part in parts.values())
    (tmp_path / "both.s").write_bytes(both)
    found = {(k.architecture, k.name): k for k in read(str(tmp_path / "both.s")).kernels}
    assert found == {
        (arch, name): kernel
        for arch, part in parts.items()
        for name, kernel in part.kernels.items()
    }
    (tmp_path / "both.s").write_bytes(both[: both.rindex(b"amdhsa.version")])
    with pytest.raises(Refusal, match="in the middle of its kernels' metadata"):
        read(str(tmp_path / "both.s"))
    (tmp_path / "both.s").write_bytes(both[: both.rindex(b"amdhsa.kernels")])
    with pytest.raises(Refusal, match="before the metadata"):
        read(str(tmp_path / "both.s"))


def remarks(tmp_path, *options: str) -> Path:
    """What hipcc says of KERNELS."""
    source, out = tmp_path / "kernels.hip", tmp_path / "remarks"
    source.write_text(KERNELS)
    with open(out, "wb") as file:
        subprocess.run(
            [compilers.hipcc_command(), "-c", "-O3", REMARKS, *options, "-x", "hip", source, "-o",
             tmp_path / "object", "-include", "hip/hip_runtime.h",
             "-Wno-unused-command-line-argument"],
            env=os.environ | {"HIP_PLATFORM": "amd"}, check=True, stderr=file,
        )  # fmt: skip
    return out


def test_remarks_in_colour(hipcc, tmp_path):
    """As builds have them whose output is shown to people."""
    plain = by_name(remarks(tmp_path, "--offload-arch=gfx906"), "gfx906")
    coloured = remarks(tmp_path, "--offload-arch=gfx906", "-fcolor-diagnostics")
    assert b"\x1b[" in coloured.read_bytes()
    assert by_name(coloured, "gfx906") == plain
    assert set(plain) == {"wandering", "settled"}


def test_remarks_of_two_architectures_are_not_taken_for_one(hipcc, tmp_path):
    both = remarks(tmp_path, "--offload-arch=gfx906", "--offload-arch=gfx90a")
    with pytest.raises(Refusal, match="of several architectures"):
        read(str(both), "gfx906")
    one = remarks(tmp_path, "--offload-arch=gfx906")
    one.write_text(one.read_text() * 2)  # the same code in two files
    assert len(read(str(one), "gfx906").kernels) == 2


@pytest.mark.parametrize("form", ["-S", "-c"])
@pytest.mark.parametrize("version", [2, 3, 4, 5])
def test_versions_of_code_objects(hipcc, tmp_path, form, version):
    """What is of version 2 says what to do; from 3 on they say the same."""
    source, out = tmp_path / "kernels.hip", tmp_path / "out"
    source.write_text(KERNELS)
    subprocess.run(
        [compilers.hipcc_command(), form, "--cuda-device-only", "--offload-arch=gfx906", "-O3",
         f"-mcode-object-version={version}", "-Wno-unused-command-line-argument", "-include",
         "hip/hip_runtime.h", "-x", "hip", source, "-o", out],
        env=os.environ | {"HIP_PLATFORM": "amd"}, check=True, capture_output=True,
    )  # fmt: skip
    if version == 2:
        with pytest.raises(Refusal, match="-mcode-object-version=3"):
            read(str(out))
        return
    found = by_name(out)
    assert set(found) == {"wandering", "settled"}
    assert found["wandering"].stack_bytes >= 160
    assert found["settled"].shared_bytes == 256


@pytest.mark.parametrize(
    "target",
    ["amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-", "hipv4-amdgcn-amd-amdhsa--gfx90a",
     "amdgcn-amd-amdhsa-unknown-gfx90a", "hip-amdgcn-amd-amdhsa-unknown-gfx90a:xnack+"],
)  # fmt: skip
def test_names_of_targets(target):
    assert amd_metadata.architecture_of(target) == "gfx90a"
