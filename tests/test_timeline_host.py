"""What the host did: time of its own and with what it called, thread by thread."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kuroshio.perf.report.diagnosis import diagnose
from kuroshio.perf.report.page import page
from kuroshio.perf.report.terminal import text
from kuroshio.perf.timeline.host import MOST_NAMES
from kuroshio.perf.timeline_text import text as timeline
from kuroshio.perf.traces.events import Kind
from timelines import analysed
from traces_made import MS, Made

# Each thread's calls: how long one waits before it begins, how long it works itself, its name, and
# what it calls.
CALLS = st.recursive(
    st.tuples(st.integers(0, 9), st.integers(1, 9), st.sampled_from("abcd"), st.just([])),
    lambda inner: st.tuples(
        st.integers(0, 9), st.integers(1, 9), st.sampled_from("abcd"), st.lists(inner, max_size=3)
    ),
    max_leaves=12,
)


def record(made: Made, call, at: int, thread: int, own: dict, total: dict) -> int:
    """Half of its own time comes before what it calls; the end is returned."""
    pause, works, name, inner = call
    start = at + pause
    end = start + works // 2
    for each in inner:
        end = record(made, each, end, thread, own, total)
        own[name] += each[0]  # a pause within it is its own
    end += works - works // 2
    made.operator(name, start, end, thread=thread)
    own[name] += works
    total[name] += end - start
    return end


@given(st.lists(st.lists(CALLS, min_size=1, max_size=3), min_size=1, max_size=3))
def test_own_and_total_times(threads):
    made, own, total = Made(), defaultdict(int), defaultdict(int)
    for thread, calls in enumerate(threads):
        at = 10
        for call in calls:
            at = record(made, call, at, thread, own, total)
    host = analysed(made).host
    assert {each.name: each.own for each in host.names} == dict(own)
    assert {each.name: each.times.total for each in host.names} == dict(total)
    assert host.threads == len(threads)
    assert host.busy == sum(own.values())
    assert abs(sum(each.share for each in host.names) - 1) < 1e-9
    assert [each.own for each in host.names] == sorted(own.values(), reverse=True)


ANY = st.tuples(
    st.sampled_from([Kind.OPERATOR, Kind.CALL, Kind.ANNOTATION]),
    st.sampled_from("abc"), st.integers(0, 12), st.integers(0, 9), st.integers(1, 2),
)  # fmt: skip


@given(st.lists(ANY, min_size=1, max_size=9))
def test_events_that_overlap_share_no_moment(told):
    """As in damaged files, and where several of a program's own threads have one number."""
    made = Made()
    for kind, name, start, lasts, thread in told:
        made.add(kind, name, start, start + lasts, process=1, thread=thread)
    events = made.events()
    own, busy = defaultdict(int), 0
    for thread in (1, 2):
        for at in range(22):
            here = [
                (events.start[row], -events.end[row], row)
                for row in np.flatnonzero(events.thread == thread)
                if events.start[row] <= at < events.end[row]
            ]
            if here:
                own[events.named(max(here)[2])] += 1
                busy += 1
    host = analysed(made).host
    assert {each.name: each.own for each in host.names if each.own} == dict(own)
    assert host.busy == busy


def test_of_a_great_many_names_those_with_the_most_time_are_kept():
    made = Made()
    for at in range(MOST_NAMES + 5):
        made.operator(f"op{at}", 2000 * at, 2000 * at + at // 2)
    diagnosis = diagnose([made.trace()])
    host = diagnosis.as_json()["traces"][0]["host"]
    assert (len(host["names"]), host["count"]) == (MOST_NAMES, MOST_NAMES + 5)
    assert host["names"][0]["name"] == f"op{MOST_NAMES + 4}"
    assert host["names"][-1]["own"] == 2
    assert host["busy"] == sum(at // 2 for at in range(MOST_NAMES + 5))
    assert "990 of 995 more with --json" in text(diagnosis, None).replace("\n", " ")


def test_ranges_that_differ_in_numbers_are_one():
    made = Made()
    for step in range(3):
        made.annotation(f"step {step}", step * 10 * MS, (step + 1) * 10 * MS)
        made.annotation("all2all", step * 10 * MS, step * 10 * MS + MS)
        made.operator(f"conv{step}", step * 10 * MS + 2 * MS, step * 10 * MS + 3 * MS)
    names = {each.name: (each.own, each.kind) for each in analysed(made).host.names}
    assert names["step N"] == (3 * 8 * MS, "range")
    assert names["all2all"] == (3 * MS, "range")
    assert names["conv1"] == (MS, "operator")


def test_a_pipeline_has_stages_and_no_such_table():
    made = Made()
    made.stage("read", 0, MS)
    assert analysed(made).host is None


def test_without_a_device_it_is_what_is_told():
    made = Made()
    for at in range(12):
        made.operator(f"op{at}", at * MS, (at + 1) * MS - at)
    diagnosis = diagnose([made.trace()])
    said = text(diagnosis, 60)
    assert "on the host" in said
    assert "op0" in said
    assert "op11" not in said
    assert "2 more with --json" in " ".join(said.split())
    assert max(map(len, said.splitlines())) <= 60
    assert len(diagnosis.as_json()["traces"][0]["host"]["names"]) == 12
    assert "What the host does" in page(diagnosis)
    assert "on the host" in timeline(diagnosis.analyses[0], 60)


def test_with_a_device_it_is_in_the_timeline_and_on_the_page():
    made = Made()
    made.launch("gemm", 0, MS)
    diagnosis = diagnose([made.trace()])
    assert "on the host" not in text(diagnosis, 80)
    assert "cudaLaunchKernel" in timeline(diagnosis.analyses[0], 80)
    assert "What the host does" in page(diagnosis)
