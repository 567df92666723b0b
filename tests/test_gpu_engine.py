"""The engine on every device there is against the oracle and, to the last bit, the processor."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import strategies
from engine import archive_of, compute
from kuroshio.errors import Refusal
from test_engine import compare

# Fewer shapes than for the processor: each is compiled. One value, even and odd numbers of words,
# years that just fill a word, and years that need two.
POOLS = ((0, 1), (1, 3), (2, 12), (5, 7), (5, 32), (2, 40))


@settings(max_examples=25, deadline=None, phases=(Phase.explicit, Phase.generate))
@given(st.data())
def test_a_device_equals_the_oracle_and_the_processor(gpu, data):
    sample = data.draw(strategies.archives(max_years=12))
    request = data.draw(strategies.requests(sample, pools=POOLS))
    splits = data.draw(
        st.lists(st.integers(1, max(len(sample.days) - 1, 1)), max_size=4, unique=True)
    )
    splits = tuple(sorted(s for s in splits if s < len(sample.days)))
    archive = archive_of(sample, splits, rows=data.draw(st.integers(1, 3)))
    try:
        found = compute(archive, request, gpu=gpu)
    except Refusal:
        with pytest.raises(Refusal):
            compute(archive, request)
        return
    compare(found, strategies.oracle(sample, request), sample, request.extras)
    same = compute(archive, request)
    for name in ("seas", "thresh", *(n for n in request.extras if n == "count")):
        np.testing.assert_array_equal(found[name], same[name], name)
