"""Chinese pages say what the English ones do: same structure, figures, code, links, markers."""

from __future__ import annotations

import re
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest

from conftest import ROOT

CHINESE = [*ROOT.glob("*.zh.md"), *ROOT.glob("docs/**/*.zh.md")]
PAIRS = [
    pytest.param(page.with_name(page.name.replace(".zh.md", ".md")), page, id=page.name)
    for page in CHINESE
]
MONTHS = "January February March April May June July August September October November December"
_DATE = re.compile(rf"(\d+) ({'|'.join(MONTHS.split())})")
_NUMBER = re.compile(r"(\d[\d,]*(?:\.\d+)?)(?:\s*(thousand|million|百万|万))?")
_SCALES = {"thousand": 1000, "million": 1_000_000, "万": 10_000, "百万": 1_000_000, "": 1}
_PROGRAMS = ("kuroshio", "pip", "hipcc", "nvcc", "export", "make")


def figures(text: str) -> Counter[Decimal]:
    """All numbers, in whichever order: '29 February' has two, '361 thousand' and '36.1 万' one."""
    text = _DATE.sub(lambda m: f"{m[1]} {MONTHS.split().index(m[2]) + 1}", text)
    return Counter(
        Decimal(digits.rstrip(",").replace(",", "")) * _SCALES[scale]
        for digits, scale in _NUMBER.findall(text)
    )


def sections(page: Path) -> list[tuple[str, str]]:
    """The level of each heading ('##'), and what stands under it, with the heading."""
    found, level, lines, fenced = [], "", [], False
    for line in page.read_text(encoding="utf-8").splitlines():
        fenced ^= line.startswith("```")
        heading = None if fenced else re.match(r"(#+) ", line)
        if heading:
            found.append((level, "\n".join(lines)))
            level, lines = heading[1], []
        lines.append(line)
    return [*found, (level, "\n".join(lines))]


def code(text: str) -> list[str]:
    """Lines of code blocks without comments; indented ones if they are commands."""
    fenced, lines = False, []
    for line in text.splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith(tuple(f"    {program} " for program in _PROGRAMS)):
            lines.append(re.sub(r"\s+(#\s|//\s).*$", "", line).rstrip())
    return lines


def links(page: Path, text: str) -> list[str]:
    """Targets, of pages that exist in both languages the English one."""
    found = re.findall(r"\]\(([^)\s]+)\)", text.split("\n# ", 1)[-1])
    return sorted(target.replace(".zh.md", ".md") for target in found)


def test_there_are_chinese_pages() -> None:
    assert {page.name for page in CHINESE} == {"README.zh.md", "ladder.zh.md"}


@pytest.mark.parametrize(("english", "chinese"), PAIRS)
def test_each_leads_to_the_other(english: Path, chinese: Path) -> None:
    assert english.read_text(encoding="utf-8").startswith(f"English | [简体中文]({chinese.name})\n")
    assert chinese.read_text(encoding="utf-8").startswith(f"[English]({english.name}) | 简体中文\n")


@pytest.mark.parametrize(("english", "chinese"), PAIRS)
def test_structure_and_figures(english: Path, chinese: Path) -> None:
    ours, theirs = sections(english), sections(chinese)
    assert [level for level, _ in ours] == [level for level, _ in theirs]
    for (_, one), (_, other) in zip(ours, theirs, strict=True):
        where = other.splitlines()[0] if other else chinese.name
        missing, added = figures(one) - figures(other), figures(other) - figures(one)
        assert (where, [*missing], [*added]) == (where, [], [])


@pytest.mark.parametrize(("english", "chinese"), PAIRS)
def test_code_links_tables_and_markers(english: Path, chinese: Path) -> None:
    one, other = (page.read_text(encoding="utf-8") for page in (english, chinese))
    assert code(one) == code(other)
    assert links(english, one) == links(chinese, other)
    for pattern in ("<!--.*?-->", r"<img src=\S+"):
        assert re.findall(pattern, one) == re.findall(pattern, other)
    columns = [
        [row.count("|") for row in text.splitlines() if row.startswith("|")]
        for text in (one, other)
    ]
    assert columns[0] == columns[1]


@pytest.mark.parametrize("chinese", CHINESE, ids=lambda page: page.name)
def test_links_go_to_chinese_pages_where_there_are_any(chinese: Path) -> None:
    text = chinese.read_text(encoding="utf-8").split("\n# ", 1)[1]
    english = [link for link in re.findall(r"\]\(([^)#\s]+\.md)\)", text) if ".zh." not in link]
    assert english
    for link in english:
        assert not (chinese.parent / link.replace(".md", ".zh.md")).exists(), link


def test_figures_are_compared_by_value() -> None:
    assert figures("361 thousand cells, 10,958 files, 29 February, 2.5 times, in 2021.") == figures(
        "36.1 万个格点 10,958 个文件 2 月 29 日 2021 年 2.5 倍"
    )
    assert figures("7.7 ms") != figures("7.6 ms")
