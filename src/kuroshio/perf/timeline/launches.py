"""From the host's calls to the device work that they began."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .spread import Spread


@dataclass(frozen=True)
class Links:
    """Which call began which device work: rows of events, -1 of none."""

    call_of: np.ndarray  # (event,) of device work: its call
    work_of: np.ndarray  # (event,) of a call: the first device work that it began


@dataclass(frozen=True)
class Depth:
    """Work that was launched and had not begun, as it changes: at[i] holds from moments[i] on."""

    moments: np.ndarray  # ns
    at: np.ndarray
    most: int
    median: int  # over time, while the device's span lasts


@dataclass(frozen=True)
class Launches:
    """Of kernels unless said otherwise; None where the trace cannot tell. Times are ns.

    work            kernels, copies and sets
    linked          of them those whose call was recorded
    launched        kernels that are linked
    empty_calls     launching calls without device work
    calls           durations of the launching calls: what a launch costs the host
    delays          from the call's start to the device's; None where clocks disagree
    late            kernels whose call began after their device had run out of work
    early           work that begins before its call: the clocks disagree by `skew` at least
    """

    work: int
    linked: int
    launched: int
    empty_calls: int
    calls: Spread | None
    delays: Spread | None
    late: int | None
    late_share: float | None
    depth: Depth | None
    early: int
    skew: int

    @property
    def clocks_disagree(self) -> bool:
        return self.early > 0
