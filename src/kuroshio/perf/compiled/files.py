"""A compiler's file, of whichever kind: found by its content, read, or refused with what to do."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ...device.occupancy import ARCHITECTURES
from ...errors import Refusal
from ..whole_file import read_bytes, read_stream
from . import amd_metadata, amd_remarks, code_object, cubin, ptxas_log, resource_usage
from .elf import AMDGPU, CUDA, MAGIC, Elf
from .kernel import Kernel

_FATBIN = b"\x50\xed\x55\xba"
_BITCODE = b"BC\xc0\xde"
_COLOUR = re.compile(r"\x1b\[[0-9;]*[mK]")  # compilers write them into files where they are told to
_LARGEST = 1 << 30  # bytes

KINDS = (
    "AMD's assembly (hipcc -S) and code objects (hipcc --genco), the remarks of "
    "-Rpass-analysis=kernel-resource-usage, logs of ptxas -v (nvcc -Xptxas -v), cubins "
    "(nvcc -cubin), and what cuobjdump -res-usage prints"
)


@dataclass(frozen=True)
class Compiled:
    path: str
    kind: str
    """What the file was found to be."""
    kernels: list[Kernel]


def read(path: str, architecture: str | None = None) -> Compiled:
    """The kernels of a file, or of standard input ('-').

    `architecture` is for files that do not tell theirs. Refusal where it cannot be read, is of no
    kind that is known, is cut off or damaged, or has no kernels.
    """
    data = _bytes(path)
    shown = "Standard input" if path == "-" else path
    kind, reader = _kind(shown, data, architecture)
    try:
        kernels = reader(data)
    except Refusal:
        raise
    except (ValueError, RecursionError) as problem:
        raise Refusal(
            f"{shown} looks like {kind}, but it cannot be read: {problem}. Make it anew; if it is "
            "whole, it is of a version that is not known here."
        ) from problem
    if not kernels:
        raise Refusal(f"{shown} is {kind}, but there is no kernel in it.")
    return Compiled(path, kind, kernels)


def _bytes(path: str) -> bytes:
    if path != "-":
        return read_bytes(Path(path), _LARGEST, f"Known are {KINDS}.")
    return read_stream(sys.stdin.buffer, "Standard input", _LARGEST, f"Known are {KINDS}.")


_Reader = Callable[[bytes], list[Kernel]]


def _kind(path: str, data: bytes, architecture: str | None) -> tuple[str, _Reader]:
    if not data:
        raise Refusal(f"{path} is empty. Known are {KINDS}.")
    if data.startswith(MAGIC):
        return _elf_kind(path, data)
    if data.startswith(code_object.BUNDLE):
        return "a bundle of AMD's code objects", code_object.bundled
    if data.startswith(code_object.COMPRESSED):
        raise Refusal(
            f"{path} is a compressed bundle of AMD's code objects. Compile with "
            "--no-offload-compress, or take one out of it: clang-offload-bundler --unbundle."
        )
    if data.startswith(_FATBIN):
        raise Refusal(_fatbin(path))
    if data.startswith(_BITCODE):
        raise Refusal(f"{path} is LLVM's bitcode, which has no registers yet. Known are {KINDS}.")
    text = _COLOUR.sub("", data.decode(errors="replace"))
    if amd_remarks.MARK in text:
        return "remarks of hipcc", lambda _: _remarks(path, text, architecture)
    if ptxas_log.MARK in text:
        return "a log of ptxas", lambda _: _ptxas(path, text)
    if resource_usage.MARK in text:
        kernels = resource_usage.kernels
        return "the output of cuobjdump -res-usage", lambda _: kernels(text, architecture)
    if "amdhsa.kernels:" in text or ".amdgcn_target" in text:
        return "AMD's assembly", lambda _: amd_metadata.kernels(text)
    if ".hsa_code_object_version" in text:
        raise Refusal(
            f"{path} is AMD's assembly of code objects of version 2, which is not read. Compile "
            "with -mcode-object-version=3 or later."
        )
    if ".visible .entry" in text and ".target" in text:
        raise Refusal(
            f"{path} is PTX, which has no registers yet: ptxas gives them. Pass what "
            f"ptxas -v -arch=sm_90 {path} prints, or the cubin that it makes."
        )
    raise Refusal(f"{path} is of no kind that is known here. Known are {KINDS}.")


def _elf_kind(path: str, data: bytes) -> tuple[str, _Reader]:
    machine = int.from_bytes(data[18:20], "little")
    if machine == AMDGPU:
        return "an AMD code object", code_object.kernels
    if machine == CUDA:
        return "a cubin", cubin.kernels
    try:
        sections = {section.name: section for section in Elf(data).sections}
    except ValueError as problem:
        raise Refusal(f"{path} looks like a program, but it cannot be read: {problem}.") from None
    if ".hip_fatbin" in sections:
        content = sections[".hip_fatbin"].data
        if content.startswith(code_object.BUNDLE):
            return "a program with AMD's code objects", lambda _: code_object.bundled(content)
        raise Refusal(
            f"{path} is a program whose AMD code objects are compressed. Compile with "
            "--no-offload-compress, or pass what hipcc --genco makes."
        )
    if any(name.startswith((".nv_fatbin", "__nv_relfatbin")) for name in sections):
        raise Refusal(_fatbin(path))
    raise Refusal(
        f"{path} is a program or library of a processor without kernels for a GPU. Known are "
        f"{KINDS}."
    )


def _fatbin(path: str) -> str:
    return (
        f"{path} holds NVIDIA's code for several devices, compressed. Pass what cuobjdump "
        f"-res-usage {path} prints (- is standard input), or take the cubins out of it: cuobjdump "
        f"-xelf all {path}."
    )


def _ptxas(path: str, text: str) -> list[Kernel]:
    found = ptxas_log.kernels(text)
    if not found:
        raise Refusal(
            f"{path} is a log of ptxas that says nothing of kernels. Make it with nvcc -Xptxas -v, "
            "of code that has __global__ functions."
        )
    return found


def _remarks(path: str, text: str, architecture: str | None) -> list[Kernel]:
    if architecture is None:
        raise Refusal(
            f"{path} holds hipcc's remarks, which do not name the architecture. Pass the one that "
            "they are of, as to --offload-arch: --arch gfx906."
        )
    known = ARCHITECTURES.get(architecture)
    unified = known is not None and known.max_registers_per_thread > 256
    return amd_remarks.kernels(text, architecture, unified=unified)
