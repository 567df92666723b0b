"""A pipeline whose stages were recorded: what starves whom, by its roles."""

from __future__ import annotations

import numpy as np

from ..timeline.groups import during
from ..timeline.intervals import Intervals, union
from ..timeline.stages import Pipeline, Role
from ..traces.events import Kind
from . import figures
from .finding import Finding
from .seen import WORTH, Seen

# Of threads' time, or of the time of a device that nothing starves: something is always at work,
# and below half of it no one role is what the rest waits for.
_MOST = 0.5

_WORDS = {
    Role.KERNEL: "the kernel",
    Role.LINK: "the link",
    Role.READING: "reading",
    Role.PREPARATION: "preparation on the host",
    Role.OUTPUT: "output",
    Role.OTHER: "stages of other kinds",
    Role.WAITING: "waiting, with no stage at work",
}
_AGAINST_ITS_ROOF = ("That role alone against its roof (kuroshio perf ceilings, perf roofline)",)
_VERIFY = {
    Role.WAITING: (
        "What one thread does in the longest of it, while the others wait",
        "Whether the run is long enough: a first run compiles, and pieces may be few",
    ),
}
_DIRECTIONS = {
    Role.KERNEL: ("Fewer bytes or operations a result", "More devices, or more threads"),
    Role.LINK: (
        "Copy less: smaller types, or inflate on the device",
        "Pinned memory, and several copies under way",
    ),
    Role.READING: (
        "More threads or larger requests, up to the disk's roof",
        "Read ahead: more memory for what is waiting",
        "Inflate elsewhere: on the device, or with a quicker library",
    ),
    Role.PREPARATION: ("More threads for it", "Do it on the device"),
    Role.OUTPUT: ("Write beside the next pieces' work", "Compress less, or with more threads"),
    Role.OTHER: ("Look which stage it is, and give it more threads",),
    Role.WAITING: ("Smaller pieces, so that stages overlap", "More pieces under way at a time"),
}


def bottleneck(seen: Seen) -> Finding | None:
    """The role that the others wait for; none of a pipeline whose stages hide each other."""
    pipeline = seen.analysis.pipeline
    if pipeline is None or not pipeline.total:
        return None
    found = _of_device(pipeline, seen) if pipeline.on_device else _of_threads(pipeline)
    if found is None:
        return None
    role, saves, why, how = found
    word = _WORDS[role].partition(",")[0]
    names = [] if role is Role.WAITING else _names(pipeline, role)
    when = _when(seen, pipeline, role)
    bound = role is Role.KERNEL or not pipeline.on_device
    return Finding(
        key=f"pipeline-{role.value}",
        title=f"The pipeline is {'bound' if bound else 'starved'} by {word}",
        summary=why,
        verify=_VERIFY.get(role, _AGAINST_ITS_ROOF),
        directions=_DIRECTIONS[role],
        saves=saves,
        of=pipeline.total,
        how=how,
        places=seen.stretches(when, names[0] if names else "nothing that was recorded"),
        places_in_all=len(when),
        names=tuple(names),
        figures={f"{each.value}_ns": ns for each, ns in pipeline.parts.items()},
    )


def _of_device(pipeline: Pipeline, seen: Seen) -> tuple[Role, int, str, str] | None:
    """What goes on while the kernel does not; else the kernel, if the rest has little to do."""
    total = pipeline.total
    others = {role: ns for role, ns in pipeline.parts.items() if role is not Role.KERNEL}
    role = max(others, key=lambda each: others[each])
    if others[role] > WORTH * total:
        why = (
            f"For {figures.time(others[role])}, {figures.share(others[role], total)} of "
            f"{figures.time(total)}, the device computes nothing while there is "
            f"{_WORDS[role]}; the kernel is at work for "
            f"{figures.share(pipeline.parts.get(Role.KERNEL, 0), total)} of it."
        )
        return role, others[role], why, "the time of it that no kernel hides"
    events = seen.analysis.trace.events
    names = {s.name for s in pipeline.stages if s.role not in (Role.KERNEL, Role.WAITING)}
    told = [number for number, name in enumerate(events.names) if name in names]
    rest = during(events, (events.kind != Kind.KERNEL) & np.isin(events.name, told)).total
    if rest > _MOST * total:
        return None
    why = (
        f"The kernel is at work for {figures.share(pipeline.parts[Role.KERNEL], total)} of "
        f"{figures.time(total)}, and everything else only for {figures.share(rest, total)}."
    )
    return Role.KERNEL, total - rest, why, "the time in which nothing but the kernel is at work"


def _of_threads(pipeline: Pipeline) -> tuple[Role, int, str, str] | None:
    role = pipeline.bound_by
    share = pipeline.parts[role] / pipeline.of
    if share <= _MOST:
        return None
    why = (
        f"Of the time of {figures.count(pipeline.threads, 'thread')} over "
        f"{figures.time(pipeline.total)}, {100 * share:.0f}% is {_WORDS[role]}."
    )
    return role, round(share * pipeline.total), why, "its share of the threads' time"


def _names(pipeline: Pipeline, *roles: Role) -> list[str]:
    return [stage.name for stage in pipeline.stages if stage.role in roles]


def _when(seen: Seen, pipeline: Pipeline, role: Role) -> Intervals:
    """When it is under way and keeps others waiting: of waiting, when nothing else is at all."""
    events = seen.analysis.trace.events
    counted = events.on_device | (events.kind == Kind.STAGE)

    def of(*roles: Role) -> Intervals:
        wanted = set(_names(pipeline, *roles))
        told = [number for number, name in enumerate(events.names) if name in wanted]
        return during(events, counted & np.isin(events.name, told))

    if role is Role.WAITING:
        whole = during(events, counted)
        return union(whole.starts[:1], whole.ends[-1:]) - of(*(set(Role) - {role}))
    if pipeline.on_device and role is not Role.KERNEL:
        return of(role) - during(events, events.kind == Kind.KERNEL)
    return of(role)
