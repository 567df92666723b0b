"""A rung's record: sealed before it runs, judged by its passes, concluded with a reason."""

from __future__ import annotations

import pytest

from kuroshio.ladder import records
from kuroshio.ladder.account import rows_of
from kuroshio.ladder.catalogue import RUNGS
from kuroshio.ladder.machine import Machine
from kuroshio.ladder.predictions import Predicted, engine, predicted
from kuroshio.ladder.problem import SCALES
from kuroshio.ladder.tables import tables
from kuroshio.perf.experiments import broken, load
from ladder_results import GOOD, result, times

PASS = SCALES["pass"]
WIDE = Predicted((0.001, 100.0), (0.1, 100.0), 1.0, 0.3, 0.1)
RUNG = {rung.key: rung for rung in RUNGS}


def recorded(folder, key, old=None, predicted=WIDE, problem=PASS, **changes):
    """The record of a made-up rung, after it has run."""
    opened = records.begin(folder, RUNG[key], problem, "cuda:0", predicted, old)
    assert load(opened.path).state == "sealed"
    new = result(key, **{"experiment": "", "verdict": "", **changes})
    records.end(opened, problem, new)
    record = load(opened.path)
    assert (new.experiment, new.verdict) == (opened.path.name, record.verdict)
    assert new.decision == record.conclusion.decision
    assert broken(record) == []
    return record


def test_all_rungs_are_confirmed_or_refuted(tmp_path):
    old = None
    for rung in RUNGS:
        record = recorded(tmp_path, rung.key, old)
        assert record.verdict == "confirmed"
        assert record.state == "concluded"
        assert record.results[0].correct == ("not checked" if rung.key in "BCD" else "yes")
        old = result(rung.key)
    names = sorted(path.name for path in (tmp_path / records.FOLDER).iterdir())
    assert [name[:4] for name in names] == [f"{number:04}" for number in range(1, 8)]


@pytest.mark.parametrize(
    ("key", "before", "ratio"),
    [("A", "baseline", 0.9 / 8), ("C", "B", 6.8 / 10.8), ("D+", "D", 2.5),
     ("ours", "D+", 0.75 / 4.2)],
)  # fmt: skip
def test_each_is_judged_by_what_it_is_about(tmp_path, key, before, ratio):
    record = recorded(tmp_path, key, result(before))
    assert record.results[0].value == pytest.approx(ratio, rel=1e-3)
    assert len(record.results[0].new["values"]) == 7


def test_the_range_is_what_was_computed_over_what_the_rung_before_took(tmp_path):
    """Kernels of A over those of the baseline, 8 s; the pass of C over that of B, 10.8 s."""
    expected = Predicted((0.4, 1.2), (5.4, 9.0), 1.0, 0.3, 0.1)
    for key, old, low, high in (("A", "baseline", 0.05, 0.15), ("C", "B", 0.5, 0.833)):
        sealed = recorded(tmp_path, key, result(old), expected).prediction
        assert (sealed.low, sealed.high) == (low, high)
    first = recorded(tmp_path, "baseline", predicted=expected).prediction
    assert (first.low, first.high, first.before) == (5.4, 9.0, 1.8)  # six batches are read


def test_the_first_is_judged_by_its_seconds(tmp_path):
    record = recorded(tmp_path, "baseline")
    assert record.results[0].value == pytest.approx(14)
    assert record.conclusion.decision == "accept"
    narrow = Predicted((0.1, 0.2), (20, 21), 1.0, 0.3, 0.1)
    assert recorded(tmp_path, "baseline", predicted=narrow).verdict == "refuted"


def test_what_the_old_rung_promised_is_not_the_new_ones_matter(tmp_path):
    """D promises nothing and D+ is right; A may be wrong and B be judged."""
    record = recorded(tmp_path, "D+", result("D"), accuracy=GOOD)
    assert record.results[0].correct == "yes"
    assert record.conclusion.decision == "accept"
    assert "results are right" in record.reason
    assert recorded(tmp_path, "B", result("A", kept=False)).verdict == "confirmed"


def test_a_rung_that_breaks_its_promise_is_not_judged(tmp_path):
    record = recorded(tmp_path, "A", result("baseline"), kept=False)
    assert record.verdict == "not judged"
    assert record.conclusion.decision == "roll back"
    assert "not what the rung promises" in record.reason
    assert "not what the rung promises" in record.remarks


def test_what_is_published_is_rolled_back_for_its_error(tmp_path):
    record = recorded(tmp_path, "B", result("A"))
    assert (record.verdict, record.conclusion.decision) == ("confirmed", "roll back")
    assert "50.0% are within 0.3" in record.reason
    assert "the device waits" not in record.reason


