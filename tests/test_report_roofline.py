"""The roofline of the page: points where their figures say, under measured roofs only."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest

from diagnosis_cases import CASES
from html_parsed import Parsed
from kuroshio.perf.report.diagnosis import diagnose
from kuroshio.perf.report.page import page
from kuroshio.perf.report.page_roofline import picture
from kuroshio.perf.roofline import judge, roofs
from test_perf_roofline import ceilings, work

UNDER = roofs("made <device>", ceilings(), threads=1)
POINTS = [
    replace(work(2.0, 0.1, share=0.7), name="kernel <one>"),
    replace(work(40.0, 10.0, share=0.2), name="kernel two"),
    replace(work(1.0, 1.0, share=0.1), name="kernel three"),
]
JUDGED = [judge(each, UNDER) for each in POINTS]


def test_points_lie_where_their_figures_say():
    drawn = Parsed(picture(JUDGED, UNDER))
    circles = drawn.all("circle")
    # The largest first, so that none is hidden.
    assert [float(each["r"]) for each in circles] == sorted(
        (float(each["r"]) for each in circles), reverse=True
    )
    at = [(float(each["cx"]), float(each["cy"])) for each in circles]
    decade_x = (at[1][0] - at[0][0]) / 2  # from 0.1 to 10 operations a byte
    assert at[2][0] == pytest.approx(at[0][0] + decade_x, abs=0.2)
    decade_y = (at[0][1] - at[1][1]) / math.log10(20)
    assert at[2][1] == pytest.approx(at[0][1] + decade_y * math.log10(2), abs=0.2)
    # 2 Gop/s at 0.1 operations a byte is memory's roof of 20 GB/s.
    roof = next(each for each in drawn.all("line") if each["class"] == "roof")
    x1, y1, x2, y2 = (float(roof[key]) for key in ("x1", "y1", "x2", "y2"))
    on = y1 + (y2 - y1) * (at[0][0] - x1) / (x2 - x1)
    assert on == pytest.approx(at[0][1], abs=0.5)
    assert "kernel <one>" in drawn.words


def test_nothing_to_draw():
    blank = replace(JUDGED[0], rate=None)
    assert picture([blank], UNDER) == ""
    assert picture([], UNDER) == ""


def test_it_is_in_the_page_with_its_table():
    trace = CASES["few-blocks"](False)
    made = page(diagnose([trace], JUDGED, under=UNDER))
    assert "<svg" in made
    assert "made &lt;device&gt;" in made
    assert re.search(r">A</td>.*kernel &lt;one&gt;", made)
    assert "<svg" not in page(diagnose([trace], JUDGED))
