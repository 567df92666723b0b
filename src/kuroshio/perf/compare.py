"""How two times compare: the verdict, and what was saved in one environment."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from ..errors import Refusal
from .bench_effort import RESOLUTION_SAVED
from .environment import differences
from .results import Results, Row
from .statistics import LEVEL, ratio_interval

_FEW = 8  # differences that are named


@dataclass(frozen=True)
class Comparison:
    """ratio: how many times as long `b` takes as `a`; low to high: its interval of `level`.

    The interval holds what repeats scatter and, beyond it, the `resolution`.
    """

    a: str
    b: str
    ratio: float
    low: float
    high: float
    level: float
    resolution: float
    clock: str  # by which: host or device
    interleaved: bool
    unstable: tuple[str, ...] = ()  # of saved results: what was not stable, so that nothing follows

    @property
    def differ(self) -> bool:
        return not (self.unstable or self.low <= 1 <= self.high)

    @property
    def verdict(self) -> str:
        """A sentence."""
        span = f"{self.low:.3f} to {self.high:.3f}"
        if self.unstable:
            return (
                f"Nothing can be said of {self.a} and {self.b}: {' and '.join(self.unstable)} was "
                "unstable when it was timed. Time them in turn (--vs with cases), or again when "
                "the machine is quiet."
            )
        if self.resolution:
            whose = "the placement in memory" if self.interleaved else "other runs"
            span += f" with {self.resolution:.1%} for {whose}"
        if not self.differ:
            return (
                f"No difference shown: {self.b} takes {self.ratio:.3f} times as long as {self.a} "
                f"({self.level:.0%} interval {span}, which covers 1), by the {self.clock}'s clock."
            )
        change = "slower" if self.ratio > 1 else "faster"
        if self.ratio < 2:
            change = f"{abs(self.ratio - 1):.1%} {change}"
        return (
            f"{self.b} is {change} than {self.a}: {self.ratio:.3f} times as long ({self.level:.0%} "
            f"interval {span}), by the {self.clock}'s clock."
        )

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "differ": self.differ, "verdict": self.verdict}


def compare_results(
    a: Results, b: Results, resolution: float = RESOLUTION_SAVED
) -> list[Comparison]:
    """Rows of the same case, size and dtype in two saved results, or their only rows.

    Refuses results of differing environments, and names what differs; and those without a row in
    common. They were not timed in turn, so a machine that changed in between looks like a
    difference: `interleaved` is false, the resolution coarser, and of what was unstable nothing is
    said.
    """
    check_same(a.environment, b.environment)
    compared: list[Comparison] = []
    for row, other in _matched(a, b):
        if row.device != other.device or row.boundary != other.boundary:
            raise Refusal(
                f"{row.label} was timed on {row.device} ({row.boundary}) and on {other.device} "
                f"({other.boundary}). Compare results of one device and one kind of clock."
            )
        of_device = row.device_samples_s or [0], other.device_samples_s or [0]
        both = min(map(min, of_device)) > 0
        one, two = of_device if both else (row.samples_s, other.samples_s)
        if min(len(one), len(two)) < 2 or min(*one, *two) <= 0:
            raise Refusal(
                f"{row.label} has {len(one)} and {len(two)} samples, too few to compare, or some "
                "that took no time. Measure both with more --seconds, or more work a call."
            )
        names = told_apart(row.label, other.label, "first", "second")
        interval = ratio_interval(two, one)
        clock = "device" if both else "host"
        verdict = comparison(names, interval, resolution, clock, interleaved=False)
        stable = zip(names, (row.stable, other.stable), strict=True)
        unstable = tuple(name for name, fine in stable if not fine)
        compared.append(replace(verdict, unstable=unstable))
    return compared


def check_same(a: dict[str, Any], b: dict[str, Any]) -> None:
    """A Refusal of two environments that differ, which names in what."""
    if found := differences(a, b):
        more = f"; and {len(found) - _FEW} more" if len(found) > _FEW else ""
        raise Refusal(
            f"The two results come from differing environments: {'; '.join(found[:_FEW])}{more}. "
            "Times compare only where nothing but the code differs: measure both here and now, in "
            "turn, with --vs other:case."
        )


def comparison(
    names: tuple[str, str],
    interval: tuple[float, float, float],
    resolution: float,
    clock: str,
    *,
    interleaved: bool,
) -> Comparison:
    """Of an interval of a ratio, made wider by the resolution."""
    ratio, low, high = interval
    low, high = low * (1 - resolution), high * (1 + resolution)
    return Comparison(*names, ratio, low, high, LEVEL, resolution, clock, interleaved)


def told_apart(a: str, b: str, first: str, second: str) -> tuple[str, str]:
    """Of two things compared; told apart where they are called the same."""
    return (a, b) if a != b else (f"{a} [{first}]", f"{b} [{second}]")


def _matched(a: Results, b: Results) -> list[tuple[Row, Row]]:
    if len(a.rows) == len(b.rows) == 1:
        return [(a.rows[0], b.rows[0])]
    others = {(row.case, row.size, row.dtype): row for row in b.rows}
    keys = [(row, (row.case, row.size, row.dtype)) for row in a.rows]
    pairs = [(row, others[key]) for row, key in keys if key in others]
    if not pairs:
        names = (", ".join(row.label for row in each.rows[:4]) for each in (a, b))
        raise Refusal(
            f"The two results have no case in common: {' against '.join(names)}. Measure the same "
            "case, size and dtype."
        )
    return pairs
