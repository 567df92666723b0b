"""Analyses and what follows from them: what the reports are made of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..findings import figures
from ..findings.finding import Finding
from ..findings.rules import find, trace_name
from ..findings.seen import WORTH, Seen
from ..roofline import Judgement, Roofs
from ..timeline.analysis import Analysis, analyse
from ..timeline.holes import Cause, Sum
from ..timeline.ranks import Ranks, compare
from ..timeline.stages import Role, after_the_run
from ..traces.trace import Trace
from . import savings

SCHEMA = "kuroshio.diagnosis/1"
# Of kernels' time: two ranks of a job have nine tenths and more in kernels of the same names, and
# programs of one framework that have nothing to do with each other up to a third (the samples of
# PyTorch's profiler).
ALIKE = 0.5
# Times the devices' span: so much longer, steps are mostly time at the recording's ends.
_LONGER = 2

if TYPE_CHECKING:
    from ..ceilings.ceiling import Ceiling
    from ..experiments.record import Record


@dataclass(frozen=True)
class Diagnosis:
    """Of one trace, or of several ranks of one job.

    ranks        how they compare; None of one trace
    remarks      what should be known beside the findings, a sentence each
    judged       kernels held to the roofs of a device, `under`; None without any
    experiments  records of what was tried
    """

    analyses: tuple[Analysis, ...]
    ranks: Ranks | None
    findings: tuple[Finding, ...]
    remarks: tuple[str, ...] = ()
    judged: tuple[Judgement, ...] = ()
    experiments: tuple[Record, ...] = ()
    under: Roofs | None = None

    @property
    def sentence(self) -> str:
        """All of it in one."""
        return _sentence(self)

    def as_json(self) -> dict[str, Any]:
        """Of SCHEMA (docs/how-to/perf-diagnose-json.md). Times are ns."""
        return {
            "schema": SCHEMA,
            "sentence": self.sentence,
            "findings": [each.as_json() for each in self.findings],
            "remarks": list(self.remarks),
            "ranks": self.ranks.as_json() if self.ranks else None,
            "traces": [each.as_json() for each in self.analyses],
            "roofline": [each.as_json() for each in self.judged],
        }


def diagnose(
    traces: Sequence[Trace],
    judged: Sequence[Judgement] = (),
    experiments: Sequence[Record] = (),
    under: Roofs | None = None,
    ceilings: Sequence[Ceiling] = (),
) -> Diagnosis:
    """Analyse and judge; several traces are ranks of one job, whose messages have ceilings."""
    return diagnosis_of([analyse(each) for each in traces], judged, experiments, under, ceilings)


def diagnosis_of(
    analyses: Sequence[Analysis],
    judged: Sequence[Judgement] = (),
    experiments: Sequence[Record] = (),
    under: Roofs | None = None,
    ceilings: Sequence[Ceiling] = (),
) -> Diagnosis:
    """The same of analyses that are there already."""
    known = {each.point.name: each for each in judged}
    seen = [Seen(each, number, known) for number, each in enumerate(analyses)]
    ranks = compare(analyses, ceilings) if len(analyses) > 1 else None
    return Diagnosis(
        tuple(analyses), ranks, find(seen, ranks), _remarks(analyses, ranks), tuple(judged),
        tuple(experiments), under,
    )  # fmt: skip


def _sentence(diagnosis: Diagnosis) -> str:
    works = [each.work for each in diagnosis.analyses if each.work]
    pipeline = next((each.pipeline for each in diagnosis.analyses if each.pipeline), None)
    if pipeline:
        said = f"A pipeline of {figures.time(pipeline.total)}"
        if pipeline.on_device:
            kernel = pipeline.parts.get(Role.KERNEL, 0)
            said += f", with the kernel at work for {figures.share(kernel, pipeline.total)} of it"
        if any(after_the_run(each.trace.events) for each in diagnosis.analyses):
            return f"{said}, but devices work after its end: nothing is judged."
    elif works:
        span, busy = sum(each.span for each in works), sum(each.busy for each in works)
        several = f"the time in {len(works)} traces"
        of = figures.time(span) if len(works) == 1 else several
        single = len(works) == 1 and len(diagnosis.analyses[0].devices) == 1
        who = "The device was" if single else "Devices were"
        said = f"{who} busy for {figures.share(busy, span)} of {of}"
    else:
        return "The trace shows no work of a device."
    if not diagnosis.findings:
        return f"{said}; no rule found anything that is worth a change.{_doubt(diagnosis)}"
    first = diagnosis.findings[0]
    title = first.title[0].lower() + first.title[1:]
    lost = savings.clause(first)
    return f"{said}. What matters most: {title}{f'; {lost}' if lost else ''}.{_doubt(diagnosis)}"


def _doubt(diagnosis: Diagnosis) -> str:
    """Idle time that the profiler may have made, where that is more than the first finding's."""
    found = [
        (own.time, each.work.span)
        for each in diagnosis.analyses
        if each.work and (own := _own(each))
    ]
    time, span = max(found, default=(0, 0))
    first = max((each.saves or 0 for each in diagnosis.findings), default=0)
    if time <= max(WORTH * span, first):
        return ""
    more = " (more than that)" if first else ""
    return (
        f" But {figures.time(time)} of idle time{more} may be the tracer's own doing: record again "
        "with less traced (no stacks, shapes or memory) before anything is changed."
    )


