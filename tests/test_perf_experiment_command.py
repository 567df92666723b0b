"""`kuroshio perf experiment` as it is used."""

from __future__ import annotations

import json
import os
import random
import re
import shlex
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cli_runs import Result, assert_refused, run_here
from conftest import ROOT
from kuroshio.perf.experiments import (
    broken,
    from_text,
    load,
    records,
)
from kuroshio.perf.results import Results, Row
from kuroshio.perf.statistics import ratio_interval, summary

PYTHON = shlex.quote(sys.executable)


@pytest.fixture(autouse=True)
def _in_a_repository(monkeypatch, tmp_path):
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "repo")


def experiment(*arguments: object) -> Result:
    return run_here("perf", "experiment", *arguments)


def begin(predict: str = "host_s.median new/old in 0.70..0.85", *more: str) -> Path:
    """A record that is complete, not sealed."""
    done = experiment(
        "new", "Read in order", "--observation", "o", "--hypothesis", "h", "--change", "c",
        "--predict", predict, *more, "--json",
    )  # fmt: skip
    assert done.status == 0, done
    return Path(json.loads(done.out)["file"])


def row(case: str, median: float, spread: float = 0.01, n: int = 40, **changes) -> Row:
    samples = [median * (1 + random.uniform(-spread, spread)) for _ in range(n)]
    given = {
        "case": case, "size": 64, "dtype": "float32", "device": "cpu", "repeats": n,
        "host_s": summary(samples), "device_s": None, "boundary": "the call", "bytes": 8,
        "flops": None, "operations": None, "correct": True, "stable": True,
        "unstable_because": None, "samples_s": samples,
    }  # fmt: skip
    return Row(**{**given, **changes})


def bench(
    name: str, *rows: Row, at: datetime | None = None, numpy: str = "2.4", **more: object
) -> Path:
    """A result of `kuroshio perf bench`."""
    time = (at or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ")
    environment = {"software": {"packages": {"numpy": numpy}}, "now": {"time": time}}
    content = Results(name, environment, list(rows)).to_json() | more
    path = Path(f"{name}.json")
    path.write_text(json.dumps(content))
    return path


def job(figure: str = "1.0") -> str:
    """A command that prints JSON whose figure is an expression of random()."""
    code = "import json; from random import random; "
    code += f"print(json.dumps({{'s': {figure}, 'ok': 1 == 1}}))"
    return f"{PYTHON} -c {shlex.quote(code)}"


# -- from bench ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("new", "verdict"), [(0.78, "confirmed"), (0.95, "refuted"), (0.85, "undecided")]
)
def test_two_results_of_bench(new, verdict):
    path = begin()
    assert experiment("seal", 1).status == 0
    old_row, new_row = row("a", 2.0), row("a", 2.0 * new)
    files = "--new", bench("new", new_row), "--old", bench("old", old_row)
    done = experiment("run", 1, *files)
    assert done.status == 0, done
    assert f": {verdict}" in done.out
    result = load(path).results[0]
    assert (result.verdict, result.correct) == (verdict, "yes")
    ratio, low, high = ratio_interval(new_row.samples_s, old_row.samples_s)
    assert result.value == ratio
    assert (result.low, result.high) == pytest.approx((low * 0.95, high * 1.05))
    assert result.new["median"] == new_row.host_s["median"]
    assert result.old["p90"] == old_row.host_s["p90"]
    assert [source[:15] for source in result.sources] == ["new.json sha256", "old.json sha256"]


@pytest.mark.parametrize("turned", [False, True])
def test_an_ab_is_judged_by_what_bench_said_of_it(tmp_path, turned):
    """Its interval holds the rounds; one of the samples alone would be another."""
    cases = tmp_path / "repo" / "cases.py"
    cases.write_text(
        "import numpy as np\nfrom kuroshio import perf\na = np.ones(100_000)\n"
        "@perf.case\ndef one(): return lambda: a + 1\n"
        "@perf.case\ndef two(): return lambda: a + 1 + 1\n"
    )
    names = ("two", "one") if turned else ("one", "two")
    options = "--seconds", 0.3, "--warm-up", 0.1, "-o", "ab.json"
    path = begin(
        "host_s.median new/old in 0.1..10", "--new-row", "case=two", "--old-row", "case=one"
    )
    experiment("seal", 1)
    assert run_here("perf", "bench", f"cases.py:{names[0]}", "--vs", f"cases.py:{names[1]}",
                    *options).status == 0  # fmt: skip
    assert experiment("run", 1, "--new", "ab.json").status == 0
    result = load(path).results[0]
    (said,) = json.loads(Path("ab.json").read_text())["comparisons"]
    three = said["ratio"], said["low"], said["high"]
    if turned:
        three = 1 / three[0], 1 / three[2], 1 / three[1]
    assert (result.value, result.low, result.high) == pytest.approx(three)
    assert "as bench has it" in result.how


