"""Files that are written: whole or not at all, and nothing but files is written over."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from kuroshio.errors import Refusal
from kuroshio.perf import json_file
from kuroshio.perf.json_file import check_writable, read_json, write_json, write_text


@pytest.fixture
def pipe(tmp_path) -> Path:
    """Nobody reads it: as root, a device would be replaced as well."""
    if not hasattr(os, "mkfifo"):
        pytest.skip("no pipes that have a name")
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


@pytest.mark.parametrize("use", [check_writable, lambda path: write_json(path, {})])
def test_what_is_no_file_stays_what_it_is(use, pipe, tmp_path) -> None:
    for path, words in ((pipe, "a device or a pipe"), (tmp_path, "a folder"), ("", "empty name")):
        with pytest.raises(Refusal, match=words):
            use(path)
    assert pipe.is_fifo()
    assert os.listdir(tmp_path) == ["pipe"]


def test_links_are_followed(tmp_path) -> None:
    link = tmp_path / "link.json"
    link.symlink_to("real.json")
    for content in (1, 2):
        write_json(link, content)
        assert json.loads((tmp_path / "real.json").read_text()) == content
    assert link.is_symlink()


@pytest.mark.parametrize("problem", [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()])
def test_nothing_half_written_stays(tmp_path, monkeypatch, problem) -> None:
    path = tmp_path / "r.json"
    path.write_text("before")

    def full(*_, **__) -> None:
        raise problem

    monkeypatch.setattr(json_file.json, "dump", full)
    expected = Refusal if isinstance(problem, OSError) else KeyboardInterrupt
    with pytest.raises(expected) as raised:
        write_json(path, {})
    assert expected is KeyboardInterrupt or "No space left" in str(raised.value)
    assert [each.read_text() for each in tmp_path.iterdir()] == ["before"]


def test_text_takes_the_same_way(tmp_path) -> None:
    path = tmp_path / "page.html"
    write_text(path, "<p>größer\n")
    assert path.read_bytes() == "<p>größer\n".encode()
    with pytest.raises(Refusal, match="cannot be written"):
        write_text(tmp_path / "absent" / "page.html", "")
    assert [each.name for each in tmp_path.iterdir()] == ["page.html"]


def test_names_of_any_length(tmp_path) -> None:
    write_json(tmp_path / ("x" * 250), 1)
    for use in (check_writable, lambda path: write_json(path, 1)):
        with pytest.raises(Refusal, match="cannot be written: File name too long"):
            use(tmp_path / ("x" * 300))


def test_json_that_is_nested_too_deeply(tmp_path) -> None:
    path = tmp_path / "deep.json"
    path.write_text("[" * 100_000)
    with pytest.raises(Refusal, match=r"no whole JSON.*Give another"):
        read_json(path, "Give another.")


@pytest.mark.parametrize(("held", "words"), [(b" \n", "is empty"), (b"\x89PNG\r", "no text")])
def test_what_is_no_json_at_all_is_not_called_cut_off(tmp_path, held, words) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(held)
    with pytest.raises(Refusal, match=f"{words}.*Give another") as raised:
        read_json(path, "Give another.")
    assert "cut off" not in str(raised.value)


def test_text_that_no_file_can_hold_is_spelled_out(tmp_path):
    write_text(tmp_path / "x.html", "a\udcffb")
    assert (tmp_path / "x.html").read_text() == "a\\udcffb"
