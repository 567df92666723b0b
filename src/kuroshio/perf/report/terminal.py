"""A diagnosis in a terminal: findings first, then where the time goes, then what is left open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...messages import printable
from ..findings import figures
from ..findings.finding import Finding
from ..output import wrapped
from ..timeline.analysis import Analysis
from ..timeline.steps import Steps
from ..timeline_text import host_text, roles_text, steps_text
from . import savings
from .diagnosis import Diagnosis

_PLACES = 3  # of a finding that are named
_BAR, _LEAST = 24, 6  # columns of a bar, at most and at least
_BESIDE = 40  # columns that the rest of its line takes
_TRACES = 16  # whose time is shown, as on the page; a job may have hundreds of ranks
_FILE = 100  # columns of a table in a file
_INDENT = "   "


def text(diagnosis: Diagnosis, width: int | None) -> str:
    """For a terminal of that many columns; None: a line stays a line, for grep."""
    paragraphs = [wrapped(printable(diagnosis.sentence), width)]
    for number, finding in enumerate(diagnosis.findings, 1):
        paragraphs.append("\n".join(_finding(diagnosis, finding, number, width)))
    for analysis in diagnosis.analyses[:_TRACES]:
        if analysis.pipeline:
            head, _, bars = roles_text(analysis.pipeline, _bar(width)).partition("\n")
            paragraphs.append(f"{wrapped(head, width)}\n{bars}")
        elif analysis.steps:
            paragraphs.append(_steps(analysis, analysis.steps, width))
        if analysis.host and analysis.work is None:
            paragraphs.append(host_text(analysis.host, width or _FILE))
    if (more := len(diagnosis.analyses) - _TRACES) > 0:
        paragraphs.append(wrapped(f"{more:,} more traces; all with --json", width))
    paragraphs += [wrapped(printable(f"Note: {each}."), width) for each in diagnosis.remarks]
    return "\n\n".join(paragraphs)


def _finding(
    diagnosis: Diagnosis, finding: Finding, number: int, width: int | None
) -> Iterator[str]:
    saved = savings.headline(finding, "{} ({})")
    title = f"{finding.title}: {saved}" if saved else finding.title
    yield wrapped(printable(f"{number}. {title}"), width, _INDENT)
    said = [
        finding.summary,
        f"Verify: {_sentences(finding.verify)}",
        f"Directions: {_sentences(finding.directions)}",
        f"What it could save: {savings.counted(finding)}.",
    ]
    if finding.places:
        whose = "the" if len(diagnosis.analyses) == 1 else "each"
        places = ", ".join(_places(diagnosis, finding))
        said.append(f"Look at: {places} (from {whose} trace's first event).")
    if finding.cannot_tell:
        said.append(f"The trace cannot tell: {_sentences(finding.cannot_tell)}")
    for line in said:
        yield wrapped(printable(f"{_INDENT}{line}"), width, _INDENT)


def _sentences(said: Sequence[str]) -> str:
    return " ".join(f"{each}." for each in said)


def _places(diagnosis: Diagnosis, finding: Finding) -> Iterator[str]:
    """The longest, counted from the start of their trace."""
    for place in finding.places[:_PLACES]:
        analysis = diagnosis.analyses[place.trace]
        start = place.start - int(analysis.trace.events.start[0])
        whose = f" of {analysis.trace.path.name}" if len(diagnosis.analyses) > 1 else ""
        yield f"{figures.time(place.duration)} at {figures.time(start)}{whose}"


def _bar(width: int | None) -> int:
    """Columns of one; 0 where there is no room."""
    room = _BAR if width is None else min(_BAR, width - _BESIDE)
    return room if room >= _LEAST else 0


def _steps(analysis: Analysis, steps: Steps, width: int | None) -> str:
    """Words are wrapped, bars are made shorter, or left out where there is no room."""
    lines = steps_text(steps, _bar(width)).splitlines()
    words = [each for each in lines if " " in each and not each.endswith("%")]
    what = "Where the time goes" if len(words) < len(lines) else "Steps"
    title = f"{what} ({printable(analysis.trace.path.name)}):"
    said = [wrapped(" ".join([title, *words]), width)]
    return "\n".join([*said, *(each for each in lines if each not in words)])
