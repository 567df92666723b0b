"""Every kind of file that compilers leave, made here by them: read right, or refused."""

from __future__ import annotations

import contextlib
import importlib.metadata
import io
import os
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console

import compilers
from kuroshio.device.occupancy import ARCHITECTURES
from kuroshio.errors import Refusal
from kuroshio.perf import occupancy_table
from kuroshio.perf.compiled import resource_usage
from kuroshio.perf.compiled.files import read
from kuroshio.perf.compiled.kernel import Kernel
from kuroshio.perf.occupancy import Takes, row
from perf_occupancy import HUNGRY, kernel, kernels_of
from perf_occupancy import occupancy as command

REMARKS = "-Rpass-analysis=kernel-resource-usage"
AMD, NVIDIA = ("gfx906", "gfx90a"), ("sm_70", "sm_90")

# An array at addresses known only at run time: in memory, although nothing was spilled.
WANDERING = """{
  float box[40];
  for (int i = 0; i < 40; i++) box[i] = i;
  for (int i = 0; i < n; i++) box[int(in[i]) % 40] += i;
  for (int i = 0; i < 40; i++) out[i] = box[i] * box[39 - i];
}
"""
SETTLED = """{
  __shared__ float fixed[64];
  fixed[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = fixed[63 - threadIdx.x] * n;
}
"""
KERNELS = kernel("wandering", "", WANDERING) + kernel("settled", "64, 4", SETTLED)
# A function of its own, with an array, that one kernel calls, one calls itself by way of it.
CALLS = """
__device__ __attribute__((noinline)) float deep(const float *in, float *out, int n) {
  float box[10];
  for (int i = 0; i < 10; i++) box[i] = in[i + n];
  out[n] = box[int(in[0]) % 10];
  return n < 2 ? box[int(in[1]) % 10] : deep(in, out, n - 1) + deep(in, out, n - 2);
}
""" + "".join(
    kernel(name, "", body)
    for name, body in (
        ("before", "{ out[0] = n; }"),
        ("recurses", "{ out[0] = deep(in, out, n); }"),
        ("after", "{ out[0] = n; }"),
    )
)


@pytest.fixture(scope="module")
def made(request, tmp_path_factory):
    """The path of KERNELS in each form for each architecture, compiled once."""
    folder = tmp_path_factory.mktemp("compiled")

    def write(name: str, content: bytes | str) -> Path:
        path = folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    hipcc, hiprtc = (request.getfixturevalue(name) for name in ("hipcc", "hiprtc"))
    nvrtc = request.getfixturevalue("nvrtc")
    found: dict[tuple[str, str], Path] = {}
    for arch in AMD:
        compiled = hipcc(KERNELS, arch, [REMARKS])
        found[arch, "assembly"] = write(f"{arch}.s", compiled.code)
        found[arch, "remarks"] = write(f"{arch}.remarks", compiled.log)
        found[arch, "code object"] = write(f"{arch}.o", hiprtc(KERNELS, arch).code)
    for arch in NVIDIA:
        compiled = nvrtc(KERNELS, arch)
        found[arch, "log"] = write(f"{arch}.log", compiled.log)
        found[arch, "cubin"] = write(f"{arch}.cubin", compiled.code)
    found["sm_90", "PTX"] = write("sm_90.ptx", nvrtc(KERNELS, "compute_90").code)
    source = write("kernels.hip", KERNELS)
    for name, options in (("bundle", ["--genco"]), ("program", ["-c"])):
        found["both", name] = folder / name
        subprocess.run(
            [
                *(compilers.hipcc_command(), *options, "-O3", "-x", "hip", source),
                *("-include", "hip/hip_runtime.h", *(f"--offload-arch={arch}" for arch in AMD)),
                *("-Wno-unused-command-line-argument", "-o", found["both", name]),
            ],
            env=os.environ | {"HIP_PLATFORM": "amd"},
            check=True,
        )
    return found


def by_name(path, architecture=None) -> dict[str, Kernel]:
    return {each.name: each for each in read(str(path), architecture).kernels}