def _remarks(analyses: Sequence[Analysis], ranks: Ranks | None) -> tuple[str, ...]:
    """What several traces leave open in the same words is said once."""
    whose: dict[str, list[str]] = defaultdict(list)
    for number, each in enumerate(analyses):
        for open_ in dict.fromkeys(_open(each)):
            whose[open_].append(trace_name(each, number))
    said = [
        f"{figures.listed(names).capitalize()}: {open_}" if len(analyses) > 1 else _begun(open_)
        for open_, names in whose.items()
    ]
    alike = _alike(analyses)
    if alike < ALIKE:
        said.append(
            f"Kernels of the same names make up {figures.share(alike, 1)} of the kernels' time of "
            "these traces: they are hardly ranks of one job. Two runs are compared by kuroshio "
            "perf compare"
        )
    if ranks:
        said += ranks.limits
    return tuple(dict.fromkeys(said))


def _open(analysis: Analysis) -> Iterator[str]:
    """What a trace leaves open."""
    yield from analysis.limits
    work, steps = analysis.work, analysis.steps
    if work and steps and steps.total > _LONGER * work.span:
        yield (
            f"Shares are of the {figures.time(work.span)} from devices' first to "
            f"their last work. The steps took {figures.time(steps.total)}: most of that "
            "lies before or after, and no finding is about it"
        )
    if own := _own(analysis):
        yield (
            f"{figures.count(own.count, 'hole')}, {figures.time(own.time)} in all, may "
            "be the tracer's own doing and count in no finding"
        )


def _own(analysis: Analysis) -> Sum | None:
    """Holes that may be the tracer's."""
    return analysis.holes.by_cause.get(Cause.TRACER) if analysis.holes else None


def _alike(analyses: Sequence[Analysis]) -> float:
    """The least share of a trace's kernels' time that is of kernels which the first one has, too.

    Or the first of the others'; 1 where fewer than two have kernels.
    """
    times = [
        {kernel.name: kernel.share for kernel in each.kernels.kernels}
        for each in analyses
        if each.kernels
    ]
    shares = [
        sum(share for name, share in one.items() if name in other)
        for mine in times[1:]
        for one, other in ((mine, times[0]), (times[0], mine))
    ]
    return min(shares, default=1.0)


def _begun(limit: str) -> str:
    """As a sentence begins."""
    return limit[:1].upper() + limit[1:]
