"""The definition of events against what marineHeatWaves found in real series, and by hand."""

from __future__ import annotations

import csv
import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuroshio import calendar as cal
from kuroshio.reference import climatology
from kuroshio.reference_events import CATEGORIES, events, joined, runs
from test_known_answers import SHIPPED, read_series

METRICS = [
    *(f"intensity_{what}{of}" for what in ("max", "mean", "var", "cumulative")
      for of in ("", "_relThresh", "_abs")),
    "rate_onset", "rate_decline",
]  # fmt: skip


def rows(path: Path) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def day_of(iso: str) -> int:
    """Days since 1970-01-01, as the calendar counts them."""
    return int(np.datetime64(iso, "D").astype(np.int64))


@pytest.mark.parametrize(("site", "setting"), SHIPPED)
def test_events_of_real_series(shared, site, setting):
    """With a climatology of our own: their files' twelve digits part what is equal."""
    series = read_series(shared, site)
    values = series.values.astype(np.float64)
    days = series.time.values.astype("datetime64[D]").astype(np.int64)
    cold = setting == "_cold"
    climate = climatology(
        values, days, "standard", baseline=(1983, 2012) if "1983" in setting else (1982, 2011),
        percentiles=(10 if cold else 90,), smooth_width=1 if setting == "_nosmooth" else 31,
    )  # fmt: skip
    found = events(values, days, "standard", climate["seas"], climate["thresh"][0], cold=cold)
    expected = rows(shared / "sst" / f"expected_{site}{setting}_events.csv")
    assert len(found) == len(expected) > 50
    for mine, theirs in zip(found, expected, strict=True):
        for name in ("start", "end", "peak"):
            assert mine[name] == day_of(theirs[f"date_{name}"])
        assert mine["duration"] == int(theirs["duration"])
        assert CATEGORIES[mine["category"] - 1] == theirs["category"]
        for number, name in enumerate(CATEGORIES, 1):
            assert mine[f"days_{number}"] == int(theirs[f"duration_{name.lower()}"])
        for name in METRICS:
            if theirs[name]:  # empty where the peak is the series' last day
                assert mine[name] == pytest.approx(float(theirs[name]), abs=1e-6, rel=1e-9), name


def test_the_event_off_western_australia_in_2011(shared):
    """As published: 105 days from 24 December 2010, at most 6.58 degrees above the mean."""
    (event,) = (
        row for row in rows(shared / "sst" / "expected_WA_events.csv")
        if row["date_start"] == "2010-12-24"
    )  # fmt: skip
    assert (event["duration"], event["date_peak"]) == ("105", "2011-02-28")


def flat_year(values, **options):
    """Events of a series from 1 January 2001 about a mean of 10 and a threshold of 12."""
    days = day_of("2001-01-01") + np.arange(len(values))
    seas, thresh = np.full(366, 10.0), np.full(366, 12.0)
    found = events(np.array(values, float), days, "standard", seas, thresh, **options)
    return [(e["start"] - days[0], e["duration"], e["missing"]) for e in found], found


HOT, COOL, LOST = 13.0, 10.0, np.nan


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([COOL] + 5 * [HOT] + [COOL], [(1, 5, 0)]),
        ([COOL] + 4 * [HOT] + [COOL], []),
        (5 * [12.0], []),  # strictly above
        (5 * [HOT], [(0, 5, 0)]),
        (5 * [HOT] + 2 * [COOL] + 5 * [HOT], [(0, 12, 0)]),
        (5 * [HOT] + 3 * [COOL] + 5 * [HOT], [(0, 5, 0), (8, 5, 0)]),
        # Runs that are too short are no event's beginning, end or bridge.
        (4 * [HOT] + [COOL] + 5 * [HOT], [(5, 5, 0)]),
        (5 * [HOT] + [COOL] + 4 * [HOT], [(0, 5, 0)]),
        (5 * [HOT] + [COOL] + 3 * [HOT] + [COOL] + 5 * [HOT], [(0, 5, 0), (10, 5, 0)]),
        (5 * [HOT] + 2 * [COOL] + 5 * [HOT] + 2 * [COOL] + 5 * [HOT], [(0, 19, 0)]),
        (5 * [HOT] + 2 * [LOST] + 5 * [HOT], [(0, 12, 2)]),
        (5 * [HOT] + 3 * [LOST] + 5 * [HOT], [(0, 5, 0), (8, 5, 0)]),
        (3 * [HOT] + [LOST] + 4 * [HOT], []),
        ([LOST] * 9, []),
    ],
)
def test_runs_gaps_and_missing_days(values, expected):
    assert flat_year(values)[0] == expected


def test_other_durations_and_gaps():
    values = 3 * [HOT] + 4 * [COOL] + 3 * [HOT]
    assert flat_year(values, min_duration=3, max_gap=4)[0] == [(0, 10, 0)]
    assert flat_year(values, min_duration=3, max_gap=0)[0] == [(0, 3, 0), (7, 3, 0)]
    assert flat_year(5 * [HOT] + 5 * [HOT], max_gap=0)[0] == [(0, 10, 0)]


