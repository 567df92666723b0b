"""Experiments: the steps of a record, their folder, paths in JSON."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from kuroshio.errors import Refusal
from kuroshio.perf.experiments import (
    Record,
    Result,
    concluded,
    create,
    default_folder,
    find,
    judge,
    load,
    now,
    parse_prediction,
    records,
    sealed,
    update,
    with_result,
)
from kuroshio.perf.experiments.json_path import at_path, number_at

# -- the steps -------------------------------------------------------------------------------------


def measured(record, low, high, correct="yes"):
    verdict = judge(record.prediction, low, high) if correct != "no" else "not judged"
    return Result(
        now(), correct, verdict, record.seal.sha256, because="b", value=low, low=low, high=high
    )


@pytest.fixture
def record():
    return sealed(
        Record(
            title="Früher öffnen: 10 %",
            created=now(),
            observation="o",
            hypothesis="h",
            change="c",
            prediction=parse_prediction("host_s.median new/old in 0.7..0.85"),
        )
    )


def test_what_is_decided_is_not_measured_again(record):
    for low, high, verdict in ((0.8, 0.9, "undecided"), (0.9, 0.95, "refuted")):
        record = with_result(record, measured(record, low, high))
        assert record.verdict == verdict
    assert [line[:3] for line in record.remarks.split("\n")] == ["1. ", "2. "]
    with pytest.raises(Refusal, match="refuted already"):
        with_result(record, measured(record, 0.8, 0.8))


def test_what_is_wrong_is_not_accepted_and_what_is_concluded_stays(record):
    with pytest.raises(Refusal, match="not been measured"):
        concluded(record, "accept", "r")
    wrong = with_result(record, measured(record, 0.8, 0.8, correct="no"))
    assert wrong.verdict == "not judged"
    with pytest.raises(Refusal, match="not correct"):
        concluded(wrong, "accept", "r")
    with pytest.raises(Refusal, match="reason"):
        concluded(wrong, "roll back", "  ")
    done = concluded(wrong, "roll back", "wrong in the corner")
    assert done.reason == "wrong in the corner"
    for step in (
        lambda: concluded(done, "another round", "r"),
        lambda: with_result(done, measured(done, 0.8, 0.8)),
    ):
        with pytest.raises(Refusal, match="concluded"):
            step()
    mended = with_result(wrong, measured(wrong, 0.8, 0.8))
    assert concluded(mended, "accept", "r").conclusion.decision == "accept"


def test_a_changed_record_goes_no_further(record):
    changed = record.but(prediction=replace(record.prediction, high=0.95, direction=""))
    for step in (
        lambda: with_result(changed, measured(record, 0.8, 0.8)),
        lambda: concluded(changed, "roll back", "r"),
    ):
        with pytest.raises(Refusal, match=r"prediction\.high: sealed 0\.85, now 0\.95"):
            step()


# -- the folder ------------------------------------------------------------------------------------


def test_records_are_numbered_and_found(tmp_path, record):
    first = create(tmp_path / "new" / "folder", record)
    assert first.path.name == "0001-fruher-offnen-10.md"
    (first.path.parent / "README.md").write_text("no record")
    (first.path.parent / "0041-other.md").write_text("")
    second = create(first.path.parent, record.but(title="日本"))
    assert second.path.name == "0042-experiment.md"
    assert [p.name[:4] for p in records(first.path.parent)] == ["0001", "0041", "0042"]
    for which in (1, "1", "0001", "0001-fruher-offnen-10", str(first.path)):
        assert find(first.path.parent, which) == first.path
    with pytest.raises(Refusal, match=r"no experiment '9'.*0042-experiment\.md"):
        find(first.path.parent, 9)
    (first.path.parent / "0001-twin.md").write_text("")
    with pytest.raises(Refusal, match=r"twin\.md.*name"):
        find(first.path.parent, 1)


def test_writers_at_once_get_a_number_each_and_lose_nothing(tmp_path, record):
    def work(i):
        create(tmp_path, record.but(title=f"number {i}"))
        update(counted.path, lambda r: r.but(remarks=f"{r.remarks}\nline"))

    counted = create(tmp_path, record)
    threads = [threading.Thread(target=work, args=(i,)) for i in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [int(path.name[:4]) for path in records(tmp_path)] == list(range(1, 14))
    assert load(counted.path).remarks.split("\n") == ["line"] * 12


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("where", ["fsync", "replace"])
def test_nothing_is_half_written(tmp_path, record, monkeypatch, error, where):
    def fail(*_):
        raise error

    kept = create(tmp_path, record)
    before = kept.path.read_bytes()
    monkeypatch.setattr(os, where, fail)
    expected = Refusal if isinstance(error, OSError) else KeyboardInterrupt
    with pytest.raises(expected):
        update(kept.path, lambda r: concluded(r, "roll back", "r"))
    with pytest.raises(expected):
        create(tmp_path, record)
    assert os.listdir(tmp_path) == [kept.path.name]
    assert kept.path.read_bytes() == before


def test_a_file_keeps_its_rights(tmp_path, record):
    path = create(tmp_path, record).path
    path.chmod(0o640)
    update(path, lambda r: r.but(remarks="more"))
    assert path.stat().st_mode & 0o777 == 0o640


# -- paths in JSON ---------------------------------------------------------------------------------

DOCUMENT = {"a": [{"n": "x", "v": 1}, {"n": "y", "v": 2.5}], "odd.key": {"t": True}, "one": 3}


@pytest.mark.parametrize(
    ("path", "value"),
    [("$.a[0].v", 1), ("a[-1].v", 2.5), ("$.a[n=y].v", 2.5), ("$.one", 3), ("$", DOCUMENT),
     ('$["odd.key"].t', True), ("$.a[v=1].n", "x")],
)  # fmt: skip
def test_paths_lead_to_values(path, value):
    assert at_path(DOCUMENT, path) == value


@pytest.mark.parametrize(
    ("path", "words"),
    [("$.b", "a, odd.key, one"), ("$.a[2]", "list of 2"), ("$.a[n=z]", "nowhere"),
     ("$.a", "number"),
     ('$["odd.key"].t', "number"), ("$.one.two", "holds 3"), ("$.a[", "no path")],
)  # fmt: skip
def test_paths_that_lead_nowhere_say_what_is_there(path, words):
    with pytest.raises(Refusal, match=words):
        number_at(DOCUMENT, path)


def test_the_folder_is_that_of_the_repository(tmp_path, monkeypatch):
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    (tmp_path / "repo" / "src" / "deep").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "repo" / "src" / "deep")
    assert default_folder() == Path("../../experiments")
    monkeypatch.chdir(tmp_path / "repo")
    assert default_folder() == Path("experiments")
