"""`kuroshio perf compare`: what a change has changed, and what cannot be compared."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from cli_runs import assert_refused
from kuroshio import Refusal, perf
from kuroshio.perf.changes import Amount, changes
from kuroshio.perf.changes_text import text
from kuroshio.perf.traces.trace import Device
from perf_runs import run_perf
from traces_made import MS, US, Made, healthy

CARD = {0: Device(0, "A card")}


def loop(kernels: dict[str, int], steps: int = 10, pause: int = 0) -> Made:
    """Steps of these kernels (name -> ns) one after the other; the host pauses between steps."""
    made, at = Made(), 1 * MS
    for step in range(steps):
        begin = at
        end = at
        for name, lasts in kernels.items():
            end = made.launch(name, at, lasts)
            at += 5 * US
        at = max(at, end) + pause + 20 * US
        made.annotation(f"ProfilerStep#{step}", begin, at - 1)
    return made


def document(made: Made, **more) -> dict:
    said = perf.diagnose(made.trace(devices=CARD, **more)).as_json()
    return json.loads(json.dumps(said))


BEFORE = {"gemm": 400 * US, "relu": 100 * US, "norm": 50 * US}
AFTER = {"gemm_relu": 410 * US, "norm": 60 * US}


def compared(before: dict, after: dict, anyway: bool = False):
    return changes(("a.json", "b.json"), before, after, anyway=anyway)


def test_kernels_appear_vanish_and_change_a_step():
    """Steps differ in number: what is compared is a step's."""
    found = compared(document(loop(BEFORE, steps=10)), document(loop(AFTER, steps=20)))
    assert (found.per_step, found.steps) == (True, (10, 20))
    by_name = {each.name: each for each in found.kernels}
    assert [each.name for each in found.kernels][:2] == ["gemm_relu", "gemm"]
    assert (by_name["gemm"].before, by_name["gemm"].after) == (400 * US, None)
    assert (by_name["gemm_relu"].before, by_name["gemm_relu"].after) == (None, 410 * US)
    assert by_name["norm"].difference == 10 * US
    assert by_name["norm"].calls == (1.0, 1.0)
    assert {each.name: each.difference for each in found.work}["compute"] == pytest.approx(-80 * US)


def test_steps_are_compared_with_an_interval():
    found = compared(document(loop(BEFORE, pause=300 * US)), document(loop(BEFORE)))
    assert found.step is not None
    assert found.step.differ
    assert found.step.ratio < 0.8
    assert "a step of b.json is" in found.step.verdict
    same = compared(document(loop(BEFORE)), document(loop(BEFORE)))
    assert same.step is not None
    assert not same.step.differ
    assert all(each.difference == 0 for each in same.kernels + same.work)


def test_what_matters_is_said_first():
    said = text(compared(document(loop(BEFORE, pause=2 * MS)), document(loop(BEFORE))))
    lead, _, tables = said.partition("\n\ndevice ")
    assert re.search(r"A step took \d\S+ ms before and takes \d+ us after, by the median", lead)
    assert re.search(r"What changed the most of a step: [a-z ]+ -\d", lead)
    assert "Findings that are gone:\n  The host launches too late" in lead
    assert tables
    few = text(compared(document(loop(BEFORE, steps=2)), document(loop(BEFORE, steps=2))))
    assert "Of so few steps it cannot be said" in few
    assert "What changed the most" not in few


def test_kernels_of_one_short_name_are_told_apart():
    """Templates share all but an argument, and long names all but their end."""
    kernels = {
        "void at::elementwise<4, at::AddFunctor<float>>(int)": 10 * US,
        "void at::elementwise<4, at::MulFunctor<float>>(int)": 20 * US,
        f"a_very_long_name_of_a_kernel_{'x' * 40}_forward": 30 * US,
        f"a_very_long_name_of_a_kernel_{'x' * 40}_backward": 40 * US,
    }
    for width in (40, 50, 60, 80, 120):
        said = text(compared(document(loop(kernels)), document(loop(kernels))), width)
        table = said.partition("\n\nkernel ")[2].splitlines()[1:]
        assert len({row.split()[0] for row in table}) == len(kernels)
        assert all(len(row) <= width for row in table)
    assert any("AddFunctor" in row for row in table)
    assert any("_backward" in row for row in table)


