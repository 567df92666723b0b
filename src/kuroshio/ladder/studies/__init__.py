"""The strategies one by one: a module each, with KEY, and `run`, which measures on a `Ground`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import ModuleType

from ..catalogue import RUNGS
from ..run import Answers, Ground, why_not
from ..study import Study
from . import blocks, branches, heap, memory, moments, operations, rings, streams

_ALONE = (blocks, heap, branches, operations, streams, rings, memory)
NAMES = (*(module.KEY for module in _ALONE), moments.KEY)

# The rung that takes as much room as a study does; the others look for themselves.
_AS_LARGE_AS = {
    blocks.KEY: "D", operations.KEY: "B", streams.KEY: "baseline", rings.KEY: "B",
    moments.KEY: "D+",
}  # fmt: skip


def studies(ground: Ground, answers: Answers) -> dict[str, Callable[[], Study]]:
    """What measures each, by name, in the strategies' order."""
    found = {module.KEY: partial(module.run, ground) for module in _ALONE}
    found[moments.KEY] = partial(moments.run, ground, answers)
    return {
        module.KEY: partial(_if_there_is_room, module, ground, found[module.KEY])
        for module in (*_ALONE, moments)
    }


def _if_there_is_room(module: ModuleType, ground: Ground, measure: Callable[[], Study]) -> Study:
    """A study that has none is told of, as a rung is, and the others go on."""
    alike = _AS_LARGE_AS.get(module.KEY)
    why = next((why_not(rung, ground) for rung in RUNGS if rung.key == alike), "")
    if not why:
        return measure()
    return Study(module.KEY, module.TITLE, module.CLAIM, "", finding=f"Not measured: {why}.")
