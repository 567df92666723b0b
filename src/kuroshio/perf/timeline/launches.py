"""From the host's calls to the device work that they began."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..traces.events import Events, Kind
from .groups import LAUNCH, by_device, calls
from .spread import Spread, spread

# Files that keep whole microseconds, and two clocks that a profiler fits to each other, may put
# work so much before its call, ns; more says that the clocks differ.
_ROUNDING = 1000
_FEW = 0.01  # of all linked work may begin too early, before delays are not believed any more


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
    median: int  # over the time in which devices were at work or waited for more


@dataclass(frozen=True)
class Launches:
    """Of kernels unless said otherwise; None where the trace cannot tell. Times are ns.

    work            kernels, copies and sets
    linked          of them those whose call was recorded
    launched        kernels that are linked
    empty_calls     launching calls without device work
    calls           durations of the launching calls: what a launch costs the host
    delays          from the call's start to that of the first work which it began
    late            kernels whose call began after their device had run out of work
    late_share      of those kernels that were not their device's first work
    early           work that begins before its call, by more than rounding; skew: at most so much
    clocks_disagree more than a few do: delays, what is late and the queue's depth are not told
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
    clocks_disagree: bool


def link(events: Events) -> Links:
    """By correlation, and by process where both sides tell it.

    Of calls that share a number a launch comes first, then the one that began last: the innermost.
    """
    none = np.full(len(events), -1, np.int64)
    call_of, work_of = none.copy(), none.copy()
    told = events.correlation > 0
    work = np.flatnonzero(told & events.on_device)
    call = np.flatnonzero(told & (events.kind == Kind.CALL))
    if not len(work) or not len(call):
        return Links(call_of, work_of)
    keys = _keys(events, work, call)
    is_launch = calls(events, LAUNCH)[call]
    order = np.lexsort((events.start[call], is_launch, keys[call]))
    call = call[order]
    last = np.append(keys[call][1:] != keys[call][:-1], True)
    call = call[last]
    at = np.minimum(np.searchsorted(keys[call], keys[work]), len(call) - 1)
    found = keys[call][at] == keys[work]
    call_of[work[found]] = call[at[found]]
    # Rows are in order of start, so that the first is the earliest: written last, it stays.
    linked = np.flatnonzero(call_of >= 0)[::-1]
    work_of[call_of[linked]] = linked
    return Links(call_of, work_of)


def _keys(events: Events, work: np.ndarray, call: np.ndarray) -> np.ndarray:
    """A number for each event's process and correlation."""
    if not ((events.process[work] >= 0).all() and (events.process[call] >= 0).all()):
        return events.correlation
    _, process = np.unique(events.process, return_inverse=True)
    _, number = np.unique(events.correlation, return_inverse=True)
    return process * (int(number.max()) + 1) + number


def launches_of(events: Events, links: Links) -> Launches | None:
    """None without device work."""
    work = np.flatnonzero(events.on_device)
    if not len(work):
        return None
    linked = work[links.call_of[work] >= 0]
    call = links.call_of[linked]
    ahead = events.start[call] - events.start[linked]
    early = ahead > _ROUNDING
    disagree = bool(early.sum() > _FEW * len(linked))
    kernels = linked[events.kind[linked] == Kind.KERNEL]
    launching = distinct_rows(links.call_of[kernels], len(events))
    first = links.work_of[launching]
    delays = None if disagree else _delays(events.start[first] - events.start[launching])
    late, following = (0, 0) if disagree else _late(events, links)
    return Launches(
        work=len(work),
        linked=len(linked),
        launched=len(kernels),
        empty_calls=int((calls(events, LAUNCH) & (links.work_of < 0)).sum()),
        calls=_lasting(events.duration[launching]),
        delays=delays,
        late=late if following else None,
        late_share=late / following if following else None,
        depth=None if disagree or not len(linked) else _depth(events, call, linked),
        early=int(early.sum()),
        skew=int(ahead.max()) if early.any() else 0,
        clocks_disagree=disagree,
    )


def distinct_rows(rows: np.ndarray, of: int) -> np.ndarray:
    """Those of a table of so many rows that occur, each once and in order; -1 is none."""
    there = np.zeros(of, bool)
    there[rows[rows >= 0]] = True
    return np.flatnonzero(there)


def _lasting(durations: np.ndarray) -> Spread | None:
    """None of moments alone: of old rocprof it is known when a launch was, not how long it took."""
    return spread(durations) if durations.any() else None


def _delays(delays: np.ndarray) -> Spread | None:
    """Those that rounding made negative are of no length; those of the few that are early, none."""
    return spread(np.maximum(delays[delays >= -_ROUNDING], 0))


def _late(events: Events, links: Links) -> tuple[int, int]:
    """Kernels launched after all earlier work of their device had ended, and of how many."""
    late = following = 0
    for _, mine in by_device(events):
        ended = np.maximum.accumulate(events.end[mine])[:-1]
        mine = mine[1:]
        asked = (links.call_of[mine] >= 0) & (events.kind[mine] == Kind.KERNEL)
        late += int((events.start[links.call_of[mine[asked]]] >= ended[asked]).sum())
        following += int(asked.sum())
    return late, following


def _depth(events: Events, call: np.ndarray, work: np.ndarray) -> Depth:
    begin = events.start[work]
    launched = np.minimum(events.start[call], begin)
    moments, at = np.unique(np.concatenate([launched, begin]), return_inverse=True)
    change = np.bincount(at[: len(work)], minlength=len(moments)) - np.bincount(
        at[len(work) :], minlength=len(moments)
    )
    depth = np.cumsum(change)
    return Depth(moments, depth, int(depth.max()), _median(depth[:-1], np.diff(moments)))


def _median(values: np.ndarray, weights: np.ndarray) -> int:
    """The least value that holds for half of the time."""
    if not len(values):
        return 0
    order = np.argsort(values, kind="stable")
    half = np.searchsorted(2 * np.cumsum(weights[order]), weights.sum())
    return int(values[order][min(half, len(values) - 1)])
