"""One text through every compiler: what it takes is read right, and an error shows its line."""

import re
import sys

import pytest

import compilers
from kuroshio.device.occupancy import ARCHITECTURES, occupancy

KERNELS = """
typedef unsigned int u32;

// Counts at addresses known only at run time: registers have no addresses.
extern "C" __global__ void __launch_bounds__(64) wandering(const u32 *in, u32 *out, int n) {
  u32 box[BOXES];
  for (int i = 0; i < BOXES; i++) box[i] = 0;
  for (int i = 0; i < n; i++) box[in[i * 64 + threadIdx.x] % BOXES] += i;
  u32 sum = 0;
  for (int i = 0; i < BOXES; i++) sum = sum * 31 + box[i];
  out[threadIdx.x] = sum;
}

// Every address is known once the loops are unrolled.
extern "C" __global__ void __launch_bounds__(64) settled(const u32 *in, u32 *out, int n) {
  extern __shared__ u32 stage[];
  __shared__ u32 fixed[64];
  u32 box[4];
  stage[threadIdx.x] = in[threadIdx.x];
  fixed[threadIdx.x] = in[threadIdx.x + 64];
  __syncthreads();
  for (int i = 0; i < 4; i++) box[i] = stage[63 - threadIdx.x] * i + fixed[63 - threadIdx.x];
  for (int i = 0; i < 4; i++) out[threadIdx.x * 4 + i] = box[i] + n;
}
"""

# What each compiler should answer; an unexpected one does not compile.
WHO = """
#if defined(__CUDACC_RTC__) && !defined(__HIPCC__)
#define ANSWER nvrtc
#elif defined(__HIPCC_RTC__) && defined(__HIPCC__) && defined(__HIP_DEVICE_COMPILE__)
#define ANSWER hiprtc
#elif defined(__HIPCC__) && defined(__HIP_DEVICE_COMPILE__)
#define ANSWER hip
#endif
extern "C" __global__ void ANSWER() {}
"""

TARGETS = [
    ("nvrtc", "sm_70"),
    ("nvrtc", "sm_90"),
    ("hip", "gfx906"),
    ("hip", "gfx90a"),
    ("hiprtc", "gfx906"),
    ("hiprtc", "gfx90a"),
]


@pytest.fixture(params=TARGETS, ids=" ".join)
def target(request):
    """A compiler that is there, and an architecture for it."""
    name, arch = request.param
    return request.getfixturevalue({"hip": "hipcc"}.get(name, name)), arch


def test_what_each_kernel_takes(target):
    compile_for, arch = target
    made = compile_for(KERNELS, arch, ["-DBOXES=128"])
    assert set(made.kernels) == {"wandering", "settled"}
    wandering, settled = made.kernels["wandering"], made.kernels["settled"]
    assert wandering.stack_bytes >= 128 * 4
    assert (settled.stack_bytes, settled.spills, settled.shared_bytes) == (0, 0, 64 * 4)
    assert wandering.shared_bytes == 0
    assert 4 <= settled.registers <= 32
    assert not wandering.dynamic_stack
    # AMD's scalar registers serve the whole wave; NVIDIA's uniform ones are not counted.
    assert (settled.scalar_registers > 0) == arch.startswith("gfx")
    # The options reach the compiler.
    more = compile_for(KERNELS, arch, ["-DBOXES=256"]).kernels["wandering"]
    assert more.stack_bytes - wandering.stack_bytes == 128 * 4
    assert made.code.startswith(b"\t.text" if compile_for is compilers.hip else b"\x7fELF")


