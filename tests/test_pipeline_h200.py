"""Timelines of runs on an H200 (benchmarks/results/h200-traces), and what bounded them there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kuroshio import perf
from kuroshio.perf.timeline.groups import during
from kuroshio.perf.traces.events import Kind

TRACES = Path(__file__).parent.parent / "benchmarks/results/h200-traces"


@pytest.mark.parametrize(
    ("name", "finding", "most"),
    [
        ("first-run", "pipeline-compiling", 3.6e9),  # of 6.0 s, by the run's own account
        ("year", "pipeline-start-up", 0.8e9),  # 65,000 cells: little work
        ("season", "pipeline-start-up", 0.8e9),
    ],
)
def test_what_starved_the_device(name, finding, most):
    diagnosis = perf.diagnose(TRACES / f"{name}.json.gz")
    assert [each.key for each in diagnosis.findings] == [finding]
    assert 0.6e9 < diagnosis.findings[0].saves < most


@pytest.mark.parametrize("name", ["first-run", "year", "season"])
def test_copies_of_all_threads_are_one_after_the_other(name):
    events = perf.read_trace(TRACES / f"{name}.json.gz").events
    copies = np.flatnonzero(events.kind == Kind.COPY)
    sent = copies[[events.named(row) == "device copy" for row in copies.tolist()]]
    busy = during(events, sent).total
    assert events.duration[sent].sum() == busy
    # A pinned link of 55 GB/s; files of 60 kB leave it before it is full.
    rate = events.bytes[sent].sum() / busy
    assert (40 if name == "season" else 10) < rate < 60
