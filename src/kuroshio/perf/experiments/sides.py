"""One side of a measurement, the new or the old one: its figure, samples, correctness, facts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from statistics import NormalDist, median
from typing import Any

from ...errors import Refusal
from .json_path import at_path, number_at
from .prediction import ROW_KEYS
from .record import NO, NOT_CHECKED, YES

RESULT_SCHEMA = "kuroshio.perf.result/1"
LEVEL = 0.95
# Figures of a row whose samples are in the row: where, and which quantile of them they are.
_SAMPLES = {
    "host_s.median": ("samples_s", 0.5),
    "host_s.p90": ("samples_s", 0.9),
    "device_s.median": ("device_samples_s", 0.5),
    "device_s.p90": ("device_samples_s", 0.9),
}
OLD, NEW = 0, 1  # of an A/B: its rows are A, B, A, B, ...
_NORMAL_MAD = 1.4826  # a normal distribution's standard deviation is so many times its MAD
_OF_MEDIAN = 1.2533  # and a median's standard error so many times a mean's
_FACTS = (
    *(*ROW_KEYS, "repeats", "boundary", "caches", "bytes", "flops", "operations"),
    *("threshold", "checked", "registers"),
)


@dataclass(frozen=True)
class Document:
    """A JSON document, what it is called in the record, and when it was made, where known."""

    name: str
    data: Any
    measured_at: datetime | None = None


@dataclass(frozen=True)
class Side:
    """`samples` are those of which `value` is the quantile; none if they are not known.

    place  the row of a bench result that it is
    """

    value: float
    correct: str
    samples: tuple[float, ...] = ()
    quantile: float = 0.5
    error: float | None = None  # standard error where only that is known
    unstable: str | None = None
    place: int | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    def interval(self, level: float = LEVEL) -> tuple[float, float] | None:
        """Where the figure lies, by order statistics of the samples, or by its standard error."""
        if self.samples:
            return quantile_interval(self.samples, self.quantile, level)
        if self.error is None:
            return None
        reach = _normal(level) * self.error
        return self.value - reach, self.value + reach


def side_of(
    documents: Sequence[Document],
    figure: str,
    rows: Mapping[str, Any],
    correct_path: str | None = None,
    half: int | None = None,
) -> Side:
    """A side from one bench result, or from one or more plain JSON documents (repeats).

    `half`: it is the OLD or the NEW one of an A/B.
    """
    if is_bench(documents[0].data):
        if len(documents) > 1:
            raise Refusal(
                "Several bench results were given for one side; give one: its repeats are inside."
            )
        return _bench_side(documents[0], figure, rows, half)
    if rows:
        raise Refusal(
            f"{documents[0].name} is no result of kuroshio perf bench, but the prediction picks a "
            "row of one (new or old in [prediction]). Give a bench result."
        )
    try:
        values = tuple(number_at(document.data, figure) for document in documents)
        correct = _correct(documents, correct_path)
    except Refusal as refusal:
        raise Refusal(f"{documents[0].name}: {refusal.message}") from refusal
    return Side(float(median(values)), correct, values, facts={"values": list(values)})


def is_bench(data: Any) -> bool:
    """Whether a document is a result of bench; refuses one of another version."""
    schema = data.get("schema") if isinstance(data, dict) else None
    if isinstance(schema, str) and schema.startswith("kuroshio.perf.") and schema != RESULT_SCHEMA:
        raise Refusal(
            f"This document is {schema!r}, and figures are taken from {RESULT_SCHEMA!r}, the "
            "result of kuroshio perf bench, or from other programs' JSON. Give one of these."
        )
    return schema == RESULT_SCHEMA


def quantile_interval(
    samples: Sequence[float], quantile: float, level: float
) -> tuple[float, float] | None:
    """Where the quantile of what was sampled lies, by order statistics; None for too few samples.

    Exact for independent samples of any distribution: how many lie below the quantile is binomial.
    """
    values, n, tail = sorted(samples), len(samples), (1 - level) / 2
    terms = [
        math.exp(
            math.lgamma(n + 1)
            - math.lgamma(k + 1)
            - math.lgamma(n - k + 1)
            + k * math.log(quantile)
            + (n - k) * math.log1p(-quantile)
        )
        for k in range(n + 1)
    ]
    low, sum_low = -1, 0.0  # the quantile is below values[low] with a chance of sum_low at most
    while low + 1 <= n and sum_low + terms[low + 1] <= tail:
        low += 1
        sum_low += terms[low]
    high, sum_high = n, 0.0
    while high >= 1 and sum_high + terms[high] <= tail:
        sum_high += terms[high]
        high -= 1
    if low < 0 or high >= n:
        return None
    return values[low], values[high]


def _bench_side(
    document: Document, figure: str, wanted: Mapping[str, Any], half: int | None
) -> Side:
    row = _row(document, wanted, half)
    try:
        value = number_at(row, figure)
    except Refusal as refusal:
        raise Refusal(f"{document.name}, {_row_name(row)}: {refusal.message}") from refusal
    clock = row.get(figure.partition(".")[0])
    facts = {**(clock if isinstance(clock, dict) else {}), **{key: row.get(key) for key in _FACTS}}
    where, quantile = _SAMPLES.get(figure, ("", 0.5))
    samples = _samples(document, row, where) if where else ()
    correct = row.get("correct")
    return Side(
        value=value,
        correct=NOT_CHECKED if correct is None else YES if correct is True else NO,
        samples=samples,
        quantile=quantile,
        error=None if samples else _standard_error(figure, clock, row.get("repeats")),
        unstable=None
        if row.get("stable", True)
        else row.get("unstable_because") or "it is marked as not stable",
        place=next(i for i, each in enumerate(document.data["rows"]) if each is row),
        facts={key: fact for key, fact in facts.items() if _writable(fact)},
    )


def _writable(fact: Any) -> bool:
    return isinstance(fact, str | int) or (isinstance(fact, float) and math.isfinite(fact))


def _samples(document: Document, row: dict[str, Any], where: str) -> tuple[float, ...]:
    samples = row.get(where) or []
    numbers = isinstance(samples, list) and all(
        isinstance(sample, int | float) and 0 < sample < math.inf for sample in samples
    )
    if not numbers:
        raise Refusal(
            f"{document.name}, {_row_name(row)}: {where} is no list of positive numbers. Measure "
            "again with kuroshio perf bench."
        )
    return tuple(samples)


def _row(document: Document, wanted: Mapping[str, Any], half: int | None) -> dict[str, Any]:
    rows = document.data.get("rows")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise Refusal(f"{document.name} has no rows; measure again with kuroshio perf bench.")
    if half is not None:
        rows = rows[half::2]
    fits = [row for row in rows if all(row.get(key) == value for key, value in wanted.items())]
    if len(fits) == 1:
        return fits[0]
    there = "; ".join(map(_row_name, rows[:8])) or "none"
    if fits:
        raise Refusal(
            f"{document.name} has {len(fits)} rows that fit ({there}). Which one is meant is part "
            "of the prediction: say it there, such as new = {case = ..., size = ...}."
        )
    raise Refusal(
        f"{document.name} has no row with {_row_name(wanted)}; there are: {there}. Measure what "
        "was predicted."
    )


def _row_name(row: Mapping[str, Any]) -> str:
    return " ".join(f"{key}={row[key]}" for key in ROW_KEYS if row.get(key) is not None)


def _standard_error(figure: str, clock: Any, repeats: Any) -> float | None:
    """Of a median whose samples are not in the file, from their median absolute deviation."""
    if not figure.endswith(".median") or not isinstance(clock, dict):
        return None
    mad = clock.get("mad")
    if not isinstance(mad, int | float) or not isinstance(repeats, int) or repeats < 2:
        return None
    return _OF_MEDIAN * _NORMAL_MAD * mad / math.sqrt(repeats)


def _correct(documents: Sequence[Document], path: str | None) -> str:
    if path is None:
        return NOT_CHECKED
    return YES if all(at_path(document.data, path) is True for document in documents) else NO


def _normal(level: float) -> float:
    return NormalDist().inv_cdf((1 + level) / 2)
