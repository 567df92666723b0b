"""`kuroshio perf bench` as a person types it: cases, commands, tables, files, bad input."""

from __future__ import annotations

import json
import sys
from itertools import count

import numpy as np
import pytest

from cli_runs import assert_refused
from kuroshio import perf
from kuroshio.errors import Refusal
from kuroshio.perf import json_file
from kuroshio.perf.bench_program import program_case
from kuroshio.perf.cases import load, make
from kuroshio.perf.results import table
from perf_runs import run_perf, write_cases

QUICK = ("--seconds", "0.3", "--warm-up", "0.1")
_numbers = count()


@pytest.fixture
def module(tmp_path, monkeypatch) -> str:
    """The name of a module with cases, in the present folder."""
    name = f"cases_of_test_{next(_numbers)}"
    write_cases(tmp_path, name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return name


def test_table_of_sizes_and_dtypes(module) -> None:
    shown = run_perf("bench", f"{module}:add", "--size", 500, 700, "--dtype", "float32", "float64",
                     *QUICK)  # fmt: skip
    assert shown.status == 0, shown
    lines = shown.out.splitlines()
    heads = [line.split()[:4] for line in lines[1:5]]
    assert heads == [["add", str(n), t, "cpu"] for n in (500, 700) for t in ("float32", "float64")]
    assert "GB/s" in lines[0]
    assert "Clocks: host clock, from the call to its return" in shown.out


def test_marked_cases_of_a_module_and_their_own_sizes(module, tmp_path) -> None:
    output = tmp_path / "results.json"
    shown = run_perf("bench", module, *QUICK, "-o", output, "--json")
    stored = json.loads(output.read_text())
    assert json.loads(shown.out) == stored
    assert stored["schema"] == "kuroshio.perf.result/1"
    assert [(row["size"], row["dtype"]) for row in stored["rows"]] == [
        (1000, "float32"), (1000, "float64"), (3000, "float32"), (3000, "float64"),
    ]  # fmt: skip
    row = stored["rows"][0]
    assert row["correct"] is True
    assert row["bytes"] == 12_000
    assert row["operations"] == "float32 add"
    assert stored["environment"]["software"]["packages"]["numpy"]


def test_case_in_a_file(module, tmp_path) -> None:
    shown = run_perf("bench", f"{tmp_path / module}.py:ten", *QUICK)
    assert shown.status == 0, shown
    assert shown.out.splitlines()[1].startswith("ten ")
    assert "not checked" in shown.out


def test_a_against_b(module, tmp_path) -> None:
    output = tmp_path / "ab.json"
    shown = run_perf("bench", f"{module}:ten", "--vs", f"{module}:eleven", "-o", output,
                     "--seconds", 1.5)  # fmt: skip
    assert shown.status == 0, shown
    assert "eleven is " in shown.out
    assert "slower than ten" in shown.out
    stored = json.loads(output.read_text())
    assert len(stored["rows"]) == 2
    assert stored["comparisons"][0]["differ"] is True
    assert 1.02 < stored["comparisons"][0]["ratio"] < 1.2


def test_a_against_saved(module, tmp_path) -> None:
    before = tmp_path / "before.json"
    assert run_perf("bench", f"{module}:ten", "-o", before, *QUICK).status == 0
    now = run_perf("bench", f"{module}:also_ten", "--vs", before, *QUICK, "--resolution", 0.5)
    assert "also_ten" in now.out.splitlines()[-1], now
    stored = json.loads(before.read_text())
    stored["rows"][0]["stable"] = True  # even on a machine that has other things to do
    before.write_text(json.dumps(stored))
    assert_refused(run_perf("bench", before), "which are compared with others")
    both = run_perf("bench", before, "--vs", before)
    assert "No difference shown: ten [second] takes 1.000 times" in both.out
    assert "not timed in turn" in both.out
    assert json.loads(run_perf("bench", before, "--vs", before, "--json").out)["comparisons"]
    stored["environment"]["cpu"]["model"] = "another"
    before.write_text(json.dumps(stored))
    # Before anything is timed: this case would raise.
    refused = run_perf("bench", f"{module}:raises", "--vs", before, *QUICK)
    assert_refused(refused, "differing environments", "cpu model: another and")


def test_command_is_timed_and_checked(module) -> None:
    long = f"{sys.executable} -c \"print('x' * 200)\""
    shown = run_perf("bench", "--command", long, "--check", f"{module}:long_output",
                     "--repeats", 3, 4, *QUICK)  # fmt: skip
    assert shown.status == 0, shown
    assert "from the start of the process to its end" in shown.out
    assert " yes " in shown.out
    short = f"{sys.executable} -c \"print('x')\""
    assert_refused(
        run_perf("bench", "--command", short, "--check", f"{module}:long_output", *QUICK),
        "wrong result",
    )


def test_what_a_command_leaves_running_is_not_waited_for() -> None:
    shown = run_perf("bench", "--command", "sh -c 'sleep 2 & echo x'", "--repeats", 6, 6, *QUICK,
                     "--json")  # fmt: skip
    assert json.loads(shown.out)["rows"][0]["host_s"]["median"] < 1


def test_command_that_says_nothing_and_one_that_is_there_in_vain(tmp_path) -> None:
    assert_refused(run_perf("bench", "--command", "sh -c 'exit 3'"), "status 3", "it said nothing")
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    assert_refused(run_perf("bench", "--command", script), "is there, but what its first line")


def test_commands_whose_last_word_is_a_json_file() -> None:
    one, other = (f"{sys.executable} -S -c pass {name}.json" for name in "ab")
    shown = run_perf("bench", "--command", one, "--vs", other, "--repeats", 6, 6, *QUICK)
    assert shown.status == 0, shown
    assert "b.json" in shown.out


def test_what_a_case_prints_is_not_among_the_json(module) -> None:
    shown = run_perf("bench", f"{module}:speaks", *QUICK, "--json")
    assert json.loads(shown.out)["rows"]
    assert "hello" in shown.err


def test_work_is_shown_although_the_file_cannot_be_written(module, tmp_path, monkeypatch) -> None:
    def full(*_) -> None:
        raise Refusal("It is full.")

    monkeypatch.setattr(json_file, "write_json", full)
    shown = run_perf("bench", f"{module}:ten", *QUICK, "-o", tmp_path / "r.json")
    assert shown.status == 2
    assert "It is full" in shown.err
    assert shown.out.splitlines()[1].startswith("ten ")


def test_commands_against_each_other() -> None:
    sleeps = [f"{sys.executable} -S -c 'import time; time.sleep({s})'" for s in (0.01, 0.06)]
    shown = run_perf("bench", "--command", sleeps[0], "--vs", sleeps[1], "--repeats", 6, 6, *QUICK)
    assert shown.status == 0, shown
    assert "slower than" in shown.out


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("{m}:ad", ("has nothing called ad", "It has add", "module:function")),
        ("{m}:NUMBER", ("is 7, which cannot be called",)),
        ("no_such_module_anywhere:f", ("There is no module no_such_module_anywhere",)),
        ("absent.py:f", ("There is no file absent.py",)),
        ("not a name", ("names no case", "@perf.case")),
        ("json", ("no function marked with @perf.case", "json:make_case")),
        ("{m}:wrong", ("wrong gives a wrong result", "should be 2.001", "No time is reported")),
        ("{m}:no_case", ("returned 3, which is no case",)),
        ("{m}:cannot_be_made", ("needs size", "--size")),
    ],
)
def test_bad_cases_are_refused(module, case, words) -> None:
    assert_refused(run_perf("bench", case.format(m=module), *QUICK), *words)


