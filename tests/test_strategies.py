"""The random archives are what they say, and reach the awkward cases."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from kuroshio.calendar import iso_date
from kuroshio.request import EXTRAS
from strategies import CALENDARS, STORAGES, Sample, archives, dataarray, oracle, requests


@given(archives())
def test_sample_is_consistent(sample: Sample) -> None:
    assert (np.diff(sample.days) > 0).all()
    assert sample.values.shape == sample.stored.shape
    assert len(sample.values) == len(sample.days) >= 1
    if sample.codes is None:
        np.testing.assert_array_equal(sample.values, sample.stored)
    else:
        decoded = sample.codes * sample.scale + sample.offset
        decoded[sample.codes == sample.fill] = np.nan
        np.testing.assert_array_equal(sample.values, decoded)
    valid = (~np.isnan(sample.values)).reshape(len(sample.days), -1).sum(axis=0)
    for kind, count in zip(sample.kinds, valid, strict=True):
        if kind in ("land", "single"):
            assert count == (kind == "single")


@settings(max_examples=10)
@given(st.data())
def test_oracle_serves_every_request(data: st.DataObject) -> None:
    sample = data.draw(archives(max_years=5))
    request = data.draw(requests(sample, beyond=1))
    got = oracle(sample, request)
    assert set(got) == {"seas", "thresh", *EXTRAS}
    days = len(request.doys or range(len(got["seas"])))
    assert got["thresh"].shape == (len(request.percentiles), days, *sample.values.shape[1:])
    assert got["seas"].shape == (days, *sample.values.shape[1:])


@pytest.mark.parametrize("calendar", CALENDARS)
@pytest.mark.parametrize("storage", STORAGES)
def test_dataarray_has_the_same_days(calendar: str, storage: str) -> None:
    sample = find(
        archives(calendars=[calendar], storages=[storage], max_years=2),
        lambda sample: len(sample.days) > 100,
        settings=settings(phases=[Phase.generate]),
    )
    array = dataarray(sample)
    assert array.sizes["time"] == len(sample.days)
    first = array.time.values[0]
    assert str(first)[:10] == iso_date(sample.calendar, int(sample.days[0]))


CASES = {
    "a gap of days": lambda s: (np.diff(s.days) > 1).any(),
    "more than 32 years": lambda s: s.years[1] - s.years[0] > 32,
    "half missing": lambda s: "ordinary" in s.kinds and np.isnan(s.values).mean() > 0.4,
    "negative codes": lambda s: s.codes is not None and s.codes.min() < -20_000,
    "a few days": lambda s: len(s.days) < 5,
}


@pytest.mark.parametrize("case", CASES)
def test_awkward_cases_are_reached(case: str) -> None:
    find(archives(), CASES[case], settings=settings(phases=[Phase.generate], max_examples=2000))
