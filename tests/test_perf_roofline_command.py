"""`kuroshio perf roofline`: results and what counters say of them, the terminal, the picture."""

from __future__ import annotations

import argparse
import errno
import io
import json
import math
from dataclasses import replace
from math import hypot
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from kuroshio.errors import Refusal
from kuroshio.perf import roofline_command, roofline_results, roofline_text
from kuroshio.perf.ceilings import store
from kuroshio.perf.roofline import (
    BANDWIDTH_BOUND,
    COMPUTE_BOUND,
    NEITHER,
    Point,
    judge,
    roofs,
)  # fmt: skip
from kuroshio.perf.roofline_labels import Circle, marks
from perf_runs import run_perf
from test_perf_roofline import ceilings, positive, work


def row(case: str, seconds: float, **more) -> dict:
    times = {"median": seconds, "p90": seconds, "min": seconds, "mad": 0.0}
    return {
        "case": case, "size": 1000, "dtype": "float64", "device": "cpu", "repeats": 9,
        "host_s": times, "device_s": None, "boundary": "the call", "bytes": None, "flops": None,
        "operations": None, "correct": True, "stable": True, "unstable_because": None,
        "samples_s": [seconds] * 9, **more,
    }  # fmt: skip


@pytest.fixture
def measured(tmp_path, monkeypatch) -> Path:
    """A folder in which ceilings have been kept and results lie in results.json."""
    monkeypatch.setenv("KUROSHIO_CACHE_DIR", str(tmp_path / "cache"))
    store.folder().mkdir(parents=True)
    who = store.identity("cpu")
    document = store.document(who, {}, ceilings())
    (store.folder() / who.file_name).write_text(json.dumps(document))
    write(tmp_path, [
        row("copy", 0.75, bytes=24e9, flops=1.5e9, operations="float64 fma"),
        row("dense", 0.25, bytes=1e8, flops=20e9),
        row("slow", 1.0, bytes=1e8, flops=1e8, stable=False, unstable_because="two modes"),
    ])  # fmt: skip
    return tmp_path


def write(folder: Path, rows: list[dict]) -> Path:
    path = folder / "results.json"
    said = {"schema": "kuroshio.perf.result/1", "name": "x", "environment": {}, "rows": rows}
    path.write_text(json.dumps(said))
    return path


@pytest.mark.parametrize(
    ("processors", "options", "hinted"),
    [(1.0, [], True), (1.9, [], False), (None, [], False), (1.0, ["--threads", 1], False)],
)
def test_work_of_one_thread_under_the_roofs_of_two(measured, processors, options, hinted):
    results = write(measured, [row("copy", 0.75, bytes=24e9, watched={"processors": processors})])
    done = run_perf("roofline", results, *options)
    assert ("--threads 1 holds to the roofs of one" in done.out) == hinted


def test_the_command_judges(measured):
    done = run_perf("roofline", measured / "results.json", "--json")
    assert done.status == 0, done
    said = json.loads(done.out)
    classes = [point["class"] for point in said["points"]]
    assert classes == [BANDWIDTH_BOUND, COMPUTE_BOUND, NEITHER]
    assert [point["share_of_time"] for point in said["points"]] == [0.375, 0.125, 0.5]
    assert said["points"][0]["of_roof"] == pytest.approx(32 / 40)
    assert said["points"][2]["notes"] == ["unstable: two modes"]
    one = json.loads(run_perf("roofline", measured / "results.json", "--json", "--threads", 1).out)
    assert one["points"][0]["level"] == "L1"  # a thread's memory gives 20 GB/s, and it took 32


