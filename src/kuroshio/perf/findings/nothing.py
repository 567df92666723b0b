"""A trace in which no device worked."""

from __future__ import annotations

from . import figures
from .finding import Finding
from .seen import Seen


def no_device_work(seen: Seen) -> Finding | None:
    """Events there are, and none of a device; a pipeline's own trace has none and needs none."""
    analysis = seen.analysis
    events = analysis.trace.events
    if analysis.work is not None or analysis.pipeline is not None:
        return None
    span = int(events.end.max() - events.start.min()) if len(events) else 0
    return Finding(
        key="no-device-work",
        title="No device worked",
        summary=(
            f"Of {figures.count(len(events), 'event')} over {figures.time(span)} none is work of "
            "a device: no kernel, no copy, no set."
        ),
        verify=(
            "Whether the program used a device at all, and the profiler was told to record it",
            "Whether the recording covers a part of the program that uses it",
        ),
        directions=("Record again, with the device's activities and over whole steps",),
        saves=None,
        of=span,
        how="not to be computed: there is no work of a device to compare with",
        cannot_tell=("Whether the device had no work, or its work was not recorded",),
        figures={"events": len(events)},
    )
