"""What ptxas -v (nvcc -Xptxas -v, NVRTC --ptxas-options=-v) says, within a build's output.

Of code compiled with -rdc=true it does not know all; nvlink -v (nvcc -Xnvlink -v) does, without
saying of which architecture: it counts where the log is of one.
"""

from __future__ import annotations

import re
from dataclasses import replace

from .cubin import without_drivers
from .kernel import Kernel

MARK = "ptxas info"

_ENTRY = re.compile(r"Compiling entry function '(?P<name>[^']+)' for '(?P<arch>\w+)'")
_USED = re.compile(r"Used (\d+) registers.*")
_LINKED = re.compile(
    r"^nvlink info *: Function properties for '(?P<name>[^']+)':\s+"
    r"nvlink info *: used (?P<registers>\d+) registers,.* (?P<stack>\d+) stack, "
    r"(?P<shared>\d+) bytes smem",
    re.M,
)
_ENDLESS = re.compile(r"Stack size for entry function '([^']+)' cannot be statically determined")


def kernels(log: str) -> list[Kernel]:
    """In the order of the log, of every architecture in it."""
    said = re.sub(r"^nvlink .*$", "", log, flags=re.M)
    found = list(_ENTRY.finditer(said))
    if said.count("Compiling entry function") > len(found):
        raise ValueError("it ends in the name of a kernel")
    ends = [each.start() for each in found] + [len(said)]
    compiled = [
        _kernel(each["name"], each["arch"], said[each.end() : end])
        for each, end in zip(found, ends[1:], strict=True)
    ]
    if len({kernel.architecture for kernel in compiled}) != 1:
        return compiled
    endless, linked = set(_ENDLESS.findall(log)), {d["name"]: d for d in _LINKED.finditer(log)}
    return [_linked(kernel, linked.get(kernel.name), endless) for kernel in compiled]


def _linked(kernel: Kernel, told: re.Match[str] | None, endless: set[str]) -> Kernel:
    """As it is together with the functions that it calls."""
    kernel = replace(kernel, dynamic_stack=kernel.name in endless)
    if told is None:
        return kernel
    return replace(
        kernel,
        registers=int(told["registers"]),
        stack_bytes=max(kernel.stack_bytes, int(told["stack"])),
        shared_bytes=without_drivers(int(told["shared"]), str(kernel.architecture)),
    )


def _kernel(name: str, architecture: str, part: str) -> Kernel:
    """With the functions that it calls and that are not inlined."""
    used = _USED.search(part)
    if used is None:
        raise ValueError(f"it ends before what ptxas says of {name}")
    properties = part.split("Function properties for ")[1:]
    # With -rdc=true functions are compiled apart, whoever calls them; their times tell.
    if "Compile time" in part:
        properties = properties[:1] + [p for p in properties[1:] if "Compile time" not in p]
    told = part[: used.end()] + "".join(properties)

    def numbers(what: str, text: str) -> list[int]:
        return [int(n) for n in re.findall(rf"(\d+) {what}", text)]

    return Kernel(
        name=name,
        architecture=architecture,
        registers=int(used[1]),
        stack_bytes=max(
            numbers("bytes stack frame", told) + numbers("bytes cumulative stack size", told),
            default=0,
        ),
        spilled={
            "bytes stored": sum(numbers("bytes spill stores", "".join(properties))),
            "bytes loaded": sum(numbers("bytes spill loads", "".join(properties))),
        },
        shared_bytes=sum(numbers("bytes smem", used[0])),
    )
