"""The table of kernels, and their short names."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuroshio.perf.timeline.kernels import TINY, kernels_of, short
from kuroshio.perf.timeline.launches import link
from kuroshio.perf.timeline.spread import spread
from kuroshio.perf.traces.events import Events, Kind
from timelines import analysed
from traces_made import US, Made


@given(st.lists(st.integers(0, 100), min_size=1, max_size=40))
def test_a_spread_is_of_order_statistics(values):
    found = spread(np.array(values))
    ordered = sorted(values)
    assert (found.count, found.total) == (len(values), sum(values))
    assert (found.least, found.most) == (ordered[0], ordered[-1])
    for share, at in ((0.5, found.median), (0.9, found.p90)):
        assert sum(value <= at for value in values) >= share * len(values)
        assert sum(value < at for value in values) < share * len(values)


def test_of_nothing_there_is_no_spread():
    assert spread(np.array([], np.int64)) is None


def test_kernels_by_name_the_most_time_first():
    made = Made()
    at = 0
    for number in range(20):
        at = made.launch("void gemm<4>(int)", at, 100 * US, registers=32, grid=(2, 1, 1),
                         block=(64, 1, 1), shared=0)  # fmt: skip
        at = made.launch("add", at, (1 + number % 2) * 10 * US, grid=(1 + number, 1, 1))
    table = analysed(made).kernels
    assert (table.runs, table.total) == (40, 2300 * US)
    gemm, add = table.kernels
    assert (gemm.name, gemm.short, gemm.times.count) == ("void gemm<4>(int)", "gemm", 20)
    assert gemm.share == pytest.approx(2000 / 2300)
    assert (gemm.jitter, gemm.registers, gemm.shared) == (1.0, 32, 0)
    assert (gemm.grid, gemm.block) == ((2, 1, 1), (64, 1, 1))
    assert (add.times.least, add.times.median, add.times.p90) == (10 * US, 10 * US, 20 * US)
    assert add.jitter == 2.0
    assert add.registers is add.grid is add.block is add.shared is None


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 30), st.sampled_from([-1, 1, 2])),
        min_size=1,
        max_size=60,
    )
)
def test_each_name_is_told_as_alone(runs):
    events = Events.of(
        [f"k{number}" for number in range(4)],
        kind=[Kind.KERNEL] * len(runs),
        name=[name for name, _, _ in runs],
        start=[1000 * at for at in range(len(runs))],
        end=[1000 * at + length for at, (_, length, _) in enumerate(runs)],
        registers=[told for *_, told in runs],
        grid=[(told, 1, 1) for *_, told in runs],
    )
    table = kernels_of(events, link(events))
    assert sum(kernel.times.count for kernel in table.kernels) == len(runs)
    for kernel in table.kernels:
        mine = [(length, told) for name, length, told in runs if f"k{name}" == kernel.name]
        assert kernel.times == spread(np.array([length for length, _ in mine]))
        told = {each for _, each in mine}
        alike = told.pop() if len(told) == 1 else -1
        assert kernel.registers == (alike if alike > 0 else None)
        assert kernel.grid == ((alike, 1, 1) if alike > 0 else None)
        lengths = sorted(length for length, _ in mine)
        at = [int(events.duration[row]) for row in kernel.rows]
        assert at == [lengths[0], lengths[(len(mine) - 1) // 2], lengths[-1]]


def test_jitter_needs_runs():
    made = Made()
    for number in range(9):
        made.launch("k", number * 1000 * US, (number + 1) * 20 * US)
    assert analysed(made).kernels.kernels[0].jitter is None


def test_rows_are_of_the_shortest_the_middle_and_the_longest():
    made = Made()
    for at, length in enumerate((30, 10, 50, 20, 40)):
        made.launch("k", at * 1000 * US, length * US)
    analysis = analysed(made)
    rows = analysis.kernels.kernels[0].rows
    lengths = [int(analysis.trace.events.duration[row]) // US for row in rows]
    assert lengths == [10, 30, 50]


def test_tiny_kernels_against_what_their_launches_take():
    made = Made(launching=4 * US)
    at = 0
    for _ in range(10):
        at = made.launch("small", at, TINY - 1)
        at = made.launch("just not", at, TINY)
        at = made.launch("ncclDevKernel_AllReduce", at, 1 * US)
    table = analysed(made).kernels
    assert (table.tiny_below, table.tiny_runs) == (TINY, 10)
    assert (table.tiny_time, table.tiny_launching) == (10 * (TINY - 1), 40 * US)
    assert [each.communication for each in table.kernels] == [False, False, True]


def test_without_calls_what_launches_take_is_not_recorded():
    made = Made()
    made.kernel("small", 0, 2 * US)
    assert analysed(made).kernels.tiny_launching is None


NAMES = {
    "ampere_sgemm_128x64_nn": "ampere_sgemm_128x64_nn",
    "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<c10::Half>, "
    "at::detail::Array<char*, 1> >(int, at::native::FillFunctor<c10::Half>)":
        "at::native::vectorized_elementwise_kernel",
    "void at::native::(anonymous namespace)::softmax<float>(float*)": "at::native::softmax",
    "std::enable_if<!(false), void>::type internal::gemvx::kernel<int>(x)":
        "internal::gemvx::kernel",
    "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)":
        "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t",
    "void foo<(bool)1, (A)0>(int) const": "foo",
    "void cub::Scan<a>::Kernel<b>(c)": "cub::Scan::Kernel",
    "void f<&A::operator()>(int)": "f",
    "": "",
    "<<<": "<<<",
    "Memset (Device)": "Memset",
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_short_names(name):
    assert short(name) == NAMES[name]


@given(st.text("ab<>(): -=", max_size=30))
def test_any_name_has_a_short_one(name):
    assert bool(short(name)) == bool(name)
    assert len(short(name)) <= len(name)
