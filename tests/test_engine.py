"""The engine against the oracle: random archives, random requests, every kind of key."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import strategies
from engine import archive_of, compute, drawn_job
from kuroshio.archive.read import Reader
from kuroshio.device.cpu import Crew
from kuroshio.errors import Refusal
from kuroshio.job import Job
from kuroshio.keys import AFFINE16, Keys
from kuroshio.request import Request

# Half widths and years of the baseline: a single value, the usual window, an even number of words,
# years that just fill a word of the bit planes, and years that need two.
POOLS = ((0, 1), (0, 12), (1, 3), (5, 7), (5, 32), (8, 2), (8, 40), (20, 5))


def compare(found: dict, expected: dict, sample: strategies.Sample, request: Request) -> None:
    """Equal to what float32 can hold; missing in the same places.

    Floats taken for codes may move by a unit in the last place, which the higher moments of a
    nearly constant pool magnify.
    """
    largest = np.nanmax(np.abs(sample.values), initial=1.0)
    ulp = 1.2e-7 * largest
    for name in ("seas", "thresh", *request.extras):
        error = np.abs(found[name] - expected[name])
        np.testing.assert_array_equal(np.isnan(found[name]), np.isnan(expected[name]), name)
        allowed = 1e-6 + ulp
        moved = ulp if sample.dtype == np.float32 else 0.0
        if name == "thresh" and request.method == "moments":
            allowed += 500 * moved
        if name in ("skewness", "kurtosis"):
            with np.errstate(divide="ignore", invalid="ignore"):
                allowed = 1e-4 + 2e-5 * np.abs(expected[name]) + 40 * moved / expected["std"]
        worst = np.nanmax(error - allowed, initial=-1.0)
        assert worst <= 0, f"{name} is off by {worst:g} more than allowed"


@settings(max_examples=100, deadline=None, phases=(Phase.explicit, Phase.generate))
@given(st.data())
def test_engine_equals_the_oracle(data):
    sample, request, archive = drawn_job(data, POOLS)
    try:
        found = compute(archive, request)
    except Refusal:
        pool = strategies.oracle(sample, request)["count"]
        assert (pool == 0).all()
        return
    compare(found, strategies.oracle(sample, request), sample, request)


def striped(rng: np.random.Generator, *, ice: bool) -> strategies.Sample:
    """Three years on a grid of several tiles, half land; `ice` opens on a little for ten days."""
    days = np.arange(365 * 3 + 1) + 10957  # from 2000
    cycle = 15 + 8 * np.cos(2 * np.pi * days / 365.25)
    values = cycle[:, None] + rng.standard_normal((days.size, 640))
    codes = np.rint(values * 100).astype(np.int16)
    land = np.arange(640) // 160 % 2 == 1
    codes[:, land] = -999
    if ice:
        codes[200:210, 200:204] = 150
    codes = codes.reshape(-1, 20, 32)
    values = np.where(codes == -999, np.nan, codes * 0.01)
    return strategies.Sample(values, days, "standard", codes, (), 0.01, 0.0, -999)


@pytest.mark.parametrize("ice", [False, True])
def test_land_is_left_out_and_found_again(ice):
    rng = np.random.default_rng()
    sample = striped(rng, ice=ice)
    archive = archive_of(sample, tuple(range(1, sample.days.size)))
    doys = tuple(range(190, 230))
    request = Request((2000, 2002), (50.0, 90.0), doys=doys, extras=("count", "std"))
    with Crew(2) as crew:
        runs = Reader(archive, Keys(AFFINE16, 0.01), lambda *_: None).sea(32, crew.run)
    assert runs.cells < 640  # the sample days have no ice-free day
    # The oracle is slow: it has the edges of land, what opened, and some of the rest.
    some = np.concatenate(
        [[159, 160, 319, 320, 479], np.arange(200, 204), rng.integers(0, 640, 30)]
    )
    found = {
        name: field.reshape(*field.shape[:-2], 640)[..., some]
        for name, field in compute(archive, request).items()
    }
    part = replace(sample, values=sample.values.reshape(-1, 640)[:, some])
    compare(found, strategies.oracle(part, request), sample, request)


def test_a_run_that_begins_anew_warns_once(tmp_path, monkeypatch):
    monkeypatch.setattr("kuroshio.job.space_warning", lambda *_: "tight")
    sample = striped(np.random.default_rng(), ice=True)
    archive = archive_of(sample, tuple(range(1, sample.days.size)))
    request = Request((2000, 2002), (50.0, 90.0), doys=tuple(range(190, 230)))
    done = Job(request, output=tmp_path / "clim.nc").run(archive)
    assert done.warnings.count("tight") == 1
