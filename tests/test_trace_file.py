"""`kuroshio climatology --trace`: the run's timeline as a file of trace events."""

from __future__ import annotations

import gzip
import json
import os
import signal
import threading
import time
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import pytest

import kuroshio as ks
from cli_runs import YEARS, assert_refused, climatology, left_over, run_here, start
from emulator import EmulatedGpu
from kuroshio import trace_file
from kuroshio.account import DEVICE_STAGES, STAGES, Account
from kuroshio.engines.division import Division
from kuroshio.recorder import Recorder
from test_interrupts import SLOW_DISK, assert_stopped, stop, wait_for


@pytest.fixture(autouse=True)
def _known(warm, monkeypatch):
    monkeypatch.setenv("KUROSHIO_CACHE_DIR", str(warm))


def opened(path: Path) -> dict:
    raw = path.read_bytes()
    return json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)


def season(archive: Path, place: Path, *options: object) -> tuple[dict, dict]:
    """The account and the trace of eleven days of year."""
    done = run_here(
        "climatology", archive, *YEARS, "--doys", "100:110", "--threads", 2, "-o",
        place / "clim.nc", "--trace", place / "trace.json", "--json", *options,
    )  # fmt: skip
    assert done.status == 0, done.err
    assert left_over(place) == ["clim.nc", "trace.json"]
    return json.loads(done.out), opened(place / "trace.json")


def spans(trace: dict, cat: str = trace_file.STAGE) -> list[dict]:
    return [event for event in trace["traceEvents"] if event.get("cat") == cat]


def test_events_are_as_the_format_has_them(archive, place):
    _, trace = season(archive, place)
    assert set(trace) == {"displayTimeUnit", "baseTimeNanoseconds", "otherData", "traceEvents"}
    assert abs(trace["baseTimeNanoseconds"] / 1e9 - time.time()) < 100
    facts = trace["otherData"]
    assert facts["threads"] == "2"
    assert facts["device"] == "cpu"
    assert facts["command"].startswith("kuroshio ")
    assert all(isinstance(value, str) for value in facts.values())
    assert "merged_ns" not in facts
    names, sorts, seen = {}, {}, set()
    for event in trace["traceEvents"]:
        assert isinstance(event["pid"], int)
        if event["ph"] == "M":
            to, key = (names, "name") if event["name"].endswith("_name") else (sorts, "sort_index")
            to[event["pid"], event.get("tid"), event["name"].split("_")[0]] = event["args"][key]
            continue
        assert event["ph"] == "X"
        assert isinstance(event["tid"], int)
        assert event["ts"] >= 0
        assert event["dur"] >= 0
        for value in (event["ts"], event["dur"]):
            assert value * 1000 == pytest.approx(round(value * 1000), abs=1e-3)  # whole ns
        seen |= {(event["pid"], event["tid"], "thread"), (event["pid"], None, "process")}
    assert seen == set(names) == set(sorts)
    assert names[1, None, "process"] == "kuroshio climatology"
    (run,) = spans(trace, trace_file.RUN)
    assert names[1, run["tid"], "thread"] == threading.current_thread().name
    assert all(each["ts"] + each["dur"] <= run["dur"] for each in spans(trace))


