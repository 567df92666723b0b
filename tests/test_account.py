"""The account of a run: threads' stages, and what a device did beside them."""

from __future__ import annotations

import json
import re
from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli_runs import YEARS, run_here
from emulator import EmulatedGpu
from kuroshio.account import DEVICE_STAGES, Account
from kuroshio.engines.division import Division
from kuroshio.intervals import Intervals

SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 9)), max_size=30)


def ticks(spans: list[tuple[int, int]]) -> np.ndarray:
    """(tick,) whether any span covers it."""
    covered = np.zeros(80, bool)
    for start, length in spans:
        covered[start : start + length] = True
    return covered


def intervals(spans: list[tuple[int, int]]) -> Intervals:
    return Intervals((start, start + length) for start, length in spans)


@given(SPANS, SPANS)
def test_intervals_are_the_ticks_that_are_covered(ours, theirs):
    found, other = intervals(ours), intervals(theirs)
    assert found.seconds == ticks(ours).sum()
    assert found.overlap_s(other) == other.overlap_s(found) == (ticks(ours) & ticks(theirs)).sum()
    edges = np.flatnonzero(np.diff(ticks(ours), prepend=False, append=False))
    assert list(found) == list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def test_many_stretches_one_after_the_other_are_kept_as_one():
    found = Intervals((0.1 * i, 0.1 * (i + 1) + 1e-9) for i in range(20_000))
    assert len(found) == 1


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["read", "inflate", "fetch", "decode", *DEVICE_STAGES]),
            st.integers(0, 60), st.integers(1, 9),
        ),
        max_size=40,
    )
)  # fmt: skip
def test_device_stages_are_busy_seconds_and_overlaps(spans):
    account, bare = Account(threads=2), Account(threads=2)
    covered = {}
    for stage, start, length in spans:
        account.span(stage, start, start + length, 10**9)
        covered.setdefault(stage, []).append((start, length))
        if stage not in DEVICE_STAGES:
            bare.span(stage, start, start + length, 10**9)
    assert account.rows(80.0) == bare.rows(80.0)  # with the share that is waiting
    for row in account.rows(80.0):
        if row["stage"] == "wait":
            assert row["busy_seconds"] is None
        else:
            assert row["busy_seconds"] == ticks(covered[row["stage"]]).sum()
    for stage, times in covered.items():
        assert list(account.when(stage)) == list(intervals(times))
    assert account.when(*covered).seconds == ticks([*chain(*covered.values())]).sum()
    assert account.bound(80.0) == bare.bound(80.0)
    rows = {row["stage"]: row for row in account.device_rows(80.0)}
    assert list(rows) == [stage for stage in DEVICE_STAGES if stage in covered]
    for stage, row in rows.items():
        busy = ticks(covered[stage]).sum()
        assert row["busy_seconds"] == busy
        assert row["share"] == pytest.approx(busy / 80, abs=1e-4)
        assert row["gb_per_s"] == pytest.approx(len(covered[stage]) / busy, abs=1e-3)
        assert ("overlapped_seconds" in row) == (stage == "device copy")
    if "device copy" in rows:
        meanwhile = [
            span for stage in ("read", "inflate", "fetch", "device compute")
            for span in covered.get(stage, [])
        ]  # fmt: skip
        both = ticks(covered["device copy"]) & ticks(meanwhile)
        assert rows["device copy"]["overlapped_seconds"] == both.sum()


def test_a_run_without_a_device_has_no_device_stages():
    account = Account()
    account.span("read", 0.0, 1.0, 5)
    assert account.device_rows(1.0) == []


# -- whole runs ------------------------------------------------------------------------------------


@pytest.fixture
def season(archive, warm, tmp_path, monkeypatch):
    """Eleven days of year of the archive on the emulated device, or another."""
    monkeypatch.setenv("KUROSHIO_CACHE_DIR", str(warm))
    monkeypatch.setattr("kuroshio.device.cuda.named", lambda name: [EmulatedGpu()])

    def run(*options):
        done = run_here(
            "climatology", archive, *YEARS, "--doys", "100:110", "--no-smooth", "--threads", 2,
            *options, "-o", tmp_path / "clim.nc", "--overwrite",
        )  # fmt: skip
        assert done.status == 0, done.err
        return done.out

    return run


