"""Devices without work because the host brought none: data loading, other work, not recorded."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..timeline.groups import reading
from ..timeline.holes import Cause
from . import figures
from .finding import Finding, Place
from .seen import Seen
from .tiny import between_tiny

# Where no host events tell why a device idles, a finding says only that it does; twice WORTH, for
# it leads to another recording, not to a change.
_UNTOLD = 0.10


def data_loading(seen: Seen) -> Finding | None:
    """Holes during which the host loads data."""
    holes = seen.caused(Cause.READING)
    most = seen.room(reading(seen.analysis.trace.events))
    lost = min(seen.idle(holes), most)
    if not seen.worth(lost):
        return None
    who = seen.who(holes)
    return Finding(
        key="data-loading",
        title="The device starves for data",
        summary=(
            f"The device idles for {figures.time(lost)}, {figures.share(lost, seen.span)} of "
            f"{figures.time(seen.span)}, in {figures.count(len(holes), 'hole')} during which the "
            f"host loads data{_in(who)}."
        ),
        verify=(
            "How long a batch takes to load alone, without the device",
            "Whether loading is bound by the disk, by decoding or by one thread",
        ),
        directions=(
            "Load in other processes or threads, and so many that they keep up",
            "Prefetch: load the next batch while the device computes this one",
            "Store data so that less is decoded or inflated at every pass",
        ),
        saves=lost,
        at_most=most,
        of=seen.span,
        how="the holes' time: what is saved if loading is hidden behind the device's work",
        places=seen.places(holes),
        places_in_all=len(holes),
        names=who,
        figures={"idle_ns": lost, "holes": len(holes)},
    )


def host_late(seen: Seen) -> Finding | None:
    """Holes for which the host launched late, other than those between tiny kernels."""
    caused = seen.caused(Cause.HOST)
    holes = np.setdiff1d(caused, between_tiny(seen))
    lost = seen.idle(holes)
    if not seen.worth(lost):
        return None
    others = len(caused) - len(holes)
    places = seen.places(holes)
    who = seen.who(holes)
    launches = seen.analysis.launches
    late = launches.late_share if launches else None
    after = f"; {100 * late:.0f}% of kernels were launched after it had run dry" if late else ""
    return Finding(
        key="host-late",
        title="The host launches too late",
        summary=(
            f"The device idles for {figures.time(lost)}, {figures.share(lost, seen.span)} of "
            f"{figures.time(seen.span)}, in {figures.count(len(holes), 'hole')} while the host is "
            f"at other things{_in(who)}{after}." + (f" {_beside_tiny(others)}" if others else "")
        ),
        verify=(
            *_first_launch(places, lost),
            "What the host does in the longest holes: a profile of its threads",
            "Whether the holes are as long without the profiler, which slows the host most",
        ),
        directions=(
            "Take work off the launching thread, or do it once and not at every step",
            "Compile or capture the step, so that it is launched at once",
            "Larger batches: more work of the device for as much of the host",
        ),
        saves=lost,
        at_most=seen.room(),
        of=seen.span,
        how="the holes' time: what is saved if the host is always ahead of the device",
        places=places,
        places_in_all=len(holes),
        names=who,
        cannot_tell=("How much of the host's time is the profiler's own",),
        figures={"idle_ns": lost, "holes": len(holes), "late_share": late},
    )


def other_holes(seen: Seen) -> Finding | None:
    """Holes whose cause the trace does not tell."""
    holes = np.setdiff1d(seen.caused(Cause.UNKNOWN), between_tiny(seen))
    lost = seen.idle(holes)
    if lost <= _UNTOLD * seen.span:
        return None
    return Finding(
        key="idle-untold",
        title="The device idles, and the trace does not tell why",
        summary=(
            f"The device idles for {figures.time(lost)}, {figures.share(lost, seen.span)} of "
            f"{figures.time(seen.span)}, in {figures.count(len(holes), 'hole')} for which no "
            "event of the host or of a device gives a cause."
        ),
        verify=("Another recording, with the host's operators and calls of the runtime",),
        directions=("None before the cause is known",),
        saves=lost,
        at_most=seen.room(),
        of=seen.span,
        how="the holes' time, whatever their cause",
        places=seen.places(holes),
        places_in_all=len(holes),
        cannot_tell=("Why the device had nothing to do",),
        figures={"idle_ns": lost, "holes": len(holes)},
    )


def communication_holes(seen: Seen) -> Finding | None:
    """Holes in which a device waits for communication."""
    holes = seen.caused(Cause.COMMUNICATION)
    lost = seen.idle(holes)
    if not seen.worth(lost):
        return None
    who = seen.who(holes)
    return Finding(
        key="communication-holes",
        title="The device idles for communication",
        summary=(
            f"The device idles for {figures.time(lost)}, {figures.share(lost, seen.span)} of "
            f"{figures.time(seen.span)}, in {figures.count(len(holes), 'hole')} around "
            f"communication{_in(who)}."
        ),
        verify=("Which ranks come late to it: the same recording of all ranks",),
        directions=(
            "Begin communication as soon as its data is there, on a stream of its own",
            "Balance the ranks' work",
        ),
        saves=lost,
        at_most=seen.room(),
        of=seen.span,
        how="the holes' time",
        places=seen.places(holes),
        places_in_all=len(holes),
        names=who,
        figures={"idle_ns": lost, "holes": len(holes)},
    )


def _first_launch(places: Sequence[Place], lost: int) -> tuple[str, ...]:
    """A question where one hole is most of it: that is seldom what every step does."""
    if not places or 2 * places[0].duration <= lost:
        return ()
    return (
        f"Whether the longest hole, {figures.time(places[0].duration)} of it, happens once, as a "
        "first launch that loads code does: record later steps (kuroshio perf record --skip)",
    )


def _beside_tiny(others: int) -> str:
    """Why a table of causes has more holes than the finding: tiny kernels are one of their own."""
    which = figures.count(
        others, "short hole before a tiny kernel is", "short holes before tiny kernels are"
    )
    return f"{which} a finding of their own."


def _in(who: tuple[str, ...]) -> str:
    return f" ({figures.listed([figures.named(each) for each in who], 2)})" if who else ""