@pytest.mark.parametrize("arch", AMD)
def test_assembly(made, arch):
    found = by_name(made[arch, "assembly"])
    assert set(found) == {"wandering", "settled"}
    wandering, settled = found["wandering"], found["settled"]
    assert (wandering.architecture, settled.architecture) == (arch, arch)
    assert wandering.stack_bytes >= 160
    assert wandering.spilled == {"vector registers": 0, "scalar registers": 0}
    assert (settled.stack_bytes, settled.shared_bytes, wandering.shared_bytes) == (0, 256, 0)
    assert (wandering.max_threads, settled.max_threads) == (1024, 64)
    assert 0 < settled.registers < 20
    assert settled.scalar_registers > 0
    limits = ARCHITECTURES[arch]
    for each in found.values():  # shared memory is not what limits here
        ours = row(limits, Takes(registers=each.registers), 64).got.waves
        assert ours == limits.simds * each.waves_per_simd


@pytest.mark.parametrize("arch", AMD)
def test_remarks_say_what_assembly_says(made, arch):
    assembly = by_name(made[arch, "assembly"])
    remarks = by_name(made[arch, "remarks"], arch)
    assert set(remarks) == set(assembly)
    for name, said in remarks.items():
        other = assembly[name]
        for what in (
            "architecture", "registers", "scalar_registers", "stack_bytes", "spilled",
            "shared_bytes", "waves_per_simd", "accumulation_registers",
        ):  # fmt: skip
            assert getattr(said, what) == getattr(other, what), what
        assert said.max_threads is None


@pytest.mark.parametrize("arch", AMD)
@pytest.mark.parametrize("form", ["code object", "bundle", "program"])
def test_code_objects_say_what_assembly_says(made, arch, form):
    path = made[arch if form == "code object" else "both", form]
    kernels = [each for each in read(str(path)).kernels if each.architecture == arch]
    assert {each.name for each in kernels} == {"wandering", "settled"}
    assembly = by_name(made[arch, "assembly"])
    for each in kernels:
        other = assembly[each.name]
        assert (each.stack_bytes, each.shared_bytes) == (other.stack_bytes, other.shared_bytes)
        assert (each.max_threads, each.spilled) == (other.max_threads, other.spilled)
        if form != "code object":  # hiprtc and hipcc prepare a kernel differently
            assert each.registers == other.registers
            assert each.scalar_registers == other.scalar_registers


@pytest.mark.parametrize("arch", ["gfx908", "gfx90a"])
def test_accumulation_registers(hipcc, tmp_path, arch):
    """One file of registers from gfx90a on, two of them before."""
    compiled = hipcc(kernel("many", "256", HUNGRY), arch, [REMARKS])
    (tmp_path / "remarks").write_text(compiled.log)
    said, other = by_name(tmp_path / "remarks", arch)["many"], compiled.kernels["many"]
    assert said.registers == other.registers
    assert said.accumulation_registers == other.accumulation_registers > 100
    assert said.registers <= ARCHITECTURES[arch].max_registers_per_thread
    assert (said.registers > 256) == (arch == "gfx90a")


@pytest.mark.parametrize("arch", NVIDIA)
def test_cubins_say_what_ptxas_says(made, arch):
    log, cubin = by_name(made[arch, "log"]), by_name(made[arch, "cubin"])
    assert set(log) == set(cubin) == {"wandering", "settled"}
    for name, said in log.items():
        other = cubin[name]
        for what in ("architecture", "registers", "stack_bytes", "shared_bytes"):
            assert getattr(said, what) == getattr(other, what), what
        assert other.spilled is None
        assert said.spilled == {"bytes stored": 0, "bytes loaded": 0}
    assert log["wandering"].stack_bytes >= 160
    assert log["settled"].shared_bytes == 256
    assert (cubin["wandering"].max_threads, cubin["settled"].max_threads) == (None, 64)


