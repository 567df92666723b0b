"""The strategies one by one: a module each, with KEY, and `run`, which measures on a `Ground`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ..run import Answers, Ground
from ..study import Study
from . import blocks, branches, heap, memory, moments, operations, rings, streams

_ALONE = (blocks, heap, branches, operations, streams, rings, memory)
NAMES = (*(module.KEY for module in _ALONE), moments.KEY)


def studies(ground: Ground, answers: Answers) -> dict[str, Callable[[], Study]]:
    """What measures each, by name, in the strategies' order."""
    found = {module.KEY: partial(module.run, ground) for module in _ALONE}
    return {**found, moments.KEY: partial(moments.run, ground, answers)}