@pytest.mark.parametrize("width", [40, 46, 50, 64, 80])
def test_tables_fit_and_the_change_is_never_left_out(width):
    found = compared(document(loop(BEFORE)), document(loop(AFTER)))
    parts = [part.splitlines() for part in text(found, width).split("\n\n")]
    tables = [part for part in parts if "  change" in part[0]]
    assert len(tables) >= 3
    for table in tables:
        assert max(map(len, table)) <= width
        assert "before" in table[0] or width < 60


def test_programs_that_have_hardly_a_kernel_in_common_are_told_of():
    """A kernel of little time that both have does not make them one program."""
    before, after = document(loop(BEFORE)), document(loop(AFTER))
    found = compared(before, after)
    assert found.in_common == pytest.approx(50 / 550)
    assert "make up 9.1% of the kernels' time" in text(found)
    same = compared(before, document(loop({**BEFORE, "gelu": 300 * US})))
    assert same.in_common == pytest.approx(550 / 850)
    assert "of the same names" not in text(same)


@pytest.mark.parametrize(("after", "said"), [(4.0, "-20.0%"), (50.0, "+900.0%"), (1e12, "2e+11x")])
def test_large_changes_are_told_in_few_characters(after, said):
    found = compared(document(loop(BEFORE)), document(loop(BEFORE)))
    shown = text(replace(found, kernels=(Amount("gemm", 5.0, after, (1.0, 1.0)),)), 40)
    table = shown.partition("\n\nkernel")[2].splitlines()
    assert said in table[1]
    assert max(map(len, table)) <= 40


def test_parts_of_a_pipeline_are_its_roles():
    """Compiling is none of the preparation of a step."""
    sides = []
    for lasts in (30, 5):
        made = Made()
        made.stage("compile", 0, lasts * MS)
        made.stage("read", lasts * MS, 60 * MS)
        made.kernel("windows", 60 * MS, 10 * MS)
        sides.append(document(made))
    found = compared(*sides)
    assert {each.name: each.difference for each in found.parts} == {
        "compiling": -25 * MS, "reading": 25 * MS, "kernel": 0,
    }  # fmt: skip


def test_counts_that_change_are_told_as_two():
    found = compared(document(loop(BEFORE)), document(loop(BEFORE)))
    kernels = (
        Amount("gemm", 5.0, 9.0, (1.0, 2.5)), Amount("relu", 5.0, 5.0, (3.0, 3.0)),
        Amount("norm", 5.0, None, (1200.0, None)),
    )  # fmt: skip
    said = text(replace(found, kernels=kernels))
    for row in ("gemm .* 1 to 2.5", "relu .* same +3", "norm .* gone +1,200"):
        assert re.search(f"^{row}$", said, re.MULTILINE)


def test_findings_come_and_go():
    slow = document(loop(BEFORE, pause=2 * MS))
    fine = document(healthy())
    found = compared(slow, fine, anyway=True)
    assert found.vanished
    assert not found.appeared
    back = compared(fine, slow, anyway=True)
    assert back.appeared == found.vanished
    assert compared(slow, slow).stayed == found.vanished


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ({}, {"devices": {0: Device(0, "Another card")}}, "on A card and Another card"),
        ({}, {"form": "of another profiler"}, "recorded by made by hand and of another profiler"),
    ],
)
def test_what_is_not_alike_is_refused_and_named(before, after, words):
    sides = [
        perf.diagnose(loop(BEFORE).trace(**{"devices": CARD, **more})).as_json()
        for more in (before, after)
    ]
    with pytest.raises(Refusal, match=words):
        compared(*sides)
    assert compared(*sides, anyway=True).differ == (words,)


def test_other_programs_are_refused():
    one, other = document(loop(BEFORE)), document(loop({"fft": 10 * US}))
    with pytest.raises(Refusal, match="no kernel in common"):
        compared(one, other)
    with pytest.raises(Refusal, match="1 and 2 traces"):
        compared(one, {**one, "traces": one["traces"] * 2})
    none = Made()
    none.operator("aten::mm", 0, 10)
    with pytest.raises(Refusal, match="a device and no device"):
        compared(one, document(none))


