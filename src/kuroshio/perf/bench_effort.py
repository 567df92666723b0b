"""How much is done for a figure: the limits of a measurement, and what counts as stable."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import Refusal


@dataclass(frozen=True)
class Effort:
    """Repeats go on until the median is known to within `spread`, or until a cap.

    spread      half the width of the median's 95 % interval, as a share of the median
    least       repeats at least; most: at most
    seconds     for the samples of one case, at most (a sample that is under way is finished)
    warm_up_s   for the calls before, until they no longer get faster
    rounds      of an A/B whose cases can be made anew: so often they are, or more in the time left
    resolution  of an A/B: where code lies in memory alone moves a time by so much, and the interval
                of the ratio is made wider by it on both sides
    """

    spread: float = 0.02
    least: int = 20
    most: int = 2000
    seconds: float = 3.0
    warm_up_s: float = 5.0
    rounds: int = 8
    resolution: float = 0.01

    def __post_init__(self) -> None:
        if not 0 < self.spread < 1:
            raise Refusal(
                f"spread={self.spread!r} is no limit for the spread. Give a share of the median "
                "between 0 and 1, such as 0.02 for 2 %."
            )
        if not 2 <= self.least <= self.most:
            raise Refusal(
                f"repeats from {self.least!r} to {self.most!r} cannot be. Give 2 or more, and no "
                "cap below it."
            )
        if not (self.seconds > 0 and self.warm_up_s >= 0):
            raise Refusal(
                f"{self.seconds!r} s of samples after {self.warm_up_s!r} s of warm-up cannot be. "
                "Give seconds above 0."
            )
        if self.rounds < 1:
            raise Refusal(
                f"rounds={self.rounds!r} cannot be. Give how often cases are made anew: 1 or more."
            )
        if not 0 <= self.resolution < 1:
            raise Refusal(
                f"resolution={self.resolution!r} is no share of a time. Give 0 or more and less "
                "than 1, such as 0.01 for 1 %."
            )


RESOLUTION_SAVED = 0.05  # of two saved results: the same code, run again, differs by some per cent
SCATTER = 0.10  # half of the samples may be so far from the median, as a normal's deviation
TAIL = 1.5  # p90 may be so many medians
DRIFT = 0.05  # the last third may differ so much from the first
WARM = 0.97  # warm-up ends when calls take no less than this share of those before
# Of warm-up at least: clocks take so long to rise.
LEAST_WARM_S, LEAST_WARM_DEVICE_S = 0.05, 0.5
SHORTEST_S = 200e-6  # a sample on the host's clock; shorter calls are timed several at a time
SHORTEST_DEVICE_S = 5e-6  # events tell half a microsecond
FEW = 6  # samples that a case gets although its time is over
LEAST_TOTAL_S = 0.2  # of samples, so that more than one moment of the machine is seen
