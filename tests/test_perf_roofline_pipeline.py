"""A recorded run under its roofs: disk, inflating, link, memory, compute."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli_runs import run_here
from kuroshio.errors import Refusal
from kuroshio.perf import roofline_pipeline as pipeline
from kuroshio.perf.ceilings import store
from kuroshio.perf.ceilings.ceiling import GB, Ceiling
from perf_runs import run_perf
from test_perf_roofline import made


def roof(name: str, level: str | None, value: float, threads: int | None) -> Ceiling:
    return Ceiling(name, level, GB, value, value, value, 3, "made up", threads)


HOST = [
    roof(name, level, threads * value, threads)
    for threads in (1, 4)
    for name, level, value in (
        ("disk read cold", "disk", 1.0), ("disk read warm", "disk", 5.0),
        ("inflate (libdeflate)", None, 0.8), ("inflate (zlib)", None, 0.4),
        ("memory read", "memory", 20.0), ("memory copy", "memory", 18.0),
    )
]  # fmt: skip
DEVICE = [
    made("memory read", "memory", 4000.0, None), roof("host to device, pinned", "link", 55, None),
    roof("device to host, pinned", "link", 50, None),
    roof("inflate on the device", None, 16, None),
]  # fmt: skip


def stage(name: str, thread_s: float, busy_s: float, rate: float | None) -> dict:
    return {"stage": name, "what": f"the {name}", "thread_seconds": thread_s, "share": 0.1,
            "busy_seconds": busy_s, "gb_per_s": rate}  # fmt: skip


ACCOUNT = {
    "seconds": 10.0, "threads": 4, "device": "cuda:0",
    "stages": [
        stage("read", 4.0, 2.0, 0.9), stage("inflate", 32.0, 8.0, 0.75),
        stage("write", 1.0, 1.0, 0.5), stage("wait", 3.0, 1.0, None),
        stage("compile", 0.5, 0.4, None), stage("index", 0.1, 0.1, None),
    ],
    "device_stages": [
        {"stage": "device copy", "what": "copy to the device", "busy_seconds": 0.5, "share": 0.05,
         "gb_per_s": 50.0},
        {"stage": "device inflate", "what": "inflate", "busy_seconds": 0.5, "share": 0.05,
         "gb_per_s": 8.0},
        {"stage": "device compute", "what": "windows", "busy_seconds": 1.0, "share": 0.1,
         "gb_per_s": 400.0},
    ],
}  # fmt: skip


def test_each_stage_under_its_roof(tmp_path):
    found = {each.stage: each for each in pipeline.stages(tmp_path, ACCOUNT, HOST, DEVICE)}
    device = {"device copy", "device inflate", "device compute"}
    assert set(found) == {"read", "inflate", "write", "compile", *device}
    assert found["compile"].gb is None
    assert found["device inflate"].of_roof == pytest.approx(0.5)
    inflate = found["inflate"]
    assert inflate.gb_per_s == pytest.approx(3.0)  # 24 GB in 8 s
    assert inflate.roof == "inflate (libdeflate), 4 threads"
    assert inflate.of_roof == pytest.approx(3 / 3.2)
    assert inflate.least_s == pytest.approx(24 / 3.2)
    assert "at its roof" in inflate.says
    # 2 of 4 threads read, on average: one thread's disk does not do, so the next that was measured.
    assert found["read"].roof == "disk read cold, 4 threads"
    assert found["write"].roof is None
    assert found["device copy"].of_roof == pytest.approx(50 / 55)
    assert "below its roof" in found["device compute"].says
    verdict = pipeline.verdict(list(found.values()), 10.0)
    assert "the inflate" in verdict
    assert "no roof: the compile 0.4 s" in verdict


def test_what_is_quicker_than_the_disk_came_from_the_system():
    account = {"seconds": 1.0, "threads": 1, "stages": [stage("read", 1.0, 1.0, 4.0)]}
    (found,) = pipeline.stages("x", account, HOST)
    assert found.roof == "disk read warm, 1 thread"
    account["stages"][0]["gb_per_s"] = 50.0
    (found,) = pipeline.stages("x", account, HOST)
    assert "above what was measured" in found.says


@given(st.floats(0.01, 100), st.floats(1, 4), st.floats(0.001, 10))
def test_no_stage_is_quicker_than_its_roof_says(busy, working, rate):
    account = {"seconds": busy, "threads": 4,
               "stages": [stage("inflate", busy * working, busy, rate)]}  # fmt: skip
    (found,) = pipeline.stages("x", account, HOST)
    assert found.gb == pytest.approx(rate * busy * working)
    assert found.least_s == pytest.approx(found.of_roof * busy)
    assert found.share == 1


def test_without_roofs_there_is_no_verdict():
    found = pipeline.stages("x", ACCOUNT, [])
    assert all(each.roof is None for each in found)
    assert "None of its stages" in pipeline.verdict(found, 10.0)


def test_a_roof_that_the_run_was_above_promises_nothing():
    account = {"seconds": 8.0, "threads": 4, "stages": [stage("inflate", 32.0, 8.0, 2.0)]}
    said = pipeline.verdict(pipeline.stages("x", account, HOST), 8.0)
    assert "Measure the ceilings again" in said
    assert "instead of" not in said


def test_broken_accounts():
    with pytest.raises(Refusal, match="no whole account"):
        pipeline.stages("x", {"seconds": 1.0, "stages": [{"gb_per_s": 1, "busy_seconds": 1}]}, [])
    for odd in ([5], [stage("read", 1.0, 1.0, -1.0)], [stage("read", float("inf"), 1.0, 1.0)]):
        with pytest.raises(Refusal, match="no whole account"):
            pipeline.stages("x", {"seconds": 1.0, "stages": odd}, [])
    with pytest.raises(Refusal, match="no whole account"):
        pipeline.stages("x", {"seconds": float("nan"), "stages": []}, [])
    with pytest.raises(Refusal, match="too small"):
        pipeline.stages("x", {"seconds": 1.0, "stages": []}, [])


@pytest.mark.parametrize(
    ("name", "device"),
    [("cpu", None), ("cuda:0", "cuda:0"), ("cuda:all", "cuda:0"), ("hip:0, hip:1", "hip:0")],
)
def test_the_device_of_a_run(name, device):
    assert pipeline.device_of({"device": name}) == device


def test_a_real_run(archive, tmp_path, monkeypatch):
    """Recorded by the command itself: the account and this agree on what its fields are."""
    monkeypatch.setenv("KUROSHIO_CACHE_DIR", str(tmp_path / "cache"))
    done = run_here(
        "climatology", archive, "--baseline", 1991, 1993, "-o", tmp_path / "c.nc", "--device",
        "cpu", "--no-smooth", "--json", "-q",
    )  # fmt: skip
    assert done.status == 0, done
    account = tmp_path / "account.json"
    account.write_text(done.out)
    refused = run_perf("roofline", account)
    assert refused.status == 2
    assert "--save" in refused.err
    store.folder().mkdir(parents=True)
    who = store.identity("cpu")
    (store.folder() / who.file_name).write_text(json.dumps(store.document(who, {}, HOST)))
    shown = run_perf("roofline", account)
    assert shown.status == 0, shown
    assert "The lowest roof is that of" in shown.out
    said = json.loads(run_perf("roofline", account, "--json").out)
    stages = {each["stage"] for each in said["stages"]}
    assert stages & {"read", "inflate", "decode"}
    assert stages <= {row["stage"] for row in json.loads(done.out)["stages"]}
    alone = run_perf("roofline", account, "-o", tmp_path / "x.png")
    assert alone.status == 2
    assert "by itself" in alone.err
