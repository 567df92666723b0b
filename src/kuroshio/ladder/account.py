"""The ladder in rows: seconds of each rung, how they compare, where they went.

Seconds are of a pass of 12 days, the mean of those that have so many; the engine, which works all
days off at once, counts as so many passes. Records compare medians of the same passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from .document import PUBLISHED, Published
from .place import Resources
from .problem import Problem
from .results import PARTS, Accuracy, RungResult

FIRST = "baseline"
GFX906 = "gfx906"  # the architecture of the published program's devices

# Kernels of a rung among those that were compiled for devices which are not at hand.
_KERNELS = {
    "baseline": ("heap", ("push_heaps", "from_heaps")),
    "A": ("registers", ("largest_in_registers",)),
    "B": ("direct, as published", ("window_sums", "from_sums")),
    "C": ("direct, as published", ("window_sums", "from_sums")),
    "D": ("sliding, as published", ("slot_sums", "slide")),
    "D+": ("sliding, corrected", ("find_references", "slot_sums", "slide")),
}


class Compiled(Protocol):
    """What a compiler made of a kernel for a device that is not at hand."""

    @property
    def text(self) -> str: ...
    @property
    def kernel(self) -> str: ...
    @property
    def architecture(self) -> str: ...
    @property
    def registers(self) -> int: ...
    @property
    def stack_bytes(self) -> int: ...
    @property
    def occupancy(self) -> float: ...


@dataclass(frozen=True)
class Kernel:
    """A kernel of a rung on the device at hand and on gfx906; None where that is not known."""

    name: str
    here: Resources | None
    registers_gfx906: int | None = None
    scratch_gfx906: int | None = None
    occupancy_gfx906: float | None = None


@dataclass(frozen=True)
class Row:
    """A rung. Seconds and parts are of a pass, `run_s` and `run_gpu_s` of the whole problem.

    `gpu_gain` and `gain` say how many times as fast it is as the first rung, by kernels and in
    all; `gpu_step` and `step` as the rung before. They are None for the first rung, and where
    there is nothing to compare with.
    """

    key: str
    title: str
    skipped: str = ""
    rings: int = 0
    passes: int = 0
    gpu_s: float | None = None
    total_s: float | None = None
    run_gpu_s: float | None = None
    run_s: float | None = None
    gpu_gain: float | None = None
    gain: float | None = None
    before: str = ""
    gpu_step: float | None = None
    step: float | None = None
    parts: dict[str, float] = field(default_factory=dict)
    bottleneck: str = ""
    kernels: tuple[Kernel, ...] = ()
    accuracy: Accuracy | None = None
    kept: bool | None = None
    predicted: dict[str, Any] = field(default_factory=dict)
    verdict: str = ""
    decision: str = ""
    experiment: str = ""
    counters: dict[str, float] = field(default_factory=dict)
    no_counters: str = ""
    published: Published | None = None

    def share(self, part: str) -> float:
        """Of a pass, 0 to 1; 0 of a pass that took no time."""
        return self.parts[part] / self.total_s if self.total_s else 0.0

    def as_json(self) -> dict[str, Any]:
        said = asdict(self)
        said["shares"] = {part: self.share(part) for part in self.parts}
        return said


def rows_of(
    results: Sequence[RungResult], problem: Problem, compiled: Sequence[Compiled] = ()
) -> list[Row]:
    """A row a rung, in the order in which they ran."""
    rows: list[Row] = []
    for result in results:
        ran = [row for row in rows if row.total_s is not None]
        first = next((row for row in ran if row.key == FIRST), None)
        rows.append(_row(result, problem, compiled, first, ran[-1] if ran else None))
    return rows


def _row(
    result: RungResult, problem: Problem, compiled: Sequence[Compiled], first: Row | None,
    before: Row | None,
) -> Row:  # fmt: skip
    parts = pass_parts(result, problem)
    known: dict[str, Any] = {
        "key": result.key, "title": result.title, "rings": result.rings,
        "published": PUBLISHED.get(result.key), "kernels": _kernels(result, compiled),
    }  # fmt: skip
    if result.skipped or not parts:
        why = result.skipped or "it has not run"
        return Row(skipped=why, **known)
    total, gpu = sum(parts.values()), parts["compute"]
    return Row(
        passes=len(result.passes),
        gpu_s=gpu,
        total_s=total,
        run_gpu_s=result.gpu_s,
        run_s=result.total_s,
        gpu_gain=_times(first.gpu_s if first else None, gpu),
        gain=_times(first.total_s if first else None, total),
        before=before.key if before else "",
        gpu_step=_times(before.gpu_s if before else None, gpu),
        step=_times(before.total_s if before else None, total),
        parts=parts,
        bottleneck=max(parts, key=lambda part: parts[part]) if total else "",
        accuracy=result.accuracy,
        kept=result.kept,
        predicted=dict(result.predicted),
        verdict=result.verdict,
        decision=result.decision,
        experiment=result.experiment,
        counters=dict(result.counters),
        no_counters=result.no_counters,
        **known,
    )


def pass_parts(result: RungResult, problem: Problem) -> dict[str, float]:
    """Seconds of a pass of 12 days, by `PARTS`; empty where none has run.

    Shorter passes, at the end of a season, are left out: their first read is as long as ever.
    """
    full = [each for each in result.passes if each.days >= problem.pass_days]
    if not full:
        return {}
    passes = sum(each.days for each in full) / problem.pass_days
    return {part: sum(each.parts[part] for each in full) / passes for part in PARTS}


def kernels_of(key: str) -> list[tuple[str, str]]:
    """A rung's kernels as `compiled.py` calls them: text and name."""
    text, names = _KERNELS.get(key, ("", ()))
    return [(text, name) for name in names]


def _times(old: float | None, new: float) -> float | None:
    return old / new if old and new else None


def _kernels(result: RungResult, compiled: Sequence[Compiled]) -> tuple[Kernel, ...]:
    """Those that ran here, or of a processor those that a GPU would have run."""
    text, names = _KERNELS.get(result.key, ("", ()))
    here = {each.kernel: each for each in result.resources}
    there = {
        each.kernel: each for each in compiled if each.text == text and each.architecture == GFX906
    }
    kernels = []
    for name in dict.fromkeys([*here, *(name for name in names if name in there)]):
        told = there.get(name)
        figures = (told.registers, told.stack_bytes, told.occupancy) if told else ()
        kernels.append(Kernel(name, here.get(name), *figures))
    return tuple(kernels)
