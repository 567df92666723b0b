"""What the documentation shows can be typed, and what it links to exists."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from conftest import ROOT
from kuroshio.cli import build_parser

PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
COMMANDS = [
    (page.relative_to(ROOT).as_posix(), line.split("#")[0].strip())
    for page in PAGES
    for line in page.read_text(encoding="utf-8").splitlines()
    if line.startswith("    kuroshio ") and "..." not in line
]


def test_pages_show_commands() -> None:
    assert len(PAGES) > 8
    assert len(COMMANDS) > 8


@pytest.mark.parametrize(("page", "command"), COMMANDS)
def test_command_is_understood(page: str, command: str) -> None:
    build_parser().parse_args(shlex.split(command)[1:])  # exits when it is not


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8"))
    inside = [link for link in links if "://" not in link]
    assert [link for link in inside if not (page.parent / link).exists()] == []
