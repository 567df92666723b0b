"""Several ranks: decomposition, imbalance, who came last, messages."""

from __future__ import annotations

import pytest

from kuroshio.errors import Refusal
from kuroshio.perf.ceilings.ceiling import GB, Ceiling
from kuroshio.perf.timeline.ranks import compare
from timelines import analysed
from traces_made import MS, US, Made

REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)"


def rank(number, compute=5 * MS, *, steps=4, sends=1 * MS, sending=REDUCE, others=None, ranks=2):
    """Steps of compute, then a collective that all ranks end together, a fifth covered."""
    made = Made()
    for step in range(steps):
        at = step * 20 * MS
        made.launch("gemm", at, compute)
        begin = at + made.delay + compute
        end = at + 10 * MS + sends
        made.launch(sending, begin - 10 * US, end - begin, begins=begin, stream=20,
                    others=others or {})  # fmt: skip
        made.launch("gemm", begin, (end - begin) // 5)
    return analysed(made, rank=number, ranks=ranks, path=f"rank{number}.json")


def test_a_rank_is_a_sum():
    found = compare([rank(0), rank(1)])
    for each in found.ranks:
        assert each.total == each.compute + each.communication + each.waiting - each.overlapped
        assert each.exposed == each.communication - each.overlapped
        assert each.covered == pytest.approx(0.2, abs=0.01)
    found.as_json()


def test_the_rank_with_the_most_compute_comes_last_and_is_known_by_a_short_collective():
    found = compare([rank(2, 5 * MS, ranks=3), rank(0, 5 * MS, ranks=3), rank(1, 8 * MS, ranks=3)])
    assert [each.rank for each in found.ranks] == [0, 1, 2]
    assert [each.trace.rank for each in found.analyses] == [0, 1, 2]
    assert found.imbalance.slowest == 1
    # Of 20 + 4 * 1.2 and 32 + 4 * 0.6 ms.
    assert found.imbalance.spread == pytest.approx(1 - 24.8 / 34.4, abs=0.01)
    assert found.imbalance.lost == pytest.approx((34.4 - (34.4 + 2 * 24.8) / 3) * MS, rel=0.01)
    assert found.last == (0, 4, 0)
    worst = found.stragglers[0]
    assert (worst.last, worst.waited) == (1, 3 * MS)
    assert [found.analyses[at].trace.events.named(row) for at, row in enumerate(worst.rows)] == [
        REDUCE
    ] * 3
    assert {each.order for each in found.stragglers} == {0, 1, 2, 3}


def test_equal_ranks_have_no_straggler():
    found = compare([rank(0), rank(1)])
    assert found.last == (0, 0)
    assert found.imbalance.spread == found.imbalance.lost == 0


def test_collectives_of_different_numbers_are_not_matched():
    found = compare([rank(0, steps=4), rank(1, steps=3)])
    assert found.stragglers == ()
    assert found.last is None
    assert any("different numbers" in limit for limit in found.limits)


def test_one_trace_has_its_own_decomposition():
    found = compare([rank(0)])
    assert (len(found.ranks), found.imbalance, found.last, found.stragglers) == (1, None, None, ())
    assert found.messages[0].calls == 4
    assert any("1 of 2 ranks" in limit for limit in found.limits)


def test_a_rank_given_twice_is_refused():
    with pytest.raises(Refusal, match="Rank 1 was given 2 times"):
        compare([rank(1), rank(1)])


def test_ranks_that_are_not_told_are_numbered_as_given():
    found = compare([rank(None), rank(None)])
    assert [each.rank for each in found.ranks] == [0, 1]
    assert any("as their files were given" in limit for limit in found.limits)


def test_a_rank_without_device_work_is_left_out_and_said_so():
    made = Made()
    made.operator("aten::mm", 0, MS)
    found = compare([analysed(made, rank=0), rank(1)])
    assert [each.rank for each in found.ranks] == [1]
    assert any("Of rank 0 no device work" in limit for limit in found.limits)


def test_no_ranks_at_all():
    found = compare([])
    assert found.ranks == found.messages == ()


SAID = {"Collective name": "allreduce", "In msg nelems": "262144", "Out msg nelems": "262144",
        "dtype": "Float", "Group size": "8"}  # fmt: skip


def message(kernel=REDUCE, ceilings=(), **said):
    others = {key: value for key, value in (SAID | said).items() if value is not None}
    found = compare([rank(0, 10 * MS, sending=kernel, others=others)], ceilings)
    (only,) = found.messages
    return only


def test_bandwidth_of_a_message_that_the_trace_tells():
    only = message()
    assert (only.kind, only.bytes, only.group) == ("all-reduce", 1 << 20, 8)
    assert only.median == 1 * MS - 5 * US
    assert only.algorithm == pytest.approx((1 << 20) / (995 * US))
    assert only.bus == pytest.approx(only.algorithm * 2 * 7 / 8)
    assert only.ceiling is None


KINDS = [
    ("all-gather", "_allgather_base", "ncclDevKernel_AllGather_RING_LL", 7 / 8),
    ("reduce-scatter", "reduce_scatter", "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL", 7 / 8),
    ("all-to-all", "all_to_allv", "ncclDevKernel_SendRecv", 7 / 8),
    ("broadcast", "broadcast", "ncclDevKernel_Broadcast_RING_LL", 1),
    ("send-receive", "send", "ncclDevKernel_SendRecv", 1),
]


@pytest.mark.parametrize(("kind", "name", "kernel", "factor"), KINDS)
def test_each_collective_has_its_factor(kind, name, kernel, factor):
    only = message(kernel, **{"Collective name": name, "In msg nelems": "32768"})
    assert (only.kind, only.bytes) == (kind, 1 << 20)
    assert only.bus == pytest.approx(only.algorithm * factor)


@pytest.mark.parametrize(
    "missing",
    [{"dtype": None}, {"dtype": "mystery"}, {"In msg nelems": None, "Out msg nelems": None},
     {"In msg nelems": "-5", "Out msg nelems": "many"}],
)  # fmt: skip
def test_a_size_that_is_not_told_is_not_recorded(missing):
    only = message(**missing)
    assert (only.kind, only.bytes) == ("all-reduce", None)
    assert only.algorithm is only.bus is only.ceiling is None


def test_of_one_rank_there_is_no_bus_bandwidth():
    assert message(**{"Group size": "1"}).bus is None
    assert message(**{"Group size": "2"}).bus is not None


def test_without_the_groups_size_there_is_no_bus_bandwidth():
    only = message(**{"Group size": None})
    assert only.algorithm is not None
    assert only.bus is only.ceiling is None


def ceiling(nbytes, value, name="all-reduce of 8", unit=GB):
    return Ceiling(name, "link", unit, value, value, value, 3, "made", message_bytes=nbytes)


def test_against_the_measured_all_reduce_of_as_many_and_of_the_nearest_size():
    measured = [
        ceiling(1 << 19, 5.0), ceiling(3 << 19, 8.0), ceiling(1 << 28, 200.0),
        ceiling(1 << 20, 99.0, name="all-reduce of 2"),
        ceiling(1 << 20, 42.0, name="all-reduce of 8, latency", unit="us"),
    ]  # fmt: skip
    assert message(ceilings=measured).ceiling == pytest.approx(8.0 * 2 * 7 / 8)
    assert message(ceilings=measured[2:]).ceiling is None
    gather = {"Collective name": "allgather"}
    assert message("ncclDevKernel_AllGather", measured, **gather).ceiling is None


def test_of_matched_ranks_a_message_takes_as_long_as_on_the_one_that_came_last():
    found = compare([rank(0, 5 * MS), rank(1, 8 * MS)])
    assert found.messages[0].median == 10 * MS + 1 * MS - 8 * MS - 5 * US
