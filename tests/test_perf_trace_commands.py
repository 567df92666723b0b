"""`kuroshio perf timeline` and `kuroshio perf diagnose`: from a file to words, JSON and a page."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli_runs import YEARS, assert_refused, left_over, run_here
from kuroshio import Refusal, perf, trace_file
from kuroshio.perf import timeline_text
from kuroshio.perf.timeline.analysis import analyse
from kuroshio.perf.timeline.intervals import union
from kuroshio.recorder import Recorder
from perf_runs import kept_ceilings, run_perf
from traces_made import MS, US, Made, healthy

SPANS = st.lists(st.tuples(st.integers(0, 900), st.integers(1, 200)), max_size=20)


@pytest.fixture
def starved(shared) -> Path:
    return shared / "traces/kineto/v100_resnet50_workers0.json.gz"


@pytest.fixture
def own(tmp_path) -> Path:
    """A trace of our own pipeline, of two threads."""
    recorder = Recorder()
    at = recorder.begun_s
    recorder.add("read", at, at + 0.9, 1000)
    recorder.add("compute", at + 0.9, at + 1.0, 1000)
    path = tmp_path / "own.json.gz"
    trace_file.write(path, recorder, {"kuroshio": "1", "threads": "1"})
    return path


def test_the_starved_trace(starved, tmp_path):
    page = tmp_path / "report.html"
    done = run_perf("diagnose", starved, "--html", page, "-o", tmp_path / "kept.json")
    assert done.status == 0, done.err
    assert re.search(r"^1\. .*data", done.out, re.MULTILINE), done.out
    assert (
        page.read_text(encoding="utf-8").startswith("<!doctype html>")
        or "<html" in (page.read_text(encoding="utf-8")[:200])
    )
    kept = json.loads((tmp_path / "kept.json").read_text())
    printed = json.loads(run_perf("diagnose", starved, "--json").out)
    assert printed == kept
    assert kept["traces"][0]["work"]["busy"] == 603_558_000
    assert left_over(tmp_path) == ["kept.json", "report.html"]


def test_ranks_are_put_in_order(shared):
    folder = shared / "traces/kineto"
    names = [folder / f"rank{rank}_sampled.json.gz" for rank in (1, 0)]
    said = json.loads(run_perf("diagnose", *names, "--json").out)
    assert [each["trace"]["rank"] for each in said["traces"]] == [0, 1]
    assert said["ranks"] is not None
    done = run_perf("timeline", *names)
    assert done.status == 0, done.err
    assert done.out.index("rank 0") < done.out.index("rank 1")
    assert "of communication" in done.out.lower()


def test_the_timeline_of_a_real_trace(starved):
    done = run_perf("timeline", starved)
    assert done.status == 0, done.err
    assert "busy for 604 ms of 996 ms (61%)" in done.out
    strip = re.search(r"^\|([#~=.]{98})\|$", done.out, re.MULTILINE)
    assert strip
    assert strip[1].count(".") > 10
    for words in ("holes by cause", "data loading", "longest holes", "idle"):
        assert words in done.out
    # The same zero as in the diagnosis: whoever reads both finds a hole at one time.
    (longest,) = re.findall(r"^device 0 .* (\d+ ms)  62.3 ms$", done.out, re.MULTILINE)
    assert f"Look at: 62.3 ms at {longest}" in run_perf("diagnose", starved).out
    assert "69.2 ms to 1.07 s: # compute" in done.out
    said = json.loads(run_perf("timeline", starved, "--json").out)
    assert said["traces"][0]["work"]["idle"] == 392_919_000


def test_our_own_pipeline(own):
    done = run_perf("diagnose", own)
    assert done.status == 0, done.err
    assert re.search(r"^1\. .*reading", done.out, re.MULTILINE), done.out
    assert "bound by reading" in run_perf("timeline", own).out


def test_from_climatology_to_a_diagnosis(archive, warm, tmp_path, monkeypatch):
    monkeypatch.setenv("KUROSHIO_CACHE_DIR", str(warm))
    trace = tmp_path / "trace.json"
    done = run_here("climatology", archive, *YEARS, "--doys", "100:110", "-o", tmp_path / "c.nc",
                    "--trace", trace, "--json")  # fmt: skip
    account = json.loads(done.out)
    said = json.loads(run_perf("diagnose", trace, "--json").out)
    (found,) = said["traces"]
    stages = {each["name"]: each for each in found["pipeline"]["stages"]}
    for row in account["stages"]:
        if row["stage"] != "wait":
            assert stages[row["stage"]]["work"] / 1e9 == pytest.approx(
                row["thread_seconds"], abs=1.1e-3
            )
    assert found["trace"]["facts"]["threads"] == str(account["threads"])


# -- the strip of a device -------------------------------------------------------------------------


@given(SPANS)
def test_what_a_column_covers_adds_up(spans):
    starts = np.array([start for start, _ in spans], np.int64)
    covered = union(starts, starts + np.array([length for _, length in spans], np.int64))
    edges = np.linspace(0, 1100, 12)
    found = timeline_text._covered(covered, 0, edges)
    ticks = np.zeros(1100, bool)
    for start, length in spans:
        ticks[start : start + length] = True
    assert found == pytest.approx(ticks.reshape(11, 100).sum(axis=1))


def test_times_far_from_zero_lose_no_digits():
    """ns of the epoch have more digits than a float."""
    epoch = 1_700_000_000_000_000_000
    made = Made()
    made.kernel("a", epoch, 100 * US)
    made.kernel("a", epoch + 300 * US, 100 * US)
    text = timeline_text.text(analyse(made.trace()), 42)
    assert f"|{'#' * 10}{'.' * 20}{'#' * 10}|" in text


def test_no_copies_are_not_said_to_be_none():
    """They may not have been recorded."""
    made = Made()
    made.kernel("a", 0, 100 * US)
    text = timeline_text.text(analyse(made.trace()), 80)
    assert "busy for 100 us of 100 us (100%), 1 kernel\n" in text
    assert "\n0 to 100 us: # compute" in text


def test_a_healthy_trace_has_no_long_holes():
    text = timeline_text.text(analyse(healthy().trace()), 100)
    assert "busy for" in text
    assert "data loading" not in text


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ([5], "1 step of 5.00 ms (annotations of the program)"),
        ([1, 5], "2 steps (annotations of the program), 6.00 ms in all: shortest 1.00 ms, longest"),
        ([1, 2, 5], "8.00 ms in all: median 2.00 ms, shortest 1.00 ms, longest 5.00 ms"),
        ([1] * 9 + [5], "14.0 ms in all: median 1.00 ms, p90 1.00 ms"),
    ],
)
def test_no_more_is_said_of_few_steps_than_there_is(steps, words):
    made, at = Made(), 0
    for number, lasts in enumerate(steps):
        made.annotation(f"ProfilerStep#{number}", at, at + lasts * MS)
        made.launch("kernel", at + 10 * US, 100 * US)
        at += lasts * MS
    assert words in timeline_text.text(analyse(made.trace()), 80)


def test_the_longest_holes_fit_a_narrow_terminal():
    made = Made()
    made.launch("kernel", 0, 10 * US)
    made.operator(f"DataLoader.{'x' * 60}", 50 * US, 3 * MS)
    made.launch("kernel", 3 * MS, 10 * US)
    table = timeline_text.text(analyse(made.trace()), 80).partition("longest holes")[2]
    row = next(line for line in table.splitlines() if "xxx" in line)
    assert 70 < len(row) <= 80


def test_names_cannot_steer_a_terminal():
    made = Made()
    made.launch("kernel", 0, 10 * US)
    made.operator("\x1b[2Jaten::evil\n", 50 * US, 3 * MS)
    made.launch("kernel", 3 * MS, 10 * US)
    text = timeline_text.text(analyse(made.trace(path="\x1b[31mred.json")), 80)
    assert "\x1b" not in text


def test_kernels_that_were_counted_are_held_to_roofs(shared, tmp_path):
    roofs = kept_ceilings(
        tmp_path / "c.json",
        {"name": "memory copy", "level": "memory", "unit": "GB/s", "value": 1000.0},
        {"name": "float32 multiply-add", "unit": "Gop/s", "value": 9000.0},
    )
    counters = shared / "traces/omniperf/MI200/pmc_perf.csv"
    trace = shared / "traces/kineto/mi210_gpu_only.json.gz"
    done = run_perf("diagnose", trace, "--counters", counters, "--ceilings", roofs, "--json")
    assert done.status == 0, done.err
    (point,) = json.loads(done.out)["roofline"]
    assert "vecCopy" in point["name"]


def test_messages_of_ranks_are_held_to_what_was_measured(tmp_path):
    traces = []
    for rank in (0, 1):
        made = Made()
        made.launch(
            "ncclDevKernel_AllReduce_Sum_f32", 0, 1 * MS,
            others={"In msg nelems": str(1 << 20), "Out msg nelems": str(1 << 20),
                    "dtype": "Float", "Group size": "2", "Collective name": "allreduce"},
        )  # fmt: skip
        made.launch("gemm", 2 * MS, 1 * MS)
        traces.append(made.trace(rank=rank, path=f"{rank}.json"))
    roofs = kept_ceilings(
        tmp_path / "c.json",
        {"name": "all-reduce of 2", "level": "link", "unit": "GB/s", "value": 100.0,
         "message_bytes": 4 << 20},
    )  # fmt: skip
    (message,) = perf.diagnose(*traces, ceilings=[roofs]).ranks.messages
    assert message.ceiling == pytest.approx(100.0)
    assert perf.diagnose(*traces).ranks.messages[0].ceiling is None


# -- when it cannot be -----------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["diagnose", "timeline"])
def test_what_is_no_trace_is_refused(tmp_path, command):
    bad = tmp_path / "bad.json.gz"
    bad.write_bytes(gzip.compress(b'{"traceEvents": [' + b'{"ph": "X", "ts": 1},' * 100)[:-20])
    assert_refused(run_perf(command, bad), "bad.json.gz")
    assert_refused(run_perf(command, tmp_path / "absent.json"), "absent.json")
    page = tmp_path / "page.json"
    page.write_text("<!doctype html><title>Not found</title>")
    assert_refused(run_perf(command, page), "HTML")


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("kuroshio.diagnosis/1", "kuroshio perf compare"),
        ("kuroshio.timeline/1", "diagnose TRACE --json"),
        ("kuroshio.perf.result/1", "kuroshio perf roofline"),
        ("kuroshio.perf.ceilings/1", "kuroshio.perf.ceilings/1"),
    ],
)
def test_our_own_documents_are_no_traces(tmp_path, schema, words):
    path = tmp_path / "kept.json"
    path.write_text(json.dumps({"schema": schema, "rows": []}))
    assert_refused(run_perf("diagnose", path), "kept.json", words)


def test_a_folder_of_traces_names_one(own):
    """What `perf record` leaves is a folder, and torch's handler for TensorBoard writes one."""
    assert_refused(run_perf("diagnose", own.parent), f"Give a file in it: {own}")
    (own.parent / "a.json").write_text("{}")
    assert_refused(run_perf("diagnose", own.parent), f"such as {own}, the largest", "ranks of one")


