"""rocprofv3's CSV folder and JSON tell what happened, and what is damaged is refused."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import trace_work as work
from kuroshio.errors import Refusal
from kuroshio.perf.traces import rocprofv3_csv, rocprofv3_json
from kuroshio.perf.traces.events import ABSENT, Direction, Kind
from trace_rocprofv3 import as_json, write_csv
from trace_work import Call, Copy, Kernel, Process, Range

RUN = (
    Process(
        4000,
        kernels=(
            Kernel("axpy(float*, int)", 2000, 2500, call=1),
            Kernel("dot(float*, int)", 2600, 2700, call=3),
        ),
        copies=(Copy(Direction.TO_DEVICE, 1200, 1900, call=2, bytes=4096),),
        calls=(
            Call("hipLaunchKernel", 1000, 1100, 1, 4000),
            Call("hipMemcpyAsync", 1150, 1160, 2, 4000),
            Call("hipLaunchKernel", 1170, 1180, 3, 4000),
        ),
        ranges=(Range("step 1", 900, 2700, 4000),),
    ),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("rocprofv3")


def check(events, run) -> None:
    assert work.on_host_of(events, Kind.CALL) == work.calls_expected(run)
    assert work.on_host_of(events, Kind.ANNOTATION) == work.ranges_expected(run)
    assert (events.start[1:] >= events.start[:-1]).all()


@given(run=work.runs(), new=st.booleans(), seed=st.randoms(use_true_random=False))
def test_a_folder_tells_what_happened_whatever_the_order_of_columns(folder, run, new, seed):
    write_csv(folder, run, new, order=lambda names: seed.sample(names, len(names)))
    assert rocprofv3_csv.recognise(folder, b"")
    events = rocprofv3_csv.read(folder).events
    check(events, run)
    expected = work.kernels_expected(run)
    if not new:  # registers were not told
        expected = [(*each[:7], ABSENT, *each[8:]) for each in expected]
    assert work.kernels_of(events) == sorted(expected)
    assert work.copies_of(events) == [(*each[:4], ABSENT) for each in work.copies_expected(run)]
    if all(process.calls for process in run):  # else a file's name alone tells whose it is
        assert work.launches_of(events) == work.launches_expected(run)


@given(run=work.runs(), first=st.booleans())
def test_json_tells_what_happened(folder, run, first):
    path = folder / "results.json"
    text = as_json(run, first)
    path.write_text(text, encoding="utf-8")
    assert rocprofv3_json.recognise(path, text.encode()[:4096])
    trace = rocprofv3_json.read(path)
    check(trace.events, run)
    assert work.kernels_of(trace.events) == work.kernels_expected(run)
    assert work.copies_of(trace.events) == work.copies_expected(run)
    assert work.launches_of(trace.events) == work.launches_expected(run)
    assert trace.facts == {"command": "./a.out -n 3"}
    device = next(iter(trace.devices.values()))
    assert (device.name, device.multiprocessors) == ("AMD Instinct MI250X", 110)


def test_each_of_a_folders_files_is_a_trace_of_its_own(folder):
    write_csv(folder, RUN)
    for name, number in {"kernel": 2, "memory_copy": 1, "hip_api": 3, "marker_api": 1}.items():
        path = folder / "node01" / f"4000_{name}_trace.csv"
        assert rocprofv3_csv.recognise(path, path.read_bytes())
        assert len(rocprofv3_csv.read(path).events) == number
    trace = rocprofv3_csv.read(folder / "node01" / "4000_kernel_trace.csv")
    assert any("No calls of the runtime" in each for each in trace.cannot_tell)
    assert any("No copies were traced" in each for each in trace.cannot_tell)
    assert trace.events.process.tolist() == [4000, 4000]


def test_what_a_kernels_row_tells_besides_is_kept(folder):
    write_csv(folder, RUN)
    others = rocprofv3_csv.read(folder).events.others
    assert others["SGPR_Count"].values == ("16",)
    assert others["Queue_Id"].values == ("3",)
    assert "Dispatch_Id" not in others


def test_agents_are_described_by_their_file(folder):
    write_csv(folder, RUN)
    (folder / "node01" / "4000_agent_info.csv").write_text(
        '"Node_Id","Logical_Node_Id","Agent_Type","Cu_Count","Name","Vendor_Name","Product_Name"\n'
        '0,7,"CPU",0,"EPYC","CPU","AMD EPYC"\n4,0,"GPU",110,"gfx90a","AMD","AMD Instinct MI210"\n'
    )
    device = rocprofv3_csv.read(folder).devices[0]
    assert (device.name, device.architecture) == ("AMD Instinct MI210", "gfx90a")
    assert device.multiprocessors == 110


def test_copies_between_two_devices(tmp_path):
    (tmp_path / "copies.csv").write_text(
        '"Kind","Direction","Source_Agent_Id","Destination_Agent_Id","Correlation_Id",'
        '"Start_Timestamp","End_Timestamp"\n'
        '"MEMORY_COPY","DEVICE_TO_DEVICE","Agent 1","Agent 2",0,10,20\n'
    )
    events = rocprofv3_csv.read(tmp_path / "copies.csv").events
    assert events.direction.tolist() == [Direction.BETWEEN_DEVICES]
    assert events.device.tolist() == [1]


def test_blocks_that_do_not_fill_are_counted_as_blocks(tmp_path):
    header = "Kind,Agent_Id,Kernel_Name,Start_Timestamp,End_Timestamp," + ",".join(
        f"{stem}_Size_{axis}" for stem in ("Workgroup", "Grid") for axis in "XYZ"
    )
    (tmp_path / "kernels.csv").write_text(
        f"{header}\nK,1,k,1,2,64,1,1,65,1,1\nK,1,k,3,4,0,1,1,9,1,1\n"
    )
    events = rocprofv3_csv.read(tmp_path / "kernels.csv").events
    assert events.grid.tolist() == [[2, 1, 1], [ABSENT, 1, 1]]
    assert events.stream.tolist() == [ABSENT, ABSENT]


@pytest.mark.parametrize(
    ("name", "kind", "number"),
    [
        ("kernel", Kind.KERNEL, 7), ("memory_copy", Kind.COPY, 2), ("hip_compile", Kind.CALL, 4),
        ("hip_runtime", Kind.CALL, 8), ("hsa_api", Kind.CALL, 10),
        ("marker_api", Kind.ANNOTATION, 5),
    ],
)  # fmt: skip
def test_real_samples(shared, name, kind, number):
    events = rocprofv3_csv.read(shared / "traces" / "rocprofv3" / f"{name}_trace.csv").events
    assert events.kind.tolist() == [kind] * number
    if kind == Kind.KERNEL:
        assert events.named(0).startswith("void addition_kernel<float>(float*, float const*, ")
        assert events.duration[0] == 8819330200116308 - 8819330200067564
        assert events.grid[0].tolist() == [16, 1024, 1]
    if kind == Kind.COPY:
        assert events.direction.tolist() == [Direction.TO_DEVICE, Direction.TO_HOST]


def test_a_folder_of_several_runs_is_refused(shared):
    # They are of several programs, on clocks that have nothing to do with each other.
    with pytest.raises(Refusal, match=r"several runs: .* for up to 7,29\d,\d{3} s"):
        rocprofv3_csv.read(shared / "traces" / "rocprofv3")


def test_processes_that_follow_each_other_are_one_run(folder):
    later = replace(RUN[0], number=4010, kernels=(Kernel("late", 59 * 10**9, 60 * 10**9, 0),))
    write_csv(folder, (RUN[0], replace(later, calls=(), copies=(), ranges=())))
    assert "late" in rocprofv3_csv.read(folder).events.names


def test_what_rocpd_makes_of_two_processes(tmp_path):
    times = "Correlation_Id,Start_Timestamp,End_Timestamp"
    (tmp_path / "out_kernel_trace.csv").write_text(
        f"Guid,Kind,Agent_Id,Queue_Id,Stream_Id,Kernel_Name,{times},Duration,Lds_Block_Size,"
        "Scratch_Size,Vgpr_Count,Accum_Vgpr_Count,Sgpr_Count\n"
        "00-a,KERNEL_DISPATCH,Agent 4,1,0,mine,7,1000,1100,100,8456,0,16,0,32\n"
        "00-b,KERNEL_DISPATCH,Agent 5,1,0,theirs,7,1010,1100,90,0,0,20,4,64\n"
    )
    (tmp_path / "out_regions_trace.csv").write_text(
        f"Guid,Domain,Function,Process_Id,Thread_Id,{times}\n"
        "00-a,HIP_RUNTIME_API_EXT,hipLaunchKernel,4000,4000,7,900,910\n"
        "00-b,HIP_RUNTIME_API_EXT,hipLaunchKernel,4010,4010,7,920,930\n"
    )
    trace = rocprofv3_csv.read(tmp_path)
    events = trace.events
    assert work.launches_of(events) == [(4000, 900, 1000), (4010, 920, 1010)]
    kernels = events[events.kind == Kind.KERNEL]
    assert kernels.process.tolist() == [4000, 4010]
    assert kernels.device.tolist() == [4, 5]
    assert (kernels.registers.tolist(), kernels.shared.tolist()) == ([16, 20], [8456, 0])
    assert sorted(kernels.others) == ["Accum_Vgpr_Count", "Queue_Id", "Sgpr_Count"]
    assert len(trace.cannot_tell) == 1  # that there are no copies


def test_files_of_several_processes_with_one_name_are_not_linked(tmp_path):
    header = "Domain,Function,Process_Id,Correlation_Id,Start_Timestamp,End_Timestamp\n"
    (tmp_path / "hip_api_trace.csv").write_text(f"{header}HIP_API,hipLaunchKernel,1,7,10,20\n")
    (tmp_path / "rccl_api_trace.csv").write_text(f"{header}RCCL_API,f,2,7,10,20\n")
    (tmp_path / "kernel_trace.csv").write_text(
        "Kernel_Name,Agent_Id,Correlation_Id,Start_Timestamp,End_Timestamp\nk,1,7,15,25\n"
    )
    trace = rocprofv3_csv.read(tmp_path)
    assert any("several processes have one name" in each for each in trace.cannot_tell)
    kernel = trace.events[trace.events.kind == Kind.KERNEL]
    assert kernel.correlation.tolist() == [ABSENT]
    assert len(set(trace.events.correlation[trace.events.kind == Kind.CALL])) == 2


@pytest.mark.parametrize(
    ("name", "why"),
    [("counter_collection", "roofline"), ("kernel_names", "roofline"), ("hip_api_stats", "totals")],
)
def test_totals_and_counters_are_no_traces(shared, name, why):
    path = shared / "traces" / "rocprofv3" / f"{name}.csv"
    assert rocprofv3_csv.recognise(path, path.read_bytes())
    with pytest.raises(Refusal, match=why):
        rocprofv3_csv.read(path)


def test_an_empty_folder_is_none(tmp_path):
    assert not rocprofv3_csv.recognise(tmp_path, b"")
    with pytest.raises(Refusal, match="without a trace"):
        rocprofv3_csv.read(tmp_path)


def test_a_last_line_that_is_cut_off_is_left_out_and_said(folder):
    write_csv(folder, RUN)
    path = folder / "node01" / "4000_kernel_trace.csv"
    path.write_bytes(path.read_bytes()[:-20])
    trace = rocprofv3_csv.read(folder)
    assert (trace.events.kind == Kind.KERNEL).sum() == 1
    assert any("4000_kernel_trace.csv is cut off" in each for each in trace.cannot_tell)


@given(data=st.data())
def test_a_file_that_is_cut_anywhere_gives_whole_events_only(folder, data):
    write_csv(folder, RUN)
    path = folder / "node01" / "4000_hip_api_trace.csv"
    whole = path.read_bytes()
    path.write_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])
    events = rocprofv3_csv.read(folder).events
    found = work.on_host_of(events, Kind.CALL)
    expected = work.calls_expected(RUN)
    assert set(found) <= set(expected)


def test_json_that_is_cut_off_is_refused(folder):
    path = folder / "results.json"
    text = as_json(RUN)
    for size in (30, 200, len(text) // 2, len(text) - 1):
        path.write_text(text[:size])
        with pytest.raises(Refusal, match=r"cut off|no whole JSON"):
            rocprofv3_json.read(path)


def test_what_is_large_in_json_is_not_held_whole(folder):
    content = json.loads(as_json(RUN))
    process = content["rocprofiler-sdk-tool"][0]
    process["kernel_symbols"] += [{"kernel_id": 100 + each} for each in range(200_000)]
    process["strings"]["marker_api"] += [
        {"key": 2 * 10**6 + each, "value": "x" * 30} for each in range(200_000)
    ]
    for holder, key in (
        (process, "code_objects"), (process, "host_functions"), (process, "summary"),
        (process["strings"], "pc_sample_comments"),
        (process["callback_records"], "counter_collection"),
        (process["buffer_records"], "pc_sample_host_trap"),
    ):  # fmt: skip
        holder[key] = [{"uri": "x" * 100}] * 200_000
    (folder / "results.json").write_text(json.dumps(content))
    trace = rocprofv3_json.read(folder / "results.json")
    check(trace.events, RUN)
    assert work.kernels_of(trace.events) == work.kernels_expected(RUN)


def test_json_with_odd_records_counts_them(folder):
    content = json.loads(as_json(RUN))
    records = content["rocprofiler-sdk-tool"][0]["buffer_records"]
    records["hip_api"].append({"start_timestamp": "soon"})
    (folder / "results.json").write_text(json.dumps(content))
    trace = rocprofv3_json.read(folder / "results.json")
    assert any("1 records are not as" in each for each in trace.cannot_tell)
    assert (trace.events.kind == Kind.CALL).sum() == 3


def test_counts_that_no_column_holds_are_not_recorded(folder):
    content = json.loads(as_json(RUN))
    process = content["rocprofiler-sdk-tool"][0]
    process["metadata"]["pid"] = 2**70
    for symbol in process["kernel_symbols"]:
        symbol["sgpr_count"] = symbol["arch_vgpr_count"] = 2**64
    (folder / "results.json").write_text(json.dumps(content))
    events = rocprofv3_json.read(folder / "results.json").events
    mine = events[(events.kind == Kind.KERNEL) & (events.process == ABSENT)]
    assert len(mine)
    assert set(mine.others["sgpr_count"].codes.tolist()) == {ABSENT}
    assert set(mine.registers.tolist()) == {ABSENT}


@pytest.mark.parametrize("content", ["[]", "[{}]", '{"buffer_records": []}'])
def test_json_without_events_is_refused(folder, content):
    (folder / "results.json").write_text(f'{{"rocprofiler-sdk-tool": {content}}}')
    with pytest.raises(Refusal, match="no kernels, copies or calls"):
        rocprofv3_json.read(folder / "results.json")


@pytest.mark.parametrize("content", ['{"rocprofiler-sdk-tool": 5}', '{"rocprofiler-sdk-tool": [5]}',
                                     "[1]", "<html>", ""])  # fmt: skip
def test_json_of_another_shape_is_refused(folder, content):
    (folder / "results.json").write_text(content)
    with pytest.raises(Refusal):
        rocprofv3_json.read(folder / "results.json")


def test_packed_files_are_read(folder):
    path = folder / "results.json.gz"
    path.write_bytes(gzip.compress(as_json(RUN).encode()))
    assert len(rocprofv3_json.read(path).events) == 7