@pytest.mark.parametrize(
    ("compiler", "arch"), [("nvrtc", "sm_90"), ("hipcc", "gfx906"), ("hiprtc", "gfx906")]
)
def test_registers_that_do_not_fit_are_told(request, compiler, arch):
    # 300 sums at once are more than a thread has registers for.
    compile_for = request.getfixturevalue(compiler)
    text = """
    extern "C" __global__ void __launch_bounds__(64) many(const float *in, float *out, int n) {
      float sum[300];
      #pragma unroll
      for (int k = 0; k < 300; k++) sum[k] = in[k * 64 + threadIdx.x];
      for (int i = 0; i < n; i++) {
        #pragma unroll
        for (int k = 0; k < 300; k++) sum[k] = sum[k] * sum[(k + 1) % 300] + in[i];
      }
      #pragma unroll
      for (int k = 0; k < 300; k++) out[k * 64 + threadIdx.x] = sum[k];
    }
    """
    many = compile_for(text, arch).kernels["many"]
    assert many.stack_bytes > 0
    assert many.spills > 0
    assert many.registers <= ARCHITECTURES[arch].max_registers_per_thread


def test_the_macros_tell_who_compiles(target):
    compile_for, arch = target
    assert list(compile_for(WHO, arch).kernels) == [compile_for.__name__]


def test_an_error_shows_the_line(target):
    compile_for, arch = target
    text = 'extern "C" __global__ void broken(int *out) {\n  out[0] = nowhere;\n}\n'
    with pytest.raises(compilers.CompileError, match="nowhere") as raised:
        compile_for(text, arch)
    assert re.search(r"kernels\S*[:(]2\b|CompileSource:2\b", str(raised.value))


def test_an_unknown_architecture_is_an_error(target):
    compile_for, arch = target
    with pytest.raises(compilers.CompileError):
        compile_for(KERNELS, arch[:2] + "_nowhere", ["-DBOXES=128"])


def test_ptx_has_no_registers_yet(nvrtc):
    made = nvrtc(KERNELS, "compute_90", ["-DBOXES=128"])
    assert made.kernels == {}
    assert b".visible .entry settled(" in made.code


@pytest.mark.parametrize("arch", ["gfx906", "gfx90a"])
def test_hiprtc_and_hipcc_agree(hipcc, hiprtc, arch):
    options = ["-DBOXES=128"]
    offline, run_time = (compile_for(KERNELS, arch, options) for compile_for in (hipcc, hiprtc))
    for name, takes in run_time.kernels.items():
        assert takes.stack_bytes == offline.kernels[name].stack_bytes
        assert takes.shared_bytes == offline.kernels[name].shared_bytes
        assert abs(takes.registers - offline.kernels[name].registers) <= 4


@pytest.mark.parametrize("arch", ["gfx906", "gfx908", "gfx90a"])
def test_occupancy_is_as_the_compiler_says(hipcc, arch):
    """From kernels that hold few values or many."""
    text = "".join(
        f"""
        extern "C" __global__ void __launch_bounds__(64) hold{n}(const float *in, float *out) {{
          float held[{n}];
          #pragma unroll
          for (int k = 0; k < {n}; k++) held[k] = in[k * 64 + threadIdx.x];
          __syncthreads();
          #pragma unroll
          for (int k = 0; k < {n}; k++) out[k * 64 + threadIdx.x] = held[k] * held[{n} - 1 - k];
        }}
        """
        for n in (8, 24, 28, 40, 60, 76, 110, 150, 200)
    )
    limits = ARCHITECTURES[arch]
    seen = set()
    for takes in hipcc(text, arch).kernels.values():
        found = occupancy(
            limits, block=64, registers=takes.registers, shared_bytes=takes.shared_bytes
        )
        assert found.waves == limits.simds * takes.waves_per_simd
        seen.add(takes.waves_per_simd)
    assert len(seen) > 4


def test_absent_compilers_say_what_installs_them(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(compilers.CompilerAbsent, match="apt install hipcc"):
        compilers.hip("", "gfx906")
    with pytest.raises(compilers.CompilerAbsent, match="pip install nvidia-cuda-nvrtc-cu12"):
        compilers.nvrtc("", "sm_90")
