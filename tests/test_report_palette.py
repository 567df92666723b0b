"""The page's colours are told apart, by day and by night, also by people who see fewer of them."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from kuroshio.perf.report import palette

# Of linear RGB, for people who lack one kind of cone: Machado, Oliveira and Fernandes (2009).
SEEN = {
    "all cones": np.eye(3),
    "no long": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
         [-0.003882, -0.048116, 1.051998]]
    ),
    "no middle": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
         [-0.011820, 0.042940, 0.968881]]
    ),
    "no short": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
         [0.004733, 0.691367, 0.303900]]
    ),
}  # fmt: skip
# CIE 1976 difference. 2.3 is seen side by side; a bar's parts must be found in its key.
APART = 15
TOGETHER = {"roles": palette.OF_ROLE, "causes": palette.OF_CAUSE, "parts": palette.OF_PART}


def shown(dark: bool) -> dict[str, str]:
    """By name; by night those that are not told otherwise are the day's."""
    css = (Path(palette.__file__).parent / "page.css").read_text(encoding="utf-8")
    day, _, night = css.partition("prefers-color-scheme: dark")
    told = re.findall(r"--c-(\w+): (#[0-9a-f]{6})", day + (night if dark else ""))
    return dict(told)


def lab(colour: str, seen: np.ndarray) -> np.ndarray:
    """CIE L*a*b* under D65."""
    rgb = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    xyz = np.array(to_xyz) @ np.clip(seen @ linear, 0, 1) / np.array([0.9505, 1, 1.089])
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("group", TOGETHER)
def test_what_stands_side_by_side_is_told_apart(group, dark):
    colours = shown(dark)
    assert set(colours) == set(palette.COLOURS)
    names = list(TOGETHER[group].values())
    assert len(set(names)) == len(names)
    for (one, other), (who, seen) in (
        (pair, each) for pair in combinations(names, 2) for each in SEEN.items()
    ):
        apart = np.linalg.norm(lab(colours[one], seen) - lab(colours[other], seen))
        assert apart >= APART, (one, other, who, round(float(apart), 1))
