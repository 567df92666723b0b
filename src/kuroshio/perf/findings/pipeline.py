"""A pipeline whose stages were recorded: what starves whom, by its roles."""

from __future__ import annotations

import numpy as np

from ..timeline.groups import during
from ..timeline.intervals import Intervals, union
from ..timeline.stages import Pipeline, Role, after_the_run, least_without
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
    Role.COMPILING: "compiling",
    Role.START: "start-up",
    Role.OTHER: "work of other kinds",
    Role.WAITING: "waiting",
}
_THE_REST = "all but what the rest needs, divided evenly among as many threads, and no quicker"
# Of what a run waits for one after the other, a role has no more than the time it is under way.
# What of that a kernel hides counts: without the role the kernel would come sooner.
_UNDER_WAY = "the time in which it is under way, hidden or not, and no more than kernels leave"
_AGAINST_ITS_ROOF = ("That role alone against its roof (kuroshio perf ceilings, perf roofline)",)
_ONCE = ("Whether it is as long in a second run, and in a longer one",)
_VERIFY = {
    Role.COMPILING: _ONCE,
    Role.START: _ONCE,
    Role.WAITING: (
        "What one thread does in the longest of it, while the others wait",
        "Whether the run is long enough: pieces may be few",
    ),
}
# Of reading, what one thread does before there is work for others.
_INDEX, _DESCRIBING = "index", "describing files"
_AGAIN = ("Run it again, without --no-cache: what was learned of files is kept",)
# Options are those of `kuroshio climatology`, which writes such traces.
_DIRECTIONS = {
    Role.KERNEL: (
        "Fewer bytes or operations a result",
        "More devices or threads (--device, --threads)",
    ),
    Role.LINK: (
        "Copy less: smaller types, or inflate on the device (the extra nvcomp)",
        "Pinned memory, and several copies under way (--pinned-memory)",
    ),
    Role.READING: (
        "More threads, up to the disk's roof (--threads); a faster disk",
        "Read ahead: more memory for what is waiting (--memory)",
        "Inflate elsewhere: on the device (--device, the extra nvcomp), or with a quicker library",
    ),
    Role.PREPARATION: ("More threads for it (--threads)", "Do it on the device (--device)"),
    Role.OUTPUT: (
        "Write beside the next pieces' work",
        "Compress less, or with more threads (--threads)",
    ),
    Role.COMPILING: ("Run it again: what was compiled is kept",),
    Role.START: ("Give one process several jobs, or longer ones",),
    Role.OTHER: ("Look which stage it is, and give it more threads",),
    Role.WAITING: ("Smaller pieces, so that stages overlap", "More pieces under way at a time"),
}


def bottleneck(seen: Seen) -> Finding | None:
    """The role that the others wait for; none of a pipeline whose stages hide each other."""
    pipeline = seen.analysis.pipeline
    if pipeline is None or not pipeline.total or after_the_run(seen.analysis.trace.events):
        return None
    found = _of_device(pipeline, seen) if pipeline.on_device else _of_threads(pipeline, seen)
    if found is None:
        return None
    role, saves, why, how = found
    names = [] if role is Role.WAITING else _names(pipeline, role)
    describing = _describes(pipeline, role)
    what = _DESCRIBING if describing else _WORDS[role]
    verify = _ONCE if describing else _VERIFY.get(role, _AGAINST_ITS_ROOF)
    when = _when(seen, pipeline, role)
    bound = role is Role.KERNEL or not pipeline.on_device
    return Finding(
        key=f"pipeline-{role.value}",
        title=f"The pipeline is {'bound' if bound else 'starved'} by {what}",
        summary=f"{why} Most of that is {_DESCRIBING}." if describing else why,
        verify=verify,
        directions=_AGAIN if describing else _DIRECTIONS[role],
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
        goes_on = f"what goes on is {'copying' if role is Role.LINK else _WORDS[role]}"
        why = (
            f"For {figures.time(others[role])}, {figures.share(others[role], total)} of "
            f"{figures.time(total)}, the device computes nothing and "
            f"{'no stage is at work' if role is Role.WAITING else goes_on}; the kernel is at work "
            f"for {figures.share(pipeline.parts.get(Role.KERNEL, 0), total)} of it."
            f"{_rate(seen) if role is Role.LINK else ''}"
        )
        if role is Role.WAITING:
            return role, others[role], why, "that time"
        at_work = _when(seen, pipeline, role, hidden=True).total
        saves = min(at_work, total - pipeline.parts[Role.KERNEL])
        return role, saves, why, _UNDER_WAY
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
    return Role.KERNEL, pipeline.parts[Role.KERNEL], why, "the time in which it is at work"


def _rate(seen: Seen) -> str:
    """A link that carries far less than it can is not what there is too little of."""
    events = seen.analysis.trace.events
    copies = (events.kind == Kind.COPY) & (events.bytes > 0)
    took = during(events, copies).total
    return f" Copies carry {events.bytes[copies].sum() / took:.2g} GB/s." if took else ""


def _of_threads(pipeline: Pipeline, seen: Seen) -> tuple[Role, int, str, str] | None:
    role = pipeline.bound_by
    share = pipeline.parts[role] / pipeline.of
    if share <= _MOST:
        return None
    why = (
        f"Of the time of {figures.count(pipeline.threads, 'thread')} over "
        f"{figures.time(pipeline.total)}, {100 * share:.0f}% is {_WORDS[role]}."
    )
    names = [_INDEX] if _describes(pipeline, role) else _names(pipeline, role)
    saves = max(pipeline.total - least_without(seen.analysis.trace.events, names), 0)
    return role, saves, why, _THE_REST


def _describes(pipeline: Pipeline, role: Role) -> bool:
    """Whether it is reading, and most of that the index; threads that are idle meanwhile count."""
    busy = sum(stage.busy for stage in pipeline.stages if stage.name == _INDEX)
    lanes = 1 if pipeline.on_device else pipeline.threads
    return role is Role.READING and 2 * busy * lanes > pipeline.parts[role]


def _names(pipeline: Pipeline, *roles: Role) -> list[str]:
    return [stage.name for stage in pipeline.stages if stage.role in roles]


def _when(seen: Seen, pipeline: Pipeline, role: Role, hidden: bool = False) -> Intervals:
    """When it is under way and keeps others waiting: of waiting, when nothing else is at all.

    Or when it is under way, though a kernel hides it.
    """
    events = seen.analysis.trace.events
    counted = events.on_device | (events.kind == Kind.STAGE)

    def of(*roles: Role) -> Intervals:
        wanted = set(_names(pipeline, *roles))
        told = [number for number, name in enumerate(events.names) if name in wanted]
        return during(events, counted & np.isin(events.name, told))

    if role is Role.WAITING:
        whole = during(events, counted)
        return union(whole.starts[:1], whole.ends[-1:]) - of(*(set(Role) - {role}))
    if pipeline.on_device and role is not Role.KERNEL and not hidden:
        return of(role) - during(events, events.kind == Kind.KERNEL)
    return of(role)
