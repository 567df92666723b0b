"""Years, trends and ranks of events, against what marineHeatWaves makes of real series."""

from __future__ import annotations

import math

import numpy as np
import pytest

from kuroshio.reference import climatology
from kuroshio.reference_events import CATEGORIES, events
from kuroshio.reference_summaries import by_year, rank_and_return, trend
from test_known_answers import SHIPPED, read_series
from test_reference_events import rows

SUMMARISED = [each for each in SHIPPED if each != ("NWAtl", "")]
NAMES = {f"days_{number}": f"{name.lower()}_days" for number, name in enumerate(CATEGORIES, 1)}


def student(valid: int) -> float:
    """The 97.5 % quantile with two degrees of freedom fewer, by its density's sum."""
    freedom = valid - 2
    at = np.linspace(0, 4, 400_001)
    density = (1 + at * at / freedom) ** (-(freedom + 1) / 2)
    scale = math.gamma((freedom + 1) / 2) / math.sqrt(freedom * math.pi) / math.gamma(freedom / 2)
    steps = (density[1:] + density[:-1]) / 2 * (at[1] - at[0]) * scale
    return float(np.interp(0.475, np.append(0, np.cumsum(steps)), at))


@pytest.fixture(scope="module")
def made(shared):
    """(site, setting) to events and years, made once."""
    found = {}

    def of(site: str, setting: str):
        if (site, setting) not in found:
            series = read_series(shared, site)
            values = series.values.astype(np.float64)
            days = series.time.values.astype("datetime64[D]").astype(np.int64)
            cold = setting == "_cold"
            climate = climatology(
                values, days, "standard",
                baseline=(1983, 2012) if "1983" in setting else (1982, 2011),
                percentiles=(10 if cold else 90,), smooth_width=1 if setting == "_nosmooth" else 31,
            )  # fmt: skip
            given = values, days, "standard", climate["seas"], climate["thresh"][0]
            mine = events(*given, cold=cold)
            found[site, setting] = mine, by_year(mine, *given, cold=cold)
        return found[site, setting]

    return of


@pytest.mark.parametrize(("site", "setting"), SUMMARISED)
def test_years_of_real_series(shared, made, site, setting):
    path = shared / "sst" / f"expected_{site}{setting}_block.csv"
    _, years = made(site, setting)
    expected = rows(path)
    assert years["year"].tolist() == [int(row["years_start"]) for row in expected]
    for name, column in years.items():
        if name == "year" or (setting == "_cold" and name == "intensity_max_max"):
            continue  # theirs of cold spells is the largest of 0 and what is negative
        theirs = [row[NAMES.get(name, name)] for row in expected]
        assert column == pytest.approx(
            [float(each) if each else np.nan for each in theirs], abs=1e-6, nan_ok=True
        ), name


@pytest.mark.parametrize(("site", "setting"), SUMMARISED)
def test_trends_of_real_series(shared, made, site, setting):
    path = shared / "sst" / f"expected_{site}{setting}_trend.csv"
    _, years = made(site, setting)
    for row in rows(path):
        name = next((mine for mine, theirs in NAMES.items() if theirs == row[""]), row[""])
        if setting == "_cold" and name == "intensity_max_max":
            continue
        column = years[name]
        valid = int((~np.isnan(column)).sum())
        mean, slope, half = trend(years["year"], column, student(valid))
        assert mean == pytest.approx(float(row["mean"]), abs=1e-6)
        assert slope == pytest.approx(float(row["trend"]), abs=1e-8)
        assert half == pytest.approx(float(row["dtrend"]), rel=1e-6)


def test_a_trend_leaves_out_years_without_a_number():
    years = np.arange(2000, 2010)
    values = 3.0 + 0.5 * (years - 2000)
    values[3] = np.nan
    mean, slope, half = trend(years, values, 2.0)
    assert slope == pytest.approx(0.5)
    assert half == pytest.approx(0, abs=1e-9)
    assert mean == pytest.approx(5.25)  # in the middle of all years


def test_ranks_and_return_periods():
    rank, years = rank_and_return([1.5, 3.0, 2.0], 14975)
    assert rank.tolist() == [3, 1, 2]
    assert years == pytest.approx((14975 / 365.25 + 1) / rank)
    assert years[1] == pytest.approx(42, abs=1e-3)