def test_spans_add_up_to_the_account_and_threads_do_one_thing_at_a_time(
    archive, place, monkeypatch
):
    reported = []
    real = Account.span

    def span(self, stage, start_s, stop_s, nbytes, **of):
        reported.append((threading.get_ident(), start_s, stop_s, stage, nbytes))
        real(self, stage, start_s, stop_s, nbytes, **of)

    monkeypatch.setattr(Account, "span", span)
    account, trace = season(archive, place)
    by_stage, bytes_of, by_thread = defaultdict(float), defaultdict(int), defaultdict(list)
    for event in spans(trace):
        by_stage[event["name"]] += event["dur"] / 1e6
        bytes_of[event["name"]] += event["args"].get("bytes", 0)
        by_thread[event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
        assert set(event["args"]) <= (
            {"values"} if event["name"] in ("compute", "smooth") else {"bytes"}
        )
    assert set(by_stage) <= set(STAGES)
    told = {row["stage"]: row for row in account["stages"] if row["stage"] != "wait"}
    assert {stage: round(s, 3) for stage, s in by_stage.items() if stage in told} == {
        stage: pytest.approx(row["thread_seconds"], abs=1.1e-3) for stage, row in told.items()
    }
    assert bytes_of["inflate"] == sum(each[4] for each in reported if each[3] == "inflate") > 0
    # Thread idents of the test's own thread and of the crew's two; each begins after it has ended.
    assert len(by_thread) == len({ident for ident, *_ in reported}) <= 3
    for ident in {ident for ident, *_ in reported}:
        mine = sorted(each[1:3] for each in reported if each[0] == ident)
        assert all(one[1] <= other[0] for one, other in pairwise(mine)), mine
    for times in by_thread.values():
        times.sort()
        assert all(one[1] <= other[0] + 1e-3 for one, other in pairwise(times))


@pytest.mark.parametrize("inflating", [False, True])
def test_a_device_has_lanes_of_its_own(archive, place, monkeypatch, inflating):
    gpus = EmulatedGpu.several(1, "yes") if inflating else EmulatedGpu.several(2)
    monkeypatch.setattr("kuroshio.device.cuda.named", lambda name: gpus)
    if inflating:
        monkeypatch.setattr(Division, "share", lambda self, maps, batches, beside: 0.5)
    account, trace = season(archive, place, "--device", "cuda:all")
    events = spans(trace, trace_file.DEVICE)
    names = {
        (each["pid"], each.get("tid")): each["args"]["name"]
        for each in trace["traceEvents"] if each["ph"] == "M" and "name" in each["args"]
    }  # fmt: skip
    for gpu in gpus:
        mine = [each for each in events if names[each["pid"], None] == gpu.name]
        there = set(DEVICE_STAGES) if inflating else set(DEVICE_STAGES) - {"device inflate"}
        assert {each["name"] for each in mine} == there
        assert {each["args"]["device"] for each in mine} == {int(gpu.name.partition(":")[2])}
        assert all(each["args"]["bytes"] > 0 for each in mine if each["name"] != "device copy")
    lanes = defaultdict(list)
    for each in events:
        assert names[each["pid"], each["tid"]].startswith(each["name"])
        lanes[each["pid"], each["args"]["stream"]].append((each["ts"], each["ts"] + each["dur"]))
    for times in lanes.values():
        times.sort()
        assert all(one[1] <= other[0] + 1e-3 for one, other in pairwise(times))
    for row in account["device_stages"]:
        took = sum(each["dur"] for each in events if each["name"] == row["stage"]) / 1e6
        assert took >= row["busy_seconds"] - 1e-3


@pytest.mark.filterwarnings("ignore:A baseline of")
def test_in_python_and_compressed(archive, place):
    path = place / "trace.json.gz"
    ks.climatology(
        str(archive), baseline=(1991, 1993), doys=[100], smooth_width=1, device="cpu", trace=path
    )  # fmt: skip
    trace = opened(path)
    assert path.read_bytes()[:2] == b"\x1f\x8b"
    assert {"index", "read", "inflate", "compute"} <= {event["name"] for event in spans(trace)}
    assert trace["otherData"]["command"] == "kuroshio.climatology"
    with pytest.raises(ks.Refusal, match="trace is 3; it must be a path"):
        ks.climatology(str(archive), trace=3)


# -- when it cannot be -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("absent/trace.json", "cannot be written"),
        ("taken.json", "exists"),
        ("folder", "is no file"),
        ("clim.nc", "both"),
        ("t" * 240 + ".json", "longer than 230 bytes"),
    ],
)  # fmt: skip
def test_a_trace_that_cannot_be_written_is_refused_before_anything_is_read(
    years, place, name, words
):
    (place / "taken.json").write_text("mine")
    (place / "folder").mkdir()
    refused = climatology(years, place / "clim.nc", "--trace", place / name)
    assert_refused(refused, "trace", words)
    assert left_over(place) == ["folder", "taken.json"]
    assert (place / "taken.json").read_text() == "mine"