def test_the_processor_counts_of_pipelines():
    def side(**facts: str) -> dict:
        made = Made()
        made.stage("read", 0, 10 * MS)
        made.stage("compute", 10 * MS, 30 * MS)
        said = document(made)
        said["traces"][0]["trace"]["facts"] = facts
        return said

    with pytest.raises(Refusal, match="processors 2 and 4"):
        compared(side(processors="2", threads="2"), side(processors="4", threads="4"))
    found = compared(side(processors="2", command="a"), side(processors="2", command="b"))
    assert {each.name for each in found.stages} == {"read", "compute"}
    assert not found.per_step


# -- the command -----------------------------------------------------------------------------------


def kept(folder: Path, name: str, said: dict) -> Path:
    path = folder / name
    path.write_text(json.dumps(said, indent=1))
    return path


def test_two_that_were_kept(tmp_path):
    before = kept(tmp_path, "before.json", document(loop(BEFORE, pause=300 * US)))
    after = kept(tmp_path, "after.json", document(loop(AFTER)))
    done = run_perf("compare", before, after)
    assert done.status == 0, done.err
    for words in ("gemm_relu", "new", "gone", "faster than", "(10 and 10 steps)"):
        assert words in done.out
    same = run_perf("compare", before, before)
    assert re.search(r"^host launched late .* same ", same.out, re.MULTILINE), same.out
    assert re.search(r"^gemm +400 us +400 us +same ", same.out, re.MULTILINE), same.out
    said = json.loads(run_perf("compare", before, after, "--json").out)
    assert said["schema"] == "kuroshio.changes/1"
    assert said["names"] == [str(before), str(after)]
    assert {each["name"] for each in said["kernels"]} == {*BEFORE, *AFTER}


def test_a_trace_against_itself(shared):
    path = shared / "traces/kineto/h100_vit_inference.json.gz"
    said = json.loads(run_perf("compare", path, path, "--json").out)
    assert len(said["kernels"]) > 10
    assert all(each["before"] == each["after"] for each in [*said["kernels"], *said["work"]])
    assert said["appeared"] == said["vanished"] == []
    assert said["names"] == [f"{path} [before]", f"{path} [after]"]


def test_devices_of_traces_differ(shared):
    folder = shared / "traces/kineto"
    words = (
        "compare",
        folder / "h100_vit_inference.json.gz",
        folder / "mi300_vit_inference.json.gz",
    )
    assert_refused(run_perf(*words), "H100", "MI300", "--anyway")
    done = run_perf(*words, "--anyway")
    assert done.status == 0, done.err
    assert "Not alike: on " in done.out


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"schema": "kuroshio.diagnosis/1", "traces": [{}]}', "is damaged"),
        ('{"schema": "kuroshio.diagnosis/1", "traces": []}', "is damaged"),
        ('{"schema": "kuroshio.diagnosis/1", "tra', "is no whole JSON"),
        ('{"schema": "kuroshio.perf.result/1"}', "kuroshio perf bench"),
    ],
)
def test_files_that_are_no_diagnoses(tmp_path, content, words):
    good = kept(tmp_path, "good.json", document(loop(BEFORE)))
    bad = tmp_path / "bad.json"
    bad.write_text(content)
    assert_refused(run_perf("compare", good, bad), words)
    assert_refused(run_perf("compare", bad, good), words)


@pytest.mark.parametrize("name", [None, 5, ["gemm"]])
def test_a_kernel_without_a_name_is_damage(tmp_path, name):
    good = kept(tmp_path, "good.json", document(loop(BEFORE)))
    damaged = document(loop(BEFORE))
    damaged["traces"][0]["kernels"]["kernels"][0]["name"] = name
    assert_refused(run_perf("compare", good, kept(tmp_path, "bad.json", damaged)), "is damaged")


def test_a_file_that_is_not_there(tmp_path):
    assert_refused(run_perf("compare", tmp_path / "a.json", tmp_path / "b.json"), "a.json")
