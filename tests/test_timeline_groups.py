"""Names are looked at once, whoever asks of which events, in whatever order."""

from __future__ import annotations

import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kuroshio.perf.timeline.groups import named
from kuroshio.perf.traces.events import Events

NAMES = ("nccl", "a nccl", "NCCL", "a", "", "b\nnccl")
PATTERNS = [re.compile("nccl"), re.compile("nccl", re.IGNORECASE), re.compile("a")]
ROWS = 12


@given(
    st.lists(st.integers(0, len(NAMES) - 1), min_size=ROWS, max_size=ROWS),
    st.lists(
        st.tuples(
            st.sampled_from(PATTERNS),
            st.booleans(),
            st.lists(st.booleans(), min_size=ROWS, max_size=ROWS),
            st.integers(0, ROWS),
        ),
        max_size=8,
    ),
)  # fmt: skip
def test_what_was_asked_before_changes_no_answer(names, asked):
    table = Events.of(NAMES, start=range(ROWS), end=range(ROWS), name=names)
    for pattern, whole, among, first in asked:
        events = table[np.arange(first, ROWS)]  # a part has the same names
        mask = np.array(among, bool)[first:]
        expected = [
            row for row in np.flatnonzero(mask).tolist()
            if (pattern.match if whole else pattern.search)(events.named(row))
        ]  # fmt: skip
        found = named(events, pattern, mask, whole=whole)
        assert np.flatnonzero(found).tolist() == expected
    other = Events.of(["nccl"] * len(NAMES), start=range(ROWS), end=range(ROWS), name=names)
    assert named(other, PATTERNS[0], np.ones(ROWS, bool)).all()
