"""Copies during which nothing is computed."""

from __future__ import annotations

from ..traces.events import Direction, Kind
from . import figures
from .finding import Finding
from .seen import Seen

# Copies that cost a tenth of the time: some always are exposed, before the first kernel and after
# the last; hiding half of the rest is still worth it.
_EXPOSED = 0.10


def exposed_copies(seen: Seen) -> Finding | None:
    """Copies that no kernel covers although there are kernels that could."""
    work, events = seen.analysis.work, seen.analysis.trace.events
    # Copies within a device are as much its work as kernels are.
    copies = events.of_kind(Kind.COPY) & (events.direction != Direction.ON_DEVICE)
    found = seen.exposed(copies)
    if work is None or found is None:
        return None
    copying, bare, exposed = found.when, found.bare, found.bare.total
    if exposed <= _EXPOSED * seen.span:
        return None
    ways = [
        f"{figures.time(each.time)} {each.direction}"
        for each in sorted(work.by_direction, key=lambda each: -each.time)
        if each.direction and each.direction != "on device"
    ]
    return Finding(
        key="exposed-copies",
        title="Copies are not hidden behind computation",
        summary=(
            f"{found.whose}Copies take {figures.time(copying.total)}, and for "
            f"{figures.time(exposed)} of it, {figures.share(exposed, seen.span)} of "
            f"{figures.time(seen.span)}, nothing is "
            f"computed{f' (in all {figures.listed(ways)})' if ways else ''}."
        ),
        verify=(
            "Whether the memory on the host is pinned: else a copy cannot overlap",
            "Whether the bytes are needed at all, in that type, at every step",
        ),
        directions=(
            "Copy on a stream of its own, ahead of the computation that needs it",
            "Copy less: smaller types, compressed, or kept on the device",
        ),
        saves=exposed,
        at_most=found.most(seen.span),
        of=seen.span,
        how=(
            "all copies that are exposed; computation that covers none yet could hide "
            f"{figures.time(found.room)} of them"
        ),
        places=seen.stretches(bare, "a copy alone"),
        places_in_all=len(bare),
        figures={"copying_ns": copying.total, "exposed_ns": exposed},
    )
