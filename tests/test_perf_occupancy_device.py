"""On a real device: what is said of kernels is what its runtime says (pytest -m gpu)."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import compilers
from kuroshio.device import cuda
from kuroshio.device.gpu import GpuError
from kuroshio.perf.compiled import cubin
from kuroshio.perf.occupancy import Takes, bounded, row
from perf_occupancy import HUNGRY, kernel

pytestmark = pytest.mark.gpu

HELD = (4, 24, 40, 60, 100, 150)
BOUNDS = ("", "1024", "512", "256, 2", "256, 3", "192, 5", "96, 7")
SHARED = (0, 100, 4096, 12_000, 40_000, 48 << 10)


def _holding(held: int) -> str:
    """A body whose thread holds so many values at once, and 256 bytes of its block's memory."""
    return f"""{{
      __shared__ float fixed[64];
      float value[{held}];
      fixed[threadIdx.x % 64] = in[threadIdx.x];
      #pragma unroll
      for (int k = 0; k < {held}; k++) value[k] = in[k * 64 + threadIdx.x];
      __syncthreads();
      #pragma unroll
      for (int k = 0; k < {held}; k++) out[k * 64] = value[k] * value[{held} - 1 - k] * fixed[n];
    }}"""


KERNELS = {
    **{f"hold{held}": kernel(f"hold{held}", "", _holding(held)) for held in HELD},
    **{f"bound{i}": kernel(f"bound{i}", bounds, HUNGRY) for i, bounds in enumerate(BOUNDS)},
}


@pytest.fixture(scope="module")
def gpu() -> Any:
    try:
        return cuda.first()
    except GpuError as error:
        pytest.skip(error.what)


def test_occupancy_is_what_the_runtime_says(gpu):
    """For block sizes whole and ragged, and dynamic shared memory up to all that there is."""
    import cupy

    limits = gpu.limits
    assert not limits.assumed, "a device whose rules are not in the table"
    query = cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor
    different = []
    with gpu.use():
        module = cupy.RawModule(code="".join(KERNELS.values()), options=("-std=c++17",))
        for name in KERNELS:
            raw = module.get_function(name)
            fits = bounded(limits, raw.max_threads_per_block)
            static = raw.shared_size_bytes
            most = limits.max_shared_per_block - static
            raw.max_dynamic_shared_size_bytes = most
            blocks = {*range(32, 1025, 32), 1, 33, 100, 500, 1000}
            for block, shared in itertools.product(sorted(blocks), (*SHARED, 100_000, most)):
                if block > fits.max_threads_per_block or shared > most:
                    continue
                takes = Takes(registers=raw.num_regs, shared_bytes=static + shared)
                ours = row(fits, takes, block).got.blocks
                theirs = query(raw.kernel.ptr, block, shared)
                if ours != theirs:
                    different.append((name, raw.num_regs, block, static + shared, ours, theirs))
    assert not different, f"{len(different)} differ, of which the first: {different[:10]}"


def test_a_cubin_is_read_as_the_driver_reads_it(gpu, tmp_path):
    import cupy

    if cuda.kind() != "cuda":
        pytest.skip("cubins are NVIDIA's")
    try:
        made = compilers.nvrtc("".join(KERNELS.values()), gpu.limits.name)
    except compilers.CompilerAbsent as absent:
        pytest.skip(str(absent))
    (tmp_path / "kernels.cubin").write_bytes(made.code)
    found = {each.name: each for each in cubin.kernels(made.code)}
    assert set(found) == set(KERNELS)
    with gpu.use():
        module = cupy.RawModule(path=str(tmp_path / "kernels.cubin"))
        for name, said in found.items():
            raw = module.get_function(name)
            assert said.registers == raw.num_regs
            assert said.shared_bytes == raw.shared_size_bytes
            assert said.stack_bytes == raw.local_size_bytes
            assert (said.max_threads or 1024) == raw.max_threads_per_block