def test_spills_are_told(nvrtc, hipcc, tmp_path):
    log = nvrtc(kernel("many", "1024", HUNGRY), "sm_90").log
    (tmp_path / "log").write_text(log)
    many = by_name(tmp_path / "log")["many"]
    assert min(many.spilled.values()) > 100
    assert many.remarks()[0].startswith("Scratch: ")
    assert "spilled: " in many.remarks()[0]
    many = hipcc(kernel("many", "1024", HUNGRY), "gfx906").kernels["many"]
    assert many.spilled["vector registers"] > 100


def test_a_function_belongs_to_the_kernel_that_calls_it(nvrtc, hipcc, tmp_path):
    (tmp_path / "log").write_text(nvrtc(CALLS, "sm_90").log)
    found = by_name(tmp_path / "log")
    stacks = {name: found[name].stack_bytes for name in ("before", "recurses", "after")}
    assert stacks["recurses"] >= 40
    assert (stacks["before"], stacks["after"]) == (0, 0)
    compiled = hipcc(CALLS, "gfx906", [REMARKS])
    (tmp_path / "remarks").write_text(compiled.log)
    found = by_name(tmp_path / "remarks", "gfx906")
    assert set(found) == {"before", "recurses", "after"}  # and no "deep", which is no kernel
    assert compiled.kernels["recurses"].dynamic_stack
    assert "Stack of unknown size" in compiled.kernels["recurses"].remarks()[1]
    assert not compiled.kernels["after"].dynamic_stack


# As cuobjdump 13.5 printed it of a program for two devices, whose kernel has 1,024 bytes.
PRINTED = """
Fatbin elf code:
================
arch = sm_80
code version = [1,8]
host = linux
compile_size = 64bit

Resource usage:
 Common:
  GLOBAL:0
 Function hidden:
  REG:8 STACK:176 SHARED:0 LOCAL:0 CONSTANT[0]:364 TEXTURE:0 SURFACE:0 SAMPLER:0
 Function scale:
  REG:9 STACK:0 SHARED:1024 LOCAL:0 CONSTANT[0]:368 TEXTURE:0 SURFACE:0 SAMPLER:0

Fatbin elf code:
================
arch = sm_90
code version = [1,8]
host = linux
compile_size = 64bit

Resource usage:
 Common:
  GLOBAL:0
 Function scale:
  REG:8 STACK:0 SHARED:2048 LOCAL:0 CONSTANT[0]:544 TEXTURE:0 SURFACE:0 SAMPLER:0
"""


def test_cuobjdump_recorded(tmp_path):
    (tmp_path / "usage").write_text(PRINTED)
    found = read(str(tmp_path / "usage")).kernels
    assert [
        (k.name, k.architecture, k.registers, k.stack_bytes, k.shared_bytes) for k in found
    ] == [
        ("hidden", "sm_80", 8, 176, 0),
        ("scale", "sm_80", 9, 0, 1024),
        ("scale", "sm_90", 8, 0, 1024),  # without the driver's own
    ]
    assert "does not tell spilled registers" in found[0].remarks()[0]


def test_a_cubin_with_recursion(made, tmp_path):
    """Linked ones say so with a stack of -1 bytes."""
    whole = made["sm_90", "cubin"].read_bytes()
    attribute = struct.pack("<BBH", 4, 0x12, 8)
    ends = [m.end() for m in re.finditer(re.escape(attribute), whole)]
    assert ends
    content = bytearray(whole)
    for end in ends:
        content[end + 4 : end + 8] = b"\xff" * 4
    (tmp_path / "cubin").write_bytes(content)
    for each in by_name(tmp_path / "cubin").values():
        assert each.dynamic_stack
        assert each.stack_bytes < 1000
    assert not any(each.dynamic_stack for each in by_name(made["sm_90", "cubin"]).values())


def test_a_bundle_of_too_much(made, tmp_path):
    whole = made["both", "bundle"].read_bytes()
    begin = len(b"__CLANG_OFFLOAD_BUNDLE__")
    (tmp_path / "bundle").write_bytes(whole[:begin] + struct.pack("<Q", 10**6) + whole[begin + 8 :])
    with pytest.raises(Refusal, match="announces 1,000,000 code objects"):
        read(str(tmp_path / "bundle"))


