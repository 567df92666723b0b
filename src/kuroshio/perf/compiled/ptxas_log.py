"""What ptxas -v (nvcc -Xptxas -v, NVRTC --ptxas-options=-v) says, within a build's output."""

from __future__ import annotations

import re

from .kernel import Kernel

MARK = "ptxas info"

_ENTRY = re.compile(r"Compiling entry function '(?P<name>[^']+)' for '(?P<arch>\w+)'")
_USED = re.compile(r"Used (\d+) registers")


def kernels(log: str) -> list[Kernel]:
    """In the order of the log, of every architecture in it."""
    found = list(_ENTRY.finditer(log))
    if log.count("Compiling entry function") > len(found):
        raise ValueError("it ends in the name of a kernel")
    ends = [each.start() for each in found] + [len(log)]
    return [
        _kernel(each["name"], each["arch"], log[each.end() : end])
        for each, end in zip(found, ends[1:], strict=True)
    ]


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
        shared_bytes=sum(numbers("bytes smem", part[used.start() :])),
    )
