"""What cuobjdump -res-usage prints of cubins, fatbins and programs."""

from __future__ import annotations

import re

from .cubin import without_drivers
from .kernel import Kernel

MARK = "Resource usage:"

_LINE = re.compile(
    r"^arch = (?P<arch>sm_\w+)"
    rf"|^(?P<part>{re.escape(MARK)})"
    r"|^ *Function (?P<name>\S+):\s+(?P<sizes>REG:.*)$",
    re.M,
)


def kernels(text: str, architecture: str | None) -> list[Kernel]:
    """`architecture` is that of a cubin, of which cuobjdump does not print it."""
    found = []
    told, following = architecture, None
    for line in _LINE.finditer(text):
        if line["arch"]:
            following = line["arch"]
            continue
        if line["part"]:  # what stood before another part says nothing of this one
            told, following = following or architecture, None
            continue
        sizes = dict(re.findall(r"(\w+):(\d+|UNKNOWN)", line["sizes"]))
        if told is None:
            raise ValueError("a part of it does not name its architecture (pass it with --arch)")
        if not {"REG", "STACK", "SHARED", "LOCAL", "SAMPLER"} <= sizes.keys():
            raise ValueError(f"its line of {line['name']} is cut off")
        registers, stack, shared, local = (
            0 if sizes[name] == "UNKNOWN" else int(sizes[name])
            for name in ("REG", "STACK", "SHARED", "LOCAL")
        )
        if not registers:  # a function that kernels call
            continue
        found.append(
            Kernel(
                name=line["name"],
                architecture=told,
                registers=registers,
                stack_bytes=max(stack, local),
                dynamic_stack=sizes["STACK"] == "UNKNOWN",  # recursion
                spilled=None,
                shared_bytes=without_drivers(shared, told),
            )
        )
    return found