def test_an_ab_by_another_clock_is_judged_by_its_samples():
    path = begin("host_s.median new/old in 0.70..0.85", "--new-row", "size=64")
    experiment("seal", 1)
    comparisons = [{"ratio": 5.0, "low": 4.0, "high": 6.0, "clock": "device", "level": 0.99,
                    "resolution": 0.01}]  # fmt: skip
    ab = bench("ab", row("a", 1.0), row("b", 0.8), comparisons=comparisons)
    assert experiment("run", 1, "--new", ab).status == 0
    assert load(path).results[0].value == pytest.approx(0.8, rel=0.02)


def test_an_ab_in_one_file_is_old_against_new_and_paired():
    path = begin("host_s.median new/old in 0.70..0.85", "--new-row", "size=64")
    experiment("seal", 1)
    common = [random.uniform(1, 9) for _ in range(50)]  # what passes falls on both
    a = row("a", 1, samples_s=common, host_s=summary(common))
    fast = [0.8 * s * random.uniform(0.99, 1.01) for s in common]
    b = row("b", 1, samples_s=fast, host_s=summary(fast))
    larger = [row("a", 1, size=128), row("b", 3, size=128)]
    assert experiment("run", 1, "--new", bench("ab", a, b, *larger)).status == 0
    result = load(path).results[0]
    assert result.verdict == "confirmed"
    assert (result.new["case"], result.old["case"]) == ("b", "a")
    assert "pairs" in result.how


def test_an_ab_of_real_measurements():
    from kuroshio import perf
    from kuroshio.perf.bench_effort import Effort
    from kuroshio.perf.results import write_json

    numbers = list(range(20_000))
    path = begin("host_s.median new/old in ..0.6")
    experiment("seal", 1)
    effort = Effort(seconds=0.5, warm_up_s=0.2, least=10)
    slow = perf.Case(lambda: sum(numbers), "slow", check=lambda out: out == 199990000)
    fast = perf.Case(lambda: sum(numbers[:2000]), "fast", check=lambda out: out == 1999000)
    measured, _ = perf.versus(slow, fast, effort)
    write_json("ab.json", measured.to_json())
    assert experiment("run", 1, "--new", "ab.json").status == 0
    result = load(path).results[0]
    assert result.correct == "yes"
    assert result.moved == "down"
    assert result.value < 0.6  # a tenth of the work


def test_rows_are_picked_by_the_prediction_only():
    begin()
    begin(
        "host_s.median new/old in 0.70..0.85", "--new-row", "case=b", "--old-row", "case=a size=64"
    )
    for number in (1, 2):
        experiment("seal", number)
    both = bench("both", row("b", 0.8), row("a", 1.0))
    assert_refused(
        experiment("run", 1, "--new", both, "--old", both), "2 rows", "case=b", "prediction"
    )
    assert experiment("run", 2, "--new", both).status == 0
    begin("host_s.median new/old in 0.70..0.85", "--new-row", "size=65")
    experiment("seal", 3)
    both = bench("both", row("b", 0.8), row("a", 1.0))
    assert_refused(experiment("run", 3, "--new", both, "--old", both), "no row with size=65")
    wide = [bench(f"wide{i}", row("a", 1), row("a", 1 - i / 5, size=65)) for i in (0, 1)]
    assert experiment("run", 3, "--new", wide[1], "--old", wide[0]).status == 0
    result = load(records("experiments")[2]).results[0]
    assert (result.verdict, result.new["size"], result.old["size"]) == ("confirmed", 65, 65)


