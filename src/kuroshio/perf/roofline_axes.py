"""What a picture of a roofline shows: its limits, its roofs, its marks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from .ceilings.ceiling import Ceiling
from .roofline import Judgement, Roofs, attainable

# Small letters and digits only as far as they do not look like others.
_MARKS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijkmnpqrstuvwxyz23456789"


class Axes(NamedTuple):
    """Limits: operations a byte, and Gop/s."""

    left: float
    right: float
    bottom: float
    top: float


def mark(number: int) -> str:
    """A to Z, a to z, digits, and then stars."""
    return _MARKS[number] if number < len(_MARKS) else "*"


def peaks_of(judged: Sequence[Judgement], under: Roofs) -> list[Ceiling]:
    """The peaks of the kinds of operations that the points do, the highest first."""
    found = {peak.name: peak for each in judged if (peak := under.peak(each.point.operations))}
    return sorted(found.values(), key=lambda peak: -peak.value)


def roof_at(intensity: float, under: Roofs, level: str, peaks: Sequence[Ceiling]) -> float | None:
    """The roof of a level there, under the highest peak; None beyond it."""
    bandwidth = under.best(level).value
    if not peaks:
        return intensity * bandwidth
    y = attainable(intensity, bandwidth, peaks[0].value)
    return y if y < peaks[0].value else None


def axes(judged: Sequence[Judgement], under: Roofs) -> Axes:
    """So that every point, the ridge of memory and some of each roof are to be seen."""
    shown = [each for each in judged if each.intensity and each.rate]
    memory = under.best("memory").value
    peaks = peaks_of(shown, under)
    xs = [x for each in shown for x in (each.intensity, each.declared_intensity) if x]
    ys = [each.rate for each in shown if each.rate]
    xs += [peak.value / memory for peak in peaks]
    left, right = _tens(min(xs) / 3, down=True), _tens(max(xs) * 5, down=False)
    ys += [peak.value for peak in peaks] or [right * memory]
    return Axes(left, right, _tens(min(*ys, left * memory * 3) / 2, down=True),
                _tens(max(ys) * 2.2, down=False))  # fmt: skip


def _tens(value: float, down: bool) -> float:
    power = math.log10(value)
    return 10.0 ** (math.floor(power) if down else math.ceil(power))
