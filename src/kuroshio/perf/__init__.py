"""Performance, measured: timing that can be trusted, ceilings, roofline, occupancy, experiments,
traces.

For any program, on a processor, CUDA or HIP; it knows nothing of climatologies.

    bench(fn, bytes=..., flops=..., check=...)   times a callable
    versus(a, b)                                 times two in turn and says whether they differ
    case, Case                                   what `kuroshio perf bench module:name` runs
    load_results(path), compare_results(a, b)    of what was saved
    record()                                     a block of code under torch.profiler
    read_trace(path), diagnose(path, ...)        a profiler's trace, and what it says
"""

from importlib import import_module
from typing import Any

# Imported when they are asked for: the command line must answer at once.
_WHERE = {
    "Case": "cases",
    "Comparison": "compare",
    "Results": "results",
    "bench": "bench_case",
    "case": "cases",
    "compare_results": "compare",
    "diagnose": "diagnosing",
    "load_results": "results",
    "read_trace": "diagnosing",
    "record": "recording.in_process",
    "versus": "bench_turns",
}
__all__ = ["Case", "Comparison", "Results", "bench", "case", "compare_results", "diagnose",
           "load_results", "read_trace", "record", "versus"]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_WHERE[name]}", __name__), name)