def test_the_terminal_shows_roofs_and_points(measured, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    done = run_perf("roofline", measured / "results.json")
    assert done.status == 0, done
    for word in ("A copy", "B dense", "C slow", "two modes", "bandwidth-bound", "float64 fma"):
        assert word in done.out
    plot = [line for line in done.out.splitlines() if "|" in line]
    place = {mark: (n, line.index(mark)) for n, line in enumerate(plot) for mark in "ABC"
             if mark in line.partition("|")[2]}  # fmt: skip
    assert set(place) == set("ABC")
    assert place["B"][0] < place["A"][0] < place["C"][0]  # Gop/s upwards
    assert place["A"][1] < place["C"][1] < place["B"][1]  # operations a byte to the right
    slope = [line.index("/") for line in plot if "/" in line]
    assert slope == sorted(slope, reverse=True)


@given(st.lists(st.tuples(positive, positive), min_size=1, max_size=40), st.integers(10, 200))
def test_any_points_can_be_plotted(points, width):
    under = roofs("cpu", ceilings())
    judged = [judge(work(rate, intensity), under) for rate, intensity in points]
    drawn = roofline_text.plot(judged, under, width)
    assert "A" in drawn or len(points) > 1
    assert max(map(len, drawn.splitlines())) < 300


def test_a_point_behind_another_is_named():
    under = roofs("cpu", ceilings())
    judged = [judge(work(rate, 1.3), under) for rate in (11, 11.01, 40, 11.02)]
    drawn = roofline_text.plot(judged, under, 80)
    assert "B, D behind A" in " ".join(drawn.split())
    assert "behind C" not in drawn


@given(st.integers(60, 200), st.booleans())
def test_the_table_fits_the_terminal(width, counted):
    """With classes and distances whole; what has no room is said."""
    under = roofs("cpu", ceilings())
    point = replace(work(3000.0, 10), name="a long name of a case " * 3)
    point = replace(point, counted_bytes=123_456_789_012.0 if counted else None)
    table, left_out = roofline_text.table([judge(point, under)], width)
    console = Console(width=width, file=io.StringIO())
    console.print(table)
    shown = console.file.getvalue()
    assert max(map(len, shown.splitlines())) <= width
    assert COMPUTE_BOUND in shown
    assert "\N{HORIZONTAL ELLIPSIS}" not in shown
    assert all(name not in shown for name in left_out)
    assert not (width > 140 and left_out)


circles_of = st.lists(
    st.builds(Circle, st.floats(0, 500), st.floats(0, 300), st.floats(5, 25)), min_size=1
)


@given(circles_of)
def test_letters_of_points_are_on_nothing_else(circles):
    letter = 12.0
    for i, (own, place) in enumerate(zip(circles, marks(circles, letter), strict=True)):
        covered = [c for c in circles[i + 1 :] if hypot(c.x - own.x, c.y - own.y) < c.radius]
        assert place is not None or not covered
        if len(circles) < 4 and place is not None:  # of many there may be no room
            assert all(hypot(c.x - place.x, c.y - place.y) > c.radius for c in circles)


@pytest.mark.parametrize("count", [1, 5, 12, 30, 45])
def test_names_in_the_picture(measured, count):
    """As they are written, whatever mathematics or letters they hold, and a list that is whole."""
    pytest.importorskip("matplotlib")
    names = ["$x_1$ \\frac{", "\u6d77\u9762 \U0001f600"]
    names += [f"kernel_{i}" for i in range(count)]
    rows = [row(name, 1.0, bytes=1e9, flops=1e9) for name in names[:count]]
    path = measured / "roofline.svg"
    done = run_perf("roofline", write(measured, rows), "-o", path)
    assert done.status == 0, done
    comments = path.read_text()  # matplotlib draws letters as shapes and keeps their text beside
    assert ("15 of less time are not listed" in comments) == (count == 45)
    shown = [name for name in names if f"<!-- {name} " in comments]
    assert len(shown) == min(count, 30)


def test_a_picture_where_nothing_can_be_written(measured, monkeypatch):
    """A read-only file system refuses to remove, too, what is not there."""
    pytest.importorskip("matplotlib")

    def refused(*arguments, **more):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", refused)
    monkeypatch.setattr(Path, "unlink", refused)
    done = run_perf("roofline", measured / "results.json", "-o", measured / "x.png")
    assert done.status == 2
    assert "x.png cannot be written: Read-only file system." in done.err


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_the_picture(measured, ending):
    pytest.importorskip("matplotlib")
    path = measured / f"roofline.{ending}"
    done = run_perf("roofline", measured / "results.json", "-o", path)
    assert done.status == 0, done
    if ending == "svg":
        assert ElementTree.parse(path).getroot().tag.endswith("svg")
    else:
        assert path.read_bytes().startswith(b"\x89PNG")
    assert {file.name for file in measured.iterdir()} == {"cache", "results.json", path.name}


def test_names_of_counted_kernels_are_matched():
    points = [work(1, 1), replace(work(1, 1), name="other (5)")]
    counted = [roofline_results.Counted(name=name, bytes=1.0) for name in ("aWork(int)", "k2")]
    found = roofline_results.joined(points, counted, [("other (5)", "k2")])
    assert [point.counted_bytes for point in found] == [1.0, 1.0]
    found = roofline_results.joined(points, counted)
    assert [point.name for point in found] == ["work", "other (5)", "k2"]
    with pytest.raises(Refusal, match="there is none"):
        roofline_results.joined(points, counted, [("none", "k2")])
    with pytest.raises(Refusal, match="Say which"):
        roofline_results.joined(points, [counted[0], replace(counted[0], name="work2")])
    with pytest.raises(Refusal, match="none was counted"):
        roofline_results.joined(points, counted, [("work", "k3")])


def test_a_kernel_belongs_to_one_case():
    """Of one kernel at two sizes the counters say one size, and not which."""
    small, large = replace(work(1, 1), name="copy (10)"), replace(work(1, 1), name="copy (20)")
    counted = [roofline_results.Counted(name="copy(int*)", bytes=1.0)]
    with pytest.raises(Refusal, match="could be 'copy \\(10\\)' and 'copy \\(20\\)'"):
        roofline_results.joined([small, large], counted)
    found = roofline_results.joined([small, large], counted, [("copy (20)", "copy")])
    assert [point.counted_bytes for point in found] == [None, 1.0]


@pytest.mark.parametrize(
    ("case", "kernel", "same"),
    [("copy (10)", "void ns::copy<float>(float*, int)", True), ("scale", "ns::Scale<int>()", True),
     ("wake up", "k(int)", False), ("k", "k(int)", True), ("my k", "k", True)],
)  # fmt: skip
def test_names_that_belong_together(case, kernel, same):
    points = [replace(work(1, 1), name=case), replace(work(1, 1), name="another")]
    found = roofline_results.joined(points, [roofline_results.Counted(name=kernel, bytes=1.0)])
    assert (found[0].counted_bytes is not None) == same


def test_a_name_that_is_the_beginning_of_another():
    point = replace(work(1, 1), name="scale")
    counted = [roofline_results.Counted(name=name, bytes=1.0) for name in ("scale_all", "scale")]
    found = roofline_results.joined([point], counted)
    assert [each.name for each in found] == ["scale", "scale_all"]
    counted[1] = replace(counted[1], name="all")
    found = roofline_results.joined([point], counted, [("scale", "all")])
    assert [each.name for each in found] == ["scale", "scale_all"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"rows": []}, "holds no rows"),
        ({"schema": "another/1"}, "another/1"),
        ({"rows": [{"case": "x"}]}, "lacks something"),
        ({"rows": [row("x", 0.0)]}, "cannot be"),
        ({"rows": [row("x", 1.0, bytes=-5)]}, "cannot be"),
        ({"rows": [row("x", 1.0, host_s={})]}, "cannot be used"),
        ({"rows": [row("x", math.nan)]}, "cannot be"),
        ({"rows": [row("x", math.inf, bytes=5)]}, "cannot be"),
        ({"rows": [row("x", 1.0, bytes=math.inf)]}, "cannot be"),
        ({"rows": [row("x", 1.0, bytes=5, flops=1e-300)]}, "cannot be"),
        ({"rows": [row("x", 1.0, bytes=10**400)]}, "cannot be used"),
        ({"rows": [row("x", 1.0), row("y", 1.0, device="cuda:0")]}, "--device"),
    ],
)
def test_results_that_cannot_be_used(measured, change, says):
    path = measured / "results.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    done = run_perf("roofline", path)
    assert done.status == 2
    assert says in done.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "nothing to place"),
        (("none.json",), "cannot be read"),
        (("results.json", "-o", "picture.pdf"), ".png or a .svg"),
        (("results.json", "--device", "hip:0"), "rows of cpu"),
        (("results.json", "--match", "copy"), "CASE=KERNEL"),
        (("results.json", "--ceilings", "results.json"), "holds no ceilings"),
        (("results.json", "--threads", "7"), "only of 1, 2"),
        (("results.json", "--threads", "0"), "at least 1"),
        (("results.json", "-o", ""), ".png or a .svg"),
        (("results.json", "-o", "none/x.svg"), "cannot be written"),
    ],
)
def test_bad_requests(measured, monkeypatch, arguments, says):
    monkeypatch.chdir(measured)
    done = run_perf("roofline", *arguments)
    assert done.status == 2
    assert says in done.err


