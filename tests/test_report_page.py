"""The page without a browser: whole, safe and bounded, whatever a trace says."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diagnosis_cases import CASES
from html_parsed import Parsed
from kuroshio.perf.experiments.record import Record, now
from kuroshio.perf.report import lanes as drawing
from kuroshio.perf.report.diagnosis import diagnose
from kuroshio.perf.report.merging import merged, row
from kuroshio.perf.report.page import page
from kuroshio.perf.report.page_data import safe
from kuroshio.perf.traces.events import Events, Kind
from kuroshio.perf.traces.trace import Device, Trace
from test_findings import judged, ranks
from traces_made import MS, US, Made, healthy

HOSTILE = [
    "</script><script>window.hacked = 1</script>",
    "<!--<script>",
    "]]>",
    '<img src=x onerror="window.hacked = 1">',
    "' onmouseover='window.hacked = 1",
    '" style="background:url(http://evil.example/)',
    "line\u2028separator\u2029paragraph",
    "right\u202eto left",
    "\x1b[31mred\x00nul",
    "lone \ud800 surrogate",
    "&lt;b&gt; &amp;",
    "日本語の核",
    "javascript:alert(1)",
    "__proto__",
]
TAGS = {
    *("html", "head", "meta", "title", "style", "body", "main", "section", "h1", "h2", "h3", "p"),
    *("ul", "ol", "li", "div", "span", "button", "details", "summary", "dl", "dt", "dd", "table"),
    *("thead", "tbody", "tr", "th", "td", "canvas", "output", "noscript", "script"),
}
WORDS = st.text(st.characters(codec=None), max_size=40)


def hostile(names: list[str]) -> Trace:
    """These names wherever a trace has names; data loading among them, for a finding."""
    made, at = Made(), 1 * MS
    for name in names:
        made.operator(f"DataLoader {name}", at, at + 2 * MS)
        made.annotation(name, at, at + 3 * MS)
        made.call(name, at + 2 * MS, at + 2 * MS + 10 * US)
        at += 2 * MS + 50 * US
        made.launch(name, at, 300 * US, stream=hash(name) % 3, others={name: name})
        at += 1 * MS
    return made.trace(
        path=f"{names[0].replace('/', '')[:50]}.json", form=names[-1], cannot_tell=tuple(names),
        devices={0: Device(0, names[0], names[0], names[0], 100)},
    )  # fmt: skip


def data(made: str) -> dict:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', made, re.DOTALL)
    assert found
    return json.loads(found[1])


def check(made: str) -> Parsed:
    parsed = Parsed(made)
    assert {tag for tag, _ in parsed.elements} <= TAGS
    scripts = parsed.all("script")
    assert scripts == [{"type": "application/json", "id": "data"}, {}]
    for tag, attributes in parsed.elements:
        assert not any(name.startswith("on") for name in attributes), tag
        assert not {"src", "href", "action", "background"} & set(attributes), tag
    return parsed


@pytest.mark.parametrize("key", CASES)
def test_the_page_is_whole_and_needs_nothing_else(key):
    made = page(diagnose([CASES[key](True)]))
    parsed = check(made)
    assert not re.search(r"https?:|//[a-z]+\.|url\(|@import|fetch\(|XMLHttp|WebSocket", made)
    policy = next(
        m["content"] for m in parsed.all("meta") if "content" in m and "default" in m["content"]
    )
    assert policy.startswith("default-src 'none'")
    assert "script-src 'sha256-" in policy
    assert any(each.get("name") == "viewport" for each in parsed.all("meta"))
    assert "prefers-color-scheme: dark" in made
    assert "prefers-reduced-motion" in made
    buttons = [each for each in parsed.all("button") if each.get("class") == "finding"]
    assert len(buttons) == (key != "no-device-work")  # which has no place to go to
    identities = [each["id"] for _, each in parsed.elements if "id" in each]
    assert len(identities) == len(set(identities))


def test_the_script_is_the_one_that_the_policy_allows():
    import base64
    import hashlib

    made = page(diagnose([healthy().trace()]))
    script = made.rpartition("<script>")[2].partition("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"sha256-{digest}" in made


def test_what_it_says():
    diagnosis = diagnose([CASES["data-loading"](True)])
    parsed = check(page(diagnosis))
    words = " ".join(parsed.words)
    for said in (
        diagnosis.sentence,
        diagnosis.findings[0].summary,
        "kernel3",
        "Holes",
        "A hole is",
        "Choose a finding",
        "how many times as fast",
        "previous place",
    ):
        assert said in words
    bars = [each["aria-label"] for each in parsed.all("div") if each.get("role") == "img"]
    assert any("reading" in label for label in bars)


def test_nothing_is_offered_that_is_not_there():
    """Without work of a device: no places to go to, no holes, no parts of steps."""
    made = Made()
    made.annotation("ProfilerStep#1", 0, 5 * MS)
    made.operator("aten::mm", 1 * MS, 2 * MS)
    words = " ".join(check(page(diagnose([made.trace()]))).words)
    for said in ("previous place", "Choose a finding", "A hole is", "how many times as fast"):
        assert said not in words
    assert "it is not told what they consist of" in words


def test_pages_of_ranks_of_roofs_and_of_experiments():
    record = Record("Pinned <memory>", now())
    made = page(diagnose(ranks(500, 900), [judged("neither", 0.1, None)], [record]))
    words = " ".join(check(made).words)
    for said in ("Rank 0", "Pinned <memory>", "Roofline", "Experiments", "neither", "Messages"):
        assert said in words
    assert [each["title"] for each in data(made)["traces"]] == ["rank 0", "rank 1"]


def test_pages_of_nothing():
    empty = Trace(Path("empty.json"), "made by hand", Events.of((), start=[]))
    made = page(diagnose([empty]))
    assert "No device worked" in " ".join(check(made).words)
    assert data(made)["traces"][0]["lanes"] == []


def test_hostile_names_stay_text():
    made = page(diagnose([hostile(HOSTILE)]))
    parsed = check(made)
    words = " ".join(parsed.words)
    assert "<img src=x onerror=" in words
    assert "日本語の核" in words
    assert "__proto__" in data(made)["names"]
    for sign in ("\u2028", "\u202e", "\x1b", "\x00", "\ud800"):
        assert sign not in made
    made.encode("utf-8")


@settings(max_examples=60)
@given(st.lists(WORDS, min_size=1, max_size=4))
def test_any_name_stays_text(names):
    made = page(diagnose([hostile(names)]))
    check(made)
    made.encode("utf-8")
    assert made.count("</script>") == 2


@given(st.recursive(st.none() | st.booleans() | st.integers() | WORDS, st.lists, max_leaves=5))
def test_json_within_a_page_is_the_same_and_safe(content):
    text = safe(content)
    assert json.loads(text) == content
    assert text.isascii()
    assert not set("<>&") & set(text)


# -- a million events ------------------------------------------------------------------------------


def large(number: int, names: int = 50, length: int = 30) -> Trace:
    rng = np.random.default_rng(6)
    kind = np.tile([Kind.KERNEL, Kind.CALL, Kind.OPERATOR, Kind.COPY], number // 4)
    start = np.sort(rng.integers(0, number * 2000, number))
    on_device = (kind == Kind.KERNEL) | (kind == Kind.COPY)
    return Trace(
        Path("large.json"), "made by hand",
        Events.of(
            [f"{'n' * length}{each}" for each in range(names)],
            kind=kind, name=rng.integers(0, names, number), start=start,
            end=start + rng.integers(1, 3000, number),
            device=np.where(on_device, 0, -1), stream=np.where(on_device, 7, -1),
            thread=np.where(on_device, -1, rng.integers(1, 30, number)),
        ).in_order(),
    )  # fmt: skip


@pytest.mark.parametrize(("number", "names", "length"), [(1_000_000, 50, 30), (60_000, 21_000, 60)])
def test_a_page_of_many_events_or_names_is_bounded(number, names, length):
    trace = large(number, names, length)
    made = page(diagnose([trace]))
    assert len(made) < 8e6
    drawn = data(made)
    rows = [row for lane in drawn["traces"][0]["lanes"] for row in lane["rows"]]
    assert sum(len(row["start"]) for row in rows) <= drawing.MOST * 1.1
    assert ("are drawn as" in made) == (number > drawing.MOST)
    assert len(drawn["names"]) <= 20_000
    assert "threads of the host" in made


def test_a_page_of_many_ranks_is_bounded():
    traces = [replace(large(8000), rank=rank, path=Path(f"{rank}.json")) for rank in range(40)]
    made = page(diagnose(traces))
    check(made)
    assert len(made) < 8e6
    lanes = [lane for each in data(made)["traces"] for lane in each["lanes"]]
    assert sum(len(row["start"]) for lane in lanes for row in lane["rows"]) <= drawing.MOST * 1.1
    assert "Of 40 traces the first 16 are shown" in made


def test_columns_are_those_of_the_trace():
    trace = CASES["data-loading"](True)
    drawn = data(page(diagnose([trace])))
    lanes = {lane["label"]: lane for lane in drawn["traces"][0]["lanes"]}
    stream = lanes["device 0, stream 7"]["rows"][0]
    kernels = trace.events[trace.events.kind == Kind.KERNEL]
    starts = np.cumsum(stream["start"]) + int(trace.events.start[0])
    assert starts.tolist() == kernels.start.tolist()
    assert stream["length"] == kernels.duration.tolist()
    assert [drawn["names"][each] for each in stream["name"]] == [
        kernels.named(each) for each in range(len(kernels))
    ]
    assert stream["count"] == []
    holes = lanes["device 0: holes"]["rows"][0]
    assert {drawn["names"][each] for each in holes["name"]} == {
        "data loading: enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    }


@given(
    st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 300)), min_size=1, max_size=200),
    st.integers(1, 50),
)
def test_merging_loses_no_event_and_no_long_one(pairs, most):
    start = np.cumsum([pause for pause, _ in pairs])
    end = start + np.array([lasts for _, lasts in pairs])
    whole = row(start, end, np.arange(len(pairs)), np.zeros(len(pairs), np.int64))
    few = merged(whole, most)
    assert len(few) <= max(most, 1)
    assert few.count.sum() == len(pairs)
    assert few.start[0] == start[0]
    assert few.end.max() == end.max()
    alone = few.count == 1
    for at in np.flatnonzero(alone):
        assert few.end[at] - few.start[at] == end[few.name[at]] - start[few.name[at]]
    # Each rectangle has the name of the longest event within it.
    longest = (end - start)[few.name]
    assert (longest <= few.end - few.start).all()
    assert longest.max() == (end - start).max()


def test_lanes_say_what_they_leave_out():
    trace = large(4000)
    few = drawing.lanes(diagnose([trace]).analyses[0], most=1000)
    assert any("are drawn as" in each for each in few.left_out)
    none = drawing.lanes(diagnose([replace(trace, events=trace.events[:40])]).analyses[0])
    assert not any("are drawn as" in each for each in none.left_out)


def test_of_many_threads_those_with_the_most_time_are_drawn():
    """Of a pipeline that is starved by start-up: the thread that starts, which has two spans."""
    made = Made()
    for thread in range(2, 14):
        for at in range(100, 150):
            made.stage("read", at * MS, at * MS + 10 * US, thread=thread)
    made.stage("start", 0, 80 * MS, thread=1)
    trace = made.trace()
    labels = [lane.label for lane in drawing.lanes(diagnose([trace]).analyses[0]).lanes]
    assert "host, thread 1" in labels
    assert len(labels) == 8


def test_a_pipeline_has_roles_and_no_parts_of_steps():
    trace = CASES["pipeline-start-up"](True)
    said = page(diagnose([trace]))
    legend = re.findall(r"<li>.*?</li>", said[said.index('id="timeline-part"') :])
    assert any("start-up" in each for each in legend)
    assert not any("output and other" in each for each in legend)
    assert "whole recording" not in said


def test_a_role_that_others_hide_is_in_the_timeline_s_legend():
    """Output while kernels compute is no part of the pipeline's time, and is drawn."""
    made = Made()
    for at in range(10):
        made.stage("compute", at * 10 * MS, (at + 1) * 10 * MS, thread=2)
        made.stage("write", at * 10 * MS + MS, at * 10 * MS + 2 * MS, thread=3)
        made.kernel("device compute", at * 10 * MS, 10 * MS)
    trace = made.trace()
    found = diagnose([trace])
    said = page(found)
    legend = re.findall(r"<li>.*?</li>", said[said.index('id="timeline-part"') :])
    assert any("output" in each for each in legend)
    assert not any("link" in each for each in legend)
