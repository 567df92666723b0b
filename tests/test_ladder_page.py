"""The ladder as a person sees it: page, picture, terminal; and the files of it."""

from __future__ import annotations

import io
import json
import re

import matplotlib.image
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from html_parsed import Parsed
from kuroshio import plot
from kuroshio.console import Output
from kuroshio.errors import Refusal
from kuroshio.ladder import publish as published
from kuroshio.ladder import show as shown
from kuroshio.ladder.page import page
from kuroshio.ladder.publish import publish, report_of, write_text
from kuroshio.ladder.results import PARTS, RungResult
from ladder_results import MACHINE, ladder, report, result, study

SKIPPED = RungResult("A", "list in registers", skipped="5.6 GB are needed & 2 GB are <free>")
HOSTILE = '<script>alert("x")</script> & \'"> \u202e 日本 \x1b[31m'
WORDS = st.text(st.characters(codec=None), max_size=30)


TAGS = {
    *("html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "h3", "p", "ul", "li"),
    *("a", "div", "span", "table", "thead", "tbody", "tr", "th", "td", "dl", "dt", "dd"),
}


def test_the_page_is_whole_and_needs_nothing_else():
    made = page(report(ladder(), studies=[study()]))
    parsed = Parsed(made)
    assert parsed.all("html") == [{"lang": "en"}]
    assert any(each.get("name") == "viewport" for each in parsed.all("meta"))
    assert {tag for tag, _ in parsed.elements} == TAGS
    assert not re.search(r"https?:|url\(|@import|\bon\w+=", made)
    assert {each["href"] for each in parsed.all("a")} == {
        "ladder.json", *(f"experiments/{each.experiment}" for each in ladder())
    }  # fmt: skip
    assert "prefers-color-scheme: dark" in made
    words = " ".join(parsed.words)
    for said in ("205", "4.2", "no counters were read", "160 is as fast as 256", "2.00 GB/s",
                 "numpy 2.4", "570.1"):  # fmt: skip
        assert said in words


def test_bars_are_linear_and_described():
    parsed = Parsed(page(report([result("baseline"), result("ours")])))
    labels = [each["aria-label"] for each in parsed.all("div") if each.get("role") == "img"]
    assert labels[0].startswith("baseline: 14.0 s a pass: first read 8.6%, hidden wait 31.4%")
    bars = [each for each in parsed.all("div") if each.get("class") == "bar"]
    wide = [float(each["style"].removeprefix("width:").removesuffix("%")) for each in bars]
    assert wide == pytest.approx([100, 100 * 0.75 / 14], abs=1e-3)
    inside = [each for each in parsed.all("span") if each.get("title")]
    shares = [float(each["style"].removeprefix("width:").removesuffix("%")) for each in inside]
    assert sum(shares) == pytest.approx(2 * 2 * 100, abs=0.01)


@settings(max_examples=40)
@given(WORDS, WORDS, WORDS)
def test_any_text_stays_text(model, why, cell):
    one = study(title=why, claim=model, columns=[cell, "b"], rows=[[why, 1]], finding=cell)
    made = page(report([result("A", title=cell), SKIPPED], model=model, why=why, studies=[one]))
    assert {tag for tag, _ in Parsed(made).elements} <= TAGS


def test_hostile_names():
    made = page(report([result("A", title=HOSTILE)], model=HOSTILE, studies=[study(claim=HOSTILE)]))
    parsed = Parsed(made)
    assert "script" not in {tag for tag, _ in parsed.elements}
    assert "alert(" in " ".join(parsed.words)
    assert "\x1b" not in made
    assert "\u202e" not in made
    assert "日本" in made


def test_a_page_of_nothing_and_of_one():
    assert "No rung has run." in page(report([]))
    one = Parsed(page(report([result("D", (0, 0, 0, 0, 0, 0))], device="cpu")))
    assert "n/a" in " ".join(one.words)
    skipped = " ".join(Parsed(page(report([SKIPPED]))).words)
    assert "A was skipped: 5.6 GB are needed & 2 GB are <free>." in skipped


# -- the picture -----------------------------------------------------------------------------------


def bars(*keys):
    return {each.key: {part: each.part(part) for part in PARTS} for each in map(result, keys)}


@pytest.mark.parametrize("keys", [("D",), ("baseline", "A", "B", "C", "D", "D+", "ours")])
def test_the_picture(tmp_path, keys):
    path = tmp_path / "ladder.png"
    plot.plot_ladder(bars(*keys), path, "Where a pass goes", "cuda:0, 日本 $x^2$")
    drawn = matplotlib.image.imread(path)[..., :3]
    assert drawn.std() > 0.05
    for colour in ("#e69f00", "#d55e00", "#56b4e9"):
        wanted = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        assert (abs(drawn - wanted).max(-1) < 0.02).sum() > 100
    assert [each.name for each in tmp_path.iterdir()] == ["ladder.png"]


def test_a_picture_of_no_seconds_and_as_svg(tmp_path):
    none = {"A": dict.fromkeys(PARTS, 0.0), "B": {**dict.fromkeys(PARTS, 0.0), "copy": 1e-9}}
    plot.plot_ladder(none, tmp_path / "ladder.svg", "t", "s")
    assert "<svg" in (tmp_path / "ladder.svg").read_text()


def test_pictures_that_cannot_be(tmp_path):
    with pytest.raises(Refusal, match=r"\.png or \.svg"):
        plot.plot_ladder(bars("D"), tmp_path / "x.pdf", "t", "s")
    with pytest.raises(Refusal, match="could not be written"):
        plot.plot_ladder(bars("D"), tmp_path / "none" / "x.png", "t", "s")


# -- files and terminal ----------------------------------------------------------------------------


def test_the_files(tmp_path):
    made, absent = publish(report(ladder()), tmp_path)
    assert absent == ""
    assert [path.name for path in made] == ["ladder.json", "ladder.html", "ladder.png"]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in made)
    assert json.loads(made[0].read_text())["schema"] == "kuroshio.ladder/1"


