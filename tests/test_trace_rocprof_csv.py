"""rocprof's CSV before version 3: names of columns differ, what they mean does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from kuroshio.errors import Refusal
from kuroshio.perf.traces import rocprof_csv, rocprofv3_csv
from kuroshio.perf.traces.events import ABSENT, Kind

V1 = (
    "Index,KernelName,gpu-id,queue-id,queue-index,pid,tid,grd,wgr,lds,scr,arch_vgpr,accum_vgpr,"
    "sgpr,wave_size,sig,obj,SQ_WAVES,DispatchNs,BeginNs,EndNs,CompleteNs\n"
    '0,"axpy(float*, int) [clone .kd]",2,1,0,4000,4001,1000,256,512,8,32,4,16,64,0x0,0x7f,16.5,'
    "1000,2000,2500,2600\n"
    '1,"dot(float*, int) [clone .kd]",2,0,2,4000,4001,512,256,0,0,24,4,16,64,0x0,0x7f,8.0,'
    "1100,2600,2700,2800\n"
)
V2 = (
    "Dispatch_ID,GPU_ID,Queue_ID,PID,TID,Grid_Size,Workgroup_Size,LDS_Per_Workgroup,"
    "Scratch_Per_Workitem,Arch_VGPR,Accum_VGPR,SGPR,Wave_Size,Kernel_Name,Start_Timestamp,"
    "End_Timestamp,Correlation_ID\n"
    '1,2,1,4000,4001,1000,256,512,8,32,4,16,64,"axpy(float*, int) (.kd)",2000,2500,0\n'
)


def written(folder: Path, text: str) -> Path:
    path = folder / "results.csv"
    path.write_text(text)
    assert rocprof_csv.recognise(path, text.encode())
    assert not rocprofv3_csv.recognise(path, text.encode())
    return path


@pytest.mark.parametrize("text", [V1, V2], ids=["v1", "v2"])
def test_a_kernel_is_the_same_in_each_version(tmp_path, text):
    trace = rocprof_csv.read(written(tmp_path, text))
    kernels = trace.events[trace.events.kind == Kind.KERNEL]
    assert kernels.named(0) == "axpy(float*, int)"
    assert (kernels.start[0], kernels.end[0]) == (2000, 2500)
    assert (kernels.device[0], kernels.stream[0]) == (2, 1)
    assert (kernels.process[0], kernels.thread[0]) == (4000, 4001)
    assert kernels.grid[0].tolist() == [4, 1, 1]
    assert kernels.block[0].tolist() == [256, 1, 1]
    assert (kernels.registers[0], kernels.shared[0], kernels.scratch[0]) == (32, 512, 8)
    assert list(trace.devices) == [2]
    assert any("not the shapes" in each for each in trace.cannot_tell)
    assert any("Copies are not in this CSV" in each for each in trace.cannot_tell)


def test_when_a_kernel_was_dispatched_is_a_moment_of_the_host(tmp_path):
    trace = rocprof_csv.read(written(tmp_path, V1))
    events = trace.events
    calls = events[events.kind == Kind.CALL]
    assert calls.start.tolist() == calls.end.tolist() == [1000, 1100]
    kernels = events[events.kind == Kind.KERNEL]
    assert kernels.correlation.tolist() == calls.correlation.tolist()
    assert any("not how long that took" in each for each in trace.cannot_tell)
    waves = kernels.others["SQ_WAVES"]
    assert [waves.values[code] for code in waves.codes] == ["16.5", "8.0"]
    assert "obj" not in kernels.others


def test_without_dispatches_launches_are_not_told(tmp_path):
    trace = rocprof_csv.read(written(tmp_path, V2))
    assert not (trace.events.kind == Kind.CALL).any()
    assert any("Which call launched a kernel" in each for each in trace.cannot_tell)


def test_what_is_missing_is_absent(tmp_path):
    path = written(tmp_path, "KernelName,gpu-id,BeginNs,EndNs,DurationNs\nk,0,5,9,4\n")
    events = rocprof_csv.read(path).events
    for column in ("stream", "process", "registers", "shared", "scratch"):
        assert getattr(events, column).tolist() == [ABSENT]
    assert events.grid.tolist() == [[ABSENT] * 3]
    assert not events.others


def test_kernels_that_end_before_they_start_are_left_out(tmp_path):
    text = "KernelName,gpu-id,BeginNs,EndNs\nk,0,9,5\nk,0,5,9\n"
    trace = rocprof_csv.read(written(tmp_path, text))
    assert len(trace.events) == 1
    assert "Of 1 events the end is before the start; they are left out" in trace.cannot_tell


@pytest.mark.parametrize("text", ["KernelName,gpu-id,BeginNs,EndNs\n", V1[:-1]], ids=["0", "cut"])
def test_no_kernels_and_a_line_that_is_cut_off(tmp_path, text):
    path = written(tmp_path, text)
    if text == V1[:-1]:
        trace = rocprof_csv.read(path)
        assert (trace.events.kind == Kind.KERNEL).sum() == 1
        assert any("cut off" in each for each in trace.cannot_tell)
    else:
        with pytest.raises(Refusal, match="no kernel"):
            rocprof_csv.read(path)


@pytest.mark.parametrize(
    "header",
    ["KernelName,Calls,TotalDurationNs,AverageNs,Percentage", "Name,Calls,TotalDurationNs"],
)
def test_totals_are_no_trace(tmp_path, header):
    path = tmp_path / "results.stats.csv"
    path.write_text(f"{header}\n{','.join('5' for _ in header.split(','))}\n")
    assert not rocprof_csv.recognise(path, path.read_bytes())
    with pytest.raises(Refusal, match="no trace of rocprof"):
        rocprof_csv.read(path)


@pytest.mark.parametrize("device", ["MI100", "MI200"])
def test_real_files(shared, device):
    path = shared / "traces" / "omniperf" / device / "timestamps.csv"
    assert rocprof_csv.recognise(path, path.read_bytes())
    events = rocprof_csv.read(path).events
    kernels = events[events.kind == Kind.KERNEL]
    assert kernels.named(0) == "vecCopy(double*, double*, double*, int, int)"
    assert kernels.grid[0].tolist() == [4096, 1, 1]
    dispatched = events.start[events.kind == Kind.CALL]
    assert (dispatched < kernels.start).all()


def test_times_that_a_spreadsheet_rounded_are_refused(shared):
    with pytest.raises(Refusal, match="spreadsheet"):
        rocprof_csv.read(shared / "traces" / "omniperf" / "MI300X_A1" / "timestamps.csv")
