"""What a thread was at, against a search through all events."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kuroshio.perf.timeline import nest as nests
from kuroshio.perf.timeline.nest import Nest
from kuroshio.perf.traces.events import Events, Kind

ROWS = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 25), st.integers(1, 2)), min_size=1, max_size=14
)


def table(rows) -> Events:
    return Events.of(
        ("op",),
        kind=[Kind.OPERATOR for _ in rows],
        name=[0 for _ in rows],
        start=[start for start, _, _ in rows],
        end=[start + length for start, length, _ in rows],
        process=[1 for _ in rows],
        thread=[thread for *_, thread in rows],
    ).in_order()


@given(ROWS)
def test_a_parent_is_the_nearest_before_that_ends_no_earlier(rows):
    events = table(rows)
    found = Nest(events).parents(np.arange(len(events)))
    for row in range(len(events)):
        before = [
            other
            for other in range(row)
            if events.thread[other] == events.thread[row] and events.end[other] >= events.end[row]
        ]
        assert found[row] == (before[-1] if before else -1)


@given(ROWS)
def test_both_ways_to_parents_agree(rows):
    events = table(rows)
    order = np.lexsort((-events.end, events.start, events.thread))
    thread, ends = events.thread[order], events.end[order]
    assert nests._parents_in_turn(thread, ends).tolist() == nests._parents(thread, ends).tolist()


def test_what_is_nested_very_deep_is_passed_over_once(monkeypatch):
    """Each of many calls ends before the operators around it do: a round for each, at once."""
    rows = [(number, 4000 - 2 * number, 1) for number in range(1000)]
    rows += [(2990 + number, 1, 1) for number in range(1000)]
    events = table(rows)
    passed = []
    in_turn = nests._parents_in_turn
    monkeypatch.setattr(
        nests, "_parents_in_turn", lambda *given: passed.append(1) or in_turn(*given)
    )
    found = Nest(events).parents(np.arange(len(events)))
    assert passed == [1]
    last = int(found[-1])
    assert events.end[last] >= events.end[-1]
    assert events.start[last] <= events.start[-1]


@st.composite
def nested(draw) -> Events:
    """Properly nested, as a call stack is."""
    rows = []

    def fill(start: int, end: int, depth: int) -> None:
        at = start
        while depth < 4 and at < end and draw(st.booleans()):
            first = draw(st.integers(at, end - 1))
            last = draw(st.integers(first + 1, end))
            rows.append((first, last - first, 1))
            fill(first, last, depth + 1)
            at = last

    fill(0, 60, 0)
    return table(rows or [(0, 10, 1)])


@given(nested(), st.integers(-2, 65))
def test_the_innermost_is_the_shortest_that_is_under_way(events, moment):
    nest = Nest(events)
    found = int(nest.innermost(np.array([0]), np.array([moment]))[0])
    under_way = [r for r in range(len(events)) if events.start[r] <= moment < events.end[r]]
    if not under_way:
        assert found == -1
        return
    assert found in under_way
    assert events.duration[found] == min(events.duration[r] for r in under_way)
    chain = [int(rows[0]) for rows in nest.upwards(np.array([found]))]
    assert sorted(chain) == under_way


def test_of_an_unknown_thread_nothing_is_under_way():
    nest = Nest(table([(0, 10, 1)]))
    assert nest.innermost(np.array([-1]), np.array([5])).tolist() == [-1]
