"""Several devices: many small messages, whose time is mostly latency."""

from __future__ import annotations

from collections.abc import Sequence

from ...sizes import size_text
from ..timeline.messages import Message
from ..timeline.ranks import Ranks
from . import figures
from .finding import Finding, Place, longest
from .seen import WORTH, Seen

# At less than half of what large messages attain, more than half of the time is no transfer.
_HALF = 0.5
_MANY = 10  # of fewer there is no pattern that buckets could change


def small_messages(seen: Sequence[Seen], ranks: Ranks) -> Finding | None:
    """Of messages whose time on the rank that came last is known: it does not wait for others."""
    small = [each for each in ranks.messages if _is_small(each)]
    calls, took = sum(each.calls for each in small), sum(each.total for each in small)
    moved = sum(each.calls * (each.bytes or 0) for each in small)
    if calls < _MANY:
        return None
    of = max(each.total for each in ranks.ranks)
    exposed = max(each.exposed for each in ranks.ranks)
    lost = min(sum(each.total - _transfer(each) for each in small), exposed)
    if lost <= WORTH * of:
        return None
    kinds = tuple(dict.fromkeys(each.kind for each in small))
    best = max(each.large or 0.0 for each in small)
    first = next(each for each in ranks.analyses if each.work is not None)
    at = next(number for number, each in enumerate(seen) if each.analysis is first)
    events = first.trace.events
    rows = [row for each in small for row in each.rows]
    return Finding(
        key="small-messages",
        title="Messages between ranks are too small",
        summary=(
            f"{figures.count(calls, 'message')} ({figures.listed(kinds)}) of "
            f"{size_text(moved // calls)} on average take {figures.time(took)} on the rank that "
            f"comes last, {moved / took:.2g} GB/s; large ones attain {best:.2g} GB/s."
        ),
        verify=(
            "Which of them could travel together: who asks for them, one after the other",
            "Time against bytes of messages on these devices alone (kuroshio perf ceilings)",
        ),
        directions=(
            "Larger buckets: gather gradients or parameters before they are sent",
            "Fuse neighbours into one collective",
            "Begin them earlier, so that computation hides their latency",
        ),
        saves=lost,
        of=of,
        how="their time less that of their bytes in large messages; at most what is exposed",
        places=longest(
            [
                Place(
                    int(events.start[row]),
                    int(events.end[row]),
                    events.named(row),
                    int(events.device[row]),
                    at,
                )
                for row in rows
            ]
        ),
        places_in_all=calls,
        names=kinds,
        cannot_tell=("How long ranks that were not recorded kept these waiting",),
        figures={"messages": calls, "bytes": moved, "time_ns": took, "lost_ns": lost},
    )


def _is_small(message: Message) -> bool:
    return bool(message.large and message.algorithm and message.algorithm < _HALF * message.large)


def _transfer(message: Message) -> int:
    """ns that the bytes of all of them take in large messages: bytes a ns are GB/s."""
    assert message.large is not None
    return round(message.calls * (message.bytes or 0) / message.large)
