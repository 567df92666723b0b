"""AMD's metadata of kernels, and the assembly that ends with it.

The names are those of LLVM's "User Guide for AMDGPU Backend", code object V3 and later. The
assembly holds them as YAML, of which only the kernels' own lines are read; llvm-readelf --notes
prints the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from .kernel import Kernel

_NEEDED = (".name", ".vgpr_count", ".sgpr_count", ".private_segment_fixed_size")
_TARGET = re.compile(r"^\s*(?:\.amdgcn_target|amdhsa\.target:)\s+[\"']?([\w.:+-]+)", re.M)


def kernels(assembly: str) -> list[Kernel]:
    """Of the assembly that hipcc -S or --save-temps leaves, of one architecture or several."""
    *wholes, rest = assembly.split("amdhsa.version:")
    if "amdhsa.kernels:" in rest:
        raise ValueError("it ends in the middle of its kernels' metadata (amdhsa.kernels)")
    if not wholes or ".amdgcn_target" in rest:
        raise ValueError("it ends before the metadata of its kernels (amdhsa.kernels)")
    return [kernel for whole in wholes for kernel in _of_architecture(whole)]


def _of_architecture(assembly: str) -> list[Kernel]:
    """Up to the end of one architecture's metadata."""
    code, _, metadata = assembly.partition("amdhsa.kernels:")
    entries = re.split(r"^(?=  - )", metadata, flags=re.M)[1:]
    target = _TARGET.search(assembly)
    # Each kernel's remark stands below its code; of a function there is none.
    waves = [int(n) for n in re.findall(r"^; Occupancy: (\d+)", code, re.M)]
    return from_metadata(
        [
            {
                key: value.strip("'\"")
                for key, value in re.findall(
                    r"^    (\.\w+): +(\S.*)$", entry.replace("  - ", "    ", 1), re.M
                )
            }
            for entry in entries
        ],
        architecture_of(target[1]) if target else None,
        waves if len(waves) == len(entries) else (),
    )


def from_metadata(
    entries: Sequence[Mapping[str, Any]], architecture: str | None, waves: Sequence[int] = ()
) -> list[Kernel]:
    """Of the entries of `amdhsa.kernels`, with what the compiler thought of their occupancy."""
    return [
        _kernel(entry, architecture, waves[i] if waves else None) for i, entry in enumerate(entries)
    ]


def architecture_of(target: str) -> str:
    """gfx90a, of amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-, hipv4-amdgcn-amd-amdhsa--gfx90a.

    Newer compilers write amdgcn-amd-amdhsa-unknown-gfx90a.
    """
    found = re.search(r"-(gfx[\w-]+)", target)
    return found[1] if found else target


def _kernel(entry: Mapping[str, Any], architecture: str | None, waves: int | None) -> Kernel:
    missing = [key for key in _NEEDED if key not in entry]
    if missing:
        raise ValueError(f"the metadata of a kernel lacks {', '.join(missing)}")

    def number(key: str) -> int | None:
        value = entry.get(key)
        if value is None or (isinstance(value, str) and value.isdecimal()):
            return None if value is None else int(value)
        if not isinstance(value, int):
            raise ValueError(f"{key} of a kernel is no number: {value!r}")
        return value

    def count(key: str) -> int:
        return number(key) or 0

    spilled = {
        f"{kind} registers": spills
        for kind, key in (("vector", ".vgpr_spill_count"), ("scalar", ".sgpr_spill_count"))
        if (spills := number(key)) is not None
    }
    return Kernel(
        name=str(entry[".name"]),
        architecture=architecture,
        registers=count(".vgpr_count"),
        accumulation_registers=number(".agpr_count"),
        scalar_registers=count(".sgpr_count"),
        stack_bytes=count(".private_segment_fixed_size"),
        dynamic_stack=str(entry.get(".uses_dynamic_stack", False)).lower() == "true",
        spilled=spilled or None,
        shared_bytes=count(".group_segment_fixed_size"),
        max_threads=number(".max_flat_workgroup_size"),
        waves_per_simd=waves,
    )
