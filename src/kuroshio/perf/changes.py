"""What differs between two diagnoses: stages, holes, kernels, steps, findings.

They are compared as the documents that `kuroshio perf diagnose -o` keeps, so that a trace need not
be there any more.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from ..errors import Refusal
from .bench_effort import RESOLUTION_SAVED
from .compare import Comparison, comparison, told_apart
from .json_file import read_json
from .report.diagnosis import SCHEMA
from .results import SCHEMA as RESULTS
from .statistics import ratio_interval
from .timeline.steps import Source

CHANGES = "kuroshio.changes/1"
_FEWEST_STEPS = 6  # fewer durations give no interval
_WORK = ("span", "busy", "idle", "compute", "communication", "copying", "setting")
# Facts of a trace that must agree for times to be compared; the command and versions may differ.
_SAME_FACTS = ("processors", "device", "device_model")
_HEAD = 200  # bytes in which a document of ours names its schema
_ADVICE = "Diagnose the trace again: kuroshio perf diagnose TRACE -o FILE"


@dataclass(frozen=True)
class Amount:
    """Of one thing before and after; None where it is not there.

    before, after   ns, of all traces together, or of a step
    calls           how often, of kernels and holes; of all or of a step
    """

    name: str
    before: float | None
    after: float | None
    calls: tuple[float | None, float | None] = (None, None)

    @property
    def difference(self) -> float:
        return (self.after or 0) - (self.before or 0)


@dataclass(frozen=True)
class Changes:
    """names     of the two
    differ       what else is not the same, a few words each; only if that was allowed
    per_step     amounts are divided by each side's number of steps
    steps        how many there are
    step         how the durations of steps compare; None of too few
    medians      of the durations of steps, ns; None where a side has no steps
    in_common    share of the kernels' time that is of kernels which the other side has, too: the
                 lesser of the two; None where a side has no kernels
    work, parts, stages, holes, kernels    what changed the most first; parts are of steps, of a
                 pipeline's own timeline its roles
    vanished, appeared, stayed             findings, by title
    """

    names: tuple[str, str]
    differ: tuple[str, ...]
    per_step: bool
    steps: tuple[int, int]
    step: Comparison | None
    medians: tuple[float, float] | None
    in_common: float | None
    work: tuple[Amount, ...]
    parts: tuple[Amount, ...]
    stages: tuple[Amount, ...]
    holes: tuple[Amount, ...]
    kernels: tuple[Amount, ...]
    vanished: tuple[str, ...]
    appeared: tuple[str, ...]
    stayed: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Times are ns."""
        said = {"schema": CHANGES, **asdict(self)}
        said["step"] = self.step.to_json() if self.step else None
        return said


def load(path: str | os.PathLike[str], say: Callable[[str], None]) -> dict[str, Any]:
    """A diagnosis that was kept, or that of a trace. Refusal where it is neither."""
    from .diagnosing import diagnosis_of

    schema = _schema(Path(path))
    if schema == RESULTS:
        raise Refusal(
            f"{os.fspath(path)} holds times of kuroshio perf bench, which compares its own: "
            "kuroshio perf bench before.json --vs after.json"
        )
    if schema != SCHEMA:
        return diagnosis_of([path], say=say).as_json()
    document = read_json(Path(path), _ADVICE)
    if not isinstance(document, dict) or not document.get("traces"):
        raise Refusal(f"{os.fspath(path)} is damaged: it has no traces. {_ADVICE}")
    return document


def changes(
    names: tuple[str, str], before: Mapping[str, Any], after: Mapping[str, Any], *, anyway: bool
) -> Changes:
    """Of two documents. Refusal, which names it, where more than the program's code differs."""
    try:
        differ = tuple(_differences(before["traces"], after["traces"]))
        if differ and not anyway:
            raise Refusal(
                f"{names[0]} and {names[1]} are not alike: {'; '.join(differ)}. Differences would "
                "not be the change's. Record both in the same way, or say --anyway."
            )
        return _changes(told_apart(*names, "before", "after"), differ, before, after)
    except (AttributeError, IndexError, KeyError, TypeError) as problem:
        raise Refusal(
            f"{names[0]} or {names[1]} is damaged ({type(problem).__name__}: {problem}). {_ADVICE}"
        ) from problem


def _changes(
    names: tuple[str, str], differ: tuple[str, ...], before: Mapping[str, Any],
    after: Mapping[str, Any],
) -> Changes:  # fmt: skip
    durations = [_durations(side["traces"]) for side in (before, after)]
    steps = len(durations[0]), len(durations[1])
    per_step = min(steps) > 0
    by = tuple(number if per_step else 1 for number in steps)

    def amounts(of: Callable[[Mapping[str, Any]], Iterable[tuple[str, float, float | None]]]):  # type: ignore[no-untyped-def]
        sides = [
            _summed(side["traces"], of, number)
            for side, number in zip((before, after), by, strict=True)
        ]
        return _paired(*sides)

    titles = [
        {each["key"]: str(each["title"]) for each in side["findings"]} for side in (before, after)
    ]
    return Changes(
        names, differ, per_step, steps, _step(names, *durations),
        (median(durations[0]), median(durations[1])) if per_step else None,
        _in_common(before["traces"], after["traces"]),
        amounts(_work), amounts(_parts), amounts(_stages), amounts(_holes), amounts(_kernels),
        vanished=tuple(title for key, title in titles[0].items() if key not in titles[1]),
        appeared=tuple(title for key, title in titles[1].items() if key not in titles[0]),
        stayed=tuple(title for key, title in titles[1].items() if key in titles[0]),
    )  # fmt: skip


