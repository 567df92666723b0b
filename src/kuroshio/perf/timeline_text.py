"""An analysis in a terminal: what devices did when, holes with their causes, overlaps, steps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..messages import printable
from .findings.figures import clipped, count, share, time
from .output import wrapped
from .results import columns
from .timeline.analysis import Analysis
from .timeline.groups import communicating
from .timeline.host import Host
from .timeline.intervals import Intervals, union
from .timeline.spread import Spread
from .timeline.stages import Pipeline
from .timeline.steps import Source, Steps
from .timeline.work import Work
from .traces.events import Kind

_BAR = 24
_LONGEST_HOLES = 5
_LEAST_NAME, _NAME = 12, 48  # characters of one in a table
_BESIDE_NAME = 53  # of a line of that table, its gaps among them
_WITH_TOTALS = 56  # of a terminal in which the host's table has all its columns
_HOST_NAMES = 10  # that are shown
_P90_FROM = 10  # of fewer durations the 90th percentile is the longest
# What a column of a strip shows: the first kind that has the most of its time.
_SIGNS = {"compute": "#", "communication": "~", "copies and sets": "=", "idle": "."}


def text(analysis: Analysis, width: int) -> str:
    """All of it, for a terminal of that many columns."""
    parts = [_title(analysis)]
    if analysis.work is None:
        parts.append("No work of a device was recorded.")
    for work in analysis.devices:
        parts.append(_device(analysis, work, width))
    if analysis.pipeline:
        parts.append(_pipeline(analysis.pipeline))
    elif analysis.steps and analysis.steps.steps:
        parts.append(steps_text(analysis.steps))
    if analysis.holes is not None and len(analysis.holes):
        parts += _holes(analysis, width)
    if analysis.host:
        parts.append(host_text(analysis.host, width))
    parts += [f"Note: {printable(limit)}." for limit in analysis.limits]
    return "\n\n".join(parts)


def _title(analysis: Analysis) -> str:
    trace = analysis.trace
    models = dict.fromkeys(device.name for device in trace.devices.values() if device.name)
    on = f" on {', '.join(map(printable, models))}" if models else ""
    rank = "" if trace.rank is None else f", rank {trace.rank}"
    events = count(len(trace.events), "event")
    return f"{printable(str(trace.path))}: {trace.form}{on}{rank}, {events}"


def _device(analysis: Analysis, work: Work, width: int) -> str:
    # None may be none that was recorded: what the trace does not show is said below.
    there = [
        count(number, *names)
        for number, *names in (
            (work.kernels, "kernel"), (work.copies, "copy", "copies"), (work.sets, "set")
        )
        if number
    ]  # fmt: skip
    busy = f"{time(work.busy)} of {time(work.span)} ({share(work.busy, work.span)})"
    lines = [
        ", ".join([f"Device {work.device}: busy for {busy}", *there]),
        _strip(analysis, work, max(20, min(width, 100) - 2)),
        _bars(
            [
                ("compute", work.compute),
                ("communication", work.communication),
                ("copies", work.copying),
                ("sets", work.setting),
                ("idle", work.idle),
            ],
            work.span,
        ),
    ]
    for what, covered, whole in (
        ("communication", work.communication_covered, work.communication),
        ("copies", work.copying_covered, work.copying),
    ):
        if whole:
            of_it = f"{time(covered)} of {time(whole)}" if covered else f"none of {time(whole)}"
            lines.append(f"Of {what}, {of_it} ({share(covered, whole)}) overlap with compute.")
    return "\n".join(lines)


def _strip(analysis: Analysis, work: Work, width: int) -> str:
    """The device's time from left to right, a sign for what a column's time mostly is."""
    events = analysis.trace.events
    mine = events.on_device & (events.device == work.device)
    talks = communicating(events)
    kernels = events.kind == Kind.KERNEL
    layers = [mine & kernels & ~talks, mine & talks, mine & ~kernels]
    edges = np.linspace(0, max(work.span, 1), width + 1)  # from the device's start
    taken = [
        _covered(union(events.start[rows], events.end[rows]), work.start, edges)
        for rows in (*layers, mine)
    ]
    most = np.argmax([*taken[:-1], np.diff(edges) - taken[-1]], axis=0)
    drawn = "".join(list(_SIGNS.values())[each] for each in most)
    key = ", ".join(f"{sign} {name}" for name, sign in _SIGNS.items())
    begins = work.start - int(events.start[0])
    return f"|{drawn}|\n{time(begins) if begins else 0} to {time(begins + work.span)}: {key}"


def _covered(intervals: Intervals, start: int, edges: np.ndarray) -> np.ndarray:
    """ns of the intervals between each two edges, which are counted from the start."""
    if not len(intervals):
        return np.zeros(len(edges) - 1)
    at = np.stack([intervals.starts, intervals.ends], axis=1).reshape(-1)
    so_far = np.cumsum(intervals.ends - intervals.starts)
    until = np.stack([so_far - (intervals.ends - intervals.starts), so_far], axis=1).reshape(-1)
    found: np.ndarray = np.diff(np.interp(edges, at - start, until))
    return found


def _bars(rows: Sequence[tuple[str, int]], whole: int, long: int = _BAR) -> str:
    """A row a thing, with its share as a bar of so many columns; those of nothing are left out."""
    lines = [
        [name, *([_bar(part, whole, long)] if long else []), time(part), share(part, whole)]
        for name, part in rows
        if part
    ]
    return columns(lines, left=2 if long else 1) if lines else ""


def _bar(part: int, whole: int, long: int) -> str:
    filled = round(long * part / whole) if whole else 0
    return f"[{'#' * filled:{long}}]"


def steps_text(steps: Steps, bar: int = _BAR) -> str:
    """Where their time goes, with bars of so many columns."""
    lines = []
    if steps.source is Source.WHOLE:
        lines.append(f"No steps were found; of the whole recording, {time(steps.total)}:")
    elif steps.durations:
        lines.append(_durations(steps, steps.durations))
    parts: dict[str, int] = {}
    for step in steps.steps:
        for part, took in step.parts.items():
            parts[part] = parts.get(part, 0) + took
    if parts:
        lines.append(_bars(list(parts.items()), steps.total, bar))
    return "\n".join(lines)


def _durations(steps: Steps, took: Spread) -> str:
    if took.count == 1:
        return f"1 step of {time(took.total)} ({steps.source})"
    typical = [f"median {time(took.median)}"] if took.count > 2 else []
    far = [f"shortest {time(took.least)}", f"longest {time(took.most)}"]
    if took.count >= _P90_FROM:
        far = [f"p90 {time(took.p90)}"]
    return (
        f"{count(took.count, 'step')} ({steps.source}), {time(steps.total)} in all: "
        f"{', '.join(typical + far)}"
    )


def host_text(host: Host, width: int) -> str:
    """Names with the most time of their own."""
    rows = [["own", "share", "calls", "total"]]
    rows += [
        [time(each.own), share(each.share, 1), f"{each.times.count:,}", time(each.times.total)]
        for each in host.names[:_HOST_NAMES]
    ]
    own = "own: without what ran within it"
    if width < _WITH_TOTALS:
        rows = [row[:-1] for row in rows]
    else:
        own += ", which the total has"
    room = min(_NAME, max(_LEAST_NAME, width - max(map(len, columns(rows).splitlines())) - 2))
    names = ["on the host", *(printable(each.name) for each in host.names[:_HOST_NAMES])]
    lines = [[clipped(name, room), *row] for name, row in zip(names, rows, strict=True)]
    threads = f"{count(host.threads, 'thread')} in {time(host.span)}"
    more = len(host.names) - _HOST_NAMES
    of = f" of {host.count - _HOST_NAMES:,}" if host.count > len(host.names) else ""
    rest = f"; {more:,}{of} more with --json" if more > 0 else ""
    said = f"{own}; in all {time(host.busy)} of {threads}{rest}"
    return f"{columns(lines, left=1)}\n{wrapped(said, width)}"


def roles_text(pipeline: Pipeline, bar: int = _BAR) -> str:
    """Where its time goes, with bars of so many columns."""
    of = "moments" if pipeline.on_device else f"time of {count(pipeline.threads, 'thread')}"
    said = f"Pipeline of {time(pipeline.total)}, by {of}; bound by {pipeline.bound_by}"
    parts = [(str(role), part) for role, part in pipeline.parts.items()]
    return f"{said}\n{_bars(parts, pipeline.of, bar)}"


def _pipeline(pipeline: Pipeline) -> str:
    lines = [
        roles_text(pipeline),
        columns(
            [["stage", "spans", "lanes", "busy", "work"]]
            + [
                [printable(each.name), f"{each.spans:,}", f"{each.lanes}", time(each.busy),
                 time(each.work)]
                for each in pipeline.stages
            ],
            left=1,
        ),
        "busy: at least one lane is at it; work: the time of all its lanes, which are threads or "
        "streams",
    ]  # fmt: skip
    return "\n".join(lines)


def _holes(analysis: Analysis, width: int) -> list[str]:
    holes = analysis.holes
    assert holes is not None
    idle = sum(work.idle for work in analysis.devices)
    rows = [["holes by cause", "holes", "time", "of idle"]]
    for cause, of in holes.by_cause.items():
        rows.append([str(cause), f"{of.count:,}", time(of.time), share(of.time, idle)])
    if holes.brief.count:
        brief = holes.brief
        rows.append(
            [f"up to {time(holes.threshold)}", f"{brief.count:,}", time(brief.time),
             share(brief.time, idle)]
        )  # fmt: skip
    # From the first event, as in a diagnosis and its page.
    begin = int(analysis.trace.events.start[0])
    longest = [["longest holes", "cause", "what went on", "at", "for"]]
    name = min(_NAME, max(_LEAST_NAME, width - _BESIDE_NAME))
    for hole in holes.longest(_LONGEST_HOLES):
        who = printable(hole.who or "")
        longest.append(
            [f"device {hole.device}", str(hole.cause),
             clipped(who, name),
             time(hole.start - begin), time(hole.duration)]
        )  # fmt: skip
    zero = "Times at which something is count from the trace's first event."
    return [columns(rows, left=1), f"{columns(longest, left=3)}\n{zero}"]
