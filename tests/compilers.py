"""The compilers that users' machines run, run here without a device: NVRTC, hipcc and hiprtc.

Each takes the text of kernels and the name of an architecture, and gives the code with what every
kernel takes, as the compiler itself tells it: NVRTC passes on what ptxas writes, AMD's compilers
put it into the code's metadata. Text that does not compile raises `CompileError` with the log.

What tells the compilers apart inside the text:

    NVRTC    __CUDACC_RTC__ (and __CUDACC__, __CUDA_ARCH__)
    hiprtc   __HIPCC_RTC__, __HIPCC__ (and __HIP_DEVICE_COMPILE__, __HIP__, __gfx906__, ...)
    hipcc    __HIPCC__ without __HIPCC_RTC__; __HIP_DEVICE_COMPILE__ in the device's pass only
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from ctypes.util import find_library
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class CompileError(Exception):
    """The compiler refused; its log is the message."""


class CompilerAbsent(Exception):
    """Not installed; the message says what would install it."""


@dataclass(frozen=True, kw_only=True)
class Resources:
    """What one kernel takes."""

    registers: int
    """A thread; AMD: vector registers, accumulation registers included from gfx90a on."""
    scalar_registers: int = 0
    """AMD: a wave."""
    stack_bytes: int
    """A thread's memory outside registers: AMD scratch, NVIDIA stack. Arrays land here too."""
    spills: int
    """Registers that did not fit; NVIDIA: bytes written and read, AMD: registers."""
    shared_bytes: int
    """A block's, without what the launch adds."""
    dynamic_stack: bool = False
    """AMD: more stack than stack_bytes, how much is not known."""
    waves_per_simd: int | None = None
    """hipcc's own idea of the occupancy that registers and static shared memory allow."""


@dataclass(frozen=True)
class Compiled:
    code: bytes
    """Cubin or PTX (NVRTC), assembly (hipcc), code object (hiprtc)."""
    kernels: dict[str, Resources]
    """By name; empty for PTX, which has no registers yet."""
    log: str


def nvrtc(source: str, arch: str, options: Sequence[str] = ()) -> Compiled:
    """Compile for `arch`: sm_90 gives a cubin, compute_90 PTX.

    CUDA 12's NVRTC, the last one that knows sm_70.
    """
    asked = [f"--gpu-architecture={arch}", "--ptxas-options=-v", *options]
    size = "nvrtcGetCUBIN" if arch.startswith("sm_") else "nvrtcGetPTX"
    code, log = _at_run_time(nvrtc_library(), "nvrtc", size, source, asked)
    return Compiled(code, dict(_told_by_ptxas(log)), log)


def hiprtc(source: str, arch: str, options: Sequence[str] = ()) -> Compiled:
    """Compile for `arch` (gfx906) as a user's machine does, into a code object."""
    asked = [f"--offload-arch={arch}", *options]
    code, log = _at_run_time(hiprtc_library(), "hiprtc", "hiprtcGetCode", source, asked)
    return Compiled(code, dict(_told_by_amd(_note(code)["amdhsa.kernels"])), log)


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
    waves = [int(n) for n in re.findall(r"^; Occupancy: (\d+)", assembly, re.M)]
    kernels = dict(_told_by_amd(_metadata(assembly), waves))
    return Compiled(assembly.encode(), kernels, ran.stdout)


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
        [sys.executable, __file__, str(library), prefix, get_code, *options],
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


def _compile_here(library: str, prefix: str, get_code: str, *options: str) -> int:
    """From standard input to standard output, the log to standard error; the compiler's status.

    NVRTC and hiprtc have the same functions under two prefixes.
    """
    functions = ctypes.CDLL(library)

    def call(name: str, *arguments: Any) -> int:
        return getattr(functions, name)(*arguments)

    def fetch(name: str) -> bytes:
        size = ctypes.c_size_t()
        assert call(f"{name}Size", program, ctypes.byref(size)) == 0
        room = ctypes.create_string_buffer(size.value + 1)
        assert call(name, program, room) == 0
        return room.raw[: size.value]

    program = ctypes.c_void_p()
    text = ctypes.c_char_p(sys.stdin.buffer.read())
    name = ctypes.c_char_p(b"kernels")
    created = call(f"{prefix}CreateProgram", ctypes.byref(program), text, name, 0, None, None)
    assert created == 0
    asked = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    status = call(f"{prefix}CompileProgram", program, len(options), asked)
    sys.stderr.buffer.write(fetch(f"{prefix}GetProgramLog").rstrip(b"\0"))
    if not status:
        sys.stdout.buffer.write(fetch(get_code))
    return status


