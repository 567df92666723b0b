"""What is said of experiments whose files were edited wrongly: each with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from kuroshio.errors import Refusal
from kuroshio.perf.experiments import (
    Record,
    concluded,
    create,
    from_text,
    load,
    now,
    parse_prediction,
    read,
    result_of,
    sealed,
    to_text,
    update,
    with_result,
)


@pytest.fixture(scope="module")
def text(tmp_path_factory) -> str:
    """A record with everything in it."""
    folder = tmp_path_factory.mktemp("whole")
    record = create(
        folder / "experiments",
        Record(
            title="T", created=now(), observation="o", hypothesis="h", change="c",
            prediction=parse_prediction("$.s in 1..2 from 3 exact"),
        ),
    )  # fmt: skip
    update(record.path, sealed)
    (folder / "r.json").write_text('{"s": 1.5}')
    update(record.path, lambda r: with_result(r, result_of(r, [read(folder / "r.json")])))
    return to_text(update(record.path, lambda r: concluded(r, "accept", "because")))


@pytest.mark.parametrize(
    ("old", "new", "line_of", "words"),
    [
        ("+++\n", "---\n", "---", "begins with a line"),
        ("high = 2.0", f"high = 1{'0' * 400}", "high", "finite number"),
        ("high = 2.0", f"high = 1{'0' * 5000}", "schema", "not TOML"),
        ("high = 2.0", f"high = {'[' * 5000}", "schema", "not TOML"),
        ("created = 2", "created = 0001-01-01T00:00:00+23:00 # ", "created", "out of range"),
        ("high = 2.0", "high = ", "high =", "not TOML"),
        ("high = 2.0", "hgih = 2.0", "hgih", "is 'high' meant"),
        ("high = 2.0", 'high = "2"', 'high = "2"', "prediction.high: it is '2'; it must be a n"),
        ("high = 2.0", "high = 0.5", "[prediction]", "low (1) lies above high"),
        ("exact = true", "exact = 1", "exact = 1", "true or false"),
        ('direction = "down"', 'direction = "up"', "[prediction]", "says 'down'"),
        ('verdict = "confirmed"', 'verdict = "great"', "great", "allowed are 'confirmed'"),
        ('verdict = "confirmed"', 'verdict = "refuted"', 'verdict = "refuted"', "is 'confirmed'"),
        ('correct = "not checked"', 'correct = "no"', "verdict =", "correct is 'no'"),
        ("value = 1.5\n", "", "verdict =", "no value"),
        ("low = 1.5\n", "", "verdict =", "the interval needs both"),
        ("low = 1.5\n", "low = 1.6\n", "verdict =", "in order"),
        ('schema = "kuroshio.experiment/1"', "", "+++", "schema: it is missing"),
        ("experiment/1", "experiment/2", "schema", "this version reads"),
        ("created = ", "created = 5 # ", "created", "a time such as"),
        ("[[result]]", "[result]", "[result]", "tables [[result]]"),
        ('decision = "accept"', 'decision = "yes"', "decision", "'roll back'"),
        ("because\n", "\n", "[conclusion]", "section 'conclusion' is empty"),
        ("## Change", "## Changes", "## Prediction", "is line"),
        ("## Change", "## Hypothesis", "## Hypothesis\n\nc", "twice"),
        ("## Observation", "stray\n\n## Observation", "stray", "before the first section"),
        ("# T\n", "T\n", "T\n", "a title"),
    ],
)  # fmt: skip
def test_what_was_edited_wrongly_is_refused_with_its_line(text, old, new, line_of, words):
    assert old in text
    edited = text.replace(old, new, 1)
    line = edited[: edited.index(line_of)].count("\n") + 1
    with pytest.raises(Refusal) as refused:
        from_text(edited, Path("0001-t.md"))
    message = refused.value.message
    assert words in message
    assert message.startswith(f"0001-t.md, line {line}: "), (line, message)


def test_files_that_are_no_text_are_refused_with_the_line(tmp_path):
    (tmp_path / "0001-x.md").write_bytes(b"+++\n\xff\n")
    with pytest.raises(Refusal, match=r"0001-x\.md, line 2: .*UTF-8"):
        load(tmp_path / "0001-x.md")
    for content, words in (("", "begins with"), ("+++\n", "no end"), ("+++\n+++\n", "title")):
        with pytest.raises(Refusal, match=rf"line \d+: .*{words}"):
            from_text(content)
