"""The rule: a prediction is judged by the interval in which the measured figure lies."""

from __future__ import annotations

import math

from .prediction import DOWN, UP, Prediction
from .record import CONFIRMED, DECIDED, NO, NOT_JUDGED, REFUTED, UNDECIDED, Result

NO_DIFFERENCE = "no difference shown"


def judge(prediction: Prediction, low: float, high: float) -> str:
    """confirmed if the whole interval lies in the range, refuted if none of it does, or undecided.

    Both ends of the range and of the interval belong to them.
    """
    least = -math.inf if prediction.low is None else prediction.low
    most = math.inf if prediction.high is None else prediction.high
    if least <= low and high <= most:
        return CONFIRMED
    if high < least or most < low:
        return REFUTED
    return UNDECIDED


def moved(prediction: Prediction, low: float, high: float) -> str:
    """The direction in which the figure went, as far as the interval shows one."""
    if high < prediction.neutral:
        return DOWN
    return UP if low > prediction.neutral else NO_DIFFERENCE


def contradiction(prediction: Prediction, result: Result) -> str | None:
    """What of a result's verdict does not follow from its own numbers, or None."""
    if (result.correct == NO) != (result.verdict == NOT_JUDGED):
        return f"it is {result.verdict!r}, but correct is {result.correct!r}"
    if result.verdict != NOT_JUDGED and result.value is None:
        return f"it is {result.verdict!r}, but there is no value"
    if (result.low is None) != (result.high is None) or (
        result.low is not None and result.high is not None and result.low > result.high
    ):
        return f"low is {result.low} and high {result.high}: the interval needs both, in order"
    if result.verdict not in DECIDED:
        return None if result.because else f"it is {result.verdict!r}, but because is missing"
    if result.low is None or result.high is None:
        return f"it is {result.verdict!r}, but there is no interval (low, high)"
    rule = judge(prediction, result.low, result.high)
    if rule == result.verdict:
        return None
    return (
        f"it is {result.verdict!r}, but the interval {result.low:g} to {result.high:g} against "
        f"the range {prediction.range} is {rule!r}"
    )
