"""The engine against the oracle: random archives, random requests, every kind of key."""

from __future__ import annotations

import numpy as np
import pytest
import strategies
from engine import archive_of, compute
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from kuroshio.errors import Refusal


def compare(found: dict, expected: dict, sample: strategies.Sample, extras: tuple) -> None:
    """Equal to what float32 can hold; missing in the same places."""
    largest = np.nanmax(np.abs(sample.values), initial=1.0)
    for name in ("seas", "thresh", *extras):
        tolerance = 1e-6 + 1.2e-7 * largest
        if name in ("std", "skewness", "kurtosis"):
            tolerance = 1e-4
        np.testing.assert_allclose(
            found[name], expected[name], rtol=2e-5 if name in extras else 0, atol=tolerance,
            err_msg=name,
        )  # fmt: skip


@settings(max_examples=150, deadline=None, phases=(Phase.explicit, Phase.generate))
@given(st.data())
def test_engine_equals_the_oracle(data):
    sample = data.draw(strategies.archives(max_years=12))
    request = data.draw(strategies.requests(sample))
    splits = data.draw(st.lists(st.integers(1, max(len(sample.days) - 1, 1)), max_size=4, unique=True))
    splits = tuple(sorted(s for s in splits if s < len(sample.days)))
    archive = archive_of(sample, splits, rows=data.draw(st.integers(1, 3)))
    try:
        found = compute(archive, request)
    except Refusal:
        pool = strategies.oracle(sample, request)["count"]
        assert (pool == 0).all()
        return
    compare(found, strategies.oracle(sample, request), sample, request.extras)


if __name__ == "__main__":
    pytest.main([__file__])
