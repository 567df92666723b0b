"""Sets of intervals against sets of whole nanoseconds."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kuroshio.perf.timeline.intervals import NONE, union

PAIRS = st.lists(st.tuples(st.integers(0, 60), st.integers(-3, 12)), max_size=12)


def made(pairs):
    starts = np.array([start for start, _ in pairs], np.int64)
    return union(starts, starts + np.array([length for _, length in pairs], np.int64))


def moments(pairs):
    return {at for start, length in pairs for at in range(start, start + length)}


def told(intervals):
    ends = list(zip(intervals.starts.tolist(), intervals.ends.tolist(), strict=True))
    assert all(start < end for start, end in ends)
    assert all(one[1] < other[0] for one, other in pairwise(ends))
    return {at for start, end in ends for at in range(start, end)}


@given(PAIRS, PAIRS)
def test_they_are_what_sets_of_moments_are(one, other):
    a, b, x, y = made(one), made(other), moments(one), moments(other)
    assert told(a) == x
    assert a.total == len(x)
    assert told(a & b) == x & y
    assert told(a | b) == x | y
    assert told(a - b) == x - y
    if x:
        assert a.span == max(x) + 1 - min(x)
        assert told(a.holes()) == set(range(min(x), max(x))) - x


def test_none_has_no_length():
    assert (NONE.total, NONE.span, len(NONE.holes())) == (0, 0, 0)
