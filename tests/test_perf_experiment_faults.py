"""Experiments at fault: commands that go wrong, options that are empty, files edited by hand."""

from __future__ import annotations

import io
import json
import shlex
from pathlib import Path

import pytest
from rich.console import Console

from cli_runs import assert_refused
from kuroshio.errors import Refusal
from kuroshio.perf.experiments import commands, load, show, update
from test_perf_experiment_command import (
    PYTHON,
    _in_a_repository,  # noqa: F401
    begin,
    experiment,
    job,
)


def counting(figure: str) -> str:
    """A command that prints JSON and says in the file `ran` that it ran."""
    code = f"open('ran', 'a').write('x'); print('{{\"s\": {figure}}}')"
    return f"{PYTHON} -c {shlex.quote(code)}"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--old-command", counting("1"), "--json-path", "$.s"], "leads nowhere"),
        ([], "give the old measurement"),
        (["--old-command", counting("0")], "no ratio"),
        (["--old-command", counting("1"), "--correct-path", "$.ok"], "leads nowhere"),
    ],
)
def test_what_cannot_be_used_is_said_after_the_first_turn(arguments, words):
    """And not after the last one, hours later."""
    named = "--json-path" in arguments
    begin("seconds new/old in 0.4..0.6" if named else "$.s new/old in 0.4..0.6")
    experiment("seal", 1)
    given = [each.replace("$.s", "$.t") if each == "$.s" else each for each in arguments]
    done = experiment("run", 1, "--command", counting("1"), *given, "--repeats", 9)
    assert_refused(done, words)
    assert len(Path("ran").read_text()) <= 2


@pytest.mark.parametrize("option", ["--check", "--command", "--incorrect", "--new"])
def test_an_empty_option_is_not_one_that_is_absent(option):
    path = begin("$.s in 0..1 from 2")
    experiment("seal", 1)
    command = ["--command", job("0.5")] if option == "--check" else []
    assert experiment("run", 1, option, "", *command).status == 2
    assert not load(path).results
    assert_refused(experiment("new", "T", "--predict", ""), "no prediction")


def test_a_command_that_never_ends_its_output_is_stopped(monkeypatch):
    monkeypatch.setattr(commands, "_MOST", 1 << 20)
    with pytest.raises(Refusal, match="larger than 1 MiB"):
        commands.run("yes")
    with pytest.raises(Refusal, match="larger than 1 MiB"):
        commands.passes("yes")


def test_how_a_command_ended_is_said():
    with pytest.raises(Refusal, match=r"was ended by signal 9, so nothing was recorded\.$"):
        commands.run("sh -c 'kill -9 $$'")
    with pytest.raises(Refusal, match="stand below") as refused:
        commands.run("sh -c 'seq 1 100000 >&2; exit 3'")
    assert refused.value.log.splitlines()[-1] == "100000"
    assert len(refused.value.log.splitlines()) == 20
    passed, words = commands.passes("sh -c 'echo out; echo err >&2; exit 1'")
    assert (passed, words) == (False, "out\nerr")
    with pytest.raises(Refusal, match="cannot be run"):
        commands.run("'a\0b'")


def test_a_result_that_came_too_late_is_shown_in_words(monkeypatch):
    """Another process concluded the experiment while this one measured."""
    path = begin("$.s in 0..1 from 2")
    code = "import os; os.rename('concluded', os.environ['RECORD']); print('{\"s\": 0.5}')"
    experiment("seal", 1)
    before = path.read_text()
    assert experiment("conclude", 1, "roll-back", "--reason", "no").status == 0
    Path("concluded").write_text(path.read_text())
    path.write_text(before)
    monkeypatch.setenv("RECORD", str(path))
    command = f"{PYTHON} -c {shlex.quote(code)}"
    done = experiment("run", 1, "--command", command, "--repeats", 1)
    assert done.status == 2
    assert "was concluded" in done.err
    assert "What was measured: $.s 0.5, predicted 0..1: undecided" in done.err
    assert not load(path).results


@pytest.mark.parametrize("fact", ["[[1], {a = 1}]", "2020-01-01", "10:00:00", "nan", "[inf]"])
def test_facts_that_cannot_be_written_again_are_refused(fact):
    path = begin("$.s in 0..1 from 2 exact")
    assert experiment("run", 1, "--command", job("0.5")).status == 0
    text = path.read_text()
    assert "[result.new]" in text
    path.write_text(text.replace("[result.new]", f"[result.new]\nodd = {fact}"))
    line = path.read_text()[: path.read_text().index("odd =")].count("\n") + 1
    with pytest.raises(Refusal, match=f"line {line}: result.1.new.odd: it is"):
        update(path, lambda record: record)


def test_one_number_twice_is_said():
    path = begin("$.s in 0..1 from 2")
    path.with_name("0001-other.md").write_text(path.read_text())
    listed = experiment("list")
    assert listed.status == 2
    assert "2 experiments have the number 1" in listed.err


@pytest.mark.parametrize("width", [60, 80, 240])
def test_the_trail_fits_a_narrow_terminal(width, monkeypatch):
    """Words that decide are whole."""
    path = begin("$.s in 0..1 from 2 exact")
    assert experiment("run", 1, "--command", job("0.5")).status == 0
    output = Console(width=width, file=io.StringIO())
    monkeypatch.setattr(show, "Output", lambda: output)
    show.show_trail([load(path)], [])
    shown = output.file.getvalue()
    assert "confirmed," in shown
    assert "conclusion" in shown
    assert "\N{HORIZONTAL ELLIPSIS}" not in shown
    assert max(map(len, shown.splitlines())) <= width


def test_everything_is_json():
    begin("$.s in 0..1 from 2 exact")
    for arguments in (
        ["seal", 1], ["run", 1, "--command", job("0.5")],
        ["conclude", 1, "accept", "--reason", "so"], ["list"], ["show", 1],
    ):  # fmt: skip
        done = experiment(*arguments, "--json")
        assert done.status == 0, done
        assert json.loads(done.out)
