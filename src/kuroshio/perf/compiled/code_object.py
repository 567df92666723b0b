"""AMD's code objects (ELF with the metadata as a note), alone or several bundled for HIP.

The note's owner and type are of LLVM's "User Guide for AMDGPU Backend", the bundle's layout is of
"Clang Offload Bundler".
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from . import amd_metadata, message_pack
from .elf import AMDGPU, Elf
from .kernel import Kernel

BUNDLE = b"__CLANG_OFFLOAD_BUNDLE__"
COMPRESSED = b"CCOB"  # a bundle, compressed

_NOTE = (b"AMDGPU", 32)
_MOST_CODE_OBJECTS = 1000  # of a bundle, one an architecture; they may all be in one place


def kernels(code: bytes, architecture: str | None = None) -> list[Kernel]:
    """Of one code object. What is in it goes before the `architecture` that a bundle told."""
    elf = Elf(code)
    if elf.machine != AMDGPU:
        raise ValueError(f"it is for the machine {elf.machine} and not for AMD's GPUs")
    for owner, kind, content in elf.notes():
        if (owner, kind) == _NOTE:
            found = message_pack.unpack(content)
            break
    else:
        raise ValueError(
            "it has no metadata (a note of AMDGPU), so it is of version 2, or no compiler's: "
            "compile with -mcode-object-version=3 or later"
        )
    entries = found.get("amdhsa.kernels") if isinstance(found, dict) else None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ValueError("its metadata names no kernels")
    if target := found.get("amdhsa.target"):
        architecture = amd_metadata.architecture_of(str(target))
    return amd_metadata.from_metadata(entries, architecture)


def bundled(data: bytes) -> list[Kernel]:
    """Of all code objects in the bundles of a file, or of a program's section."""
    return [kernel for bundle in _bundles(data) for kernel in _of_bundle(bundle)]


def _bundles(data: bytes) -> Iterator[bytes]:
    begin = data.find(BUNDLE)
    while begin >= 0:
        following = data.find(BUNDLE, begin + 1)
        yield data[begin : following if following >= 0 else None]
        begin = following


def _of_bundle(bundle: bytes) -> Iterator[Kernel]:
    at = len(BUNDLE)
    (count,) = _unpack("<Q", bundle, at)
    at += 8
    if count > _MOST_CODE_OBJECTS:
        raise ValueError(f"it announces {count:,} code objects")
    for _ in range(count):
        begin, size, name_bytes = _unpack("<QQQ", bundle, at)
        at += 24
        target = bundle[at : at + name_bytes].decode(errors="replace")
        at += name_bytes
        if at > len(bundle) or begin + size > len(bundle):
            raise ValueError(f"it ends before its code for {target}")
        if size and "amdgcn" in target:
            architecture = amd_metadata.architecture_of(target)
            yield from kernels(bundle[begin : begin + size], architecture)


def _unpack(form: str, data: bytes, at: int) -> tuple[int, ...]:
    if at + struct.calcsize(form) > len(data):
        raise ValueError("it ends in the head of a bundle")
    return struct.unpack_from(form, data, at)