def _told_by_ptxas(log: str) -> Iterator[tuple[str, Resources]]:
    """Each kernel's part of the log, with the functions that it calls and that are not inlined."""
    for part in log.split("Compiling entry function '")[1:]:

        def numbers(pattern: str, part: str = part) -> list[int]:
            return [int(n) for n in re.findall(rf"(\d+) {pattern}", part)]

        (registers,) = (int(n) for n in re.findall(r"Used (\d+) registers", part))
        yield (
            part.partition("'")[0],
            Resources(
                registers=registers,
                stack_bytes=max(
                    numbers("bytes stack frame") + numbers("bytes cumulative stack size")
                ),
                spills=sum(numbers("bytes spill stores") + numbers("bytes spill loads")),
                shared_bytes=sum(numbers("bytes smem")),
            ),
        )


def _told_by_amd(
    kernels: list[dict[str, Any]], waves: Sequence[int | None] = ()
) -> Iterator[tuple[str, Resources]]:
    for kernel, waves_per_simd in zip(kernels, waves or [None] * len(kernels), strict=True):
        yield (
            kernel[".name"],
            Resources(
                registers=int(kernel[".vgpr_count"]),
                scalar_registers=int(kernel[".sgpr_count"]),
                stack_bytes=int(kernel[".private_segment_fixed_size"]),
                spills=int(kernel[".vgpr_spill_count"]) + int(kernel[".sgpr_spill_count"]),
                shared_bytes=int(kernel[".group_segment_fixed_size"]),
                dynamic_stack=str(kernel.get(".uses_dynamic_stack", False)).lower() == "true",
                waves_per_simd=waves_per_simd,
            ),
        )


def _metadata(assembly: str) -> list[dict[str, Any]]:
    """The kernels' entries in the YAML that ends the assembly; of each, only its own lines."""
    text = assembly[assembly.index("amdhsa.kernels:") :].partition("amdhsa.target:")[0]
    return [
        dict(re.findall(r"^    (\.\w+): +(\S+)$", entry.replace("  - ", "    ", 1), re.M))
        for entry in re.split(r"^(?=  - )", text, flags=re.M)[1:]
    ]


def _note(code: bytes) -> dict[str, Any]:
    """The metadata of a code object (ELF64), which is a note of the owner AMDGPU in MessagePack."""
    at = code.index(b"AMDGPU\0\0") - 12
    owner_bytes, note_bytes, _ = (
        int.from_bytes(code[at + i : at + i + 4], "little") for i in (0, 4, 8)
    )
    assert owner_bytes == len(b"AMDGPU\0")
    found, end = _message_pack(code, at + 20)
    assert end <= at + 20 + note_bytes
    return found


def _message_pack(data: bytes, at: int) -> tuple[Any, int]:
    """The value at `at`, of the kinds that compilers write, and where it ends."""

    def number(size: int) -> int:
        return int.from_bytes(data[at + 1 : at + 1 + size], "big")

    kind = data[at]
    if kind < 0x80:
        return kind, at + 1
    if kind in (0xC2, 0xC3):
        return kind == 0xC3, at + 1
    if 0xCC <= kind <= 0xCF:
        size = 1 << (kind - 0xCC)
        return number(size), at + 1 + size
    if 0xA0 <= kind < 0xC0 or 0xD9 <= kind <= 0xDB:
        size = 0 if kind < 0xC0 else 1 << (kind - 0xD9)
        begin = at + 1 + size
        end = begin + (number(size) if size else kind & 0x1F)
        return data[begin:end].decode(), end
    if kind < 0xA0 or 0xDC <= kind <= 0xDF:
        size = 0 if kind < 0xA0 else 2 << (kind & 1)
        count = number(size) if size else kind & 0x0F
        mapping = kind < 0x90 or kind >= 0xDE
        values, at = [], at + 1 + size
        for _ in range(2 * count if mapping else count):
            value, at = _message_pack(data, at)
            values.append(value)
        return (dict(zip(values[::2], values[1::2], strict=True)) if mapping else values), at
    raise ValueError(f"MessagePack of kind {kind:#x} is not known here")


if __name__ == "__main__":
    sys.exit(_compile_here(*sys.argv[1:]))
