"""Which profiler records a program: the one that is asked for, or one that is there and suits."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass

from ...errors import Refusal
from ..bench_program import not_there
from . import profilers, torch_hook
from .torch_hook import Limits


@dataclass(frozen=True)
class Chosen:
    """name  of profilers.NAMES; path of the program, None of torch's
    why   in words
    """

    name: str
    path: str | None
    why: str


def choose(wanted: str, program: Sequence[str], limits: Limits) -> Chosen:
    """For 'auto', torch's if the program's Python has it, else the first that is installed.

    Refusal where the program or a profiler is not there, or cannot be limited as is asked.
    """
    if shutil.which(program[0]) is None:
        raise not_there(program[0])
    chosen = _suiting(program) if wanted == "auto" else _asked_for(wanted, program)
    if chosen.path is None:
        return chosen
    if limits.skip or limits.steps:
        raise Refusal(
            f"--skip and --steps count an optimizer's steps, which {chosen.name} ({chosen.why}) "
            "knows nothing of. Leave them out, give --seconds, or take --profiler torch."
        )
    if limits.seconds and not profilers.named(chosen.name).limited:
        raise Refusal(
            f"{chosen.name} ({chosen.why}) records a program from its start to its end. Leave out "
            "--seconds and make the program's work shorter, or take another --profiler."
        )
    return chosen


def _suiting(program: Sequence[str]) -> Chosen:
    python = torch_hook.python_of(program)
    if python is not None and torch_hook.has_torch(python):
        return Chosen(profilers.TORCH, None, f"{python} has torch")
    for each in profilers.PROFILERS:
        if path := each.find():
            return Chosen(each.name, path, f"{path} is installed")
    torch = (
        f"{program[0]} is no Python program, so torch.profiler is none for it"
        if python is None
        else f"{python} has no torch, whose profiler would do"
    )
    raise Refusal(
        f"No profiler is there: looked for {profilers.looked_for()}; {torch}. Install what belongs "
        f"to your GPU: {profilers.sources()}. For a Python program, pip install torch in its "
        "environment does if it computes with torch. A run of kuroshio climatology keeps a trace "
        "by itself: --trace."
    )


def _asked_for(wanted: str, program: Sequence[str]) -> Chosen:
    why = f"--profiler {wanted}"
    if wanted == profilers.TORCH:
        python = torch_hook.python_of(program)
        if python is not None and not torch_hook.has_torch(python):
            raise Refusal(
                f"--profiler torch was asked for, and {python} cannot import torch. Install it "
                "there, give the Python that has it, or take another --profiler."
            )
        return Chosen(wanted, None, why)  # what is no Python itself may start one: torchrun
    profiler = profilers.named(wanted)
    if path := profiler.find():
        return Chosen(wanted, path, why)
    raise Refusal(
        f"There is no {wanted}: it is {profiler.source}. Install it and put it on the PATH, or "
        "leave out --profiler for one that is there."
    )