def test_without_matplotlib_there_is_all_but_the_picture(tmp_path, monkeypatch):
    (tmp_path / "ladder.png").write_bytes(b"old")
    monkeypatch.setattr(plot, "find_spec", lambda name: None)
    made, absent = publish(report(ladder()), tmp_path)
    assert [path.name for path in made] == ["ladder.json", "ladder.html"]
    assert "kuroshio[plot]" in absent
    assert "of an earlier run" in absent
    with pytest.raises(Refusal, match="matplotlib"):
        plot.plot_ladder(bars("D"), tmp_path / "x.png", "t", "s")


def test_nothing_to_draw(tmp_path):
    made, absent = publish(report([SKIPPED]), tmp_path)
    assert len(made) == 2
    assert absent == "No rung has run, so there is no picture."


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_page_is_written_whole_or_not(tmp_path, monkeypatch, error):
    def fail(*_):
        raise error

    path = tmp_path / "ladder.html"
    write_text(path, "before")
    monkeypatch.setattr(published.os, "replace", fail)
    with pytest.raises(Refusal if isinstance(error, OSError) else KeyboardInterrupt):
        write_text(path, "after")
    assert path.read_text() == "before"
    assert [each.name for each in tmp_path.iterdir()] == ["ladder.html"]


def test_text_that_no_file_can_hold_is_spelled_out(tmp_path):
    write_text(tmp_path / "x.html", "a\udcffb")
    assert (tmp_path / "x.html").read_text() == "a\\udcffb"


class Climbed:
    """What `climb` gives, as far as a report needs it."""

    device, model, why, machine = "cpu", "A processor", "no GPU", MACHINE
    problem = report([]).problem
    results, studies = [result("D")], []


def test_a_report_of_a_climb():
    made = report_of(Climbed())
    assert made.environment["cpu"]["processors"] >= 1
    assert made.compiled
    assert made.heading.startswith("The ladder on cpu (A processor; no GPU): pass, 721 x 1440")


def lines(made, width, monkeypatch, terminal=True):
    """What the terminal gets."""

    class Here(Output):
        def __init__(self):
            super().__init__()
            self.file, self.width, self._force_terminal = io.StringIO(), width, terminal
            consoles.append(self)

    consoles = []
    monkeypatch.setattr(shown, "Output", Here)
    monkeypatch.setenv("NO_COLOR", "1")
    shown.show(made)
    said = re.sub(r"\x1b\[[0-9;]*m", "", consoles[0].file.getvalue())
    return [line.rstrip() for line in said.splitlines()]


@pytest.mark.parametrize("width", [60, 80, 100, 120])
def test_tables_fit_the_terminal(width, monkeypatch):
    said = lines(report(ladder(), studies=[study()]), width, monkeypatch)
    assert max(map(len, said)) <= width
    whole = " ".join(" ".join(said).split())
    assert "do not multiply" in whole
    assert "Verdict: confirmed" in whole


@pytest.mark.parametrize("width", [100, 120])
def test_a_rung_is_a_line_of_the_seconds(width, monkeypatch):
    said = lines(report(ladder()), width, monkeypatch)
    for key, total in (("baseline", "14.0"), ("A", "8.60"), ("ours", "0.750")):
        first = next(line for line in said if line.startswith(f"{key}  "))
        assert total in first


def test_nothing_to_show(monkeypatch):
    said = lines(report([], studies=[study(columns=[], rows=[], claim="")]), 100, monkeypatch)
    assert "Found: 160 is as fast as 256." in said
    assert not [line for line in said if line.startswith("Claimed")]