def test_what_is_not_correct_is_recorded_and_not_judged():
    path = begin()
    experiment("seal", 1)
    new, old = bench("new", row("a", 0.8, correct=False)), bench("old", row("a", 1))
    done = experiment("run", 1, "--new", new, "--old", old)
    assert done.status == 0
    assert "Not correct, so not judged" in done.out
    result = load(path).results[0]
    assert (result.verdict, result.correct, result.value) == ("not judged", "no", None)
    assert_refused(experiment("conclude", 1, "accept", "--reason", "fast"), "not correct")
    mended = bench("new", row("a", 0.8))
    assert experiment("run", 1, "--new", mended, "--old", old).status == 0
    assert [r.verdict for r in load(path).results] == ["not judged", "confirmed"]
    assert "confirmed, measured 2 times" in experiment("list").out


def test_what_is_unstable_or_has_no_interval_is_undecided():
    path = begin()
    begin("host_s.min new/old in 0.70..0.85")
    begin("bytes in ..8 from 16 exact")
    for number in (1, 2, 3):
        experiment("seal", number)
    shaky = row("a", 0.8, stable=False, unstable_because="p90 is twice the median")
    new, old = bench("new", shaky), bench("old", row("a", 1))
    experiment("run", 1, "--new", new, "--old", old)
    assert load(path).verdict == "undecided"
    assert load(path).results[0].because == "the measurement is not stable"
    assert load(path).results[0].unstable == "a: p90 is twice the median"
    experiment("run", 1, "--new", bench("ab", row("a", 1), shaky))  # what passes falls on both
    assert load(path).verdict == "confirmed"
    assert "not stable" in load(path).remarks
    assert "p90 is twice the median" in experiment("show", 1).out
    experiment("run", 2, "--new", new, "--old", old)
    assert (
        "spread of this figure is not known" in load(records("experiments")[1]).results[0].because
    )
    experiment("run", 3, "--new", bench("count", row("a", 1)))
    assert load(records("experiments")[2]).verdict == "confirmed"
    taken = experiment("conclude", 3, "accept", "--reason", "as predicted")
    assert (taken.status, taken.err) == (0, "")
    taken = experiment("conclude", 2, "accept", "--reason", "it is cleaner")
    assert taken.status == 0
    assert "note: The last result is undecided" in taken.err


def test_differing_environments_are_not_compared():
    path = begin()
    experiment("seal", 1)
    new, old = bench("new", row("a", 0.8)), bench("old", row("a", 1), numpy="1.26")
    assert_refused(experiment("run", 1, "--new", new, "--old", old), "numpy: 2.4 and 1.26")
    gpu = bench("gpu", row("a", 1, device="cuda:0"))
    assert_refused(experiment("run", 1, "--new", new, "--old", gpu), "'cpu'", "'cuda:0'")
    assert load(path).results == ()


def test_a_prediction_comes_first():
    path = begin()
    old = bench("old", row("a", 1), at=datetime.now(UTC) - timedelta(days=9))
    new = bench("new", row("a", 0.8), at=datetime.now(UTC) - timedelta(minutes=1))
    assert_refused(experiment("run", 1, "--new", new, "--old", old), "not sealed")
    experiment("seal", 1)
    assert_refused(
        experiment("run", 1, "--new", new, "--old", old), "before the prediction was sealed"
    )
    other = Path("other.json")
    other.write_text('{"host_s": {"median": 1}}')
    os.utime(other, (1e9, 1e9))
    assert_refused(experiment("run", 1, "--new", other, "--old", old), "before the prediction")
    assert load(path).results == ()
    assert experiment("run", 1, "--new", bench("new", row("a", 0.8)), "--old", old).status == 0


def test_a_changed_prediction_is_refused_and_shown():
    path = begin()
    experiment("seal", 1)
    path.write_text(path.read_text().replace("high = 0.85", "high = 0.95", 1))
    files = "--new", bench("new", row("a", 0.9)), "--old", bench("old", row("a", 1))
    for done in (
        experiment("run", 1, *files),
        experiment("conclude", 1, "roll-back", "--reason", "r"),
    ):
        assert_refused(done, "prediction.high: sealed 0.85, now 0.95")
    assert "Changed after it was sealed" in experiment("show", 1).out
    listed = experiment("list")
    assert listed.status == 2
    assert "prediction.high" in listed.err


