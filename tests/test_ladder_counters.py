"""Counters of a profiler's run at the rungs whose kernels they are."""

from __future__ import annotations

from time import perf_counter

import pytest

from kuroshio.ladder.counters import BANDWIDTH, LANES, OF_MEMORY, add_counters
from kuroshio.ladder.place import Resources
from kuroshio.ladder.results import RungResult
from kuroshio.perf.counters.counted import Counted, merged
from kuroshio.perf.counters.read import read

NCU = """==PROF== Connected
"ID","Kernel Name","dram__bytes.sum","gpu__time_duration.sum","LANES"
"","","Gbyte","msecond",""
"0","slot_sums(const double *, int)","4","2","32"
"1","push_heaps","1","4","8"
"2","from_heaps","1","1","32"
"3","push_heaps","1","5","10"
"""
ROCPROF = """"Index","KernelName","FETCH_SIZE","WRITE_SIZE","VALUUtilization","BeginNs","EndNs"
0,"slot_sums.kd",1000,0,75,0,1000
"""


def rung(key: str, *kernels: str, registers: int = 32) -> RungResult:
    made = [Resources(kernel, registers, 0, 64, 1.0) for kernel in kernels]
    return RungResult(key, key, resources=made)


@pytest.fixture
def counted(tmp_path):
    path = tmp_path / "ncu.csv"
    path.write_text(NCU.replace("LANES", "smsp__thread_inst_executed_per_inst_executed.ratio"))
    return read(path)


def test_each_rung_has_those_of_its_longest_kernel(counted):
    results = [rung("baseline", "push_heaps", "from_heaps"), rung("D", "slot_sums", "slide")]
    add_counters(results, counted, 4000.0)
    heap, sums = (result.counters for result in results)
    assert heap[BANDWIDTH] == pytest.approx(1e9 / 4.5e-3 / 1e9)
    assert heap[LANES] == pytest.approx(9 / 32)
    assert sums == pytest.approx({BANDWIDTH: 2000, OF_MEMORY: 0.5, LANES: 1.0})


def test_why_there_are_none_is_said_and_no_figure_is(counted):
    results = [
        rung("A", "largest_in_registers"), rung("D", "slot_sums"),
        rung("D+", "slot_sums", registers=48), RungResult("B", "B", skipped="too small"),
    ]  # fmt: skip
    add_counters(results, counted, 4000.0)
    assert "largest_in_registers" in results[0].no_counters
    assert "as that of D" in results[2].no_counters
    assert [bool(result.counters) for result in results] == [False, True, False, False]
    assert results[3].no_counters == ""


def test_a_run_without_a_profiler_stays_as_it_is():
    results = [rung("D", "slot_sums")]
    add_counters(results, [], 4000.0)
    assert (results[0].counters, results[0].no_counters) == ({}, "")


def test_lanes_of_amds_profiler(tmp_path):
    path = tmp_path / "results.csv"
    path.write_text(ROCPROF)
    results = [rung("D", "slot_sums")]
    add_counters(results, read(path), 4000.0)
    assert results[0].counters[LANES] == pytest.approx(0.75)
    assert results[0].counters[BANDWIDTH] == pytest.approx(1024)


def test_many_launches_of_a_kernel_are_merged_at_once():
    """A profile of a long run has tens of thousands; each against all the others takes minutes."""
    launches = [Counted(name="slot_sums", bytes=1e6, seconds=1e-3, flops=1.0)] * 50_000
    start = perf_counter()
    (one,) = merged(launches)
    assert perf_counter() - start < 5
    assert (one.dispatches, one.seconds) == (50_000, 1e-3)
