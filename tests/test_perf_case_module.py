"""Modules of cases: names that are taken, two folders with modules of one name."""

from __future__ import annotations

import json
import sys

import pytest

from cli_runs import assert_refused
from kuroshio.errors import Refusal
from kuroshio.perf import case_module
from kuroshio.perf.case_module import check_apart, module_of, split
from perf_runs import run_perf

QUICK = ("--seconds", "0.1", "--warm-up", "0.05")
CASE = "def f():\n    return lambda: 1\n"


@pytest.fixture(autouse=True)
def as_before(monkeypatch):
    """What is imported here is forgotten."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(case_module, "_folders", [])
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) and "test_" in sys.modules[name].__file__:
            del sys.modules[name]


def write(folder, **modules: str):
    folder.mkdir(exist_ok=True)
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text)
    return folder


@pytest.mark.parametrize(
    ("where", "parts"),
    [
        ("a.b:c.d", ("a.b", "c.d")),
        ("folder/a.py:c", ("folder/a.py", "c")),
        ("a.py", ("a.py", "")),
        ("a:", ("a", "")),
        (r"C:\work\a.py", (r"C:\work\a.py", "")),
        (r"C:\work\a.py:c", (r"C:\work\a.py", "c")),
    ],
)
def test_place_and_name(where, parts) -> None:
    assert split(where) == parts


@pytest.mark.parametrize("name", ["json", "numpy", "statistics"])
def test_file_called_like_an_installed_module_hides_it_from_nobody(tmp_path, name) -> None:
    path = write(tmp_path, **{name: CASE}) / f"{name}.py"
    there = sys.modules[name]
    assert module_of(str(path)).f()() == 1
    assert sys.modules[name] is there


def test_module_here_that_another_hides(tmp_path, monkeypatch) -> None:
    write(tmp_path, json=CASE)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Refusal, match=r"another of that name .* Give the file: json\.py:function"):
        module_of("json")
    (tmp_path / "json.py").rename(tmp_path / "other.py")
    assert module_of("json") is json


def test_files_of_one_name_are_two_modules(tmp_path) -> None:
    old = write(tmp_path / "old", work="X = 1\n" + CASE)
    new = write(tmp_path / "new", work="X = 2\n" + CASE)
    assert [module_of(str(folder / "work.py")).X for folder in (old, new)] == [1, 2]


TOP = "from helper_of_tests import X\ndef f():\n    return lambda: X\n"
LATE = """
def f():
    def g():
        from helper_of_tests import X
        return X
    return g
"""


@pytest.mark.parametrize("text", [TOP, LATE])
def test_two_folders_whose_cases_import_one_name(tmp_path, text) -> None:
    """Both would run the same code: no difference, whatever was changed."""
    old = write(tmp_path / "old", work=text, helper_of_tests="X = 1")
    new = write(tmp_path / "new", work=text, helper_of_tests="X = 2")
    for order in ((old, new), (new, old)):
        one, other = (f"{folder / 'work.py'}:f" for folder in order)
        shown = run_perf("bench", one, "--vs", other, "--rounds", 1, *QUICK)
        assert_refused(shown, "have a module helper_of_tests", "the same code", "--vs before.json")


def test_folders_that_share_no_module_are_apart(tmp_path) -> None:
    old = write(tmp_path / "old", work=TOP, helper_of_tests="X = 1", unused="")
    new = write(tmp_path / "new", work=CASE, unused="")
    for folder in (old, new):
        module_of(str(folder / "work.py"))
    check_apart()


def test_syntax_errors_are_told_without_pythons_own_frames(tmp_path) -> None:
    path = write(tmp_path, broken="def f(:\n") / "broken.py"
    with pytest.raises(Refusal, match=r"SyntaxError: .*broken\.py, line 1") as refused:
        module_of(str(path))
    assert refused.value.log == ""
