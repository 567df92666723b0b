"""From measured documents to a result: correctness first, then the figure, then the judgement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median
from typing import Any

from ...errors import Refusal
from .judging import judge, moved
from .prediction import RATIO, VALUE, Prediction
from .record import NO, NOT_CHECKED, NOT_JUDGED, UNDECIDED, YES, Record, Result, now
from .sealing import require_whole
from .sides import LEVEL, NEW, OLD, Document, Side, is_bench, side_of

_SLACK = timedelta(seconds=2)  # clocks of files and of seals tick differently
_TWO = 1 - (1 - LEVEL) / 2  # of each of two intervals that hold together with LEVEL


@dataclass(frozen=True)
class Figure:
    """The figure of the prediction as measured; no interval: why not."""

    value: float
    interval: tuple[float, float] | None
    how: str
    why_none: str = ""


def result_of(
    record: Record,
    new: Sequence[Document],
    old: Sequence[Document] = (),
    *,
    json_path: str | None = None,
    correct_path: str | None = None,
    checked: bool = False,
    paired: bool = False,
) -> Result:
    """What documents say of a sealed record's prediction.

    `new` and `old` are a bench result each, or repeats of another program's JSON. Without `old`
    the only bench result holds both (`bench OLD --vs NEW`); in which order does not matter if
    the prediction picks a row for each. `checked`: a check of correctness has passed.
    `paired`: new[i] and old[i] were measured one after the other.

    Refuses documents in which the figure is not found, results of differing environments, and a
    new one that is older than the seal.
    """
    prediction = _open(record)
    assert record.seal
    both = not old and prediction.compare == RATIO
    if both:
        if not is_bench(new[0].data):
            raise Refusal("The prediction is a ratio: give the old measurement, too.")
        old, paired = new, True
    if old and prediction.compare == VALUE:
        raise Refusal("The prediction is of one value: give the new measurement only.")
    _require_order(new, record.seal.at)
    _require_same_environment([*new, *old])
    figure = _path(prediction, json_path)
    halves = (NEW, OLD) if both and not prediction.old else (None, None)
    fresh = side_of(new, figure, prediction.new, correct_path, halves[0])
    sides = [fresh]
    if old:
        rows = prediction.old or prediction.new
        sides.append(side_of(old, figure, rows, correct_path, halves[1]))
        _require_alike(prediction, *sides)
    facts: dict[str, Any] = {
        "at": now(),
        "seal": record.seal.sha256,
        "sources": tuple(dict.fromkeys(document.name for document in [*new, *old])),
        "correct": _correctness(sides, checked),
        "new": fresh.facts,
        "old": sides[1].facts if old else {},
    }
    if facts["correct"] == NO:
        return Result(verdict=NOT_JUDGED, because="the output is not correct", **facts)
    if old:
        compared = _compared(new[0], prediction, fresh, sides[1]) if both else None
        measured = compared or _ratio(prediction, fresh, sides[1], paired)
    else:
        measured = _value(prediction, fresh)
    unstable = [f"{side.facts.get('case')}: {side.unstable}" for side in sides if side.unstable]
    facts["unstable"] = "; ".join(unstable) or None
    return _judged(prediction, measured, facts, interleaved=paired and len(sides) == 2)


def incorrect(record: Record, because: str, sources: Sequence[str] = ()) -> Result:
    """The result of a change whose output is not correct: nothing of it is judged."""
    _open(record)
    assert record.seal
    return Result(
        at=now(),
        correct=NO,
        verdict=NOT_JUDGED,
        because=because,
        seal=record.seal.sha256,
        sources=tuple(sources),
    )


def _open(record: Record) -> Prediction:
    if record.seal is None or record.prediction is None:
        raise Refusal(
            "The experiment is not sealed. Complete its prediction, seal it (kuroshio perf "
            "experiment seal NUMBER), then measure."
        )
    require_whole(record)
    return record.prediction


def _judged(
    prediction: Prediction, measured: Figure, facts: dict[str, Any], interleaved: bool
) -> Result:
    """By the interval; not if unstable, unless what passes fell on both sides in turn."""
    interval = measured.interval
    verdict, because = UNDECIDED, None
    if interval is None:
        because = measured.why_none
    elif facts["unstable"] and not interleaved:
        because = "the measurement is not stable"
    else:
        verdict = judge(prediction, *interval)
        if verdict == UNDECIDED:
            because = "the interval lies partly in the range: measure with more repeats"
    return Result(
        verdict=verdict,
        because=because,
        value=measured.value,
        low=interval[0] if interval else None,
        high=interval[1] if interval else None,
        moved=moved(prediction, *interval) if interval else None,
        how=measured.how,
        **facts,
    )


def _value(prediction: Prediction, side: Side) -> Figure:
    if prediction.exact:
        values = side.samples if "values" in side.facts else (side.value,)
        return Figure(side.value, (min(values), max(values)), "exact")
    interval = side.interval()
    how = "order statistics, 95 %" if side.samples else "median absolute deviation, 95 %"
    return Figure(side.value, interval, how if interval else "", _no_interval([side]))


def _ratio(prediction: Prediction, new: Side, old: Side, paired: bool) -> Figure:
    if old.value == 0 or min(old.samples, default=1) == 0:
        raise Refusal(
            "The old figure is 0, so there is no ratio. Predict the value itself "
            "(FIGURE in LOW..HIGH from 0)."
        )
    ratio = new.value / old.value
    if prediction.exact:
        both = [_value(prediction, side).interval or (side.value,) * 2 for side in (new, old)]
        return Figure(ratio, _divided(*both), "exact")
    alike = len(new.samples) == len(old.samples)
    if "values" in new.facts and paired and alike:
        pairs = tuple(a / b for a, b in zip(new.samples, old.samples, strict=True))
        side = Side(float(median(pairs)), YES, pairs)
        return Figure(side.value, side.interval(), "ratios of pairs, 95 %", _no_interval([side]))
    measured = min(len(new.samples), len(old.samples)) > 1 and "values" not in new.facts
    if measured and new.quantile == 0.5:
        return _as_bench(new, old, paired and alike)
    apart = [side.interval(_TWO) for side in (new, old)]
    if apart[0] is None or apart[1] is None:
        return Figure(ratio, None, "", _no_interval([new, old]))
    divided = _divided(apart[0], apart[1])
    why = "the old figure's interval holds 0"
    return Figure(ratio, divided, "quotient of two intervals, 95 % together", why)


def _compared(document: Document, prediction: Prediction, new: Side, old: Side) -> Figure | None:
    """What bench itself said of the two sides of an A/B; None where it did not, or by a clock
    that is not the prediction's.
    """
    clock = prediction.figure.removesuffix("_s.median")
    comparisons = document.data.get("comparisons") or []
    assert new.place is not None
    assert old.place is not None
    first = 2 * (new.place // 2)
    if prediction.exact or {new.place, old.place} != {first, first + 1}:
        return None
    if len(comparisons) <= first // 2 or comparisons[first // 2].get("clock") != clock:
        return None
    said = comparisons[first // 2]
    values = tuple(said[name] for name in ("ratio", "low", "high"))  # of the second to the first
    if new.place == first:
        ratio, high, low = (1 / value for value in values)
    else:
        ratio, low, high = values
    how = f"as bench has it, in turn, {said['level']:.0%}, widened by {said['resolution']:.0%}"
    return Figure(ratio, (low, high), how)


def _as_bench(new: Side, old: Side, paired: bool) -> Figure:
    """The interval that bench itself gives, for the two must not disagree."""
    from ..bench_effort import RESOLUTION_SAVED, Effort
    from ..statistics import LEVEL as BENCH_LEVEL
    from ..statistics import ratio_interval

    ratio, low, high = ratio_interval(new.samples, old.samples, paired=paired)
    apart = Effort.resolution if paired else RESOLUTION_SAVED
    what = "pairs" if paired else "medians"
    how = f"bootstrap of {what}, {BENCH_LEVEL:.0%}, widened by {apart:.0%}"
    return Figure(ratio, (low * (1 - apart), high * (1 + apart)), how)


def _divided(new: tuple[float, float], old: tuple[float, float]) -> tuple[float, float] | None:
    """All quotients of two intervals; None where the divisor may be 0."""
    if old[0] <= 0 <= old[1]:
        return None
    quotients = [a / b for a in new for b in old]
    return min(quotients), max(quotients)


def _no_interval(sides: list[Side]) -> str:
    few = min(len(side.samples) for side in sides)
    if few:
        many = 36 if sides[0].quantile == 0.9 else 6
        return (
            f"{few} {'value gives' if few == 1 else 'values give'} no interval: measure with "
            f"--repeats {many} or more, or predict a figure without noise as exact"
        )
    return "the spread of this figure is not known: predict a median, or a figure that is exact"


def _correctness(sides: list[Side], checked: bool) -> str:
    said = {side.correct for side in sides}
    if NO in said:
        return NO
    return YES if checked or NOT_CHECKED not in said else NOT_CHECKED


def _path(prediction: Prediction, json_path: str | None) -> str:
    if json_path and prediction.figure.startswith("$") and json_path != prediction.figure:
        raise Refusal(
            f"--json-path is {json_path}, but the prediction is of {prediction.figure}, which was "
            "sealed. Leave --json-path out."
        )
    return json_path or prediction.figure


def _require_order(documents: Sequence[Document], sealed_at: datetime) -> None:
    for document in documents:
        measured_at = _time_of(document.data) or document.measured_at
        if measured_at is not None and measured_at < sealed_at - _SLACK:
            raise Refusal(
                f"{document.name} was measured at {measured_at}, before the prediction was sealed "
                f"({sealed_at}). A prediction comes first: measure again."
            )


def _time_of(data: Any) -> datetime | None:
    try:
        time = datetime.fromisoformat(data["environment"]["now"]["time"])
    except (KeyError, TypeError, ValueError):
        return None
    return time if time.tzinfo else None


def _require_alike(prediction: Prediction, new: Side, old: Side) -> None:
    """One device and one kind of clock, unless the prediction is about another device."""
    if "device" in {*prediction.new, *prediction.old}:
        return
    for what in ("device", "boundary"):
        if new.facts.get(what) != old.facts.get(what):
            raise Refusal(
                f"The {what} of the new result is {new.facts.get(what)!r} and of the old one "
                f"{old.facts.get(what)!r}. Compare results of one device and one kind of clock."
            )


def _require_same_environment(documents: Sequence[Document]) -> None:
    known = [
        d for d in documents if is_bench(d.data) and isinstance(d.data.get("environment"), dict)
    ]
    if len(known) < 2 or known[0] is known[-1]:
        return
    from ..environment import differences

    if differing := differences(known[0].data["environment"], known[-1].data["environment"]):
        raise Refusal(
            f"{known[0].name} and {known[-1].name} were measured in environments that differ, and "
            f"are not compared: {'; '.join(differing[:8])}. Measure both in one."
        )
