"""The account of the ladder: seconds of a pass, gains, bottlenecks, what is said of them."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuroshio.ladder import compiled
from kuroshio.ladder.account import kernels_of, pass_parts, rows_of
from kuroshio.ladder.catalogue import RUNGS
from kuroshio.ladder.document import PUBLISHED
from kuroshio.ladder.problem import SCALES
from kuroshio.ladder.report import plain
from kuroshio.ladder.results import PARTS, RungResult
from kuroshio.ladder.tables import study_table, tables
from kuroshio.ladder.words import (
    NONE,
    counters,
    factors,
    fastest,
    largest,
    moved,
    percent,
    right,
    seconds,
    times,
)
from ladder_results import COMPILED, EXACT, PUBLISHED_PARTS, ladder, report, result, study
from ladder_results import times as of_pass

PASS, SEASON = SCALES["pass"], SCALES["season"]
SKIPPED = RungResult("A", "list in registers", skipped="not on a processor")
SECONDS = st.floats(0, 1e4, allow_subnormal=False)


def table(found, title):
    return next(each for each in found if each.title.startswith(title))


def cell(found, key, column):
    row = next(row for row in found.rows if row[0] == key)
    return row[found.columns.index(column)]


# -- rows ------------------------------------------------------------------------------------------


def test_the_published_figures_come_out_as_they_were_published():
    rows = {row.key: row for row in rows_of(ladder(), PASS)}
    for key, published in PUBLISHED.items():
        assert rows[key].total_s == pytest.approx(published.total_s, rel=0.02)
        assert rows[key].gpu_s == pytest.approx(published.gpu_s, rel=0.02)
    assert rows["D"].gpu_gain == pytest.approx(100)
    assert rows["B"].step == pytest.approx(8.6 / 10.8)
    assert rows["B"].gpu_step == pytest.approx(0.9 / 0.35)
    assert rows["baseline"].gain is rows["baseline"].step is None
    assert [row.before for row in rows.values()] == ["", "baseline", "A", "B", "C", "D", "D+"]


def test_the_short_pass_of_a_season_is_left_out_and_all_days_at_once_are_passes():
    season = result("A", number=7)
    season.passes.append(of_pass((100, 0, 0, 0, 0, 0), days=8))
    season.runs = 1
    parts = pass_parts(season, SEASON)
    assert parts["first read"] == pytest.approx(1.2)
    assert rows_of([season], SEASON)[0].run_s == pytest.approx(7 * 8.6 + 100)
    at_once = result("ours", runs=2)
    at_once.passes = [of_pass((9.2, 0, 0, 18.4, 0, 0), days=92)] * 2
    assert pass_parts(at_once, SEASON)["compute"] == pytest.approx(18.4 * 12 / 92)
    row = rows_of([at_once], SEASON)[0]
    assert (row.run_s, row.run_gpu_s) == (pytest.approx(27.6), pytest.approx(18.4))  # of one run


@given(st.lists(st.tuples(*[SECONDS] * len(PARTS)), min_size=1, max_size=4))
def test_parts_of_any_rungs_add_up_and_nothing_is_divided_by_zero(all_parts):
    keys = list(PUBLISHED_PARTS)
    results = [result(keys[at], parts, number=2) for at, parts in enumerate(all_parts)]
    rows = rows_of(results, PASS)
    for row, parts in zip(rows, all_parts, strict=True):
        assert math.isclose(sum(row.parts.values()), row.total_s, abs_tol=1e-12)
        shares = sum(row.share(part) for part in PARTS)
        assert math.isclose(shares, 1 if row.total_s else 0, abs_tol=1e-9)
        if row.total_s:
            assert row.parts[row.bottleneck] == max(row.parts.values())
        else:
            assert max(parts) == 0
            assert (row.bottleneck, largest(row)) == ("", NONE)
        for gain in (row.gain, row.gpu_gain, row.step, row.gpu_step):
            assert gain is None or gain > 0
    made = report(results)
    json.dumps(made.as_json(), allow_nan=False)
    assert made.sentences
    assert all(len(row) == len(each.columns) for each in made.tables for row in each.rows)


def test_a_skipped_rung_is_stepped_over():
    rows = rows_of([result("baseline"), SKIPPED, result("B")], PASS)
    assert rows[1].skipped == "not on a processor"
    assert rows[1].total_s is rows[1].gain is None
    assert rows[2].before == "baseline"
    assert rows[2].step == pytest.approx(14 / 10.8)


def test_without_the_first_rung_there_is_no_gain():
    rows = rows_of([result("D"), result("ours")], PASS)
    assert [row.gain for row in rows] == [None, None]
    assert rows[1].step == pytest.approx(4.2 / 0.75)
    assert table(tables(rows, PASS, "cpu", "x"), "A pass").rows[0][4] == NONE


def test_kernels_here_and_compiled_for_gfx906():
    rows = rows_of(ladder(), PASS, COMPILED)
    push, rest = rows[0].kernels
    assert (push.name, push.here.registers) == ("push_heaps", 60)
    assert (push.registers_gfx906, push.scratch_gfx906, push.occupancy_gfx906) == (64, 160, 0.4)
    assert rest.registers_gfx906 is None
    found = table(tables(rows, PASS, "cuda:0", "x"), "What compilers")
    assert cell(found, "A", "gfx906 VGPR") == "59"
    assert found.rows[1][-1] == "not told"
    assert rows[-1].kernels == ()


def test_on_a_processor_kernels_of_gfx906_are_still_told():
    on_cpu = [replace(each, resources=[]) for each in ladder()]
    rows = rows_of(on_cpu, PASS, compiled.rows())
    assert {row.key for row in rows if row.kernels} == {rung.key for rung in RUNGS} - {"ours"}
    found = table(tables(rows, PASS, "cpu", "x"), "What compilers")
    assert "registers" not in found.columns
    assert int(cell(found, "baseline", "gfx906 scratch B")) >= 136
    assert "not told" not in [each for row in found.rows for each in row]


def test_every_kernel_compiled_for_gfx906_is_in_a_table():
    made = compiled.rows()
    found = tables(rows_of(ladder(), PASS, made), PASS, "cuda:0", "x", made)
    said = {(row[0], row[1]) for row in table(found, "Other kernels").rows}
    of_rungs = {pair for rung in RUNGS for pair in kernels_of(rung.key)}
    there = {(each.text, each.kernel) for each in made if each.architecture == "gfx906"}
    assert of_rungs <= there
    assert said == there - of_rungs


def test_maps_of_another_size_are_not_compared_unsaid():
    rows = rows_of(ladder(), PASS)
    small = table(tables(rows, SCALES["small"], "cpu", "x"), "A pass")
    assert "2,664 cells and not 1,038,240" in " ".join(small.notes)
    assert "CPU s" in small.columns
    assert "cells and not" not in " ".join(table(tables(rows, PASS, "cpu", "x"), "A pass").notes)


# -- sentences -------------------------------------------------------------------------------------


def test_the_bottleneck_moves():
    said = moved(rows_of([result("baseline"), SKIPPED, result("C"), result("D")], PASS))
    assert said == [
        "baseline: the largest part of a pass is kernels, 57.1%.",
        "C: now the largest part is waiting for the reader, 67.6%; kernels fell from 8.00 to "
        "0.600 s.",
        "D: still waiting for the reader, 59.5%.",
    ]
    slower = rows_of([result("baseline"), result("A", (30, 0, 0, 9, 0, 0))], PASS)
    assert "kernels rose from 8.00 to 9.00 s" in moved(slower)[1]


def test_reading_as_a_whole_is_said_where_it_is_more():
    row = rows_of([result("A", (3, 3, 0, 4, 0, 0))], PASS)[0]
    assert largest(row) == "kernels, 40.0% (the reader in all 60.0%)"
    row = rows_of([result("A", (1, 1, 0, 4, 0, 0))], PASS)[0]
    assert largest(row) == "kernels, 66.7%"


def test_factors_do_not_multiply():
    said = " ".join(factors(rows_of(ladder(), PASS)))
    product = 8 / 0.9 * 0.9 / 0.35 * 10.8 / 6.8 * 0.6 / 0.08
    assert f"Multiplied, that is {product:.0f}x" in said
    assert "kernels alone became 100x" in said
    assert "a pass 3.33x" in said
    assert "do not multiply" in said
    assert "multiply to 205, and the whole became 3.3" in said


def test_factors_that_do_multiply_are_not_denied():
    only_kernels = {"baseline": 8.0, "A": 4.0, "B": 2.0, "C": 2.0, "D": 1.0}
    results = [result(key, (0, 0, 0, each, 0, 0)) for key, each in only_kernels.items()]
    said = " ".join(factors(rows_of(results, PASS)))
    assert "Here the factors do multiply" in said
    assert "do not" not in said


@pytest.mark.parametrize("keys", [(), ("D",), ("A", "B", "C"), ("baseline", "ours")])
def test_few_rungs_have_no_factors_of_their_own(keys):
    said = factors(rows_of([result(key) for key in keys], PASS))
    assert len(said) == 1
    assert said[0].startswith("Published")


def test_the_fastest_and_whether_it_is_right():
    assert "ours, 0.750 s a pass, exact; next is D" in fastest(rows_of(ladder(), PASS))
    rough = rows_of([result("baseline"), result("D")], PASS)
    assert "D, 4.20 s a pass, not exact; next is baseline, 14.0 s (3.33x)" in fastest(rough)
    assert fastest(rows_of([result("D")], PASS)) == ""


def test_whose_results_are_right():
    assert right(rows_of(ladder(), PASS)) == [
        "Exact: baseline, A, ours.",
        "An estimate, as good as moments allow: D+, with >99.9% within 0.3 degrees.",
        "As published, mistakes and all: B, C, D; within 0.3 degrees are of B 50.0%, of C 50.0%, "
        "of D 50.0%.",
    ]
    broken = rows_of([result("A", kept=False), SKIPPED, result("B", accuracy=None)], PASS)
    assert right(broken) == ["NOT what was promised: A."]


def test_counters_that_were_not_read_are_no_zeros():
    rows = rows_of(ladder(), PASS)
    assert counters(rows, "cuda:0") == [
        "Divergence and achieved bandwidth: no counters were read: the driver permits them to "
        "administrators only."
    ]
    assert not [
        each for each in tables(rows, PASS, "cuda:0", "x") if each.title.startswith("Counters")
    ]
    silent = rows_of([result("D", no_counters="")], PASS)
    assert "on a processor" in counters(silent, "cpu")[0]
    assert "none were given" in counters(silent, "cuda:0")[0]
    some = [result("A", counters={"lanes at work": 0.5}), result("B", no_counters="busy"), SKIPPED]
    rows = rows_of(some, PASS)
    assert counters(rows, "cuda:0") == ["B: no counters were read: busy."]
    found = table(tables(rows, PASS, "cuda:0", "x"), "Counters")
    assert found.rows == [["A", "0.500"]]


# -- text ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (14, "14.0"), (0.08, "0.0800"), (8.125e-5, "8.12e-05"), (99.94, "99.9"),
     (99.96, "100"), (25400.4, "25,400"), (None, NONE), (math.inf, NONE), (math.nan, NONE)],
)  # fmt: skip
def test_seconds(value, text):
    assert seconds(value) == text


def test_shares_and_gains():
    assert [percent(each) for each in (0, 1e-5, 0.952, 0.99999, 1)] == [
        "0.0%", "<0.1%", "95.2%", ">99.9%", "100.0%"
    ]  # fmt: skip
    assert (times(None), times(3.333)) == (NONE, "3.33x")


def test_what_a_rung_promises():
    found = table(
        tables(rows_of([*ladder(), result("A", kept=False)], PASS), PASS, "cpu", "x"), "Diff"
    )
    assert [row[-1] for row in found.rows] == [
        "yes, exact", "yes, exact", *["none is made"] * 3, "yes", "yes, exact", "NO"
    ]  # fmt: skip
    assert "B 3, C 3, D 3" in found.notes[-1]
    lacking = rows_of([result("A", accuracy=replace(EXACT, disagree=0))], PASS)
    assert len(table(tables(lacking, PASS, "cpu", "x"), "Diff").notes) == 1


def test_cells_of_studies():
    made = study(columns=["a", "b"], rows=[["x", 12345], [None, 0.5], [True, math.inf]])
    assert study_table(made).rows == [["x", "12,345"], [NONE, "0.500"], ["yes", NONE]]
    assert study_table(made).text == {"a"}
    assert study_table(study(columns=[], rows=[])).rows == []


def test_skipped_rungs_and_whole_seasons_in_the_table_of_seconds():
    season = result("D", runs=1)
    found = table(tables(rows_of([SKIPPED, season], SEASON), PASS, "cpu", "x"), "A pass")
    assert found.rows[0][:3] == ["A", "list in registers (skipped)", NONE]
    assert found.notes[0] == "A was skipped: not on a processor."
    assert found.rows[0][-2:] == ["0.9", "8.6"]
    assert any("D 29.4" in note for note in found.notes)


# -- the document ----------------------------------------------------------------------------------


def test_the_document_for_programs():
    said = report([result("baseline"), SKIPPED, result("ours")], studies=[study()]).as_json()
    said = json.loads(json.dumps(said, allow_nan=False))
    assert said["schema"] == "kuroshio.ladder/1"
    assert said["problem"]["shape"] == [721, 1440]
    assert said["problem"]["largest"] == 34
    assert [each["key"] for each in said["results"]] == ["baseline", "A", "ours"]
    assert said["results"][1]["total_s"] is None
    assert said["results"][0]["no_counters"]
    assert said["account"]["rows"][2]["gain"] == pytest.approx(14 / 0.75)
    assert said["account"]["rows"][0]["shares"]["compute"] == pytest.approx(8 / 14)
    assert said["account"]["published"]["rungs"]["D"]["total_s"] == 4.2
    assert said["studies"][0]["verdict"] == "confirmed"
    assert said["environment"]["now"]["time"]


def test_plain_values():
    odd = {1: (np.float32(0.5), np.int64(3), math.nan), "x": {"y": -math.inf, "z": True}}
    assert plain(odd) == {"1": [0.5, 3, None], "x": {"y": None, "z": True}}


def test_nothing_ran():
    empty = report([], device="cpu")
    assert (empty.tables, empty.sentences) == ([], [])
    json.dumps(empty.as_json(), allow_nan=False)
    skipped = report([SKIPPED], device="cpu")
    assert len(skipped.tables[0].rows) == 1
    assert "no counters" not in " ".join(skipped.sentences)