def test_a_picture_is_not_printed_as_text(tmp_path):
    path = tmp_path / "map.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
    done = run_perf("diagnose", path)
    assert_refused(done, "no text; it begins with 89 50 4e 47")
    assert "\ufffd" not in done.err


@pytest.mark.parametrize("option", ["--html", "-o"])
def test_what_is_read_is_not_written_over(own, tmp_path, option):
    before = own.read_bytes()
    link = tmp_path / "link.json.gz"
    link.symlink_to(own)
    for name in (own, link):
        done = run_perf("diagnose", own, option, name)
        assert_refused(done, name.name, "one of the files to be read")
    counters = tmp_path / "counters.csv"
    counters.write_text("a,b\n")
    done = run_perf("diagnose", own, "--counters", counters, option, counters)
    assert_refused(done, "one of the files to be read")
    assert (own.read_bytes(), counters.read_text()) == (before, "a,b\n")


@pytest.mark.parametrize("option", ["--html", "-o"])
def test_nothing_of_a_folder_that_is_read_is_written_over(tmp_path, option):
    """But what an earlier run wrote there is."""
    folder = tmp_path / "trace"
    folder.mkdir()
    for name in ("100_kernel_trace.csv", "notes.txt"):
        (folder / name).write_text("Kind\n")
        done = run_perf("diagnose", folder, option, folder / name)
        assert_refused(done, name, "one of the files to be read")
        assert (folder / name).read_text() == "Kind\n"
    ours = "<!DOCTYPE html>\n" if option == "--html" else '{\n "schema": "kuroshio.diagnosis/1"}'
    (folder / "made").write_text(ours)
    assert "to be read" not in run_perf("diagnose", folder, option, folder / "made").err


