"""What a rung's run came to, in sentences for its record."""

from __future__ import annotations

from .account import pass_parts
from .place import Resources
from .problem import Problem
from .results import Accuracy, RungResult


def outcome(result: RungResult, problem: Problem) -> str:
    """Seconds by part, kernels, distance from the exact answer; a paragraph each."""
    parts = pass_parts(result, problem)
    listed = ", ".join(f"{name} {value:.3g}" for name, value in parts.items())
    said = [f"Seconds of a pass, {sum(parts.values()):.3g}: {listed}."]
    if result.resources:
        said.append("Kernels: " + "; ".join(map(_kernel, result.resources)) + ".")
    if result.accuracy:
        said.append(_accuracy(result.accuracy))
    return "\n\n".join(said)


def _kernel(kernel: Resources) -> str:
    scratch = f"{kernel.local_bytes} bytes of scratch" if kernel.local_bytes else "no scratch"
    return (
        f"{kernel.kernel} has {kernel.registers} registers and {scratch} a thread, in blocks of "
        f"{kernel.block}, occupancy {kernel.occupancy:.0%}"
    )


def _accuracy(accuracy: Accuracy) -> str:
    if accuracy.exact:
        return (
            f"Exact: of {accuracy.values:,} thresholds the furthest is {accuracy.largest:.2g} off."
        )
    within = ", ".join(f"{share:.1%} within {limit}" for limit, share in accuracy.within.items())
    said = f"Of {accuracy.values:,} thresholds {within} of the exact one; the furthest is "
    said += f"{accuracy.largest:.3g} off."
    if accuracy.disagree:
        said += f" {accuracy.disagree:,} exist in only one of the two."
    return said
