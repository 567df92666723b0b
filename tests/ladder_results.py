"""Made-up results of rungs, as a GPU and as a processor would give them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kuroshio.ladder.machine import Machine
from kuroshio.ladder.place import Resources
from kuroshio.ladder.problem import SCALES
from kuroshio.ladder.report import Report
from kuroshio.ladder.results import PARTS, Accuracy, PassTimes, RungResult
from kuroshio.ladder.study import CONFIRMED, Study

EXACT = Accuracy(1000, 0, 1e-6, 1e-7, {"0.1": 1.0, "0.3": 1.0, "0.5": 1.0}, 1e-6, True)
ROUGH = Accuracy(1000, 3, 4.5, 0.9, {"0.1": 0.2, "0.3": 0.5, "0.5": 0.7}, 0.25, False)
GOOD = Accuracy(1000, 0, 0.6, 0.1, {"0.1": 0.5, "0.3": 0.9996, "0.5": 0.99999}, 1e-6, False)
MACHINE = Machine(4000.0, 55.0, {"float32 fma": 30000.0}, 2.0, 12.0, 0.25, 16)
ENVIRONMENT = {
    "measured_by": "kuroshio 0.1.0",
    "software": {"system": "Linux", "python": "CPython 3.12", "packages": {"numpy": "2.4"}},
    "cpu": {"model": "A processor"},
    "gpus": {"cuda:0": {"driver": "570.1"}},
    "now": {"time": "2026-12-01T00:00:00Z", "load_1_minute": 0.5},
}

# first read, hidden wait, copy, compute, final, write: as they were published, or nearly so
PUBLISHED_PARTS = {
    "baseline": (1.2, 4.4, 0.0, 8.0, 0.2, 0.2),
    "A": (1.2, 5.1, 1.0, 0.9, 0.2, 0.2),
    "B": (1.2, 8.85, 0.0, 0.35, 0.2, 0.2),
    "C": (1.2, 4.6, 0.0, 0.6, 0.2, 0.2),
    "D": (1.2, 2.5, 0.02, 0.08, 0.2, 0.2),
    "D+": (1.2, 2.4, 0.0, 0.2, 0.2, 0.2),
    "ours": (0.05, 0.3, 0.1, 0.2, 0.0, 0.1),
}
_KERNELS = {"baseline": ("push_heaps", "from_heaps"), "A": ("largest_in_registers",)}


@dataclass(frozen=True)
class Made:
    """Stands in for a row of compiled.py."""

    text: str
    kernel: str
    architecture: str
    registers: int
    stack_bytes: int
    occupancy: float


COMPILED = [
    Made("heap", "push_heaps", "gfx906", 64, 160, 0.4),
    Made("heap", "push_heaps", "sm_90", 64, 136, 0.5),
    Made("heap", "largest_by_heap", "gfx906", 17, 160, 0.8),
    Made("registers", "largest_in_registers", "gfx906", 59, 0, 0.4),
    Made("registers, list of 67", "largest_in_registers", "gfx906", 128, 99, 0.2),
]


def times(seconds, days=12, scale=1.0):
    parts = {part: scale * each for part, each in zip(PARTS, seconds, strict=True)}
    return PassTimes(parts, 0.3, 0.1, 0.5, 0.4, 55 * days, days)


def result(key, parts=None, number=7, **changes) -> RungResult:
    """Of passes whose times differ by a percent; right unless it is B, C or D."""
    seconds = parts or PUBLISHED_PARTS[key]
    stated = key in ("B", "C", "D")
    passes = [times(seconds, scale=1 + 0.01 * (at - number // 2)) for at in range(number)]
    made = RungResult(
        key, f"strategy {key}", rings=2, runs=number, passes=passes,
        resources=[Resources(name, 60, 136, 256, 0.5) for name in _KERNELS.get(key, ())],
        accuracy=ROUGH if stated else GOOD if key == "D+" else EXACT,
        kept=None if stated else True,
        predicted={"gpu_s": (0.01, 0.2), "total_s": (3.0, 5.0), "hidden_wait_s": 2.0},
        experiment=f"0001-{key.lower().replace('+', '')}-x.md", verdict=CONFIRMED,
        no_counters="the driver permits them to administrators only",
    )  # fmt: skip
    return replace(made, **changes)


def ladder() -> list[RungResult]:
    """All rungs, on a GPU."""
    return [result(key) for key in PUBLISHED_PARTS]


def study(**changes) -> Study:
    made = Study(
        "blocks", "Whole wavefronts", "Blocks of 160 waste half a wavefront.", "83 % of lanes.",
        ["block", "lanes", "ms"], [[64, "100 %", 1.5], [160, "83 %", 0.00123]],
        "160 is as fast as 256.", CONFIRMED,
    )  # fmt: skip
    return replace(made, **changes)


def report(results, scale="pass", device="cuda:0", model="A GPU", studies=(), **changes) -> Report:
    known = {
        "problem": SCALES[scale], "device": device, "model": model, "why": "as asked",
        "machine": MACHINE, "environment": ENVIRONMENT, "results": results, "studies": studies,
        "compiled": COMPILED,
    }  # fmt: skip
    return Report(**{**known, **changes})
