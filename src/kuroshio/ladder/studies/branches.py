"""Strategy 3: lanes of a wave that want different things."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..gpu_place import GpuPlace
from ..run import Ground
from ..rungs import registers
from ..study import Study
from .common import bytes_of_pass, filled, first_pass, judged, load, no_room, usual_s

KEY, TITLE = "branches", "With a branch and without"
CLAIM = "Branches make lanes wait for each other; moments have none."
COLUMNS = ["kernel", "registers", "ms a pass", "G values/s"]
_NOISE = 0.1
_PROCESSOR = "Not measured on a processor: it has no lanes that wait for each other."


def shares(pool: int, largest: int, width: int) -> tuple[float, float]:
    """Of the values of a pool in any order: how many enter the list, and at how many any lane of
    a wave has one that does, if no lane knows of its neighbours."""
    enters = np.minimum(largest / np.arange(1, pool + 1), 1)
    return float(enters.mean()), float((1 - (1 - enters) ** width).mean())


def run(ground: Ground) -> Study:
    """Strategy A's kernel, every value inserted, or only those that are large enough."""
    problem, passing, place = ground.problem, first_pass(ground), ground.place
    width = place.gpu.limits.wave_size if isinstance(place, GpuPlace) else 64
    low, high = shares(problem.pool, problem.largest, width)
    predicted = (
        f"{low:.0%} of the values enter the list, but a wave of {width} lanes does the work where "
        f"any of them has one: of lanes that know nothing of each other at {high:.0%} of the "
        f"values. Cells side by side are alike, so the branch takes {low:.2f} to {high:.2f} of the "
        f"time without it, give or take {_NOISE:.0%}."
    )
    if not isinstance(place, GpuPlace):
        return Study(KEY, TITLE, CLAIM, predicted, finding=_PROCESSOR)
    if why := no_room(place, bytes_of_pass(ground)):
        return Study(KEY, TITLE, CLAIM, predicted, finding=why)
    maps = filled(ground, passing, place)
    rows: list[list[Any]] = []
    for name, branchy in (("always inserted", False), ("behind a branch", True)):
        worker = registers.worker(place, problem, branchy=branchy)
        load(place, worker, maps, passing)
        seconds = usual_s(place, worker.finish)
        resources = worker.launches[0].resources
        assert resources
        visits = len(passing.doys) * problem.pool * problem.cells
        rows.append([name, resources.registers, 1e3 * seconds, 1e-9 * visits / seconds])
        del worker
    ratio = rows[1][2] / rows[0][2]
    finding = f"The branch takes {ratio:.2f} of the time without it on waves of {width} lanes."
    verdict = judged((ratio, low - _NOISE, high + _NOISE))
    return Study(KEY, TITLE, CLAIM, predicted, COLUMNS, rows, finding, verdict)
