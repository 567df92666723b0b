"""What waiting threads will do before their rings (see rings.py), from times that were measured.

The threads fill rings and the link copies one at a time, in the order in which they were sent. If
all filled in exactly the same time, a formula would do: with two rings a thread waits for the
excess of `threads * copy` over `read`, and with one for at least its own copy. But times differ,
and then several rings meet before the link even where it could keep up. So the turns are played
through with the times themselves. How long a copy takes cannot always be read off its events: where
they are not asked for in one go (device/uploads.py), a thread may lose the interpreter's lock
between the first of them and the copy. The fastest is hardly ever held up.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from heapq import heapify, heappop, heappush

import numpy as np

TURNS = 64  # of each thread are played through
_PLAUSIBLE = 1.5  # times the fastest: copies of one size over one link differ by less


def waiting_s(
    rings: int, threads: int, read_s: float | Sequence[float], copy_s: float, turns: int = TURNS
) -> float:
    """Mean seconds that a thread waits before a ring that it has sent and fills again.

    read_s  a thread fills a ring: always, or each in turn, every thread from another on
    copy_s  the link copies one
    """
    reads = np.atleast_1d(np.asarray(read_s, float)).tolist()
    number = len(reads)
    at = [thread * number // threads for thread in range(threads)]
    sending = [(reads[at[thread]], thread, thread) for thread in range(threads)]
    heapify(sending)  # (when, which came first, thread)
    away: list[deque[float]] = [deque() for _ in range(threads)]  # when each ring will be back
    link_free = waited = 0.0
    waits = 0
    for order in range(threads, threads + threads * turns):
        now, _, thread = heappop(sending)
        link_free = max(link_free, now) + copy_s
        away[thread].append(link_free)
        if len(away[thread]) == rings:
            back = max(away[thread].popleft(), now)
            waited += back - now
            waits += 1
            now = back
        at[thread] += 1
        heappush(sending, (now + reads[at[thread] % number], order, thread))
    return waited / max(waits, 1)


def copy_s_per_byte(took_s: Sequence[float], nbytes: Sequence[int]) -> float:
    """Of copies that took so long between their events: the median, unless they were held up.

    They were where it is far from the fastest; then the fastest says what the link can do.
    """
    rates = np.asarray(took_s, float) / np.asarray(nbytes, float)
    rates = rates[rates > 0]
    if not rates.size:
        return 0.0
    usual, fastest = float(np.median(rates)), float(rates.min())
    return usual if usual <= _PLAUSIBLE * fastest else fastest