def test_metrics_by_hand():
    """Anomalies 0, then 3, 5, 4, 3, 3, then 1: the excess over the threshold is 2 less."""
    (_, (event,)) = flat_year([10, 13, 15, 14, 13, 13, 11])
    assert event["intensity_max"] == 5
    assert event["intensity_mean"] == pytest.approx(18 / 5)
    assert event["intensity_cumulative"] == 18
    assert event["intensity_var"] == pytest.approx(np.std([3, 5, 4, 3, 3]))
    assert event["intensity_max_relThresh"] == 3
    assert event["intensity_cumulative_relThresh"] == 8
    assert event["intensity_mean_abs"] == pytest.approx(13.6)
    assert event["rate_onset"] == pytest.approx((5 - 1.5) / 1.5)
    assert event["rate_decline"] == pytest.approx((5 - 2.0) / 3.5)
    assert event["category"] == 2  # 1.5 times as far again
    assert [event[f"days_{number}"] for number in range(1, 5)] == [3, 2, 0, 0]


def test_rates_at_the_ends_of_a_series():
    """There is no day before the first and after the last."""
    (_, (event,)) = flat_year([13, 14, 15, 16, 17])
    assert event["rate_onset"] == pytest.approx((7 - 3) / 4)
    assert event["rate_decline"] == 0  # the peak is the last
    (_, (event,)) = flat_year([17, 16, 15, 14, 13])
    assert event["rate_onset"] == 0
    assert event["rate_decline"] == pytest.approx(1)


def test_the_first_of_equal_peaks_counts():
    (_, (event,)) = flat_year([COOL, 14, 15, 13, 15, 14])
    assert event["peak"] - day_of("2001-01-01") == 2


@pytest.mark.parametrize(("over", "category"), [(1.99, 1), (2, 2), (4, 3), (6, 4), (60, 4)])
def test_categories_are_multiples_of_the_threshold_above_the_mean(over, category):
    (_, (event,)) = flat_year([12 + over] * 5)
    assert event["category"] == category
    assert event[f"days_{category}"] == 5


def test_ice_of_one_temperature_has_no_events():
    """Whatever rounding makes of its mean and threshold."""
    days = np.arange(40)
    values = np.full(40, -1.8)
    for seas, thresh in [
        (-1.8, -1.8),
        (np.float32(-1.8), np.nextafter(-1.8, -2)),
        (-1.8, -1.8 - 4e-16),
    ]:
        climate = np.full(366, float(seas)), np.full(366, float(thresh))
        assert events(values, days, "standard", *climate) == []
        assert events(values, days, "standard", *climate, cold=True) == []


def test_nothing_exceeds_what_is_missing():
    climate = np.full(366, 10.0), np.full(366, np.nan)
    assert events(np.full(9, 50.0), np.arange(9), "standard", *climate) == []


@pytest.mark.parametrize("calendar", ["standard", "noleap", "360_day"])
def test_each_day_is_held_to_its_own_day_of_year(calendar):
    """Above it on the last five days of each year and the first three, in any calendar."""
    length = cal.template_length(calendar)
    seas, thresh = np.zeros(length), np.full(length, 2.0)
    thresh[[*range(length - 5, length), 0, 1, 2]] = 1.0
    start = int(cal.day_number(calendar, 2003, 1))
    days = start + np.arange(2 * length + 100)
    found = events(np.full(len(days), 1.5), days, calendar, seas, thresh)
    assert {event["duration"] for event in found} == {8}
    for event in found:
        assert cal.year_and_dayofyear(calendar, np.array([event["start"]]))[1] == length - 4


SERIES = st.lists(st.sampled_from([8.0, 10.0, 12.0, 12.5, 15.0, np.nan]), min_size=1, max_size=60)


@given(SERIES, st.integers(1, 6), st.integers(0, 4))
def test_what_must_hold_of_any_series(values, min_duration, max_gap):
    _, found = flat_year(values, min_duration=min_duration, max_gap=max_gap)
    series = np.array(values)
    covered = np.zeros(len(series), bool)
    first = day_of("2001-01-01")
    for event in found:
        days = slice(event["start"] - first, event["end"] - first + 1)
        assert not covered[days].any()
        covered[days] = True
        assert event["duration"] >= min_duration
        assert event["start"] <= event["peak"] <= event["end"]
        assert event["intensity_max"] >= event["intensity_mean"]
        assert event["missing"] == np.isnan(series[days]).sum()
        # A day on the threshold, in a gap, is counted: its excess is 0.
        assert sum(event[f"days_{number}"] for number in range(1, 5)) == (series[days] >= 12).sum()
    # All days above the threshold in long runs are in events, and events begin and end with one.
    for start, end in runs(series > 12, min_duration):
        assert covered[start : end + 1].all()
    pairs = itertools.pairwise(found)
    gaps = [later["start"] - event["end"] - 1 for event, later in pairs]
    assert all(gap > max_gap for gap in gaps)


@given(SERIES)
def test_cold_spells_are_heatwaves_of_the_negative(values):
    days = day_of("2001-01-01") + np.arange(len(values))
    series = np.array(values)
    warm = events(series, days, "standard", np.full(366, 10.0), np.full(366, 12.0))
    cold = events(-series, days, "standard", np.full(366, -10.0), np.full(366, -12.0), cold=True)
    for one, other in zip(warm, cold, strict=True):
        for name, value in one.items():
            turned = "max" in name or "mean" in name or "cumulative" in name
            assert other[name] == (-value if turned else value), name


def test_runs_are_kept_first_and_then_joined():
    assert joined([(0, 4), (7, 11), (14, 18), (22, 30)], 2) == [(0, 18), (22, 30)]
    assert joined([], 2) == []
