"""All that is said of one trace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..traces.trace import Trace
from .holes import Holes
from .kernels import Kernels
from .launches import Launches
from .plain import plain
from .stages import Pipeline
from .steps import Steps
from .waits import Waits
from .work import Work

SCHEMA = "kuroshio.diagnosis/1"
_MOST = 200  # holes and waits that a document lists, the longest


@dataclass(frozen=True)
class Analysis:
    """Times are int ns of the trace's clock; None is what the trace cannot tell.

    work        of all devices together, and `devices` of each; None without device work
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
            "steps": plain(self.steps),
            "launches": _launches(self.launches),
            "holes": _holes(self.holes),
            "kernels": plain(self.kernels),
            "waits": _waits(self.waits),
            "pipeline": plain(self.pipeline),
        }  # fmt: skip


def _launches(launches: Launches | None) -> Any:
    if launches is None:
        return None
    said = plain(launches)
    if launches.depth is not None:
        said["depth"] = {"most": launches.depth.most, "median": launches.depth.median}
    return said


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
    return Analysis(trace, None, (), None, None, None, None, None, None, trace.cannot_tell)
