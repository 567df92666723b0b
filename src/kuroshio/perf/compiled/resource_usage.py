"""What cuobjdump -res-usage prints of cubins, fatbins and programs."""

from __future__ import annotations

import re

from .cubin import DRIVERS_SHARED_BYTES
from .kernel import Kernel

MARK = "Resource usage:"

_LINE = re.compile(
    r"^arch = (?P<arch>sm_\w+)"
    r"|^ *Function (?P<name>\S+):\s+(?P<sizes>REG:.*)$",
    re.M,
)


def kernels(text: str, architecture: str | None) -> list[Kernel]:
    """`architecture` is that of a cubin, of which cuobjdump does not print it."""
    found = []
    told = architecture
    for line in _LINE.finditer(text):
        if line["arch"]:
            told = line["arch"]
            continue
        sizes = {name: int(n) for name, n in re.findall(r"(\w+):(\d+)", line["sizes"])}
        if told is None:
            raise ValueError("it does not name the architecture (pass it with --arch)")
        if not {"REG", "STACK", "SHARED", "LOCAL", "SAMPLER"} <= sizes.keys():
            raise ValueError(f"its line of {line['name']} is cut off")
        drivers = DRIVERS_SHARED_BYTES if int(re.sub(r"\D", "", told)) >= 90 else 0
        found.append(
            Kernel(
                name=line["name"],
                architecture=told,
                registers=sizes["REG"],
                stack_bytes=max(sizes["STACK"], sizes["LOCAL"]),
                spilled=None,
                shared_bytes=max(0, sizes["SHARED"] - drivers),
            )
        )
    return found
