"""Percentiles estimated from moments: the expansion, the command, what the file says of them."""

from __future__ import annotations

import json
from statistics import NormalDist

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

import kuroshio as ks
from cli_runs import run_here
from kuroshio.archive.catalog import open_archive
from kuroshio.archive.synthetic import make_archive
from kuroshio.cornish_fisher import coefficients
from kuroshio.engines import means
from kuroshio.errors import Refusal
from kuroshio.job import Job
from kuroshio.reference import estimated, statistics_of
from kuroshio.request import Request
from test_known_answers import read_series


def test_the_terms_at_90_percent():
    """By hand, z = 1.2815516."""
    (terms,) = coefficients([0.9])
    np.testing.assert_allclose(terms, [1.2815516, 0.1070624, -0.0724945, 0.0610606], atol=1e-7)


@given(st.floats(0.1, 99.9), st.floats(-50, 50), st.floats(0.01, 20))
def test_exact_for_a_normal_distribution(percentile, mean, std):
    found = estimated(percentile, mean, std, 0.0, 0.0)
    assert found == pytest.approx(NormalDist(mean, std).inv_cdf(percentile / 100))


@given(
    st.floats(0.1, 99.9),
    st.floats(-50, 50),
    st.floats(0.01, 20),
    st.floats(-3, 3),
    st.floats(-2, 9),
)
def test_the_terms_are_the_expansion(percentile, mean, std, skewness, kurtosis):
    (a, b, c, d) = coefficients([percentile / 100])[0]
    found = mean + std * (a + b * skewness + c * kurtosis + d * skewness**2)
    assert found == pytest.approx(estimated(percentile, mean, std, skewness, kurtosis), abs=1e-9)


def test_a_skewed_pool_is_met_better_with_the_terms_than_without():
    rng = np.random.default_rng()
    pool = rng.gamma(8.0, 1.0, 100_000)
    result = statistics_of(pool, [90.0], 0.0, "moments")
    exact = np.percentile(pool, 90.0)
    as_normal = pool.mean() + pool.std() * NormalDist().inv_cdf(0.9)
    assert abs(result["thresh"][0] - exact) < 0.2 * abs(as_normal - exact)


def test_equal_values_are_their_own_percentile():
    assert statistics_of(np.full(30, 7.3), [90.0], 0.0, "moments")["thresh"] == [7.3]


def test_the_command(tmp_path):
    """Near the exact threshold, the same mean, and the file says that it is an estimate."""
    make_archive(tmp_path / "sst", (2001, 2012), 20.0, "oisst")
    common = (str(tmp_path / "sst"), "--baseline", "2001", "2012", "-q")
    exact, moments = tmp_path / "exact.nc", tmp_path / "moments.nc"
    assert run_here("climatology", *common, "-o", str(exact)).status == 0
    done = run_here(
        "climatology", *common, "-o", str(moments), "--method", "moments", "--extra", "kurtosis"
    )
    assert done.status == 0, done
    with xr.open_dataset(exact) as one, xr.open_dataset(moments) as other:
        np.testing.assert_allclose(other.seas, one.seas, atol=2e-6)
        error = np.abs(other.thresh - one.thresh).values
        assert np.array_equal(np.isnan(other.thresh), np.isnan(one.thresh))
        assert 0 < np.nanmean(error) < 0.1
        assert "no order statistic" in other.attrs["estimator"]
        assert "no order statistic" in other.thresh.attrs["comment"]
        assert "order statistics" in one.attrs["estimator"]
        assert "kurtosis" in other


@pytest.mark.parametrize("site", ["WA", "NWAtl"])
def test_the_published_claim_holds_on_real_series(shared, site):
    """Within 0.3 degrees of the exact threshold on nine days of ten."""
    series = read_series(shared, site)
    exact, estimate = (
        ks.climatology(series, baseline=(1983, 2012), method=method)
        for method in ("exact", "moments")
    )
    error = np.abs(estimate.thresh - exact.thresh).values
    assert (error < 0.3).mean() >= 0.9
    assert (error < 0.1).mean() >= 0.8
    assert error.max() > 0.05  # it is an estimate


def test_in_python():
    days = np.arange(365 * 4) + 10957
    time = days.astype("datetime64[D]").astype("datetime64[ns]")
    values = np.random.default_rng().normal(20, 2, (days.size, 3)).astype("f4")
    series = xr.DataArray(values, {"time": time}, ("time", "cell"), attrs={"units": "degC"})
    with pytest.warns(UserWarning, match="baseline"):
        found = ks.climatology(
            series, baseline=(2000, 2003), smooth_width=1, method="moments", doys=[100],
            extras=["std", "skewness", "kurtosis"],
        )  # fmt: skip
    four = [float(found[n][0, 1]) for n in ("seas", "std", "skewness", "kurtosis")]
    assert float(found.thresh[0, 1]) == pytest.approx(estimated(90.0, *four), abs=1e-5)


@pytest.mark.parametrize("percentile", ["0", "100"])
def test_no_percentile_at_the_ends(tmp_path, percentile):
    done = run_here(
        "climatology", str(tmp_path), "-o", str(tmp_path / "x.nc"), "--method", "moments",
        "--percentile", percentile,
    )  # fmt: skip
    assert done.status == 2
    assert "between 0 and 100" in done.err
    assert not (tmp_path / "x.nc").exists()


def test_no_other_method():
    with pytest.raises(Refusal, match="exact, moments"):
        Request(method="histogram")
    done = run_here("climatology", "x", "-o", "y.nc", "--method", "histogram")
    assert done.status == 2


def test_the_plan_says_it(tmp_path):
    make_archive(tmp_path / "sst", (2001, 2002), 30.0, "oisst")
    done = run_here("plan", str(tmp_path / "sst"), "--baseline", "2001", "2002", "--json",
                    "--method", "moments")  # fmt: skip
    assert json.loads(done.out)["method"] == "moments"


@pytest.mark.parametrize("method", ["exact", "moments"])
def test_compiling_that_was_announced_is_ended(tmp_path, monkeypatch, method):
    monkeypatch.setattr(means, "_COMPILING_S", 0.0)
    make_archive(tmp_path / "sst", (2001, 2002), 30.0, "oisst")
    said = []
    request = Request((2001, 2002), method=method)
    Job(request).run(open_archive(tmp_path / "sst"), progress=lambda *what: said.append(what))
    assert ("compile", 1, 1) in said