def _differences(before: Sequence[Any], after: Sequence[Any]) -> Iterable[str]:
    """In words, what makes two sides no pair."""
    if len(before) != len(after):
        yield f"{len(before)} and {len(after)} traces"
    for what, of in (
        ("recorded by", lambda each: each["trace"]["form"]),
        ("on", _device),
        ("with work of", lambda each: "a device" if each["work"] else "no device"),
        *((fact.replace("_", " "), _fact(fact)) for fact in _SAME_FACTS),
    ):
        one, other = (sorted({str(of(each)) for each in side}) for side in (before, after))
        if one != other and "" not in (*one, *other):
            yield f"{what} {', '.join(one)} and {', '.join(other)}"
    for what, named in (("kernel", _kernels), ("stage", _stages)):
        sides = [{name for each in side for name, *_ in named(each)} for side in (before, after)]
        if all(sides) and not sides[0] & sides[1]:
            yield f"no {what} in common"


def _device(each: Mapping[str, Any]) -> str:
    return ", ".join(
        dict.fromkeys(str(device["name"]) for device in each["trace"]["devices"] if device["name"])
    )


def _fact(name: str) -> Callable[[Mapping[str, Any]], str]:
    return lambda each: str(each["trace"]["facts"].get(name, ""))


def _in_common(before: Sequence[Any], after: Sequence[Any]) -> float | None:
    mine, others = (_summed(side, _kernels, 1) for side in (before, after))
    if not (mine and others):
        return None
    shares = []
    for one, other in ((mine, others), (others, mine)):
        total = sum(took for took, _ in one.values())
        shares.append(sum(one[name][0] for name in one if name in other) / total if total else 0.0)
    return min(shares)


def _durations(traces: Sequence[Mapping[str, Any]]) -> list[float]:
    """Of all steps of the program; none where they were not found."""
    return [
        float(step["end"] - step["start"])
        for each in traces
        if each["steps"] and each["steps"]["source"] != Source.WHOLE
        for step in each["steps"]["steps"]
    ]


def _step(
    names: tuple[str, str], before: Sequence[float], after: Sequence[float]
) -> Comparison | None:
    if min(len(before), len(after)) < _FEWEST_STEPS or min(*before, *after) <= 0:
        return None
    interval = ratio_interval(after, before)
    return comparison(
        (f"a step of {names[0]}", f"a step of {names[1]}"), interval, RESOLUTION_SAVED,
        "profiler", interleaved=False,
    )  # fmt: skip


# What of a trace is compared: name, ns, how often.


def _work(trace: Mapping[str, Any]) -> Iterable[tuple[str, float, float | None]]:
    for name in _WORK if trace["work"] else ():
        yield name, trace["work"][name], None


def _parts(trace: Mapping[str, Any]) -> Iterable[tuple[str, float, float | None]]:
    if trace["pipeline"]:
        yield from ((role, took, None) for role, took in trace["pipeline"]["parts"].items())
        return
    for step in trace["steps"]["steps"] if trace["steps"] else ():
        for name, took in step["parts"].items():
            yield name, took, None


def _stages(trace: Mapping[str, Any]) -> Iterable[tuple[str, float, float | None]]:
    for stage in trace["pipeline"]["stages"] if trace["pipeline"] else ():
        yield stage["name"], stage["work"], stage["spans"]


def _holes(trace: Mapping[str, Any]) -> Iterable[tuple[str, float, float | None]]:
    for cause, of in trace["holes"]["by_cause"].items() if trace["holes"] else ():
        yield cause, of["time"], of["count"]


def _kernels(trace: Mapping[str, Any]) -> Iterable[tuple[str, float, float | None]]:
    for kernel in trace["kernels"]["kernels"] if trace["kernels"] else ():
        yield kernel["name"], kernel["times"]["total"], kernel["times"]["count"]


def _summed(
    traces: Sequence[Mapping[str, Any]],
    of: Callable[[Mapping[str, Any]], Iterable[tuple[str, float, float | None]]],
    by: int,
) -> dict[str, tuple[float, float | None]]:
    found: dict[str, tuple[float, float | None]] = {}
    for trace in traces:
        for name, took, calls in of(trace):
            if not isinstance(name, str):
                raise TypeError(f"{name!r} is no name")
            before, often = found.get(name, (0.0, None))
            more = None if calls is None else (often or 0.0) + calls / by
            found[name] = before + took / by, more
    return found


def _paired(
    before: Mapping[str, tuple[float, float | None]],
    after: Mapping[str, tuple[float, float | None]],
) -> tuple[Amount, ...]:
    """What changed the most first; what is nothing on both sides is left out."""
    none = (None, None)
    found = []
    for name in dict.fromkeys([*before, *after]):
        (one, calls), (other, later) = before.get(name, none), after.get(name, none)
        if one or other:
            found.append(Amount(name, one, other, (calls, later)))
    return tuple(sorted(found, key=lambda each: -abs(each.difference)))


def _schema(path: Path) -> str | None:
    """What a document of ours calls itself in its first line; None of anything else."""
    try:
        with open(path, "rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return None  # who reads traces says why
    for schema in (SCHEMA, RESULTS):
        if f'"schema": {json.dumps(schema)}'.encode() in head:
            return schema
    return None
