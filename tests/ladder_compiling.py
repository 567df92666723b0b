"""The rungs' texts through compilers, each once a run, and the rows that compiled.json keeps."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
from functools import cache

import compilers
from kuroshio.device.occupancy import ARCHITECTURES, occupancy
from kuroshio.ladder import texts
from kuroshio.ladder.compiled import TEXTS, Row
from kuroshio.perf.compiled.kernel import Kernel

BLOCK = 256
KEPT = (("nvrtc", "sm_90"), ("hipcc", "gfx906"), ("hipcc", "gfx90a"))  # in compiled.json
_COMPILE = {"nvrtc": compilers.nvrtc, "hipcc": compilers.hip, "hiprtc": compilers.hiprtc}
_NO_FUSING = {"nvrtc": "--fmad=false"}  # as device/cuda.py asks for; elsewhere:
_ELSEWHERE = "-ffp-contract=off"


@cache
def kernels(name: str, compiler: str, arch: str) -> dict[str, Kernel]:
    """What the kernels of a text of TEXTS take."""
    text = texts.text(*TEXTS[name])
    options = ("-std=c++17", _NO_FUSING.get(compiler, _ELSEWHERE))
    return _COMPILE[compiler](text, arch, options).kernels


def rows(name: str, compiler: str, arch: str) -> list[Row]:
    limits, found = ARCHITECTURES[arch], []
    for kernel in kernels(name, compiler, arch).values():
        lives = occupancy(
            limits,
            block=BLOCK,
            registers=kernel.registers,
            shared_bytes=kernel.shared_bytes,
            scalar_registers=kernel.scalar_registers,
        )
        found.append(
            Row(
                text=name,
                kernel=kernel.name,
                architecture=arch,
                compiler=compiler,
                registers=kernel.registers,
                scalar_registers=kernel.scalar_registers,
                stack_bytes=kernel.stack_bytes,
                spills=kernel.spills,
                shared_bytes=kernel.shared_bytes,
                waves=lives.waves,
                waves_a_simd=lives.waves / limits.simds,
                occupancy=lives.share,
                limited_by=lives.limited_by,
            )
        )
    return sorted(found, key=lambda row: row.kernel)


@cache
def version(compiler: str) -> str:
    if compiler == "nvrtc":
        return importlib.metadata.version("nvidia-cuda-nvrtc-cu12")
    command = [compilers.hipcc_command(), "--version"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.search(r"HIP version: (\S+)", said)
    return f"HIP {found[1] if found else '?'}"
