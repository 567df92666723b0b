"""A rung as an experiment's record: written and sealed before it runs, concluded after.

What is compared are passes of 12 days: their seconds of kernels where a strategy is about kernels,
their whole seconds where it is about waiting.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from ..perf.experiments import (
    Document,
    Prediction,
    Record,
    concluded,
    create,
    incorrect,
    now,
    result_of,
    sealed,
    update,
    with_result,
)
from ..perf.experiments.prediction import RATIO, VALUE
from ..perf.experiments.record import ACCEPT, ANOTHER_ROUND, REFUTED, ROLL_BACK, UNDECIDED
from .account import pass_parts
from .catalogue import STATED, Rung
from .outcome import outcome
from .predictions import Predicted
from .problem import Problem
from .results import RungResult
from .strategies import STRATEGIES

KERNELS, TOTAL = "$.kernels_s", "$.total_s"
FOLDER = "experiments"
_BROKEN = "the results are not what the rung promises"
NEAR, CLAIMED = "0.3", 0.9  # degrees, and the share of cells that is published to be so near


@dataclass(frozen=True)
class Open:
    """A sealed record whose rung is about to run; `old` is what it is held against."""

    path: Path
    rung: Rung
    figure: str
    old: RungResult | None


def figure_of(key: str) -> str:
    """What a rung's prediction is about."""
    return KERNELS if key in ("A", "B", "D", "D+") else TOTAL


def begin(
    folder: Path, rung: Rung, problem: Problem, device: str, predicted: Predicted,
    old: RungResult | None,
) -> Open:  # fmt: skip
    """Write the record and seal it. `old` is None for the first rung, or where it did not run."""
    figure = figure_of(rung.key)
    ends = predicted.gpu_s if figure == KERNELS else predicted.total_s
    assert ends  # of kernels wherever a strategy is about them
    low, high = ends
    text = STRATEGIES[rung.key]
    observation = f"{text.observation} ({problem.name} scale on {device}.)"
    if old is None:
        reading_s = predicted.io_s * len(problem.batches())
        prediction = Prediction(
            figure, _rounded(low), _rounded(high), compare=VALUE, before=_rounded(reading_s)
        )
    else:
        before = median(_seconds(old, problem, figure))
        prediction = Prediction(
            figure, _rounded(low / before), _rounded(high / before), compare=RATIO
        )
        observation += f" The rung before, {old.key}, took {before:.3g} s a pass."
    record = create(
        folder / FOLDER,
        Record(
            title=f"{rung.key}: {rung.title}", created=now(), observation=observation,
            hypothesis=text.hypothesis, change=text.change, prediction=prediction,
            reasoning=predicted.text(),
        ),
    )  # fmt: skip
    assert record.path
    update(record.path, sealed)
    return Open(record.path, rung, figure, old)


def end(opened: Open, problem: Problem, result: RungResult) -> None:
    """Add the measurement and conclude; the file's name and the verdict go into the result."""
    new = _documents(opened, problem, result)
    old = _documents(opened, problem, opened.old) if opened.old else []

    def measured(record: Record) -> Record:
        if result.kept is False:
            said = incorrect(record, _BROKEN, [document.name for document in new])
        else:  # what the old one promised is its own record's matter
            alike = len(new) == len(old)
            said = result_of(record, new, old, checked=bool(result.kept), paired=alike)
        return with_result(record, said)

    record = update(opened.path, measured)
    decision, reason = _conclusion(record, result, problem, opened)
    reason += f"\n\n{outcome(result, problem)}"
    update(opened.path, lambda r: concluded(r, decision, reason))
    result.experiment, result.verdict = opened.path.name, str(record.verdict)
    result.decision = decision


def skip(opened: Open, why: str) -> None:
    """Conclude a record whose rung could not run."""
    update(opened.path, lambda r: concluded(r, ANOTHER_ROUND, f"It was not measured here: {why}."))


def _conclusion(
    record: Record, result: RungResult, problem: Problem, opened: Open
) -> tuple[str, str]:
    """Kept if it is right and quicker in all; with the figures that say so."""
    seconds = median(_seconds(result, problem, TOTAL))
    said = f"The prediction is {record.verdict}. A pass takes {seconds:.3g} s"
    if opened.old is not None and opened.figure == TOTAL:
        waits = [_waits(each, problem) for each in (result, opened.old)]
        said += f", of which the device waits {waits[0]:.3g} s ({opened.old.key}: {waits[1]:.3g} s)"
    if result.kept is False:
        return ROLL_BACK, f"{said}, but {_BROKEN}."
    assert result.accuracy
    within = result.accuracy.within[NEAR]
    if opened.rung.promise == STATED and within < CLAIMED:
        return ROLL_BACK, (
            f"{said}, but as published its results are of no use: {within:.1%} are within {NEAR} "
            f"of the exact ones, and {CLAIMED:.0%} are claimed."
        )
    if opened.old is None:
        return ACCEPT, f"{said}. This is what the others are held against."
    before = median(_seconds(opened.old, problem, TOTAL))
    ratio = before / seconds
    said += f", {ratio:.2f} times as fast as {opened.old.key} in all."
    if record.verdict == REFUTED:
        said += " What was computed beforehand does not hold on this device."
    elif record.verdict == UNDECIDED:
        said += f" The passes do not decide: {record.results[-1].because}."
    if result.kept and opened.old.kept is None:
        return ACCEPT, f"{said} It is kept because its results are right."
    return (ACCEPT if ratio > 1 else ROLL_BACK), said


def _documents(opened: Open, problem: Problem, result: RungResult) -> list[Document]:
    at = datetime.now(UTC)
    return [
        Document(
            f"{result.key}, pass {number}",
            {opened.figure.removeprefix("$."): seconds}, at,
        )
        for number, seconds in enumerate(_seconds(result, problem, opened.figure), 1)
    ]  # fmt: skip


def _seconds(result: RungResult, problem: Problem, figure: str) -> list[float]:
    """Of passes of 12 days; a run of all days counts as so many."""
    full = [each for each in result.passes if each.days >= problem.pass_days]
    return [
        (each.parts["compute"] if figure == KERNELS else each.total_s)
        * problem.pass_days / each.days
        for each in full
    ]  # fmt: skip


def _waits(result: RungResult, problem: Problem) -> float:
    """Hidden wait of a pass of 12 days."""
    return pass_parts(result, problem)["hidden wait"]


def _rounded(value: float) -> float:
    """To three digits: a prediction is no more exact than that."""
    return float(f"{value:.3g}")
