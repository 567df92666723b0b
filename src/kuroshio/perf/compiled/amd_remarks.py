"""The remarks of hipcc -Rpass-analysis=kernel-resource-usage, within whatever else it printed.

They do not name the architecture, and functions that are no kernels are among them.
"""

from __future__ import annotations

import re

from .kernel import Kernel

MARK = "[-Rpass-analysis=kernel-resource-usage]"

_REMARK = re.compile(rf"remark:\s+(?P<what>[^:]+): (?P<value>\S.*?) {re.escape(MARK)}")
_OCCUPANCY = "Occupancy [waves/SIMD]"  # of functions: 0


def kernels(text: str, architecture: str, *, unified: bool) -> list[Kernel]:
    """`unified`: vector and accumulation registers are of one file, as from gfx90a on."""
    functions: list[dict[str, str]] = []
    for remark in _REMARK.finditer(text):
        if remark["what"] == "Function Name":
            functions.append({})
        if functions:
            functions[-1][remark["what"]] = remark["value"]
    found: dict[str, Kernel] = {}
    for function in functions:
        if function.get(_OCCUPANCY) != "0":
            kernel = _kernel(function, architecture, unified)
            if found.setdefault(kernel.name, kernel) != kernel:
                raise ValueError(
                    f"its remarks of {kernel.name} are there twice and differ, so they are of "
                    "several architectures, which is which they do not say (compile for one)"
                )
    return list(found.values())


def _kernel(told: dict[str, str], architecture: str, unified: bool) -> Kernel:
    name = told["Function Name"]

    def number(*names: str) -> int:
        value = next((told[each] for each in names if each in told), None)
        if value is None:
            raise ValueError(f"its remarks of {name} are cut off before {names[0]!r}")
        if not value.isdecimal():  # newer compilers write formulas of what they do not know yet
            raise ValueError(f"its remark {names[0]!r} of {name} is no number: {value}")
        return int(value)

    vector = number("VGPRs")
    accumulation = number("AGPRs") if "AGPRs" in told else None
    registers = max(vector, accumulation or 0)
    if unified and accumulation:
        registers = -(-vector // 4) * 4 + accumulation  # they begin at a multiple of four
    return Kernel(
        name=name,
        architecture=architecture,
        registers=registers,
        accumulation_registers=accumulation,
        scalar_registers=number("TotalSGPRs", "SGPRs"),
        stack_bytes=number("ScratchSize [bytes/lane]"),
        dynamic_stack=told.get("Dynamic Stack") == "True",
        spilled={
            "vector registers": number("VGPRs Spill"),
            "scalar registers": number("SGPRs Spill"),
        },
        shared_bytes=number("LDS Size [bytes/block]"),
        waves_per_simd=number(_OCCUPANCY),
    )