def test_case_that_raises_shows_its_place(module) -> None:
    shown = run_perf("bench", f"{module}:raises", *QUICK)
    assert shown.status == 2
    assert "raises raised ZeroDivisionError in the warm-up 1: nothing to divide by" in shown.err
    assert f"{module}.py" in shown.err
    assert "kuroshio/perf" not in shown.err
    assert shown.out == ""


def test_case_that_cannot_be_made_or_imported(module, tmp_path) -> None:
    shown = run_perf("bench", f"{module}:cannot_be_made", "--size", 9, *QUICK)
    assert "cannot_be_made raised MemoryError while it made its case for {'size': 9}" in shown.err
    (tmp_path / "broken_module_of_tests.py").write_text("import no_such_library_at_all\n")
    shown = run_perf("bench", "broken_module_of_tests:f")
    assert shown.status == 2
    assert "could not be imported: ModuleNotFoundError" in shown.err
    assert "no_such_library_at_all" in shown.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "Neither a case nor"),
        (("m:f", "--command", "true"), "Both a case and --command"),
        (("m:f", "--check", "m:g"), "--check is for a --command"),
        (("a.json",), "a.json cannot be read"),
        (("absent.json", "--vs", "absent.json"), "absent.json cannot be read"),
        (("--command", ""), "The command is empty"),
        (("--command", "'"), "cannot be split into words"),
        (("--command", "no-such-program-here x"), "There is no program no-such-program-here"),
        (("--command", "A=1 python"), "env A=1 ..."),
        (("json:dumps", "-o", ""), "An empty name cannot be written"),
        (("--command", "true", "--spread", "3"), "spread=3"),
        (("json:dumps", "--size", "3"), "takes no size"),
        (("--command", "true", "--size", "3"), "--size and --dtype are for a case"),
        (("--command", "true", "--device", "gpu"), "'gpu' is no device"),
        (("--command", "true", "--device", "auto"), "--device auto does not say"),
        (("--command", "true", "--device", "cuda:all"), "--device cuda:all does not say"),
        (("json:dumps", "--vs", "json:dumps", "--rounds", "0"), "rounds=0"),
        (("json:dumps",), "dumps needs obj"),
    ],
)
def test_bad_arguments_are_refused(arguments, words) -> None:
    assert_refused(run_perf("bench", *arguments), words)