# -- from commands ---------------------------------------------------------------------------------


def test_commands_run_in_turns_and_their_pairs_are_judged():
    path = begin("$.s new/old in 0.4..0.6")
    done = experiment(
        *("run", 1, "--command", job("0.5 + 0.01 * random()")),
        *("--old-command", job("1 + 0.01 * random()"), "--correct-path", "$.ok"),
    )
    assert done.status == 0, done
    assert "is sealed now" in done.err
    result = load(path).results[0]
    assert (result.verdict, result.correct, result.moved) == ("confirmed", "yes", "down")
    assert len(result.new["values"]) == len(result.old["values"]) == 7
    ratios = [a / b for a, b in zip(result.new["values"], result.old["values"], strict=True)]
    assert (result.low, result.high) == (min(ratios), max(ratios))  # 98 % for seven
    assert load(path).seal.at <= result.at


def test_old_and_new_take_turns():
    begin("$.s new/old in 1..2")
    code = "import sys; open('turns', 'a').write(sys.argv[1]); print('{\"s\": 1}')"
    new, old = (f"{PYTHON} -c {shlex.quote(code)} {side}" for side in ("n", "o"))
    experiment("run", 1, "--command", new, "--old-command", old, "--repeats", 3)
    assert Path("turns").read_text() == "ononon"


def test_one_value_decides_only_what_is_exact():
    begin("$.s in 60..64 from 72")
    begin("$.s in 60..64 from 72 exact")
    for number, verdict in ((1, "undecided"), (2, "confirmed")):
        done = experiment("run", number, "--command", job("64"), "--repeats", 1, "--json")
        facts = json.loads(done.out)
        assert (facts["verdict"], facts["results"][0]["correct"]) == (verdict, "not checked")
    assert "1 value gives no interval" in load(records("experiments")[0]).results[0].because


def test_the_check_comes_first():
    path = begin("$.s in 0..1 from 2")
    mark = Path("ran")
    command = f"{PYTHON} -c \"open('ran', 'w'); print('{{}}')\""
    check = f"{PYTHON} -c \"print('cell 7 is off'); exit(1)\""
    done = experiment("run", 1, "--command", command, "--check", check)
    assert done.status == 0
    assert not mark.exists()
    assert load(path).verdict == "not judged"
    assert "cell 7 is off" in load(path).results[0].because
    assert experiment("run", 1, "--command", job("0.5"), "--check", f"{PYTHON} -c 0").status == 0
    assert (load(path).verdict, load(path).results[1].correct) == ("confirmed", "yes")


def test_what_bench_found_to_be_wrong_is_recorded():
    path = begin()
    experiment("seal", 1)
    assert experiment("run", 1, "--incorrect", "bench: half gives a wrong result.").status == 0
    assert (load(path).verdict, load(path).results[0].correct) == ("not judged", "no")
    assert load(path).remarks == (
        "1. Not correct, so not judged: bench: half gives a wrong result."
    )


def test_where_a_named_figure_lies_is_said_when_it_is_measured():
    path = begin("seconds in 0..1 from 2")
    begin("$.s in 0..1 from 2")
    assert experiment("run", 1, "--command", job("0.5"), "--json-path", "$.s").status == 0
    assert load(path).verdict == "confirmed"
    done = experiment("run", 2, "--command", job("0.5"), "--json-path", "$.ok")
    assert done.status == 2
    assert "was sealed" in done.err


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (f"{PYTHON} -c 'raise SystemExit(3)'", "status 3"),
        (f"{PYTHON} -c 'print(1, 2)'", "no JSON"),
        (f"{PYTHON} -c 'print([1])'", "$.s"),
        ("no-such-program", "cannot be run"),
        ("unclosed '", "quotation"),
        (job("float('nan')"), "finite"),
        (job("10 ** 400"), "finite"),
    ],
)
def test_a_command_that_fails_leaves_no_result(command, words):
    path = begin("$.s in 0..1 from 2")
    experiment("seal", 1)
    before = path.read_bytes()
    done = experiment("run", 1, "--command", command, "--repeats", 1)
    assert done.status == 2
    assert words in done.err
    assert path.read_bytes() == before
    assert os.listdir("experiments") == [path.name]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "--command"),
        (["--new", "x.json", "--command", "y"], "--command"),
        (["--new", "x.json", "--old-command", "y"], "mixed"),
        (["--incorrect", "wrong", "--old", "y.json"], "mixed"),
        (["--incorrect", "wrong", "--command", "y"], "--incorrect"),
        (["--new", "x.json", "--repeats", "3"], "--repeats"),
        (["--command", "x", "--repeats", "0"], "--repeats"),
        (["--new", "absent.json"], "cannot be read"),
    ],
)
def test_sources_that_make_no_sense_are_refused(arguments, words):
    begin()
    experiment("seal", 1)
    assert_refused(experiment("run", 1, *arguments), words)


