"""Performance, measured: timing that can be trusted, ceilings, roofline, occupancy, experiments.

For any program, on a processor, CUDA or HIP; it knows nothing of climatologies.

    bench(fn, bytes=..., flops=..., check=...)   times a callable
    versus(a, b)                                 times two in turn and says whether they differ
    case, Case                                   what `kuroshio perf bench module:name` runs
    load_results(path), compare_results(a, b)    of what was saved
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
    "load_results": "results",
    "versus": "compare",
}
__all__ = ["Case", "Comparison", "Results", "bench", "case", "compare_results", "load_results",
           "versus"]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_WHERE[name]}", __name__), name)
