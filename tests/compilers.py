"""The compilers that users' machines run, run here without a device: NVRTC, hipcc and hiprtc.

Each takes the text of kernels and the name of an architecture, and gives the code with what every
kernel takes, as the compiler itself tells it and the package reads it: NVRTC passes on what ptxas
writes, AMD's compilers put it into the code's metadata. Text that does not compile raises
`CompileError` with the log.

What tells the compilers apart inside the text:

    NVRTC    __CUDACC_RTC__ (and __CUDACC__, __CUDA_ARCH__)
    hiprtc   __HIPCC_RTC__, __HIPCC__ (and __HIP_DEVICE_COMPILE__, __HIP__, __gfx906__, ...)
    hipcc    __HIPCC__ without __HIPCC_RTC__; __HIP_DEVICE_COMPILE__ in the device's pass only
"""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from ctypes.util import find_library
from dataclasses import dataclass
from pathlib import Path

from kuroshio.perf.compiled import amd_metadata, code_object, ptxas_log
from kuroshio.perf.compiled.kernel import Kernel

HERE = Path(__file__).with_name("compile_here.py")


class CompileError(Exception):
    """The compiler refused; its log is the message."""


class CompilerAbsent(Exception):
    """Not installed; the message says what would install it."""


@dataclass(frozen=True)
class Compiled:
    code: bytes
    """Cubin or PTX (NVRTC), assembly (hipcc), code object (hiprtc)."""
    kernels: dict[str, Kernel]
    """By name; empty for PTX, which has no registers yet."""
    log: str


def nvrtc(source: str, arch: str, options: Sequence[str] = ()) -> Compiled:
    """Compile for `arch`: sm_90 gives a cubin, compute_90 PTX.

    CUDA 12's NVRTC, the last one that knows sm_70.
    """
    asked = [f"--gpu-architecture={arch}", "--ptxas-options=-v", *options]
    size = "nvrtcGetCUBIN" if arch.startswith("sm_") else "nvrtcGetPTX"
    code, log = _at_run_time(nvrtc_library(), "nvrtc", size, source, asked)
    return Compiled(code, _by_name(ptxas_log.kernels(log)), log)


def hiprtc(source: str, arch: str, options: Sequence[str] = ()) -> Compiled:
    """Compile for `arch` (gfx906) as a user's machine does, into a code object."""
    asked = [f"--offload-arch={arch}", *options]
    code, log = _at_run_time(hiprtc_library(), "hiprtc", "hiprtcGetCode", source, asked)
    return Compiled(code, _by_name(code_object.kernels(code)), log)


def hip(source: str, arch: str, options: Sequence[str] = ()) -> Compiled:
    """Compile for `arch` (gfx906) with hipcc, into assembly with the compiler's remarks.

    hiprtc knows threadIdx and the like by itself; hipcc must be told to include them.
    """
    with tempfile.TemporaryDirectory() as folder:
        text, out = Path(folder, "kernels.hip"), Path(folder, "kernels.s")
        text.write_text(source, encoding="utf-8")
        ran = subprocess.run(
            [
                *(hipcc_command(), "-S", "--cuda-device-only", f"--offload-arch={arch}", "-O3"),
                # hipcc gives its linker options even where nothing is linked.
                "-Wno-unused-command-line-argument",
                *("-include", "hip/hip_runtime.h", *options, "-x", "hip", text.name),
                *("-o", out.name),
            ],
            cwd=folder,
            env=os.environ | {"HIP_PLATFORM": "amd"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if ran.returncode:
            raise CompileError(ran.stdout)
        assembly = out.read_text(encoding="utf-8")
    return Compiled(assembly.encode(), _by_name(amd_metadata.kernels(assembly)), ran.stdout)


def nvrtc_library() -> Path:
    """The library of the package nvidia-cuda-nvrtc-cu12. CompilerAbsent without it."""
    try:
        files = importlib.metadata.files("nvidia-cuda-nvrtc-cu12") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.name == "libnvrtc.so.12":
            return Path(str(file.locate()))
    raise CompilerAbsent("NVRTC is absent: pip install nvidia-cuda-nvrtc-cu12")


def hiprtc_library() -> str:
    """The library with hiprtc in it. CompilerAbsent without one."""
    # Newer ROCm has it alone in a library, older only within the run time.
    found = find_library("hiprtc") or find_library("amdhip64")
    if found is None:
        raise CompilerAbsent("hiprtc is absent: apt install hipcc, or ROCm")
    return found


def hipcc_command() -> str:
    """CompilerAbsent without it."""
    found = shutil.which("hipcc")
    if found is None:
        raise CompilerAbsent("hipcc is absent: apt install hipcc, or ROCm")
    return found


def _at_run_time(
    library: Path | str, prefix: str, get_code: str, source: str, options: Sequence[str]
) -> tuple[bytes, str]:
    """The code and the log, from a process of its own.

    A compiler that dies (hiprtc does, of an architecture that it does not know) takes no test
    run along, and nobody's LLVM meets another's.
    """
    ran = subprocess.run(
        [sys.executable, str(HERE), str(library), prefix, get_code, *options],
        input=source.encode(),
        capture_output=True,
        check=False,
    )
    log = ran.stderr.decode(errors="replace")
    if ran.returncode < 0:
        raise CompileError(f"{log}{prefix} died: {signal.Signals(-ran.returncode).name}")
    if ran.returncode:
        raise CompileError(log)
    return ran.stdout, log


def _by_name(kernels: Sequence[Kernel]) -> dict[str, Kernel]:
    return {kernel.name: kernel for kernel in kernels}