def test_an_input_is_not_replaced(place, years):
    source = place / "sst.nc"
    source.write_bytes(years.read_bytes())
    refused = climatology(source, place / "clim.nc", "--trace", source, "--overwrite")
    assert_refused(refused, "trace", "one of the files to be read")
    assert source.read_bytes() == years.read_bytes()
    assert left_over(place) == ["sst.nc"]


def test_a_run_that_fails_leaves_nothing(place, years, monkeypatch):
    def fail(*_, **__):
        raise ks.Refusal("It failed. Try again with another archive, or with none.")

    monkeypatch.setattr("kuroshio.kernels.smooth.running_mean", fail)
    assert_refused(climatology(years, place / "clim.nc", "--trace", place / "t.json"), "It failed")
    assert left_over(place) == []


def test_an_interrupted_run_leaves_nothing(archive, warm, place):
    process = start(
        "climatology", archive, *YEARS, "-o", place / "clim.nc", "--trace", place / "t.json.gz",
        code=SLOW_DISK, env={"KUROSHIO_CACHE_DIR": str(warm)},
    )  # fmt: skip
    wait_for(lambda: left_over(place), process)
    time.sleep(0.3)
    assert_stopped(stop(process, signal.SIGINT), signal.SIGINT)
    assert left_over(place) == []


def _full(monkeypatch) -> None:
    """The disk is full once the trace is written."""

    def full(file, *_):
        file.write(b"some of it")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(trace_file, "_write", full)


def test_a_full_disk_costs_the_trace_and_not_the_output(place, years, monkeypatch):
    _full(monkeypatch)
    result = climatology(years, place / "clim.nc", "--trace", place / "t.json")
    assert_refused(result, "No space left", "clim.nc is complete")
    assert left_over(place) == ["clim.nc"]


@pytest.mark.filterwarnings("ignore:A baseline of")
def test_a_full_disk_does_not_cost_what_is_in_memory(place, years, monkeypatch):
    _full(monkeypatch)
    with pytest.warns(UserWarning, match="No space left"):
        made = ks.climatology(
            str(years), baseline=(2001, 2002), doys=[1], smooth_width=1, device="cpu",
            trace=place / "t.json",
        )  # fmt: skip
    assert made.seas.notnull().any()
    assert left_over(place) == []


def test_a_trace_is_replaced_only_if_asked(place, years):
    trace = place / "t.json"
    trace.write_text("old")
    trace.chmod(0o644)
    done = climatology(years, place / "clim.nc", "--trace", trace, "--overwrite", "-q")
    assert done.status == 0, done.err
    assert opened(trace)["traceEvents"]


def test_too_many_spans_are_said_to_be_merged(place):
    recorder = Recorder(most=10)
    for i in range(100):
        recorder.add("read", recorder.begun_s + i, recorder.begun_s + i + 0.5, 1000)
    trace_file.write(place / "t.json", recorder, {"kuroshio": "1"})
    trace = opened(place / "t.json")
    assert int(trace["otherData"]["merged_ns"]) == recorder.window_ns > 0
    found = spans(trace)
    assert len(found) <= 10
    assert sum(each["dur"] for each in found) == pytest.approx(50e6)
    assert sum(each["args"]["bytes"] for each in found) == 100_000


def test_names_cannot_break_out_of_the_text(place):
    recorder = Recorder()
    named = threading.Thread(
        target=recorder.add, args=("read", 1.0, 2.0, 0), name='a"}],\n</script>é'
    )
    named.start()
    named.join()
    trace_file.write(place / "t.json", recorder, {"command": os.fsdecode(b'x"\xff')})
    trace = opened(place / "t.json")
    assert trace["otherData"]["command"] == os.fsdecode(b'x"\xff')
    assert any(event["args"].get("name") == 'a"}],\n</script>é' for event in trace["traceEvents"]
               if event["ph"] == "M")  # fmt: skip