def test_rungs_that_are_about_waiting_say_how_long(tmp_path):
    record = recorded(tmp_path, "C", result("B"))
    assert "of which the device waits 4.6 s (B: 8.85 s)" in record.reason


def test_slower_is_rolled_back_and_a_refutation_is_said(tmp_path):
    narrow = Predicted((0.1, 0.2), (3.0, 4.0), 1.0, 0.3, 0.1)
    record = recorded(tmp_path, "ours", result("D+", (0.1, 0.1, 0, 0, 0, 0)), narrow)
    assert (record.verdict, record.conclusion.decision) == ("refuted", "roll back")
    assert "does not hold on this device" in record.reason


def test_a_record_tells_what_was_counted_before_and_what_came_of_it(tmp_path):
    machine = Machine(4000.0, 55.0, {"int32 min/max": 10000.0}, 2.0, 12.0, 0.25, 16)
    passing = next(PASS.passes())
    costs = RUNG["A"].costs(PASS, passing)
    expected = predicted(costs, 2, PASS, passing, machine)
    record = recorded(tmp_path, "A", result("baseline"), expected)
    # 12 windows of 330 values of 660 maps; a minimum and a maximum at each of 34 places
    assert "fetch 3,960 values, 660 different ones" in record.reasoning
    assert f"{3960 * 34 * 2:,} operations of int32 min/max at 10,000 x 10^9" in record.reasoning
    assert "largest_in_registers has 60 registers and 136 bytes of scratch" in record.reason
    assert "compute 0.9," in record.reason
    assert "Exact: of 1,000 thresholds the furthest is 1e-06 off" in record.reason
    rough = recorded(tmp_path, "B", result("A")).reason
    assert "20.0% within 0.1, 50.0% within 0.3" in rough
    assert "3 exist in only one" in rough


def test_the_engine_has_no_wait_to_foresee(tmp_path):
    machine = Machine(4000.0, 55.0, {}, 2.0, 12.0, 0.25, 16)
    expected = engine(PASS, machine)
    assert expected.hidden_wait_s is None
    text = recorded(tmp_path, "ours", result("D+"), expected).reasoning
    assert "660 files are read once" in text
    assert "waits" not in text


def test_few_passes_do_not_decide(tmp_path):
    record = recorded(tmp_path, "A", result("baseline", number=2), number=2)
    assert record.verdict == "undecided"
    assert "2 values give no interval" in record.reason


def test_short_passes_are_no_samples_and_a_season_at_once_is_one(tmp_path):
    old = result("D+")
    old.passes.append(times((99, 0, 0, 0, 0, 0), days=8))
    opened = records.begin(tmp_path, RUNG["ours"], SCALES["season"], "cuda:0", WIDE, old)
    new = result("ours")
    new.passes = [times((9.2, 0, 0, 0, 0, 0), days=92)] * 7
    records.end(opened, SCALES["season"], new)
    measured = load(opened.path).results[0]
    assert measured.new["values"] == pytest.approx([1.2] * 7)
    assert len(measured.old["values"]) == 7


def test_a_rung_that_could_not_run(tmp_path):
    opened = records.begin(tmp_path, RUNG["A"], PASS, "cuda:0", WIDE, None)
    records.skip(opened, "out of memory")
    record = load(opened.path)
    assert (record.verdict, record.conclusion.decision) == (None, "another round")
    assert "out of memory" in record.reason


def test_of_the_engine_only_the_whole_is_predicted(tmp_path):
    """It has no batches, and its kernels and its waiting were not computed beforehand."""
    machine = Machine(100.0, 50.0, {}, 0.2, 2.0, 0.1, 2)
    season = SCALES["season"]
    expected = engine(season, machine)
    assert expected.gpu_s is expected.hidden_wait_s is None
    a_pass = season.files * season.map_bytes * 12 / 92  # bytes
    assert expected.io_s == pytest.approx(a_pass / 2e9)
    assert expected.copy_s == pytest.approx(a_pass / 50e9)
    assert expected.total_s[1] == pytest.approx(2 * (a_pass / 2e9 + a_pass / 50e9 + 0.1))
    record = recorded(tmp_path, "ours", result("D+"), expected, season)
    for word in ("batch", "kernels", "waits"):
        assert word not in record.reasoning
    said = expected.as_json()
    rows = rows_of([result("ours", predicted=said)], season)
    table = next(t for t in tables(rows, season, "cuda:0", "x") if t.title.startswith("Predicted"))
    assert (table.rows[0][1], table.rows[0][5]) == ("n/a", "n/a")


def test_a_conclusion_compares_whole_passes_whatever_the_prediction_is_about(tmp_path):
    record = recorded(tmp_path, "A", result("baseline"))
    assert "A pass takes 8.6 s, 1.63 times as fast as baseline in all." in record.reason
