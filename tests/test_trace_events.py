"""The table of events: what is absent stays absent, and tables are joined by name."""

from __future__ import annotations

import numpy as np
import pytest

from kuroshio.perf.traces.events import ABSENT, Column, Events, Kind, joined


def test_what_is_not_told_is_absent_and_not_zero():
    events = Events.of(["k"], start=[5, 3], end=[6, 9], kind=[Kind.KERNEL, Kind.CALL], name=[0, 0])
    assert events.bytes.tolist() == [ABSENT, ABSENT]
    assert events.grid.tolist() == [[ABSENT] * 3] * 2
    assert not events.tell("bytes")
    assert events.tell("end")
    assert events.on_device.tolist() == [True, False]


def test_columns_that_do_not_exist_are_an_error():
    with pytest.raises(TypeError, match="no columns colour"):
        Events.of([], start=[1], colour=[2])


def test_parents_lead_those_that_start_with_them():
    events = Events.of(["a"], start=[7, 5, 5], end=[8, 6, 9]).in_order()
    assert list(zip(events.start, events.end, strict=True)) == [(5, 9), (5, 6), (7, 8)]


def test_joined_tables_keep_names_and_what_only_one_of_them_tells():
    theirs = Column(np.array([0, ABSENT], np.int32), ("fast",))
    one = Events.of(["a", "b"], {"speed": theirs}, start=[1, 2], end=[2, 3], name=[1, 0])
    other = Events.of(["b"], start=[3], end=[4], name=[0], grid=[[1, 2, 3]])
    both = joined([one, other])
    assert [both.named(row) for row in range(3)] == ["b", "a", "b"]
    assert both.others["speed"].codes.tolist() == [0, ABSENT, ABSENT]
    assert both.grid[2].tolist() == [1, 2, 3]
    assert len(joined([])) == 0
    assert both[both.start > 1].others["speed"].codes.tolist() == [ABSENT, ABSENT]