def _cuobjdump() -> list[str]:
    """The toolkit's, or that of the package nvidia-cuda-cuobjdump; none is no failure."""
    try:
        files = importlib.metadata.files("nvidia-cuda-cuobjdump") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    packaged = [str(file.locate()) for file in files if file.name == "cuobjdump"]
    return [tool for tool in [shutil.which("cuobjdump"), *packaged] if tool][:1]


@pytest.mark.parametrize("arch", NVIDIA)
@pytest.mark.parametrize("tool", _cuobjdump() or ["none"])
def test_cuobjdump_says_what_the_cubin_says(made, tool, arch):
    path = made[arch, "cubin"]
    if tool == "none":  # the recorded output stands in for it
        assert resource_usage.kernels(PRINTED, None)
        return
    ran = subprocess.run([tool, "-res-usage", path], capture_output=True, text=True, check=True)
    cubin = by_name(path)
    for said in resource_usage.kernels(ran.stdout, arch):
        other = cubin.pop(said.name)
        for what in ("architecture", "registers", "stack_bytes", "shared_bytes", "spilled"):
            assert getattr(said, what) == getattr(other, what), what
    assert not cubin


def test_what_a_person_sees_of_a_file(made):
    shown = command(made["gfx906", "assembly"], "--kernel", "wander")
    assert "although nothing was spilled: an array whose addresses" in shown
    assert "compiled for blocks of at most 1,024 threads" in shown
    assert "waves a SIMD by the compiler's reckoning" in shown
    assert "gfx906, block 64: " in shown
    both = command(made["both", "bundle"])
    assert both.count("wandering") == 4  # a line of the table and a remark, twice
    assert "gfx906" in both
    assert "gfx90a" in both
    assert "--kernel NAME" in both
    one = command(made["both", "bundle"], "--arch", "gfx90a", "--kernel", "settled")
    # The launch bound is the block that is meant.
    assert "gfx90a, block 64: 32 blocks" in one
    assert "__launch_bounds__(64, M)" in one


@pytest.mark.parametrize("width", [50, 60, 80, 240])
def test_a_narrow_terminal_shows_the_kernels(made, width):
    """With what limits them; columns for which there is no room are named."""
    table, left_out = occupancy_table._overview(kernels_of(made["both", "bundle"]), width)
    console = Console(width=width, file=io.StringIO())
    console.print(table)
    shown = console.file.getvalue()
    assert shown.count("settled") == shown.count("wandering") == 2
    assert "\N{HORIZONTAL ELLIPSIS}" not in shown
    assert "limit" in shown
    assert bool(left_out) == (width < 90)
    assert not any(name in shown for name in left_out)


def test_dynamic_shared_memory_comes_on_top(made):
    path = made["sm_90", "cubin"]
    (found,) = kernels_of(path, "--kernel", "settled", "--dynamic-shared", 100_000)
    assert found["takes"]["shared_bytes"] == 100_256
    assert (found["chosen"]["blocks"], found["chosen"]["limited_by"]) == (2, "shared memory")
    assert found["chosen"]["by"] == "launch bound"
    assert found["compiler"]["registers_allowed"] == 255
    (found,) = kernels_of(path, "--kernel", "settled", "--block", 128)
    assert (found["chosen"]["blocks"], found["chosen"]["limited_by"]) == (0, "block size")
    assert [row["block"] for row in found["blocks"]] == [32, 64, 128]


def test_several_files_at_once(made):
    paths = [made["gfx906", "assembly"], made["sm_90", "log"]]
    found = [(each["kernel"], each["file"]) for each in kernels_of(*paths)]
    assert sorted(found) == sorted((k, str(p)) for k in ("wandering", "settled") for p in paths)


def test_standard_input(made, monkeypatch):
    content = made["sm_90", "log"].read_bytes()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
    assert {each["kernel"] for each in kernels_of("-")} == {"wandering", "settled"}


