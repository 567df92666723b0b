"""Holes that a synchronisation left: asked for, or implied by something else."""

from __future__ import annotations

import numpy as np

from ..timeline.holes import Cause
from ..timeline.waits import Group, How
from . import figures
from .finding import Finding
from .seen import Seen

_WHERE = ("Which line of the program asks for it: the operator's caller in the recording",)
_OF_HOLES = "the time of these holes: what is saved if the host does not wait there"


def synchronisations(seen: Seen) -> Finding | None:
    """The program waits for the device and only then gives it more work."""
    return _finding(
        seen,
        How.EXPLICIT,
        key="synchronisation",
        title="The host waits for the device, and then the device for the host",
        said="an explicit synchronisation",
        directions=(
            "Drop synchronisations that only timing or logging needs",
            "Wait for an event of the step before, not for all work",
        ),
    )


def read_backs(seen: Seen) -> Finding | None:
    """A number of the device's is asked for in the middle of the work."""
    return _finding(
        seen,
        How.READ_BACK,
        key="read-back",
        title="Scalars are read back from the device",
        said="reading back a scalar",
        directions=(
            "Keep losses and counters on the device, and read them every so many steps",
            "Replace branches on values of the device by masks",
        ),
    )


def blocking_copies(seen: Seen) -> Finding | None:
    """Copies that the host waits for."""
    return _finding(
        seen,
        How.COPY,
        key="blocking-copies",
        title="Copies block the host",
        said="a copy that the host waits for",
        directions=(
            "Copy from and to pinned memory, asynchronously",
            "Copy the next input on a stream of its own while the device computes",
        ),
        more=Cause.COPY,
    )


def allocations(seen: Seen) -> Finding | None:
    """Memory is taken or given back in the middle of the work."""
    return _finding(
        seen,
        How.ALLOCATION,
        key="allocation",
        title="Allocations stop the device",
        said="an allocation or a release of device memory",
        directions=(
            "Allocate once and reuse, or through a pool",
            "Keep shapes alike from step to step, so that the pool fits",
        ),
        more=Cause.ALLOCATION,
    )


def _finding(
    seen: Seen,
    how: How,
    *,
    key: str,
    title: str,
    said: str,
    directions: tuple[str, ...],
    more: Cause | None = None,
) -> Finding | None:
    holes = _left_by(seen, how, more)
    lost = seen.idle(holes)
    if not seen.worth(lost):
        return None
    waits = seen.analysis.waits
    groups: list[Group] = [each for each in waits.groups if each.how == how] if waits else []
    calls = sum(each.count for each in groups)
    causes = tuple(dict.fromkeys(each.cause for each in groups)) or seen.who(holes)
    by = f" ({figures.listed([figures.named(each) for each in causes], 2)})" if causes else ""
    times = f"; {figures.count(calls, 'such wait')} of the host in all" if calls else ""
    return Finding(
        key=key,
        title=title,
        summary=(
            f"The device idles for {figures.time(lost)}, {figures.share(lost, seen.span)} of "
            f"{figures.time(seen.span)}, in {figures.count(len(holes), 'hole')} left by "
            f"{said}{by}{times}."
        ),
        verify=_WHERE,
        directions=directions,
        saves=lost,
        at_most=seen.room(copies=how != How.COPY),
        of=seen.span,
        how=_OF_HOLES,
        places=seen.places(holes),
        places_in_all=len(holes),
        names=causes[:5],
        figures={"idle_ns": lost, "holes": len(holes), "calls": calls},
    )


def _left_by(seen: Seen, how: How, more: Cause | None) -> np.ndarray:
    """Numbers of the holes that waits of a kind left, and of those with a cause of their own."""
    table, waits = seen.analysis.holes, seen.analysis.waits
    own = seen.caused(more) if more else np.empty(0, np.int64)
    if table is None or waits is None:
        return own
    mine, others = (
        {each.cause for each in waits.groups if (each.how == how) is same} for same in (True, False)
    )
    held = seen.caused(Cause.SYNCHRONISATION)
    names = np.array([table.names[at] for at in table.who[held].tolist()], object)
    named = np.isin(names, list(mine - others if how != How.EXPLICIT else mine))
    if how == How.EXPLICIT:  # and what no other kind of wait explains
        named |= ~np.isin(names, list(others))
    return np.union1d(own, held[named])
