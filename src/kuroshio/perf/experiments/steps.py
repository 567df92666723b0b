"""The steps of a sealed record: results are added, it is concluded. Nothing is taken back."""

from __future__ import annotations

from ...errors import Refusal
from .record import (
    ACCEPT,
    DECIDED,
    DECISIONS,
    NO,
    NOT_JUDGED,
    REFUTED,
    ROLL_BACK,
    Conclusion,
    Record,
    Result,
    now,
)
from .sealing import require_whole


def require_open(record: Record) -> None:
    """Refuses to measure what is concluded, or what has been confirmed or refuted already."""
    require_whole(record)
    if record.conclusion:
        raise Refusal(
            f"The experiment was concluded at {record.conclusion.at} ({record.conclusion.decision})"
            ". Begin another round: kuroshio perf experiment new --follows NUMBER."
        )
    if record.verdict in DECIDED:
        raise Refusal(
            f"The prediction has been {record.verdict} already; measuring until the answer pleases "
            "proves nothing. Conclude it (kuroshio perf experiment conclude), and begin another "
            "round if the measurement was at fault."
        )


def with_result(record: Record, result: Result) -> Record:
    """The record with one more result, and a line on it in the section 'result'."""
    require_open(record)
    results = (*record.results, result)
    line = f"{len(results)}. {sentence(record, result)}"
    return record.but(results=results, remarks=f"{record.remarks}\n{line}".lstrip("\n"))


def concluded(record: Record, decision: str, reason: str) -> Record:
    """The record with a decision and its reason.

    accept needs a last result that is not incorrect. An experiment that was never measured may be
    rolled back or go another round.
    """
    require_whole(record)
    if decision not in DECISIONS:
        raise Refusal(f"{decision!r} is no conclusion; allowed are {', '.join(DECISIONS)}.")
    if not reason.strip():
        raise Refusal("A conclusion needs its reason: --reason 'why'.")
    if record.conclusion:
        raise Refusal(
            f"The experiment was concluded already, at {record.conclusion.at}: "
            f"{record.conclusion.decision}. Begin another round: kuroshio perf experiment new "
            "--follows NUMBER."
        )
    if decision == ACCEPT and not record.results:
        raise Refusal(
            f"The change has not been measured, so it cannot be accepted. Measure it (kuroshio "
            f"perf experiment run), or conclude with {ROLL_BACK}."
        )
    if decision == ACCEPT and record.results[-1].correct == NO:
        raise Refusal(
            "The output was not correct when it was last measured, so the change cannot be "
            f"accepted. Mend and measure it again, or conclude with {ROLL_BACK}."
        )
    reason = f"{record.reason}\n\n{reason}".lstrip("\n")
    return record.but(conclusion=Conclusion(decision, now()), reason=reason)


def sentence(record: Record, result: Result) -> str:
    """A result in words."""
    if result.verdict == NOT_JUDGED:
        return f"Not correct, so not judged: {str(result.because).rstrip('.')}."
    figure = record.prediction.figure if record.prediction else "figure"
    ratio = "new/old " if result.old else ""
    interval = "" if result.low is None else f" ({result.low:.4g} to {result.high:.4g})"
    because = f", because {result.because}" if result.because else ""
    unstable = "; a side was not stable" if result.unstable else ""
    correct = "correct" if result.correct == "yes" else "correctness not checked"
    expected = record.prediction.range if record.prediction else ""
    return (
        f"{figure} {ratio}{result.value:.4g}{interval}, predicted {expected}: {result.verdict}"
        f"{_direction(record, result)}{because}; {correct}{unstable}."
    )


def _direction(record: Record, result: Result) -> str:
    """Of a refuted prediction: whether at least the direction was right."""
    if result.verdict != REFUTED or record.prediction is None or result.moved is None:
        return ""
    if result.moved == record.prediction.direction:
        return f" (it went {result.moved} as predicted, but not into the range)"
    return f" ({result.moved})"
