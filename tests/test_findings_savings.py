"""What holes' findings could save at most, held to what is saved when their cause is gone.

A program of a host and a device is made up, run as a host and a stream do (in order, a launch ahead
of the device, waits that are waited for), diagnosed, and run again without the cause.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kuroshio.perf.report.diagnosis import diagnose
from kuroshio.perf.traces.events import Direction
from traces_made import MS, US, Made

Step = tuple[
    str, int
]  # what the host does, and for how long; of a launch how long its kernel takes
# What is gone from the host's program if a finding's advice is taken to its end.
_GONE = {
    "data-loading": {"load"},
    "host-late": {"work"},
    "synchronisation": {"wait"},
    "read-back": {"item"},
    "blocking-copies": {"copy"},
}


def run(steps: list[Step], gone: frozenset[str] | set[str] = frozenset()) -> Made:
    """All steps but those of the kinds that are gone."""
    made, at = Made(), 1 * MS
    for what, lasts in steps:
        if what in gone:
            continue
        if what == "launch":
            at += 5 * US
            made.launch("kernel", at, lasts)
            at += made.launching
        elif what == "load":
            made.operator("DataLoader.__next__", at, at + lasts)
            at += lasts
        elif what == "work":
            made.operator("python", at, at + lasts)
            at += lasts
        elif what == "wait":
            at = made.wait("cudaStreamSynchronize", at)
        elif what == "copy":
            at = made.copy(Direction.TO_DEVICE, at, lasts, blocks=True)
        else:
            begin, at = at, made.copy(Direction.TO_HOST, at, 2 * US, bytes=4, blocks=True)
            made.operator("aten::item", begin - 1 * US, at + 1 * US)
            at += 1 * US
    return made


def span(made: Made) -> int:
    events = made.trace().events
    mine = events[events.on_device]
    return int(mine.end.max() - mine.start.min())


STEPS = st.lists(
    st.tuples(st.sampled_from(sorted(set().union(*_GONE.values()))), st.integers(10, 3000),
              st.lists(st.integers(5, 800), min_size=1, max_size=6)),
    min_size=4, max_size=25,
)  # fmt: skip


@settings(max_examples=150)
@given(STEPS)
def test_no_more_is_saved_than_was_said(drawn):
    steps: list[Step] = [("launch", 50 * US)]
    for what, lasts, kernels in drawn:
        steps.append((what, lasts * US))
        steps += [("launch", each * US) for each in kernels]
    whole = run(steps)
    before = span(whole)
    for finding in diagnose([whole.trace()]).findings:
        if finding.key in _GONE:
            saved = before - span(run(steps, _GONE[finding.key]))
            assert finding.saves <= finding.bound
            assert saved <= finding.bound + 2 * US, finding.summary


def test_holes_of_another_cause_shrink_with_it():
    """Without loading the host is ahead when it comes to the small kernels of the next step."""
    steps: list[Step] = [("launch", 50 * US)]
    for _ in range(8):
        steps += [("load", 4 * MS), ("work", 300 * US)]
        steps += [step for _ in range(20) for step in (("work", 60 * US), ("launch", 20 * US))]
        steps += [("launch", 3 * MS)]
    whole = run(steps)
    found = next(each for each in diagnose([whole.trace()]).findings if each.key == "data-loading")
    saved = span(whole) - span(run(steps, {"load"}))
    assert found.saves < saved <= found.bound
    assert found.saves == pytest.approx(sum(each.duration for each in found.places), rel=0.01)
