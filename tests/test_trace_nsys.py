"""nsys's SQLite tells what happened, whichever tables there are, and damage is refused."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given

import trace_work as work
from kuroshio.errors import Refusal
from kuroshio.perf.traces import nsys, rocpd
from kuroshio.perf.traces.events import ABSENT, Direction, Kind
from kuroshio.perf.traces.sqlite_file import MAGIC
from trace_nsys import write_nsys
from trace_rocpd import write_rocpd
from trace_work import Call, Copy, Kernel, Process, Range

RUN = (
    Process(
        4000,
        kernels=(Kernel("void axpy<float>(float*)", 2000, 2500, call=1),),
        copies=(Copy(Direction.TO_DEVICE, 1200, 1900, call=2, bytes=4096),),
        calls=(
            Call("cudaLaunchKernel", 1000, 1100, 1, 4000),
            Call("cudaMemcpyAsync", 1150, 1160, 2, 4000),
        ),
        ranges=(Range("step 1", 900, 2700, 4000),),
    ),
)


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("nsys") / "report.sqlite"


@given(run=work.runs())
def test_the_file_tells_what_happened(path, run):
    write_nsys(path, run)
    assert nsys.recognise(path, MAGIC)
    assert not rocpd.recognise(path, MAGIC)
    events = nsys.read(path).events
    assert work.kernels_of(events) == work.kernels_expected(run)
    assert work.copies_of(events) == work.copies_expected(run)
    assert work.on_host_of(events, Kind.CALL) == work.calls_expected(run)
    assert work.on_host_of(events, Kind.ANNOTATION) == work.ranges_expected(run)
    assert work.launches_of(events) == work.launches_expected(run)
    assert (events.start[1:] >= events.start[:-1]).all()


def test_rocpd_is_not_taken_for_it(path):
    write_rocpd(path.with_suffix(".db"), RUN, "3.0")
    assert not nsys.recognise(path.with_suffix(".db"), MAGIC)
    assert not nsys.recognise(path, b"{")


def test_devices_are_described_and_are_those_of_the_machine(path):
    def more(file):
        for gpu in (0, 1):
            file.insert("TARGET_INFO_GPU", id=gpu, name="NVIDIA H100", totalMemory=85 << 30,
                        smCount=132, computeMajor=9, computeMinor=0)  # fmt: skip
        file.insert("TARGET_INFO_CUDA_DEVICE", gpuId=1, cudaId=0, pid=4000)
        file.insert("META_DATA_EXPORT", name="EXPORT_PRODUCT_VERSION", value="2024.6.2.225")
        file.insert("MPI_RANKS", globalPid=4000 << 24, rank=3)

    write_nsys(path, RUN, more)
    trace = nsys.read(path)
    assert list(trace.devices) == [1]
    device = trace.devices[1]
    assert (device.name, device.maker, device.architecture) == ("NVIDIA H100", "NVIDIA", "sm_90")
    assert (device.multiprocessors, device.memory_bytes) == (132, 85 << 30)
    assert trace.facts == {"nsys": "2024.6.2.225"}
    assert trace.rank == 3
    assert trace.cannot_tell == ()


def test_a_device_without_a_number_of_the_machine_keeps_its_own(path):
    unknown = {"gpuId": None, "cudaId": 0, "pid": 4000}
    write_nsys(path, RUN, lambda file: file.insert("TARGET_INFO_CUDA_DEVICE", **unknown))
    assert list(nsys.read(path).devices) == [0]


def test_several_ranks_are_no_rank(path):
    def more(file):
        file.insert("MPI_RANKS", globalPid=1 << 24, rank=0)
        file.insert("MPI_RANKS", globalPid=2 << 24, rank=1)

    write_nsys(path, RUN, more)
    trace = nsys.read(path)
    assert (trace.rank, trace.process_ranks) == (None, {1: 0, 2: 1})


def test_names_of_calls_are_without_versions(path):
    names = ("cudaLaunchKernel_ptsz", "cuMemcpyHtoDAsync_v2", "cudaMalloc")
    calls = tuple(Call(name, 10, 20, at + 1, 4000) for at, name in enumerate(names))
    write_nsys(path, (Process(4000, calls=calls),))
    events = nsys.read(path).events
    assert {events.named(row) for row in range(3)} == {
        "cudaLaunchKernel", "cuMemcpyHtoDAsync_v2", "cudaMalloc",
    }  # fmt: skip


def test_waits_sets_and_copies_of_other_kinds(path):
    where = {"deviceId": 0, "contextId": 1, "streamId": 7, "globalPid": 4000 << 24}

    def more(file):
        for kind in (1, 2, 3, 4, 9):
            file.insert("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", start=kind, end=9, syncType=kind,
                        eventId=0, correlationId=5, **where)  # fmt: skip
        file.insert("CUPTI_ACTIVITY_KIND_MEMSET", start=20, end=21, value=0, bytes=64, **where)
        for kind in (9, 10, 99):
            file.insert("CUPTI_ACTIVITY_KIND_MEMCPY", start=30 + kind, end=200, bytes=8,
                        copyKind=kind, srcKind=1, dstKind=2, **where)  # fmt: skip

    write_nsys(path, (), more)
    events = nsys.read(path).events
    assert [events.named(row) for row in range(len(events))] == [
        "Event Sync", "Stream Wait Event", "Stream Sync", "Context Sync", "Sync", "Memset",
        "Memcpy HtoH", "Memcpy PtoP", "Memcpy",
    ]  # fmt: skip
    assert events.kind.tolist() == [Kind.WAIT] * 5 + [Kind.SET] + [Kind.COPY] * 3
    assert events.direction[6:].tolist() == [
        Direction.ON_HOST, Direction.BETWEEN_DEVICES, ABSENT,
    ]  # fmt: skip
    assert events.bytes[5] == 64
    source = events.others["srcKind"]
    assert source.values[source.codes[-1]] == "pinned"


def test_graphs_that_were_traced_as_one_are_said_to_hide_their_kernels(path):
    def more(file):
        file.insert("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", start=3000, end=3900, deviceId=0,
                    contextId=1, streamId=7, globalPid=4000 << 24, graphId=4)  # fmt: skip

    write_nsys(path, RUN, more)
    trace = nsys.read(path)
    assert any("CUDA graphs were traced as one" in each for each in trace.cannot_tell)
    events = trace.events
    graph = int((events.start == 3000).argmax())
    assert (events.named(graph), events.kind[graph]) == ("CUDA graph 4", Kind.KERNEL)
    assert events.grid[graph].tolist() == [ABSENT] * 3


def test_ranges_without_end_and_marks_are_no_ranges(path):
    def more(file):
        file.insert("NVTX_EVENTS", start=1, end=None, eventType=59, text="open", globalTid=1)
        file.insert("NVTX_EVENTS", start=1, end=None, eventType=34, text="mark", globalTid=1)

    write_nsys(path, RUN, more)
    trace = nsys.read(path)
    assert any("1 NVTX ranges" in each for each in trace.cannot_tell)
    assert (trace.events.kind == Kind.ANNOTATION).sum() == 1


def test_only_ranges_say_that_no_work_was_traced(path):
    write_nsys(path, (Process(4000, ranges=RUN[0].ranges),))
    assert any("No kernels or copies" in each for each in nsys.read(path).cannot_tell)


def without(*columns: str):
    def more(file):
        for column in columns:
            file.database.execute(f"ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN {column}")

    return more


def test_old_exports_without_process_and_demangled_names(path):
    write_nsys(path, RUN, without("globalPid", "demangledName", "registersPerThread"))
    trace = nsys.read(path)
    events = trace.events
    kernel = int((events.kind == Kind.KERNEL).argmax())
    assert events.named(kernel) == "short"
    assert (events.process[kernel], events.registers[kernel]) == (ABSENT, ABSENT)
    assert (4000, 1000, 2000) in work.launches_of(events)
    assert trace.cannot_tell == ()


def test_old_exports_of_several_processes_cannot_tell_whose_work_is(path):
    write_nsys(path, (*RUN, replace(RUN[0], number=4010)), without("globalPid"))
    trace = nsys.read(path)
    kernels = trace.events[trace.events.kind == Kind.KERNEL]
    calls = trace.events[trace.events.kind == Kind.CALL]
    assert not set(kernels.correlation) & set(calls.correlation)
    assert any("which process work was of" in each for each in trace.cannot_tell)


def test_a_file_with_nothing_that_is_read_is_refused(path):
    write_nsys(path, (), lambda file: file.insert("TARGET_INFO_GPU", id=0))
    assert nsys.recognise(path, MAGIC)
    with pytest.raises(Refusal, match="no kernels, copies, calls or ranges"):
        nsys.read(path)


@pytest.mark.parametrize("table", ["CUPTI_ACTIVITY_KIND_KERNEL", "NVTX_EVENTS"])
def test_a_table_without_times_is_refused(path, table):
    def more(file):
        file.database.execute(f"ALTER TABLE {table} DROP COLUMN start")

    write_nsys(path, RUN, more)
    with pytest.raises(Refusal, match=f"{table} has no column start"):
        nsys.read(path)


def test_a_file_that_is_cut_off_is_refused(path):
    write_nsys(path, RUN)
    path.write_bytes(path.read_bytes()[:-512])
    with pytest.raises(Refusal, match="cut off"):
        nsys.read(path)
    path.write_bytes(b"")
    with pytest.raises(Refusal, match="no SQLite database"):
        nsys.read(path)


def test_another_programs_database_is_refused(path):
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE StringIds (id INTEGER)")
        database.commit()
    assert not nsys.recognise(path, MAGIC)
    with pytest.raises(Refusal, match="no kernels"):
        nsys.read(path)