@pytest.fixture
def inflating(monkeypatch):
    """Half of the maps on the emulated device: they are too small for any at all."""
    monkeypatch.setattr("kuroshio.device.cuda.named", lambda name: [EmulatedGpu(inflating="yes")])
    monkeypatch.setattr(Division, "share", lambda self, maps, batches, beside: 0.5)


STAGES_THERE = [stage for stage in DEVICE_STAGES if stage != "device inflate"]


def test_json_of_a_run_that_inflates_on_a_device(season, inflating):
    done = json.loads(season("--device", "cuda:0", "--json"))
    rows = {row["stage"]: row for row in done["device_stages"]}
    assert list(rows) == list(DEVICE_STAGES)
    told = done["inflation"]
    assert set(told) == {"maps_on_device", "maps", "device_predicted_s", "device_measured_s"}
    assert told["maps"] == done["days_read"]
    assert told["maps_on_device"] == pytest.approx(done["days_read"] / 2, abs=5)
    inflated = rows["device inflate"]["gb_per_s"] * rows["device inflate"]["busy_seconds"] * 1e9
    assert inflated == pytest.approx(told["maps_on_device"] * 90 * 180 * 2, rel=0.05)
    assert rows["device inflate"]["busy_seconds"] == pytest.approx(
        told["device_measured_s"], rel=0.1, abs=1e-4
    )


def test_the_table_of_a_run_that_inflates_on_a_device(season, inflating):
    text = season("--device", "cuda:0")
    for what in DEVICE_STAGES.values():
        assert re.search(rf"{what} +│ +\d+\.\d{{3}} │ +\d+% │ +\d+\.\d ", text), what
    assert re.search(
        r"^Inflated on the device: \d+ of \d+ maps, predicted \d\.\d\d s, measured \d\.\d\d s$",
        text, re.MULTILINE,
    )  # fmt: skip


def test_json_of_a_run_on_a_device(season):
    done = json.loads(season("--device", "cuda:0", "--json"))
    assert [row["stage"] for row in done["device_stages"]] == STAGES_THERE
    assert done["inflation"] is None
    for row in done["device_stages"]:
        assert 0 < row["busy_seconds"] < done["seconds"]
        assert row["share"] == pytest.approx(row["busy_seconds"] / done["seconds"], abs=0.01)
    copy = done["device_stages"][0]
    assert 0 <= copy["overlapped_seconds"] <= copy["busy_seconds"]
    # Every map of 90 x 180 codes was copied, those of the last rings too.
    copied = copy["gb_per_s"] * copy["busy_seconds"] * 1e9
    assert copied == pytest.approx(done["days_read"] * 90 * 180 * 2, rel=0.05)
    assert not {row["stage"] for row in done["stages"]} & set(DEVICE_STAGES)
    assert not done["bound_by"].startswith("device")
    shares = sum(row["share"] for row in done["stages"])
    assert shares == pytest.approx(1.0, abs=0.02)
    assert {"rings", "maps", "pinned_gb", "predicted_wait_s", "measured_wait_s", "read_s",
            "copy_s", "copy_gb_per_s"} == set(done["rings"])  # fmt: skip
    assert (done["rings"]["rings"], done["rings"]["maps"]) in ((1, 4), (2, 4))
    assert done["rings"]["copy_s"] > 0


def test_the_table_of_a_run_on_a_device(season):
    text = season("--device", "cuda:0")
    for what in map(DEVICE_STAGES.get, STAGES_THERE):
        assert re.search(rf"{what} +│ +\d+\.\d{{3}} │ +\d+% │ +\d+\.\d ", text), what
    assert "nflate on the device" not in text
    assert re.search(
        r"^Rings: [12] of 4 maps a thread, \d\.\d\d GB pinned; waiting for them: "
        r"predicted \d\.\d\d s, measured \d\.\d\d s$", text, re.MULTILINE,
    )  # fmt: skip


def test_a_run_on_the_processor_says_nothing_of_devices(season):
    text = season("--device", "cpu")
    assert "device" not in text
    assert "Rings" not in text
    done = json.loads(season("--device", "cpu", "--json"))
    assert (done["device_stages"], done["rings"]) == ([], None)


def test_a_first_run_that_mostly_compiles_says_so():
    """Of 8 threads 7 wait meanwhile, which is most of the threads' time."""
    account = Account(threads=8)
    account.span("compile", 0.0, 6.0, 0)
    account.span("inflate", 6.0, 10.0, 0)
    assert account.bound(10.0).startswith("compiling")
    assert account.bound(13.0).startswith("waiting")