@pytest.mark.parametrize("value", [0, -5, math.nan, math.inf, 1e-300, 1e300])
@pytest.mark.parametrize("level", ["memory", None])
def test_ceilings_that_cannot_be(measured, value, level):
    """A roof of 0 or of infinity is a damaged file, not a division by it."""
    who = store.identity("cpu")
    said = store.document(who, {}, ceilings())
    for each in said["ceilings"]:
        if each["level"] == level:
            each["value"] = value
    path = measured / "ceilings.json"
    path.write_text(json.dumps(said))
    done = run_perf("roofline", measured / "results.json", "--ceilings", path)
    assert done.status == 2
    assert "cannot be" in done.err


def test_without_seconds_there_is_no_rate():
    found = judge(Point(name="x", seconds=None, bytes=5, flops=5), roofs("cpu", ceilings()))
    assert (found.kind, found.of_roof) == (NEITHER, None)
    assert "seconds are not known" in found.roof


def test_a_reader_that_leaves(measured, monkeypatch):
    """`kuroshio perf roofline ... | head -1` ends in order."""

    class Gone(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    monkeypatch.setattr("sys.stdout", Gone())
    arguments = argparse.ArgumentParser()
    roofline_command.add_arguments(arguments)
    with pytest.raises(BrokenPipeError):
        roofline_command.run(arguments.parse_args([str(measured / "results.json")]))


def test_no_ceilings_yet(measured, monkeypatch):
    monkeypatch.setenv("KUROSHIO_CACHE_DIR", str(measured / "empty"))
    done = run_perf("roofline", measured / "results.json")
    assert done.status == 2
    assert "kuroshio perf ceilings --device cpu --save" in done.err


def test_a_cut_result_file(measured):
    path = measured / "results.json"
    path.write_text(path.read_text()[:200])
    done = run_perf("roofline", path)
    assert done.status == 2
    assert "cut off" in done.err
