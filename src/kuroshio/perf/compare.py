"""A/B: two cases timed in turn, or two saved results of one environment."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any

from ..errors import Refusal
from .bench_case import environment_of, quiet, to_row
from .bench_effort import FEW, LEAST_TOTAL_S, Effort
from .bench_subject import Subject
from .bench_watch import Watch
from .cases import Case
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

    @property
    def differ(self) -> bool:
        return not self.low <= 1 <= self.high

    @property
    def verdict(self) -> str:
        """A sentence."""
        span = f"{self.low:.3f} to {self.high:.3f}"
        if self.resolution:
            span += f" with {self.resolution:.1%} for the placement in memory"
        if not self.differ:
            return (
                f"No difference shown: {self.b} takes {self.ratio:.3f} times as long as {self.a} "
                f"({self.level:.0%} interval {span}, which covers 1), by the {self.clock}'s clock."
            )
        change = f"{abs(self.ratio - 1):.1%} {'slower' if self.ratio > 1 else 'faster'}"
        return (
            f"{self.b} is {change} than {self.a}: {self.ratio:.3f} times as long ({self.level:.0%} "
            f"interval {span}), by the {self.clock}'s clock."
        )

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "differ": self.differ, "verdict": self.verdict}


def versus(a: Any, b: Any, effort: Effort | None = None) -> tuple[Results, Comparison]:
    """Time two callables or `Case`s in turn, in one process: both rows, and how they compare.

    A then B, B then A, and so on, so that what passes falls on both. Ends when the interval of
    the ratio is narrower than twice the effort's spread, or at its caps, which here are for the
    two together. Both results are checked before anything is returned.
    """
    first, second = (_as_case(each, name) for each, name in ((a, "A"), (b, "B")))
    rows, comparison = interleave(Subject(first), Subject(second), effort or Effort())
    return Results(f"{first.name} and {second.name}", environment_of(rows), rows), comparison


def pairs(a: list[Any], b: list[Any]) -> list[tuple[Any, Any]]:
    """What is compared with what: one with one; a Refusal where they are not as many."""
    if len(a) != len(b):
        raise Refusal(
            f"{len(a)} cases against {len(b)} cannot be paired. Give both the same sizes and "
            "dtypes (--size, --dtype), and name one function on either side."
        )
    return list(zip(a, b, strict=True))


def interleave(a: Subject, b: Subject, effort: Effort) -> tuple[list[Row], Comparison]:
    """As `versus`; of subjects that are not warm yet."""
    with quiet():
        a.warm_up(effort)
        b.warm_up(effort)
        watches = [Watch(each.clock.device) for each in (a, b)]
        start = perf_counter()
        due = effort.least
        while True:
            for watch in watches:
                watch.look()
            for each in (a, b) if len(a.host) % 2 == 0 else (b, a):
                each.sample()
            n, spent = len(a.host), perf_counter() - start
            if n >= effort.most or (spent >= effort.seconds and n >= min(FEW, effort.least)):
                break
            if n >= due and spent >= 2 * LEAST_TOTAL_S:
                _, low, high = ratio_interval(*_samples(b, a), paired=True, resamples=1000)
                if high - low <= 2 * effort.spread:
                    break
                due = n + n // 4
        a.finish()
        b.finish()
    rows = [to_row(each, watch, effort) for each, watch in zip((a, b), watches, strict=True)]
    interval = ratio_interval(*_samples(b, a), paired=True)
    clock = "device" if a.by_device and b.by_device else "host"
    names = _names(a.case.label, b.case.label, "A", "B")
    return rows, _comparison(names, interval, effort.resolution, clock, interleaved=True)


def compare_results(
    a: Results, b: Results, resolution: float = Effort.resolution
) -> list[Comparison]:
    """Rows of the same case, size and dtype in two saved results, or their only rows.

    Refuses results of differing environments, and names what differs; and those without a row in
    common. They were not timed in turn, so a machine that changed in between looks like a
    difference: `interleaved` is false.
    """
    if found := differences(a.environment, b.environment):
        more = f"; and {len(found) - _FEW} more" if len(found) > _FEW else ""
        raise Refusal(
            f"The two results come from differing environments: {'; '.join(found[:_FEW])}{more}. "
            "Times compare only where nothing but the code differs: measure both here and now, in "
            "turn, with --vs other:case."
        )
    compared = []
    for row, other in _matched(a, b):
        if row.device != other.device or row.boundary != other.boundary:
            raise Refusal(
                f"{row.label} was timed on {row.device} ({row.boundary}) and on {other.device} "
                f"({other.boundary}). Compare results of one device and one kind of clock."
            )
        both = row.device_samples_s and other.device_samples_s
        one, two = (
            (each.device_samples_s if both else each.samples_s) or [] for each in (row, other)
        )
        if min(len(one), len(two)) < 2:
            raise Refusal(
                f"{row.label} has {len(one)} and {len(two)} samples, too few to compare. Measure "
                "both with more --seconds."
            )
        names = _names(row.label, other.label, "first", "second")
        interval = ratio_interval(two, one)
        clock = "device" if both else "host"
        compared.append(_comparison(names, interval, resolution, clock, interleaved=False))
    return compared


def _comparison(
    names: tuple[str, str],
    interval: tuple[float, float, float],
    resolution: float,
    clock: str,
    *,
    interleaved: bool,
) -> Comparison:
    ratio, low, high = interval
    low, high = low * (1 - resolution), high * (1 + resolution)
    return Comparison(*names, ratio, low, high, LEVEL, resolution, clock, interleaved)


def _names(a: str, b: str, first: str, second: str) -> tuple[str, str]:
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


def _samples(a: Subject, b: Subject) -> tuple[list[float], list[float]]:
    """By the device's clock where both have one."""
    return (a.device, b.device) if a.by_device and b.by_device else (a.host, b.host)


def _as_case(value: Any, name: str) -> Case:
    if isinstance(value, Case):
        return value if value.name else Case(**{**value.__dict__, "name": name})
    return Case(value, getattr(value, "__name__", name))
