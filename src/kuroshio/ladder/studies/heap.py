"""Strategy 2: an array in registers, or in memory that only looks like the thread's own."""

from __future__ import annotations

from typing import Any

from ..gpu_place import GpuPlace
from ..run import Ground
from ..rungs import heap, registers
from ..study import Study
from .common import bytes_of_pass, filled, first_pass, judged, load, no_room, usual_s

KEY, TITLE = "heap", "Heap by index, list in registers"
CLAIM = "A heap of 34 values is kept in registers."
COLUMNS = ["kernel", "registers", "scratch bytes", "ms a pass", "G values/s"]

_PROCESSOR = (
    "Not measured on a processor, whose core has too few registers for either. What a compiler for "
    "gfx906 made of both is in the tables of kernels: rung A's and 'largest_by_heap'."
)


def run(ground: Ground) -> Study:
    """Both kernels on the same maps, which lie on the device; what the compiler made of them."""
    problem, passing = ground.problem, first_pass(ground)
    bytes_of_heap = 4 * problem.largest
    predicted = (
        f"Indices known only at run time put the heap into memory: at least {bytes_of_heap} bytes "
        "of scratch a thread, though it fits the registers. A sorted list with indices known to "
        "the compiler has none, and is faster although it does more."
    )
    place = ground.place
    if not isinstance(place, GpuPlace):
        return Study(KEY, TITLE, CLAIM, predicted, finding=_PROCESSOR)
    if why := no_room(place, bytes_of_pass(ground)):
        return Study(KEY, TITLE, CLAIM, predicted, finding=why)
    maps = filled(ground, passing, place)
    rows: list[list[Any]] = []
    for name, worker in (
        ("heap", registers.Worker(place, problem, "heap", "largest_by_heap", heap.macros(problem))),
        ("list", registers.worker(place, problem)),
    ):
        load(place, worker, maps, passing)
        seconds = usual_s(place, worker.finish)
        resources = worker.launches[0].resources
        assert resources
        visits = len(passing.doys) * problem.pool * problem.cells
        taken = [resources.registers, resources.local_bytes]
        rows.append([name, *taken, 1e3 * seconds, 1e-9 * visits / seconds])
        del worker  # and what it holds of the device
    ratio = rows[1][3] / rows[0][3]
    finding = (
        f"The heap has {rows[0][2]} bytes of scratch a thread and the list {rows[1][2]}; the list "
        f"takes {ratio:.2f} of the heap's time."
    )
    as_said = rows[0][2] >= bytes_of_heap and rows[1][2] == 0
    verdict = judged((ratio if as_said else float("inf"), 0, 1))
    return Study(KEY, TITLE, CLAIM, predicted, COLUMNS, rows, finding, verdict)
