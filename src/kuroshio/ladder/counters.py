"""Divergence and achieved bandwidth of rungs, from what a profiler counted of their kernels.

A profiler slows kernels and waits between them, so what it counts comes from a run of its own:

    ncu --csv --page raw --metrics dram__bytes.sum,gpu__time_duration.sum,\\
smsp__thread_inst_executed_per_inst_executed.ratio kuroshio ladder \\
        --only baseline --only A --only B --only D --runs 1 -o profiled > counted.csv
    kuroshio ladder --counters counted.csv -o ladder
"""

from __future__ import annotations

from collections.abc import Sequence

from ..perf.counters.counted import Counted, merged
from .results import RungResult

BANDWIDTH, OF_MEMORY, LANES = "GB/s of its longest kernel", "of memory's rate", "lanes at work"


def add_counters(
    results: Sequence[RungResult], counted: Sequence[Counted], memory_gb: float
) -> None:
    """To each rung those of the kernel that takes the longest, or why it has none.

    counted    of the profiler's run; none leaves the results as they are
    memory_gb  the measured rate of the device's memory
    """
    if not counted:
        return
    by_name = {_called(each): each for each in merged(counted)}
    owners: dict[str, RungResult] = {}
    for result in results:
        kernels = [each.kernel for each in result.resources]
        there = [by_name[name] for name in kernels if name in by_name]
        if result.skipped:
            continue
        if not there:
            result.no_counters = (
                f"the file has none of its kernels ({', '.join(kernels) or 'none'})"
            )
            continue
        longest = max(there, key=lambda each: each.all_seconds or 0.0)
        name = _called(longest)
        owner = owners.setdefault(name, result)
        if _text(owner, name) != _text(result, name):
            result.no_counters = (
                f"its kernel {name} is called as that of {owner.key}; profile it alone"
            )
            continue
        result.counters = _figures(longest, memory_gb)
        if not result.counters:
            result.no_counters = "the file has neither seconds and bytes nor lanes of its kernels"


def _figures(kernel: Counted, memory_gb: float) -> dict[str, float]:
    found: dict[str, float] = {}
    if kernel.bytes is not None and kernel.seconds:
        rate = 1e-9 * kernel.bytes / kernel.seconds
        found |= {BANDWIDTH: rate, OF_MEMORY: rate / memory_gb}
    if kernel.lanes is not None:
        found[LANES] = kernel.lanes
    return found


def _called(kernel: Counted) -> str:
    """Without its arguments or what a profiler adds."""
    return kernel.name.partition("(")[0].strip().removesuffix(".kd")


def _text(result: RungResult, name: str) -> tuple[int, int]:
    """What tells kernels of one name apart: the compiler made different things of them."""
    return next(
        (each.registers, each.local_bytes) for each in result.resources if each.kernel == name
    )