# -- the trail -------------------------------------------------------------------------------------


def test_the_trail_holds_failures_and_rounds():
    begin()
    experiment("seal", 1)
    files = "--new", bench("new", row("a", 1.2)), "--old", bench("old", row("a", 1))
    experiment("run", 1, *files)
    assert_refused(experiment("run", 1, *files), "refuted already")
    done = experiment("conclude", 1, "another-round", "--reason", "it is the seeks")
    assert "--follows 1" in done.out
    assert experiment("new", "Fewer seeks", "--follows", 1).status == 0
    assert_refused(experiment("new", "Fewer seeks", "--follows", 7), "no experiment '7'")
    facts = json.loads(experiment("list", "--json").out)
    assert [(f["number"], f["verdict"], f["decision"]) for f in facts] == [
        (1, "refuted", "another round"),
        (2, None, None),
    ]
    assert (facts[1]["follows"], facts[1]["state"]) == (1, "draft")
    listed = experiment("list").out
    assert all(word in listed for word in ("refuted", "another", "draft"))
    shown = experiment("show", 1).out
    assert all(
        word in shown for word in ("refuted (up)", "it is the seeks", "Hypothesis", "median")
    )
    assert json.loads(experiment("show", 1, "--json").out) == facts[0]


def test_a_file_that_cannot_be_read_does_not_hide_the_others():
    path = begin()
    Path("experiments/0007-bad.md").write_text("hello")
    listed = experiment("list")
    assert listed.status == 2
    assert "cannot be read" in listed.out
    assert path.stem[:4] == "0001"
    assert "0007-bad.md, line 1" in listed.err
    listed = experiment("list", "--json")
    assert [bool(entry.get("error")) for entry in json.loads(listed.out)] == [False, True]


def test_no_experiments_is_said():
    assert_refused(experiment("list"), "no experiments")
    assert json.loads(experiment("list", "--json").out) == []
    assert_refused(experiment("show", 1), "no experiment '1'")


@pytest.mark.parametrize("action", ["new", "seal", "run", "conclude", "list", "show"])
def test_every_action_has_help_with_an_example(action):
    said = experiment(action, "--help")
    assert said.status == 0
    assert f"kuroshio perf experiment {action}" in said.out.partition("example")[2]


# -- the page --------------------------------------------------------------------------------------


def test_the_record_that_the_page_shows_is_one():
    page = (ROOT / "docs/how-to/perf-experiments.md").read_text(encoding="utf-8")
    shown = re.search(r"```\n(\+\+\+.*?)\n```", page, re.DOTALL)
    record = from_text(shown[1])
    assert record.state == "sealed"
    assert broken(record) == []


def page_commands() -> list[str]:
    page = (ROOT / "docs/how-to/perf-experiments.md").read_text(encoding="utf-8")
    return re.findall(r"^    (kuroshio perf .*)$", page, re.MULTILINE)


def test_the_example_of_the_page_can_be_repeated():
    """All but the timing itself, whose results are made here."""
    for command in page_commands():
        words = shlex.split(command)[2:]
        if words[0] == "bench":
            if "single.json" in words:
                bench("single", row("double", 2.0), row("single", 1.0))
            continue
        done = run_here("perf", *words)
        assert done.status == 0, (command, done)
    verdicts = [load(path).verdict for path in records("experiments")]
    assert verdicts == ["confirmed", "not judged"]
