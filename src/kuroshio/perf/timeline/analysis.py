"""All that is said of one trace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from ..traces.events import Events
from ..traces.trace import Trace
from .causes import holes_of
from .groups import on_host
from .holes import Holes
from .host import Host, host_of
from .kernels import Kernels, kernels_of
from .launches import Launches, launches_of, link
from .nest import Nest
from .plain import plain
from .stages import Pipeline, after_the_run, pipeline_of
from .steps import Steps, steps_of
from .waits import Waits, blocking_of, waits_of
from .work import Work, by_device, work_of

SCHEMA = "kuroshio.analysis/1"
# What a document lists at most: the longest holes and waits, the first steps, and the kernels and
# the host's names that took the most time. How many there are is beside them.
_MOST, _MOST_STEPS, _MOST_KERNELS = 200, 10_000, 1000


@dataclass(frozen=True)
class Analysis:
    """Times are int ns of the trace's clock; None is what the trace cannot tell.

    work        of all devices together, and `devices` of each; None without device work
    host        what its threads did; None of a pipeline, which has stages
    pipeline    of traces of our own pipeline
    limits      what the trace does not show, and what that leaves open, a sentence each
    """

    trace: Trace
    work: Work | None
    devices: tuple[Work, ...]
    steps: Steps | None
    launches: Launches | None
    holes: Holes | None
    kernels: Kernels | None
    waits: Waits | None
    host: Host | None
    pipeline: Pipeline | None
    limits: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Of SCHEMA; of holes and waits the longest, with how many there are."""
        trace = self.trace
        return {
            "schema": SCHEMA,
            "trace": {
                "path": str(trace.path), "form": trace.form, "events": len(trace.events),
                "rank": trace.rank, "ranks": trace.ranks, "facts": dict(trace.facts),
                "devices": [plain(each) for each in trace.devices.values()],
            },
            "limits": list(self.limits),
            "work": plain(self.work),
            "devices": plain(self.devices),
            "steps": _steps(self.steps),
            "launches": _launches(self.launches),
            "holes": _holes(self.holes),
            "kernels": _kernels(self.kernels),
            "waits": _waits(self.waits),
            "host": plain(self.host),
            "pipeline": plain(self.pipeline),
        }  # fmt: skip


def _steps(steps: Steps | None) -> Any:
    if steps is None:
        return None
    return {
        **plain(replace(steps, steps=steps.steps[:_MOST_STEPS])), "count": len(steps.steps)
    }  # fmt: skip


def _kernels(kernels: Kernels | None) -> Any:
    if kernels is None:
        return None
    most = [{**plain(each), "short": each.short} for each in kernels.kernels[:_MOST_KERNELS]]
    return {**plain(replace(kernels, kernels=())), "kernels": most, "names": len(kernels.kernels)}


def _launches(launches: Launches | None) -> Any:
    if launches is None:
        return None
    depth = launches.depth
    told = None if depth is None else {"most": depth.most, "median": depth.median}
    return {**plain(replace(launches, depth=None)), "depth": told}


def _holes(holes: Holes | None) -> Any:
    if holes is None:
        return None
    return {
        "threshold": holes.threshold, "count": len(holes), "brief": plain(holes.brief),
        "by_cause": plain(holes.by_cause), "longest": plain(holes.longest(_MOST)),
    }  # fmt: skip


def _waits(waits: Waits | None) -> Any:
    if waits is None:
        return None
    longest = sorted(waits.waits, key=lambda each: each.start - each.end)[:_MOST]
    return {
        "count": len(waits.waits), "time": waits.time, "idle": waits.idle,
        "at_end": waits.at_end, "groups": plain(waits.groups), "longest": plain(longest),
    }  # fmt: skip


def analyse(trace: Trace) -> Analysis:
    """Everything that the trace supports."""
    events = trace.events
    links, nest = link(events), Nest(events)
    launches = launches_of(events, links)
    blocking = blocking_of(events, links, nest, launches)
    pipeline = pipeline_of(events)
    each = by_device(events)
    # One device is all there are.
    work = replace(each[0], device=None) if len(each) == 1 else work_of(events)
    return Analysis(
        trace=trace,
        work=work,
        devices=each,
        steps=steps_of(events, links, launches, blocking),
        launches=launches,
        holes=holes_of(events, links, nest, launches, blocking),
        kernels=kernels_of(events, links),
        waits=waits_of(events, blocking),
        host=None if pipeline else host_of(events, nest),
        pipeline=pipeline,
        limits=(
            *trace.cannot_tell,
            *(_limits_of_run(events) if pipeline else _limits(events, launches)),
        ),
    )


def _limits_of_run(events: Events) -> Iterator[str]:
    if late := after_the_run(events):
        yield (
            f"Work of devices ends {late / 1e6:,.0f} ms after the run: when devices worked is not "
            "to be believed, nor what follows from it. Record the run again, with this version"
        )


def _limits(events: Events, launches: Launches | None) -> Iterator[str]:
    if launches is None:
        yield "There was no device work in this trace: nothing is said of devices"
        return
    if not on_host(events).any():
        yield "Nothing of the host was recorded: causes of holes are not known"
    elif not launches.linked:
        yield "No call is linked to the device work it began: what a launch costs is not known"
    elif launches.linked < launches.work:
        yield (
            f"Of {launches.work - launches.linked} of {launches.work} pieces of device work the "
            "launching call was not recorded"
        )
    if launches.clocks_disagree:
        yield (
            f"{launches.early} of {launches.linked} pieces of device work begin before the call "
            f"that launched them, by {launches.skew / 1000:.0f} us at most: the clocks of host and "
            "device differ, and what is said of both together is left out, or holds only for "
            "what is much longer"
        )
    elif launches.early:
        yield (
            f"{launches.early} of {launches.linked} pieces of device work begin before their "
            f"call, by {launches.skew / 1000:.0f} us at most; they are left out of the delays"
        )
