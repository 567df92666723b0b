"""What is known of a rung after it has run."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from .place import Resources

# Where a pass's seconds went; they are disjoint and add up to the whole.
PARTS = {
    "first read": "until the first batch was read",
    "hidden wait": "the device idle, for the next batch was not read yet",
    "copy": "copying to the device, where that was not hidden behind computing",
    "compute": "kernels",
    "final": "copying the results back",
    "write": "writing the results",
}


@dataclass(frozen=True)
class PassTimes:
    """Seconds of one pass, by `PARTS`; and T_io and T_gpu, medians of its batches.

    copy_s     of all batches, hidden or not
    overlap_s  of copy_s, while a kernel ran; by the device's events
    """

    parts: dict[str, float]
    io_s: float
    gpu_s: float
    copy_s: float
    overlap_s: float
    maps: int
    days: int

    @property
    def total_s(self) -> float:
        return sum(self.parts.values())


@dataclass(frozen=True)
class Accuracy:
    """Differences from the exact threshold, in the unit of the data, and of the mean."""

    values: int
    disagree: int  # values that one has and the other lacks
    largest: float
    root_mean_square: float
    within: dict[str, float]  # "0.1": share of values that are as near as that
    largest_of_mean: float
    exact: bool  # no further off than float32 makes it


@dataclass
class RungResult:
    """A rung's figures; `skipped` says why there are none."""

    key: str
    title: str
    skipped: str = ""
    rings: int = 0
    runs: int = 1  # of the whole problem; `passes` are those of all runs
    passes: list[PassTimes] = field(default_factory=list)
    resources: list[Resources] = field(default_factory=list)
    accuracy: Accuracy | None = None
    kept: bool | None = None  # what the rung promises of its results; None where it does not
    predicted: dict[str, Any] = field(default_factory=dict)  # see predictions.Predicted
    experiment: str = ""  # file name of the record
    verdict: str = ""
    decision: str = ""  # the record's conclusion: accept, roll back
    counters: dict[str, float] = field(default_factory=dict)  # by name, of the whole rung
    no_counters: str = ""  # why there are none

    @property
    def total_s(self) -> float:
        """Of a run, the mean of all."""
        return sum(each.total_s for each in self.passes) / self.runs

    @property
    def gpu_s(self) -> float:
        """Kernels of a run."""
        return self.part("compute")

    def part(self, name: str) -> float:
        return sum(each.parts[name] for each in self.passes) / self.runs

    def as_json(self) -> dict[str, Any]:
        said = asdict(self)
        ran = bool(self.passes)
        said["total_s"], said["gpu_s"] = (self.total_s, self.gpu_s) if ran else (None, None)
        said["parts"] = {name: self.part(name) for name in PARTS} if ran else {}
        return said