def test_mixed_refusals(made, tmp_path):
    assembly, ptx = made["gfx906", "assembly"], made["sm_90", "PTX"]

    def refused(*arguments):
        with pytest.raises(Refusal) as raised:
            command(*arguments)
        return raised.value.message

    assert "has no kernel for gfx90a; it is for gfx906" in refused(assembly, "--arch", "gfx90a")
    assert "There are wandering, settled" in refused(assembly, "--kernel", "absent")
    assert "--lds (--shared) and a file" in refused(assembly, "--lds", 3)
    assert "do not name the architecture" in refused(made["gfx906", "remarks"])
    assert "is PTX, which has no registers yet" in refused(ptx)
    assert "cannot be read: No such file" in refused(tmp_path / "absent")
    assert "cannot be read: Is a directory" in refused(tmp_path)
    other = assembly.read_text().replace("gfx906", "gfx1234")
    (tmp_path / "other.s").write_text(other)
    assert "'gfx1234' of" in refused(tmp_path / "other.s")
    for content, said in (
        (b"", "is empty"),
        (b"int main() {}\n", "of no kind that is known here"),
        (b"\x50\xed\x55\xba" + bytes(60), "cuobjdump -res-usage"),
        (b"CCOB" + bytes(60), "compressed bundle"),
        (b"BC\xc0\xde" + bytes(60), "bitcode"),
        (b"\x7fELF", "cannot be read"),
        (b"ptxas info    : 0 bytes gmem\n", "says nothing of kernels"),
        (b"ptxas info : Compiling entry function 'k' for 'sm_90'\n", "ends before what ptxas"),
        (b"Resource usage:\n Function k:\n  REG:8 STACK:0 SH", "(pass it with --arch)"),
        (
            b"arch = sm_80\nResource usage:\n Function k:\n  REG:8 STACK:0 SH",
            "line of k is cut off",
        ),
        (Path(sys.executable).read_bytes(), "a processor without kernels"),
    ):
        (tmp_path / "content").write_bytes(content)
        assert said in refused(tmp_path / "content")


FORMS = [
    *((arch, form) for arch in AMD for form in ("assembly", "remarks", "code object")),
    *((arch, form) for arch in NVIDIA for form in ("log", "cubin")),
    ("both", "bundle"),
    ("both", "program"),
]
hurt = settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.parametrize(("arch", "form"), FORMS)
@hurt
@given(share=st.floats(0, 0.999))
def test_what_is_cut_off_is_refused(made, tmp_path, arch, form, share):
    """Only a text may end between two kernels, and then the first are read right."""
    whole = made[arch, form].read_bytes()
    path = tmp_path / "cut"
    told = arch if form == "remarks" else None
    path.write_bytes(whole[: int(len(whole) * share)])
    try:
        found = read(str(path), told).kernels
    except Refusal:
        return
    assert form in ("remarks", "log", "assembly")
    complete = read(str(made[arch, form]), told).kernels
    if form == "assembly":  # its last lines are nobody's
        assert found == complete
    assert found[:-1] == complete[: len(found) - 1]
    assert found[-1].registers == complete[len(found) - 1].registers


@pytest.mark.parametrize(("arch", "form"), FORMS)
@hurt
@given(data=st.data())
def test_what_is_damaged_is_read_or_refused(made, tmp_path, arch, form, data):
    content = bytearray(made[arch, form].read_bytes())
    # Damage that matters: near the head, near the metadata, anywhere.
    anchors = [0, max(content.find(b"amdhsa.kernels"), 0), max(content.find(b".nv.info"), 0)]
    for _ in range(data.draw(st.integers(1, 8))):
        near = data.draw(st.sampled_from(anchors)) + data.draw(st.integers(0, 400))
        at = data.draw(st.just(near) | st.integers(0, len(content) - 1)) % len(content)
        content[at] = data.draw(st.integers(0, 255))
    path = tmp_path / "damaged"
    path.write_bytes(content)
    with contextlib.suppress(Refusal):
        command(path, *(["--arch", arch] if form == "remarks" else []))
