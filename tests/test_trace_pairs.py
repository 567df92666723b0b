"""Beginnings and ends (phases B and E) against whole events (X) of the same intervals."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kuroshio.errors import Refusal
from kuroshio.perf.traces import chrome, chrome_pairs
from kuroshio.perf.traces.trace import Trace

CATEGORIES = ("kernel", "cuda_runtime", "cpu_op", "user_annotation", "my_tool")
ARGUMENTS = {"device": 0, "stream": 7, "correlation": 3, "bytes": 5}


def begin(name: str | None, ts: float | None, **more: Any) -> dict[str, Any]:
    return {"ph": "B", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": ts, **more}


def end(ts: float | None, **more: Any) -> dict[str, Any]:
    return {"ph": "E", "pid": 1, "tid": 1, "ts": ts, **more}


WHOLE = {**begin("whole", 0), "ph": "X", "dur": 1}


def written(path: Path, events: list[Any], piece: int = 1 << 20) -> Trace:
    path.write_text(json.dumps(events))
    return chrome.read(path, piece)


def rows(trace: Trace) -> Counter[Any]:
    events = trace.events
    return Counter(
        (events.named(row), *(int(getattr(events, name)[row]) for name in
         ("kind", "start", "end", "process", "thread", "device", "stream", "correlation")))
        for row in range(len(events))
    )  # fmt: skip


@given(st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_pairs_are_the_whole_events_of_the_same_intervals(tmp_path, data):
    """Nested on each of several threads, which take turns in the file; pieces may part a pair."""
    draw = data.draw
    halves, wholes, ns = [], [dict(WHOLE)], 0
    opened: dict[int, list[dict[str, Any]]] = {1: [], 2: []}
    for thread, begins, took, named in draw(
        st.lists(
            st.tuples(st.integers(1, 2), st.booleans(), st.integers(0, 3000), st.booleans()),
            max_size=30,
        )
    ) + [(thread, False, 1, False) for thread in (1, 2) for _ in range(30)]:
        ns += took
        if begins:
            event = begin(draw(st.sampled_from("ab")), ns / 1000, tid=thread)
            event["cat"] = draw(st.sampled_from(CATEGORIES))
            told = draw(st.sets(st.sampled_from(sorted(ARGUMENTS))))
            event["args"] = {key: ARGUMENTS[key] for key in sorted(told)}
            opened[thread].append({**event, "ph": "X"})
            late = draw(st.sets(st.sampled_from(sorted(told)))) if told else set()
            opened[thread][-1]["late"] = {key: ARGUMENTS[key] for key in late}
            event["args"] = {key: ARGUMENTS[key] for key in told - late}
            halves.append(event if event["args"] or draw(st.booleans()) else
                          {key: each for key, each in event.items() if key != "args"})  # fmt: skip
        elif opened[thread]:
            whole = opened[thread].pop()
            event = end(ns / 1000, tid=thread)
            if late := whole.pop("late"):
                event["args"] = late
            if named:
                event |= {"name": whole["name"], "cat": whole["cat"]}
            halves.append(event)
            wholes.append({**whole, "dur": (ns - round(whole["ts"] * 1000)) / 1000})
    path = tmp_path / "trace.json"
    joined = written(path, [WHOLE, *halves], draw(st.integers(50, 2000)))
    expected = written(path, wholes)
    assert rows(joined) == rows(expected)
    assert joined.cannot_tell == expected.cannot_tell


@pytest.mark.parametrize(
    ("events", "expected", "alone"),
    [
        ([begin("a", 1)], [], 1),
        ([end(1)], [], 1),
        ([begin("a", 1), end(2), end(3)], [("a", 1000)], 1),
        ([begin("a", 1), begin("b", 2), end(3, name="a")], [("a", 2000)], 1),
        ([begin("a", 1), begin("b", 2), end(3, name="c"), end(4, name="b"), end(5, name="")],
         [("a", 4000), ("b", 2000)], 1),
        ([begin("a", 1), begin("a", 2), begin("b", 3), end(5, name="a"), end(9, name="a")],
         [("a", 8000), ("a", 3000)], 1),
        ([begin(None, 1), end(3, name="late")], [("late", 2000)], 0),
        ([begin("a", 1), end(2, tid=2), end(4)], [("a", 3000)], 1),
        ([begin("a", 1), end(2, pid=2), end(4)], [("a", 3000)], 1),
        # On one thread after the other a clock may go back; within what is open it may not.
        ([begin("a", 5), end(6), begin("b", 1), end(3)], [("b", 2000), ("a", 1000)], 0),
    ],
)  # fmt: skip
def test_what_lacks_its_other_half_is_left_out_and_said(tmp_path, events, expected, alone):
    trace = written(tmp_path / "trace.json", [WHOLE, *events])
    found = trace.events[trace.events.name != trace.events.names.index("whole")]
    assert [(found.named(row), int(found.duration[row])) for row in range(len(found))] == expected
    said = [each for each in trace.cannot_tell if "beginning or the end" in each]
    assert said == [
        f"Of {alone} events only the beginning or the end is there (phases B and E); they are left "
        "out"
    ] * (alone > 0)


def test_times_that_are_not_told_or_not_in_order_pair_nothing(tmp_path):
    trace = written(tmp_path / "a.json", [WHOLE, begin("a", 1), begin("b", None), end(2), end(3)])
    assert sorted(trace.events.names) == ["a", "b", "whole"]
    assert trace.events.duration.tolist() == [1000, 2000]
    assert any("Of 1 events the times were not recorded" in each for each in trace.cannot_tell)
    other = [begin("c", 1, tid=2), end(9, tid=2)]
    disorder = [begin("a", 5), begin("b", 4), end(6), end(7), begin("a", 8), end(9)]
    trace = written(tmp_path / "b.json", [other[0], *disorder, other[1]])
    assert trace.events.names == ("c",)
    assert any(each.startswith("6 beginnings and ends") for each in trace.cannot_tell)


def test_nothing_but_halves_is_refused_with_how_many(tmp_path):
    with pytest.raises(Refusal, match="2 have no length"):
        written(tmp_path / "a.json", [begin("a", 5), {**begin("b", 6), "ph": "b"}])


def test_no_more_is_held_than_may_be(tmp_path, monkeypatch):
    monkeypatch.setattr(chrome_pairs, "MOST_OPEN", 10)
    deep = [begin(f"n{i}", i) for i in range(12)]
    trace = written(tmp_path / "a.json", [WHOLE, begin("a", 1), end(2), *deep, end(20)])
    assert trace.events.names == ("whole", "a")
    assert any("after more than" in each for each in trace.cannot_tell)
    assert any("Of 13 events only" in each for each in trace.cannot_tell)


def test_what_is_open_does_not_hold_the_piece_that_it_came_in():
    text = json.dumps([begin("a", 1, args={"device": 0})]).encode()
    before = sys.getrefcount(text)
    pairs = chrome_pairs.Pairs()
    assert pairs.joined(msgspec.json.decode(text, type=list[chrome.Event])) == []
    assert pairs.alone == 1
    assert sys.getrefcount(text) == before
