"""A diagnosis as words in a terminal, and as JSON."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from diagnosis_cases import CASES
from kuroshio.perf.report.diagnosis import diagnose
from kuroshio.perf.report.terminal import text
from test_findings import ranks
from test_report_page import HOSTILE, hostile
from traces_made import healthy


@pytest.mark.parametrize("width", [40, 60, 80, 120])
@pytest.mark.parametrize("key", CASES)
def test_lines_fit_the_terminal(key, width):
    said = text(diagnose([CASES[key](True)]), width)
    for line in said.splitlines():
        # A name cannot be broken.
        assert len(line) <= width or max(map(len, line.split())) > width / 2


def test_findings_come_first_with_what_they_could_save():
    diagnosis = diagnose([CASES["data-loading"](True)])
    lines = text(diagnosis, None).splitlines()
    assert lines[0] == diagnosis.sentence
    assert lines[2].startswith("1. The device starves for data: ")
    said = "\n".join(lines)
    assert said.index("starves for data: ") < said.index("Where the time goes")
    for word in ("Verify: ", "Directions: ", "What it could save: ", "Look at: "):
        assert word in said
    assert diagnosis.findings[0].summary in said


def test_silence_is_said():
    assert "no rule found anything" in text(diagnose([healthy().trace()]), None)


def test_nothing_that_moves_a_terminals_cursor_comes_through():
    said = text(diagnose([hostile(HOSTILE)]), 80)
    assert all(sign.isprintable() or sign == "\n" for sign in said)


def test_json_has_findings_and_analyses():
    diagnosis = diagnose(ranks(500, 900))
    document = json.loads(json.dumps(diagnosis.as_json(), allow_nan=False))
    assert document["schema"].startswith("kuroshio.diagnosis/")
    assert next(iter(document)) == "schema"
    assert [each["key"] for each in document["findings"]] == [
        each.key for each in diagnosis.findings
    ]
    first = document["findings"][0]
    assert first["saves"] == diagnosis.findings[0].saves
    assert first["speedup_at_most"] == pytest.approx(first["of"] / (first["of"] - first["at_most"]))
    assert len(document["traces"]) == 2
    assert document["ranks"]["ranks"][1]["rank"] == 1


def test_of_many_ranks_some_are_shown_and_what_all_leave_open_is_said_once():
    made = [
        replace(each, rank=rank, cannot_tell=("times are coarse",))
        for rank, each in enumerate(ranks(*range(500, 520)))
    ]
    diagnosis = diagnose(made)
    said = text(diagnosis, None)
    assert said.count("Where the time goes") == 16
    assert "4 more traces; all with --json" in said
    notes = [each for each in diagnosis.remarks if "coarse" in each]
    assert notes == ["Rank 0, rank 1, rank 2, rank 3 and 16 more: times are coarse"]