def test_page_and_json_are_two_files(own, tmp_path):
    done = run_perf("diagnose", own, "--html", tmp_path / "r", "-o", tmp_path / "r")
    assert_refused(done, "Name them apart")
    assert left_over(tmp_path) == [own.name]


def test_outputs_are_checked_before_anything_is_read(tmp_path):
    refused = run_perf("diagnose", tmp_path / "absent.json", "--html", tmp_path / "no" / "r.html")
    assert_refused(refused, "r.html")
    assert_refused(run_perf("diagnose", tmp_path / "absent.json", "-o", tmp_path), "is a folder")
    assert left_over(tmp_path) == []


def test_the_same_trace_twice(own):
    assert_refused(run_perf("diagnose", own, own), "was given twice")


def test_two_runs_are_no_ranks_of_one_job():
    traces = [Made().trace(rank=0, path=name) for name in ("a.json", "b.json")]
    with pytest.raises(Refusal, match="compare"):
        perf.diagnose(*traces)


def test_traces_with_few_kernels_in_common_are_hardly_ranks(shared):
    def remarks(*times: dict[str, int]) -> str:
        traces = []
        for rank, kernels in enumerate(times):
            made = Made()
            for name, lasts in kernels.items():
                made.launch(name, 0, lasts)
            traces.append(made.trace(rank=rank, path=f"{rank}.json"))
        return " ".join(perf.diagnose(*traces).remarks)

    gemm = {"gemm": 6 * MS, "relu": 4 * MS}
    assert "hardly ranks of one job" in remarks(gemm, gemm, {"fft": 1 * MS})
    assert "make up 40% of" in remarks(gemm, {"relu": 9 * MS, "norm": 1 * MS})
    assert "make up 40% of" in remarks({"relu": 9 * MS, "norm": 1 * MS}, gemm)
    assert "hardly" not in remarks(gemm, {"gemm": 1 * MS, "norm": 900_000})
    assert "hardly" not in remarks(gemm, gemm)
    kineto = shared / "traces" / "kineto"
    ranks = [kineto / f"rank{rank}_sampled.json.gz" for rank in range(2)]
    assert "hardly" not in " ".join(perf.diagnose(*ranks).remarks)
    strangers = perf.diagnose(kineto / "v100_resnet50_workers0.json.gz", ranks[1])
    assert "hardly" in " ".join(strangers.remarks)


def test_ceilings_without_counters(own, tmp_path):
    roofs = kept_ceilings(tmp_path / "c.json", {"name": "memory copy", "unit": "GB/s", "value": 1})
    assert_refused(run_perf("diagnose", own, "--ceilings", roofs), "--counters", "several ranks")


def test_experiments_of_no_folder(own, tmp_path):
    assert_refused(run_perf("diagnose", own, "--experiments", tmp_path / "none"), "no folder")


def test_nothing_given():
    with pytest.raises(Refusal, match="no trace"):
        perf.diagnose()


def test_read_trace_in_python(own):
    trace = perf.read_trace(own)
    assert len(trace.events) == 3
    assert perf.diagnose(trace).analyses[0].pipeline is not None


def test_a_timeline_of_ours_is_no_rank_of_another_program(own, starved):
    """Nor is one compared with the other."""
    for order in ((own, starved), (starved, own)):
        done = run_perf("diagnose", *order)
        assert_refused(done, "no ranks of one job")
        assert f"{own} is a timeline of Kuroshio's own stages" in done.err
    assert_refused(run_perf("compare", own, starved), "are not alike: recorded by")
