"""What came of a climb, and the document for programs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..sizes import size_text
from .account import Compiled, Row, rows_of
from .document import FACTORS, GAIN, PUBLISHED
from .machine import Machine
from .problem import Problem
from .records import FOLDER
from .results import RungResult
from .study import Study
from .tables import Table, tables
from .words import counters, factors, fastest, moved, right, seconds

SCHEMA = "kuroshio.ladder/1"
JSON = "ladder.json"
LEAD = (
    "Seven published strategies make one GPU program faster. They are run here as rungs, each on "
    "top of the one before: a baseline, A to D as they were published, D+ with the mistakes of D "
    "corrected, and last this package's own engine, ours. Look at a rung's largest part first: "
    "only what is large can be won."
)


@dataclass(frozen=True)
class Report:
    """A climb with its account; `environment` is that of `perf.environment`.

    device, model, why  where it ran, and why there
    """

    problem: Problem
    device: str
    model: str
    why: str
    machine: Machine
    environment: Mapping[str, Any]
    results: Sequence[RungResult]
    studies: Sequence[Study]
    compiled: Sequence[Compiled] = ()

    @property
    def rows(self) -> list[Row]:
        return rows_of(self.results, self.problem, self.compiled)

    @property
    def tables(self) -> list[Table]:
        return tables(self.rows, self.problem, self.device, FOLDER, self.compiled)

    @property
    def heading(self) -> str:
        """One line: what ran where."""
        first, last = self.problem.doys
        down, across = self.problem.shape
        return (
            f"The ladder on {self.device} ({self.model}; {self.why.rstrip('.')}): "
            f"{self.problem.name}, "
            f"{down} x {across} cells, days of year {first} to {last} of {self.problem.years[0]} "
            f"to {self.problem.years[1]}, {self.problem.files:,} files, "
            f"{size_text(self.problem.files * self.problem.map_bytes)}."
        )

    @property
    def sentences(self) -> list[str]:
        """What the rows say: who won, whether it is right, where the time went."""
        rows = self.rows
        if not rows:
            return []
        said = [fastest(rows), *right(rows), *moved(rows), *factors(rows)]
        said += counters(rows, self.device)
        return [sentence for sentence in said if sentence]

    @property
    def measured(self) -> list[tuple[str, str]]:
        """What the predictions were made from, and on what."""
        machine, now = self.machine, self.environment.get("now", {})
        cpu = self.environment.get("cpu", {})
        gpu = self.environment.get("gpus", {}).get(self.device, {})
        software = self.environment.get("software", {})
        packages = software.get("packages", {})
        link = f"{seconds(machine.link_gb)} GB/s" if machine.link_gb else "none: maps stay put"
        told = [
            ("device", f"{self.device}, {self.model}"),
            ("driver", gpu.get("driver")),
            ("processor", f"{cpu.get('model')}, {machine.threads} threads"),
            ("memory of the device, read", f"{seconds(machine.memory_gb)} GB/s"),
            ("link to the device, pinned", link),
            *((name, f"{seconds(rate)} x 10^9 a second")
              for name, rate in machine.giga_operations.items()),
            ("reading, one thread in the library", f"{seconds(machine.library_gb)} GB/s"),
            ("reading bytes, all threads", f"{seconds(machine.bytes_gb)} GB/s"),
            ("writing a pass", f"{seconds(machine.write_s)} s"),
            ("measured by", self.environment.get("measured_by")),
            ("system", software.get("system")),
            ("Python", software.get("python")),
            ("packages", ", ".join(f"{name} {number}" for name, number in packages.items())),
            ("at", now.get("time")),
            ("load of the last minute", now.get("load_1_minute")),
        ]  # fmt: skip
        return [(name, str(value)) for name, value in told if value not in (None, "")]

    def as_json(self) -> dict[str, Any]:
        """The whole as plain values; what is no finite number is null."""
        problem = asdict(self.problem) | {
            "shape": self.problem.shape, "window": self.problem.window, "pool": self.problem.pool,
            "largest": self.problem.largest, "files": self.problem.files,
            "map_bytes": self.problem.map_bytes,
        }  # fmt: skip
        published = {key: asdict(each) for key, each in PUBLISHED.items()}
        return plain({
            "schema": SCHEMA,
            "environment": self.environment,
            "device": {"name": self.device, "model": self.model, "why": self.why},
            "problem": problem,
            "machine": self.machine.as_json(),
            "results": [result.as_json() for result in self.results],
            "studies": [study.as_json() for study in self.studies],
            "account": {
                "rows": [row.as_json() for row in self.rows],
                "sentences": self.sentences,
                "published": {"rungs": published, "factors": FACTORS, "gain": GAIN},
            },
        })  # fmt: skip


def plain(value: Any) -> Any:
    """For JSON, which knows neither NumPy's numbers nor infinite ones."""
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
