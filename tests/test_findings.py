"""Every rule fires on its case, alone, and is silent on the healthy twin."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diagnosis_cases import CASES, H100, THREADS, data_loading, jitter
from kuroshio.perf.ceilings.ceiling import GB, Ceiling
from kuroshio.perf.findings import rules
from kuroshio.perf.findings.finding import MOST_PLACES, Finding
from kuroshio.perf.findings.seen import WORTH
from kuroshio.perf.report.diagnosis import Diagnosis, diagnose
from kuroshio.perf.roofline import Judgement, Point
from kuroshio.perf.traces.events import Direction, joined
from kuroshio.perf.traces.trace import Trace
from traces_made import MS, US, Made, healthy

ALL = [*CASES.items(), *THREADS.items()]
NAMES = [*CASES, *(f"{key}, threads" for key in THREADS)]


def keys(diagnosis: Diagnosis) -> list[str]:
    return [each.key for each in diagnosis.findings]


@pytest.mark.parametrize(("key", "make"), ALL, ids=NAMES)
def test_each_rule_fires_on_its_case_alone(key, make):
    assert keys(diagnose([make(True)])) == [key]
    assert keys(diagnose([make(False)])) == []


def test_every_rule_has_a_case():
    said = {
        "hot_kernel",  # below: it needs counters
        "no_device_work", "data_loading", "host_late", "communication_holes", "other_holes",
        "synchronisations", "read_backs", "blocking_copies", "allocations", "tiny_kernels",
        "exposed_copies", "exposed_communication", "few_blocks", "beyond_registers", "jitter",
        "bottleneck",
    }  # fmt: skip
    assert {each.__name__ for each in (*rules.RULES, *rules.OF_PIPELINES)} == said


@pytest.mark.parametrize(("key", "make"), ALL, ids=NAMES)
def test_a_finding_is_whole(key, make):
    trace = make(True)
    found = diagnose([trace]).findings[0]
    assert found.title
    assert found.summary.endswith(".")
    assert found.verify
    assert found.directions
    assert found.how
    first, last = int(trace.events.start[0]), int(trace.events.end.max())
    assert len(found.places) <= MOST_PLACES
    assert len(found.places) <= found.places_in_all
    for place in found.places:
        assert first <= place.start < place.end <= last
    if key != "no-device-work":
        assert found.places
    if found.saves is not None:
        assert WORTH * found.of < found.saves <= found.bound <= found.of
        assert found.speedup is None or found.speedup == pytest.approx(
            1 / (1 - found.bound / found.of)
        )
    json.dumps(found.as_json())


def test_healthy_steps_yield_nothing():
    diagnosis = diagnose([healthy().trace()])
    assert diagnosis.findings == ()
    assert "no rule found anything" in diagnosis.sentence


def test_savings_are_those_of_the_case():
    trace = data_loading(True)
    found = diagnose([trace]).findings[0]
    # Five batches after the first; the device idles until the first launch has arrived.
    assert found.figures["holes"] == 5
    assert found.saves == pytest.approx(5 * (4 * MS - 165 * US), rel=0.03)
    assert found.saves == sum(place.duration for place in found.places)
    jittery = diagnose([jitter(True)]).findings[0]
    # Four slow steps of 100 to 190 us; their medians are those of the rest.
    assert jittery.saves == 4 * sum((100 + 10 * number) * US for number in range(10))
    assert jittery.figures["p90_to_median"] == pytest.approx(2.0)


def on_several(trace: Trace, devices: int) -> Trace:
    """The same work on each of so many devices, at the same time."""
    events = trace.events
    copies = [
        replace(events, device=np.where(events.on_device, number, -1).astype(np.int32))
        for number in range(devices)
    ]
    parts = [copies[0], *(each[each.on_device] for each in copies[1:])]
    told = {number: replace(trace.devices[0], number=number) for number in range(devices)}
    return replace(trace, events=joined(parts).in_order(), devices=told)


@pytest.mark.parametrize("key", ["few-blocks", "jitter", "tiny-kernels"])
def test_devices_that_work_at_once_save_their_time_once(key):
    trace = CASES[key](True)
    trace = replace(trace, devices=trace.devices or H100)
    one, four = (
        next(each for each in diagnose([each]).findings if each.key == key)
        for each in (trace, on_several(trace, 4))
    )
    assert (four.saves, four.of) == (one.saves, one.of)


def test_holes_of_devices_that_idle_at_once_are_not_added():
    """One device has holes that are asked about, the others shorter ones, and less to do."""
    made = Made()
    for device, (idle, until) in enumerate([(9 * US, 1000 * US), *[(4 * US, 400 * US)] * 3]):
        for number in range(until // (idle + 1 * US)):
            made.kernel("tiny", number * (idle + 1 * US), 1 * US, device=device)
    found = diagnose([made.trace()]).findings
    assert [each.key for each in found] == ["tiny-kernels"]
    assert found[0].saves == 99 * 9 * US


@pytest.mark.parametrize(("number", "key"), [(9, "host-late"), (10, "tiny-kernels")])
def test_a_few_tiny_kernels_are_not_many(number, key):
    made = Made()
    for at in range(number):
        made.launch("tiny", at * 40 * US, 2 * US)
    assert keys(diagnose([made.trace()])) == [key]


@pytest.mark.parametrize("later", [20 * US, 100 * US])
def test_kernels_beside_which_others_run_do_not_waste_the_device(later):
    """Each of few blocks, and a wide one that begins before it has ended, or after."""
    made = Made()
    for number in range(20):
        at = (1 + number) * 200 * US
        made.kernel("narrow", at, 100 * US, grid=(4, 1, 1), block=(256, 1, 1))
        made.kernel("wide", at + later, 200 * US - later, grid=(400, 1, 1), stream=9)
    found = keys(diagnose([made.trace(devices=H100)]))
    assert found == (["few-blocks"] if later == 100 * US else [])


@pytest.mark.parametrize("key", ["communication", "exposed-copies"])
def test_what_another_device_computes_hides_nothing(key):
    """Two devices in turn: one computes while the other communicates, or copies."""
    made = Made()
    for number in range(20):
        for device in (0, 1):
            made.kernel("gemm", (2 * number + device) * MS, 1 * MS, device=device)
            at = (2 * number + 1 - device) * MS
            if key == "communication":
                made.kernel("ncclDevKernel_AllReduce", at, 1 * MS, device=device, stream=9)
            else:
                made.copy(Direction.TO_DEVICE, 0, 1 * MS, device=device, stream=9, begins=at)
    found = diagnose([made.trace()]).findings
    assert [each.key for each in found] == [key]
    assert found[0].saves == 20 * MS
    assert found[0].summary.startswith("On device 0: ")


def test_copies_without_any_computation_are_the_work_itself():
    made = Made()
    for number in range(20):
        made.copy(Direction.TO_DEVICE, 0, 1 * MS, begins=number * MS)
    assert keys(diagnose([made.trace()])) == []


def test_a_hot_kernel_on_streams_at_once_saves_no_more_than_there_is():
    made = Made()
    for stream in range(4):
        for number in range(10):
            made.kernel("gemm", (1 + number) * MS, 900 * US, stream=stream)
    named = judged("neither", 0.1, None)
    named = replace(named, point=replace(named.point, name="gemm"))
    found = next(e for e in diagnose([made.trace()], [named]).findings if e.key == "hot-neither")
    assert found.of < 4 * 9000 * US * 0.9
    assert found.saves == 9000 * US


def test_the_most_to_save_comes_first():
    made, at = Made(), 1 * MS
    for number in range(40):
        if number % 8 == 0:
            made.operator("DataLoader.__next__", at, at + 2 * MS)
            at += 2 * MS
        made.operator("aten::slow", at, at + 150 * US)
        at += 150 * US
        made.launch("kernel", at - 5 * US, 100 * US)
    found = diagnose([made.trace()]).findings
    assert [each.key for each in found] == ["data-loading", "host-late"]
    assert found[0].saves > found[1].saves
    assert "a finding of their own" not in found[1].summary
    assert "What matters most: the device starves for data;" in diagnose([made.trace()]).sentence


def test_what_the_tracer_may_have_done_is_said_and_not_counted():
    """Launched while the device worked, and begun long after it was free: no host was late."""
    made = Made()
    made.launch("kernel", 0, 1100 * US)  # how soon work begins as a rule
    for number in range(40):
        at = 1 * MS + number * 1 * MS
        made.launch("kernel", at, 300 * US, begins=at + 800 * US)
    diagnosis = diagnose([made.trace()])
    assert keys(diagnosis) == []
    assert any("tracer's own doing" in each for each in diagnosis.remarks)
    assert "But 28.0 ms of idle time may be the tracer's own doing: record" in diagnosis.sentence
    made.operator("DataLoader.__next__", at + 1 * MS, at + 4 * MS)
    made.launch("kernel", at + 4 * MS, 300 * US)
    less = diagnose([made.trace()])
    assert keys(less) == ["data-loading"]
    assert "idle time (more than that) may be" in less.sentence
    made.operator("DataLoader.__next__", at + 4 * MS, at + 40 * MS)
    made.launch("kernel", at + 40 * MS, 300 * US)
    assert "tracer" not in diagnose([made.trace()]).sentence


def test_jitter_is_no_work_of_another_size():
    """The same name with other grids, or another number of runs, is other work."""
    made, at = Made(), 1 * MS
    for step in range(20):
        begin = at
        for _ in range(10):
            slow = 2 if step % 5 == 2 else 1
            made.launch("kernel", at, 100 * US * slow, grid=(400 * slow, 1, 1))
            at += 100 * US * slow
        made.annotation(f"ProfilerStep#{step}", begin, at)
    assert keys(diagnose([made.trace()])) == []


def test_few_blocks_need_a_device_that_is_known():
    assert keys(diagnose([replace(CASES["few-blocks"](True), devices={})])) == []


def judged(kind: str, of_roof: float, ratio: float | None) -> Judgement:
    return Judgement(
        point=Point(name="kernel", seconds=1e-4), kind=kind, of_roof=of_roof,
        roof="memory, read", level="memory", attainable=None, rate=None, bandwidth=None,
        intensity=None, declared_intensity=None, ratio=ratio, ratio_says="",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "of_roof", "ratio", "key", "saves"),
    [
        ("bandwidth-bound", 0.9, 3.0, "hot-traffic", 0.7),
        ("bandwidth-bound", 0.8, None, "hot-traffic", 0.2),
        ("compute-bound", 0.7, None, "hot-compute", 0.3),
        ("neither", 0.1, None, "hot-neither", 0.9),
        ("bandwidth-bound", 0.97, 1.01, None, 0.0),
        ("compute-bound", 1.0, None, None, 0.0),
    ],
)
def test_hot_kernels_are_judged_by_what_was_counted(kind, of_roof, ratio, key, saves):
    trace = CASES["few-blocks"](False)
    found = diagnose([trace], [judged(kind, of_roof, ratio)]).findings
    assert [each.key for each in found] == ([key] if key else [])
    if key:
        assert found[0].saves / (60 * 100 * US) == pytest.approx(saves, abs=0.001)
    assert keys(diagnose([trace])) == []  # and without counters nothing is said


def ranks(*computes: int):
    traces = []
    for rank, lasts in enumerate(computes):
        made, at, end = Made(), 1 * MS, 0
        for _ in range(10):
            at += 20 * US
            end = made.launch("kernel", at, lasts * US)
        longest = max(computes) * 10 * US + 1 * MS + 200 * US
        made.launch("ncclDevKernel_AllReduce", at, longest - end, stream=9, begins=end)
        traces.append(made.trace(rank=rank, ranks=len(computes), path=f"rank{rank}.json"))
    return traces


@pytest.mark.parametrize(("before", "said"), [(9 * MS, False), (12 * MS, True)])
def test_steps_that_are_mostly_before_the_first_work(before, said):
    made = Made()
    made.annotation("ProfilerStep#1", 0, before + 10 * MS)
    made.launch("gemm", before, 10 * MS)
    remarks = [each for each in diagnose([made.trace()]).remarks if "Shares are of the" in each]
    assert len(remarks) == said
    assert not said or "The steps took 22.0 ms" in remarks[0]


def test_unequal_ranks():
    diagnosis = diagnose(ranks(500, 500, 1000, 500))
    found = next(each for each in diagnosis.findings if each.key == "imbalance")
    assert found.figures["slowest"] == 2
    assert found.saves == pytest.approx((1000 - 625) * 10 * US)
    assert found.places[0].trace == 2
    assert "Rank 2 computes" in found.summary
    assert "imbalance" not in keys(diagnose(ranks(500, 510, 505, 500)))


def sending(*messages: tuple[int, int, int], spare: int = 100 * US):
    """Two ranks that send so many messages of so many bytes, each for so long, and compute."""
    traces = []
    for rank in range(2):
        made, at = Made(), 1 * MS
        for number, nbytes, lasts in messages:
            items = str(nbytes // 4)
            said = {"Collective name": "allreduce", "In msg nelems": items, "dtype": "Float",
                    "Out msg nelems": items, "Group size": "2"}  # fmt: skip
            for _ in range(number):
                at = made.launch("ncclDevKernel_AllReduce", at, lasts, stream=9, others=said)
                at = made.launch("gemm", at, spare)
        traces.append(made.trace(rank=rank, ranks=2, path=f"rank{rank}.json"))
    return traces


LARGE = (2, 40_000_000, 1 * MS)  # 40 GB/s


def test_messages_that_are_mostly_latency():
    diagnosis = diagnose(sending((100, 4000, 50 * US), LARGE))
    found = next(each for each in diagnosis.findings if each.key == "small-messages")
    assert found.saves == 100 * (50 * US - 100)
    assert "100 messages (all-reduce) of 4.0 kB on average take 5.00 ms" in found.summary
    assert "0.08 GB/s; large ones attain 40 GB/s" in found.summary
    assert {place.duration for place in found.places} == {50 * US}
    assert found.figures["bytes"] == 400_000


def test_messages_that_took_longer_than_most_count_as_they_were():
    diagnosis = diagnose(sending((50, 4000, 50 * US), (40, 4000, 500 * US), LARGE))
    found = next(each for each in diagnosis.findings if each.key == "small-messages")
    assert found.figures["time_ns"] == diagnosis.ranks.messages[0].total == 22_500 * US
    assert found.saves == 22_500 * US - 90 * 100


@pytest.mark.parametrize(
    ("messages", "spare"),
    [
        ([(100, 4_000_000, 100 * US), LARGE], 100 * US),  # they attain what large ones do
        ([(100, 4_000_000, 199 * US), LARGE], 100 * US),  # or a little more than half of it
        ([(9, 4000, 500 * US), LARGE], 100 * US),  # few
        ([(100, 4000, 50 * US), LARGE], 2 * MS),  # and little of the time
        ([(100, 4000, 50 * US)], 100 * US),  # nothing tells what large ones attain
        ([(100, 4000, 50 * US), (2, 8000, 50 * US)], 100 * US),  # nor do those, hardly larger
    ],
)
def test_messages_that_are_none_of_it(messages, spare):
    assert "small-messages" not in keys(diagnose(sending(*messages, spare=spare)))


def test_ten_messages_are_many():
    assert "small-messages" in keys(diagnose(sending((10, 4000, 500 * US), LARGE)))


def test_measured_messages_tell_what_large_ones_attain():
    measured = [
        Ceiling("all-reduce of 2", "link", GB, value, value, value, 5, "", message_bytes=size)
        for size, value in ((1 << 10, 0.02), (1 << 28, 300.0))
    ]
    traces = sending((100, 4000, 50 * US))
    found = next(e for e in diagnose(traces, ceilings=measured).findings if "small" in e.key)
    assert "large ones attain 3e+02 GB/s" in found.summary


def test_no_more_is_saved_than_is_exposed():
    traces = []
    for each in sending((100, 4000, 50 * US), LARGE):
        made = Made()
        end = int(each.events.end.max())
        made.launch("gemm", 0, end - 10 * MS, stream=3)
        traces.append(replace(each, events=joined([each.events, made.trace().events])))
    diagnosis = diagnose(traces)
    found = next(each for each in diagnosis.findings if each.key == "small-messages")
    assert found.saves == diagnosis.ranks.ranks[0].exposed < 100 * (50 * US - 100)


def test_what_several_traces_show_is_one_finding():
    diagnosis = diagnose(ranks(500, 900, 1000))
    found = next(each for each in diagnosis.findings if each.key == "communication")
    assert found.summary.startswith("Rank 0: ")
    assert "Also in rank 1" in found.summary
    assert {place.trace for place in found.places} >= {0, 1}


@settings(max_examples=30)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["launch", "copy", "wait", "work", "kernel"]),
            st.integers(1, 400), st.integers(0, 300),
        ),
        max_size=60,
    )
)  # fmt: skip
def test_nothing_ever_saves_more_than_there_is(steps):
    """And findings come in order, whatever the trace."""
    made, at = Made(), 1 * MS
    for what, lasts, pause in steps:
        at += pause * US
        if what == "launch":
            made.launch("kernel", at, lasts * US)
        elif what == "copy":
            made.copy(0, at, lasts * US, blocks=lasts % 2 == 0)
        elif what == "wait":
            at = made.wait("cudaStreamSynchronize", at)
        elif what == "work":
            made.operator("aten::op", at, at + lasts * US)
            at += lasts * US
        else:
            made.kernel("nccl", at, lasts * US, stream=9)
    diagnosis = diagnose([made.trace()]) if steps else None
    for each in diagnosis.findings if diagnosis else ():
        assert isinstance(each, Finding)
        assert each.saves is None or 0 < each.saves <= each.bound <= each.of
    saved = [each.saves for each in diagnosis.findings if each.saves] if diagnosis else []
    assert saved == sorted(saved, reverse=True)
    assert np.isfinite(saved).all()


def test_a_pipeline_shows_the_moments_in_which_the_device_waits():
    trace = CASES["pipeline-reading"](True)
    found = diagnose([trace]).findings[0]
    assert found.places_in_all == 40
    assert {place.duration for place in found.places} == {1 * MS}
    assert found.saves == 40 * MS
    kernels = trace.events[trace.events.kind == 0]
    for place in found.places:
        assert not ((kernels.start < place.end) & (kernels.end > place.start)).any()


@pytest.mark.parametrize(
    ("key", "title"),
    [("pipeline-reading", "starved by reading"), ("pipeline-kernel", "bound by the kernel"),
     ("pipeline-compiling", "starved by compiling")],
)  # fmt: skip
def test_what_bounds_a_pipeline_does_not_starve_it(key, title):
    assert diagnose([CASES[key](True)]).findings[0].title == f"The pipeline is {title}"
    threads = diagnose([THREADS["pipeline-reading"](True)]).findings[0]
    assert threads.title == "The pipeline is bound by reading"


def test_a_link_says_what_it_carries():
    """One that carries far less than it can is not what there is too little of."""
    made = Made()
    for at in range(0, 20, 2):
        made.stage("read", at * MS, (at + 1) * MS)
        made.copy(Direction.TO_DEVICE, at * MS, 1 * MS, begins=at * MS, bytes=2_500_000)
        made.kernel("windows", (at + 1) * MS, 1 * MS)
    assert " Copies carry 2.5 GB/s." in diagnose([made.trace()]).findings[0].summary


def test_what_threads_could_save_counts_that_others_wait_for_it():
    made = Made()
    made.stage("read", 0, 8 * MS, thread=1)
    made.stage("read", 0, 6 * MS, thread=2)
    made.stage("compute", 8 * MS, 10 * MS, thread=1)
    found = diagnose([made.trace()]).findings[0]
    assert (found.key, found.saves) == ("pipeline-reading", 9 * MS)


def test_what_the_rest_needs_is_not_saved():
    """On as many threads; what only one can do, and what a thread that waits does, on one."""
    made = Made()
    made.stage("compile", 0, 10 * MS, thread=1)
    for thread in (1, 2):
        made.stage("inflate", 10 * MS, 50 * MS, thread=thread)
        made.stage("compute", 50 * MS, 52 * MS, thread=thread)
    found = diagnose([made.trace()]).findings[0]
    assert (found.key, found.saves) == ("pipeline-reading", (52 - 10) * MS)
    made.stage("write", 0, 15 * MS, thread=3)
    made.stage("wait", 15 * MS, 52 * MS, thread=3)
    found = diagnose([made.trace()]).findings[0]
    assert (found.key, found.saves) == ("pipeline-reading", (52 - 15) * MS)


@pytest.mark.parametrize(("lasts", "said"), [(30, True), (15, False)])
def test_files_that_are_described_need_no_faster_disk(lasts, said):
    made = Made()
    made.stage("index", 0, lasts * MS, thread=1)
    for thread in (1, 2):
        made.stage("inflate", lasts * MS, (lasts + 20) * MS, thread=thread)
    found = diagnose([made.trace()]).findings[0]
    assert found.key == "pipeline-reading"
    assert ("describing files" in found.title) == said
    assert any("--no-cache" in each for each in found.directions) == said
    assert found.saves == (lasts if said else lasts + 20) * MS


def test_waiting_is_shown_where_nobody_works():
    made = Made()
    for thread in (1, 2):
        for at in range(0, 100, 10):
            made.stage("read", at * MS, (at + 2) * MS, thread=thread)
    made.stage("wait", 0, 100 * MS, thread=3)
    found = diagnose([made.trace()]).findings[0]
    assert found.key == "pipeline-waiting"
    assert found.places_in_all == 10
    assert {place.duration for place in found.places} == {8 * MS}


@settings(max_examples=25)
@given(st.integers(2, 20), st.integers(20, 80), st.integers(25, 300))
def test_whatever_runs_well_yields_nothing(steps, kernels, lasts):
    """The device is fed in time, whatever it does and for how long."""
    assert keys(diagnose([healthy(steps=steps, kernels=kernels, lasts=lasts * US).trace()])) == []


@pytest.mark.parametrize(("share", "found"), [(0.045, []), (0.055, ["data-loading"])])
def test_from_where_on_it_is_worth_a_finding(share, found):
    made, at = Made(), 1 * MS
    for half in range(2):
        for _ in range(50):
            at += 20 * US
            end = made.launch("kernel", at, 100 * US)
        if half == 0:
            hole = round(share / (1 - share) * 10 * MS)
            at = end + hole - 25 * US  # the next launch is 20 us later, and takes 5 us to arrive
            made.operator("DataLoader.__next__", end - 10 * US, at + 10 * US)
    diagnosis = diagnose([made.trace()])
    assert keys(diagnosis) == found
    idle = diagnosis.analyses[0].work.idle
    assert idle == pytest.approx(share * diagnosis.analyses[0].work.span, rel=0.01)


@pytest.mark.parametrize(("ends", "keys"), [(100, ["pipeline-reading"]), (50, [])])
def test_what_a_device_did_after_the_run_is_not_believed(ends, keys):
    """Timelines were written once that put copies one behind the other, beyond the run's end."""
    made = Made()
    made.annotation("climatology", 0, ends * MS)
    for at in range(0, 100, 10):
        made.stage("read", at * MS, (at + 9) * MS, thread=1)
        made.kernel("windows", (at + 9) * MS, 1 * MS)
    diagnosis = diagnose([made.trace()])
    assert [each.key for each in diagnosis.findings] == keys
    assert any("ends 50 ms after the run" in each for each in diagnosis.remarks) == (not keys)
    assert diagnosis.sentence.endswith("nothing is judged.") == (not keys)