def test_command_that_fails_says_what_it_said() -> None:
    program = "import sys; print('the reason', file=sys.stderr); sys.exit(3)"
    shown = run_perf("bench", "--command", f'{sys.executable} -c "{program}"', *QUICK)
    assert shown.status == 2
    assert "ended with status 3" in shown.err
    assert shown.err.endswith("the reason\n")
    with pytest.raises(Refusal, match="was ended by signal 9"):
        program_case("sh -c 'kill -9 $$'").fn()


def test_output_goes_where_the_command_was_given(module, tmp_path, monkeypatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    text = "import os\ndef goes():\n    return lambda: os.chdir(ELSEWHERE)\n"
    text = text.replace("ELSEWHERE", repr(str(tmp_path / "elsewhere")))
    (tmp_path / "goes_of_tests.py").write_text(text)
    assert run_perf("bench", "goes_of_tests.py:goes", *QUICK, "-o", "r.json").status == 0
    assert (tmp_path / "r.json").exists()


def test_output_that_cannot_be_written_is_told_first(module, tmp_path) -> None:
    output = tmp_path / "no folder" / "r.json"
    shown = run_perf("bench", f"{module}:raises", "-o", output, *QUICK)
    assert_refused(shown, "no folder", "cannot be written")


def test_the_file_of_a_case_is_not_written_over(module, tmp_path) -> None:
    file = tmp_path / f"{module}.py"
    before = file.read_text()
    for words in (
        (f"{file}:add",),
        (f"{module}:add", "--vs", f"{file}:ten"),
        (str(file),),
        (f"{module}:add",),
        (module,),
    ):
        shown = run_perf("bench", *words, "-o", file, *QUICK)
        assert_refused(shown, "one of the files to be read")
    assert file.read_text() == before


def test_json_that_holds_no_results_is_not_called_so(tmp_path) -> None:
    path = tmp_path / "kept.json"
    path.write_text('{"schema": "kuroshio.diagnosis/1"}')
    assert_refused(run_perf("bench", path), "kuroshio.diagnosis/1 and not")


def test_pairs_must_be_as_many(module) -> None:
    shown = run_perf("bench", f"{module}:add", "--vs", f"{module}:ten", *QUICK)
    assert_refused(shown, "4 cases against 1")


def test_api_makes_the_same_cases(module) -> None:
    (made_by,) = load(f"{module}:add")
    builds = make(made_by, [10], ["int16"])
    case = builds[0]()
    assert isinstance(case, perf.Case)
    assert case.label == "add (10, int16)"
    assert (case.fn() == 2).all()


def test_unknown_name_of_the_package() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        perf.nothing  # noqa: B018


@pytest.mark.parametrize("width", [70, 80, 120, None])
def test_a_table_fits_the_terminal(width) -> None:
    """Columns that have no room go, the least needed first; what is said is wrapped."""
    rows = perf.bench(np.zeros(9).sum, name="a case", dtype="float64", bytes=72,
                      flops=9, seconds=0.05, warm_up_s=0).rows  # fmt: skip
    text = table(rows, width)
    assert "a case" in text
    assert "median" in text
    longest = max(map(len, text.splitlines()))
    if width is None:
        assert longest > 100  # a sentence stays a line
    else:
        assert longest <= width
    assert ("In a wider terminal" in text) == (width in (70, 80))
    assert ("  mad" in text) == (width not in (70, 80))
