"""Files of profilers, read to bytes, operations and seconds; cut, odd and foreign ones refused."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuroshio.errors import Refusal
from kuroshio.perf.ceilings import store
from kuroshio.perf.counters import table as counters_table
from kuroshio.perf.counters.counted import Counted, merged
from kuroshio.perf.counters.read import read
from kuroshio.perf.counters.table import number
from kuroshio.perf.roofline import judge, roofs
from kuroshio.perf.roofline_results import from_counters, with_shares
from perf_runs import run_perf
from test_perf_roofline import ceilings, made
from test_perf_roofline_command import row, write

DECLARED = 16_777_216  # bytes of vcopy: 1,048,576 doubles there and back


@pytest.mark.parametrize(
    ("device", "nbytes"), [("MI100", 16_794_368), ("MI200", 16_778_112), ("MI300X_A1", 16_792_512)]
)
def test_vcopy_of_rocprofiler_compute(shared, device, nbytes):
    (found,) = read(shared / "traces" / "omniperf" / device / "pmc_perf.csv")
    assert found.bytes == nbytes
    assert found.name.startswith("vecCopy(double*")
    assert found.dispatches == 3
    assert not found.flops
    if device != "MI300X_A1":  # whose times were rounded to days
        assert 10e-6 < found.seconds < 30e-6
        assert "13,9" in str(found.notes) or "14,2" in str(found.notes)


def test_declared_and_counted_side_by_side(shared, tmp_path):
    write(tmp_path, [row("vecCopy", 1.6e-5, bytes=DECLARED, device="hip:0")])
    roofs_of = tmp_path / "ceilings.json"
    who = store.Identity("hip:0", "made up", {})
    listed = [c for c in ceilings(1300, 5000) if c.threads == 1]
    roofs_of.write_text(json.dumps(store.document(who, {}, listed)))
    done = run_perf(
        "roofline", tmp_path / "results.json", "--ceilings", roofs_of, "--json", "--counters",
        shared / "traces" / "omniperf" / "MI200" / "pmc_perf.csv",
    )  # fmt: skip
    assert done.status == 0, done
    (point,) = json.loads(done.out)["points"]
    assert (point["declared_bytes"], point["counted_bytes"]) == (DECLARED, 16_778_112)
    assert point["counted_to_declared"] == pytest.approx(1.0000534, abs=1e-7)
    assert point["counted_to_declared_says"] == "as declared"
    assert point["class"] == "bandwidth-bound"


def test_a_file_cut_anywhere_is_refused(shared, tmp_path_factory):
    """At no place does a part of a file pass for the whole, but at the end of a row."""
    whole = (shared / "traces" / "omniperf" / "MI200" / "pmc_perf.csv").read_text()
    path = tmp_path_factory.mktemp("cut") / "pmc_perf.csv"
    ends = {i for i, letter in enumerate(whole, start=1) if letter == "\n"}

    @given(st.integers(0, len(whole) - 1))
    def cut_at(length):
        path.write_text(whole[:length])
        if length in ends and length != min(ends):
            assert read(path)[0].dispatches < 3
            return
        with pytest.raises(Refusal) as refusal:
            read(path)
        assert str(path) in refusal.value.message

    cut_at()


def table(path: Path, *rows: list, before: str = "") -> Path:
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    path.write_text(before + text.getvalue())
    return path


AMD = ["Dispatch_ID", "Kernel_Name", "TCC_EA_RDREQ_sum", "TCC_EA_RDREQ_32B_sum",
       "TCC_EA_WRREQ_sum", "TCC_EA_WRREQ_64B_sum"]  # fmt: skip
counts = st.integers(0, 10**9)


@given(counts, counts, counts, counts)
def test_requests_to_bytes(tmp_path_factory, read_64, read_32, write_64, write_32):
    path = tmp_path_factory.mktemp("amd") / "pmc.csv"
    table(path, AMD, [0, "k", read_64 + read_32, read_32, write_64 + write_32, write_64])
    (found,) = read(path)
    assert found.bytes == 64 * (read_64 + write_64) + 32 * (read_32 + write_32)


def test_channels_are_summed(tmp_path):
    names = [f"{name.removesuffix('_sum')}[{i}]" for i in range(3) for name in AMD[2:]]
    path = table(tmp_path / "pmc.csv", [*AMD[:2], *names], [0, "k", *[10, 0, 5, 5] * 3])
    assert read(path)[0].bytes == 64 * 45


def test_operations_of_rocprofiler_compute(tmp_path):
    ops = {"ADD_F64": 1, "MUL_F64": 2, "FMA_F64": 3, "TRANS_F64": 4, "MFMA_MOPS_F64": 5,
           "ADD_F32": 1, "MUL_F32": 0, "FMA_F32": 0, "TRANS_F32": 0}  # fmt: skip
    path = table(
        tmp_path / "pmc.csv", [*AMD, *(f"SQ_INSTS_VALU_{op}" for op in ops)],
        [0, "k", 1, 0, 1, 1, *ops.values()],
    )  # fmt: skip
    (found,) = read(path)
    assert found.flops == 64 * (1 + 2 + 6 + 4) + 512 * 5 + 64
    assert found.operations == "matrix float64"


def test_old_rocprof_and_rocprofv3(tmp_path):
    old = table(
        tmp_path / "results.csv", ["Index", "KernelName", "FETCH_SIZE", "WRITE_SIZE", "BeginNs",
                                   "EndNs", "DurationNs"],
        [0, "k(int*) [clone .kd]", 8, 4.5, 1000, 4000, 3000],
    )  # fmt: skip
    (found,) = read(old)
    assert (found.name, found.bytes, found.seconds) == ("k(int*)", 12800, pytest.approx(3e-6))
    head = ["Dispatch_Id", "Kernel_Name", "Counter_Name", "Counter_Value", "Start_Timestamp",
            "End_Timestamp"]  # fmt: skip
    rows = [
        [1, "k", name, value, 10, 2010] for name, value in zip(AMD[2:], (7, 1, 4, 2), strict=True)
    ]
    (found,) = read(table(tmp_path / "counter_collection.csv", head, *rows))
    assert found.bytes == 32 + 64 * 6 + 64 * 2 + 32 * 2
    assert found.seconds == pytest.approx(2e-6)


def test_rocprofv3_sample_without_bytes(shared):
    with pytest.raises(Refusal, match="SQ_WAVES"):
        read(shared / "traces" / "rocprofv3" / "counter_collection.csv")


def test_mi300_needs_its_wide_requests(tmp_path):
    path = table(
        tmp_path / "pmc.csv", [name.replace("EA_", "EA0_") for name in AMD], [0, "k", 1, 0, 1, 1]
    )
    with pytest.raises(Refusal, match="TCC_BUBBLE"):
        read(path)


OP = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum"
NCU = ["ID", "Process ID", "Kernel Name", "Context", "dram__bytes.sum", "gpu__time_duration.sum",
       OP.format("fadd"), OP.format("fmul"), OP.format("ffma"), "launch__block_size"]  # fmt: skip
UNITS = ["", "", "", "", "Mbyte", "usecond", "inst", "inst", "inst", ""]


def test_ncu_raw_page(tmp_path):
    path = table(
        tmp_path / "ncu.csv", NCU, UNITS,
        [0, 7, "saxpy(int, float)", 1, "1,234.5", "10.5", "1,000", "10", "100", "256"],
        [1, 7, "saxpy(int, float)", 1, "1,234.5", "11.5", "1,000", "10", "100", "256"],
        before="==PROF== Connected to process 7\nhello from the program, with a comma\n",
    )  # fmt: skip
    (found,) = read(path)
    assert found.bytes == pytest.approx(1234.5e6)
    assert found.flops == 1000 + 10 + 200
    assert found.operations == "float32 fma"
    assert found.seconds == pytest.approx(11e-6)
    assert found.dispatches == 2


def test_ncu_with_the_words_of_the_program_between(tmp_path):
    rows = ['"ID","Kernel Name","dram__bytes.sum"', '"","","byte"', '"0","k","5"', '"1","m","6"']
    path = tmp_path / "ncu.csv"
    path.write_text("\n".join([*rows[:3], "step 1, of 2", rows[3], "", "done", ""]))
    assert [(each.name, each.bytes) for each in read(path)] == [("k", 5), ("m", 6)]


def test_ncu_fused_ones_that_are_doubled_already(tmp_path):
    head = [*NCU[:8], "derived__smsp__sass_thread_inst_executed_op_ffma_pred_on_x2"]
    path = table(tmp_path / "ncu.csv", head, UNITS[:9], [0, 7, "k", 1, 1, 1, 5, 5, 200])
    assert read(path)[0].flops == 210


@pytest.mark.parametrize(
    ("floats", "lanes", "operations"),
    [(None, 320, "int32 min/max"), (5, 320, "int32 min/max"), (500, 320, "float32 fma")],
)
def test_ncu_integers_count_where_they_are_nearer_to_their_roof(
    tmp_path, floats, lanes, operations
):
    numbers = [0, 7, "k", 1, 1, 1, *([floats] * 3 if floats else []), lanes // 32]
    names = [*NCU[: len(numbers) - 1], "smsp__inst_executed_pipe_alu.sum"]
    units = [*UNITS[: len(numbers) - 1], "inst"]
    (found,) = read(table(tmp_path / "ncu.csv", names, units, numbers))
    assert found.integers == lanes
    peaks = [made(n, None, v, None) for n, v in (("int32 min/max", 100.0), ("float32 fma", 400.0))]
    judged = judge(from_counters(found), roofs("cuda:0", [*ceilings(), *peaks]))
    assert judged.point.operations == operations
    assert judged.point.counted_flops == (lanes if operations == "int32 min/max" else 4 * floats)
    assert ("logic and comparisons" in str(judged.point.notes)) == (operations == "int32 min/max")


def test_ncu_says_what_was_not_collected(tmp_path):
    path = table(tmp_path / "ncu.csv", NCU[:8], UNITS[:8], [0, 7, "k", 1, 1, 1, 5, 5])
    assert "ffma were not collected" in str(read(path)[0].notes)


def test_ncu_of_two_processes(tmp_path):
    path = table(
        tmp_path / "ncu.csv",
        ["ID", "Process ID", "Kernel Name", "Metric Name", "Metric Unit", "Metric Value"],
        [0, 7, "k", "dram__bytes.sum", "Mibyte", "80"],
        [0, 8, "k", "dram__bytes.sum", "Mibyte", "90"],
        [0, 8, "k", "gpu__time_duration.sum", "minute", "(!) n/a"],
    )  # fmt: skip
    (found,) = read(path)
    assert (found.dispatches, found.bytes, found.seconds) == (2, 90 * 2**20, None)


def test_ncu_row_by_metric(tmp_path):
    path = table(
        tmp_path / "ncu.csv", ["ID", "Kernel Name", "Metric Name", "Metric Unit", "Metric Value"],
        [0, "k", "dram__bytes_read.sum", "Kbyte", "3"],
        [0, "k", "dram__bytes_write.sum", "byte", "500"],
        [0, "k", "gpu__time_duration.sum", "ns", "2,000"],
        [0, "k", "Registers", "register/thread", "32"],
    )  # fmt: skip
    (found,) = read(path)
    assert (found.bytes, found.flops) == (3500, None)
    assert found.seconds == pytest.approx(2e-6)


PERF = "1,000,,LLC-load-misses,5,100.00,,\n"


def test_perf_stat(tmp_path):
    path = tmp_path / "perf.csv"
    path.write_text(
        "# started on a day\n\n1000,,LLC-load-misses:u,50000,80.00,,\n"
        "500,,LLC-store-misses,50000,100.00,,\n"
        "7,,fp_arith_inst_retired.256b_packed_double,50000,100.00,,\n"
        "5,,fp_arith_inst_retired.scalar_double,50000,100.00,,\n"
        "<not supported>,,cycles,0,100.00,,\n2000000,ns,duration_time,2000000,100.00,,\n"
    )
    (found,) = read(path)
    assert found.bytes == 64 * 1500
    assert (found.flops, found.operations) == (33, "float64 fma")
    assert found.seconds == pytest.approx(2e-3)
    assert "cycles" in str(found.notes)
    assert "80 %" in str(found.notes)
    judged = judge(from_counters(found), roofs("cpu", ceilings()))
    assert judged.intensity == pytest.approx(33 / 96000)


def test_perf_stat_of_memory_controllers(tmp_path):
    path = tmp_path / "perf.csv"
    path.write_text("2.5;MiB;uncore_imc/data_reads/;9;100.00;;\n1;MiB;data_writes;9;100.00;;\n")
    assert read(path)[0].bytes == 3.5 * (1 << 20)


def test_a_machine_that_does_not_count(tmp_path):
    path = tmp_path / "perf.csv"
    path.write_text("<not supported>,,LLC-load-misses,0,100.00,,\n")
    with pytest.raises(Refusal, match="virtual machines"):
        read(path)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        ("a,b\n1,2\n", "no kind that is known"),
        ("a,b\n1,2", "middle of a line"),
        ("Dispatch_ID,Kernel_Name,TCC_HIT\n0,k,5\n", "none of the counters"),
        ("Dispatch_ID,Kernel_Name,TCC_EA_RDREQ_sum\n0,k\n", "2 fields and the header 3"),
        ("Dispatch_ID,Kernel_Name,TCC_EA_RDREQ_sum\n", "no rows"),
        (",".join(AMD) + "\n0,k,1,2,much,4\n", "is no number"),
        ('"ID","Kernel Name","sm__x"\n"","","inst"\n"0","k","5"\n', "dram__bytes.sum"),
        ('"ID","Kernel Name","dram__bytes.sum"\n"0","k","5"\n', "row of units"),
        ('"ID","Kernel Name","dram__bytes.sum"\n"","","furlong"\n"0","k","5"\n', "furlong"),
        ('"ID","Kernel Name","dram__bytes.sum"\n"","","byte"\n', "no kernels"),
        ('"ID","Process ID"\n"0","7"\n', "no column Kernel Name"),
        ('"Dispatch_ID","Kernel_Name\n0,k,5\n', "damaged or cut off"),
        ("5,,cycles,9,100.00,,\n", "no event"),
        ("5,,cycles,9,100.00,,\n7,,LLC\n", "3 fields"),
        (PERF + PERF, "there twice"),
        (",".join(AMD[:3]) + "\n0,k,1\n", "also TCC_EA_RDREQ_32B, TCC_EA_WRREQ"),
        ("Index,KernelName,FETCH_SIZE\n0,k,1\n", "with FETCH_SIZE also WRITE_SIZE"),
        (",".join(AMD) + "\n0,k,1,0,1,-1\n", "no number that a counter can have"),
        (",".join(AMD) + "\n0,k,1,0,1,nan\n", "no number that a counter can have"),
        (",".join(AMD) + "\n0,k,1,0,1,1e999\n", "more than any counter holds"),
        (",".join(AMD) + '\n0,k,1,0,1,"1.234,5"\n', "another language"),
        (",".join(AMD) + '\n0,k,1,0,1,"93,45"\n', "another language"),
        (",".join(AMD) + "\n0,k,1,0,1,1.234.567\n", "another language"),
        ('{"counter-value": "5"}\n', "is JSON"),
    ],
)
def test_files_that_cannot_be_used(tmp_path, text, says):
    path = tmp_path / "counters.csv"
    path.write_text(text)
    with pytest.raises(Refusal, match=says):
        read(path)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"NVR\0" + bytes(40), "ncu --import"),
        (b"SQLite format 3\0" + bytes(40), "--output-format csv"),
        (b"PERFILE2" + bytes(40), "perf stat"),
        (b"\x1f\x8b\x08" + bytes(40), "gunzip"),
        (b"\x7fELF" + bytes(40), "no text"),
    ],
)
def test_files_that_are_no_text(tmp_path, data, says):
    path = tmp_path / "counters"
    path.write_bytes(data)
    with pytest.raises(Refusal, match=says):
        read(path)


def test_a_file_without_end_is_not_read_into_memory(monkeypatch):
    monkeypatch.setattr(counters_table, "_LARGEST", 1 << 20)
    with pytest.raises(Refusal, match="larger than 1 MiB"):
        read(Path("/dev/zero"))


def test_a_file_of_powershell(tmp_path):
    path = table(tmp_path / "pmc.csv", AMD, [0, "k", 1, 0, 1, 1])
    path.write_bytes(path.read_text().encode("utf-16"))
    assert read(path)[0].bytes == 128


@given(st.integers(0, 10**15))
def test_separators_of_thousands(value):
    for text in (f"{value}", f"{value:,}", f"{value:,}".replace(",", "\u202f"), f"{value}.0"):
        assert number(Path("x"), "y", text) == value


def test_launches_of_other_sizes_do_not_make_the_large_one_quicker(tmp_path):
    rows = [[i, "k", 10**6, 0, 10**6, 10**6, 0, 10**9] for i in range(2)]
    rows += [[i, "k", 10, 0, 10, 10, 0, 1000] for i in range(2, 7)]
    path = table(tmp_path / "pmc.csv", [*AMD, "Start_Timestamp", "End_Timestamp"], *rows)
    (found,) = read(path)
    assert (found.bytes, found.seconds, found.dispatches) == (128e6, 1.0, 7)
    assert found.all_seconds == pytest.approx(2 + 5e-6)
    assert "5 of 7 launches moved or did a fifth less" in str(found.notes)


def test_kernels_are_as_large_as_all_their_launches():
    launches = [Counted(name="once", seconds=3.0), *[Counted(name="often", seconds=1.0)] * 9]
    points = [from_counters(each) for each in merged(launches)]
    assert [point.share for point in with_shares(points)] == [0.25, 0.75]


def test_passes_of_one_kernel_in_several_files(tmp_path, monkeypatch):
    """rocprofv3 writes a file a pass; ncu another of other metrics."""
    moved = table(tmp_path / "moved.csv", AMD, [0, "k", 5, 0, 5, 5])
    ops = [f"SQ_INSTS_VALU_{op}_F32" for op in ("ADD", "MUL", "TRANS", "FMA")]
    done = table(tmp_path / "done.csv", [*AMD[:2], *ops], [0, "k", 1, 0, 0, 1])
    for order in ([moved, done], [done, moved]):
        (found,) = merged(kernel for path in order for kernel in read(path))
        assert (found.bytes, found.flops, found.operations) == (640, 192, "float32 fma")
    assert found.dispatches == 2


def test_perf_stat_of_other_machines(tmp_path):
    """Cores of two kinds, users and the kernel apart, several runs, commas before decimals."""
    path = tmp_path / "perf.csv"
    path.write_text(
        "10,,cpu_core/LLC-load-misses/,9,100.00,,\n5,,cpu_atom/LLC-load-misses/u,9,100.00,,\n"
        "3,,LLC-store-misses:u,0.53%,9,100.00,,\n4,,LLC-store-misses:k,0.53%,9,100.00,,\n"
        ",,,,,1.2,insn per cycle\n"
    )
    assert read(path)[0].bytes == 64 * 22
    path.write_text("2,5;MiB;uncore_imc/data_reads/;9;99,50;;\n")
    assert read(path)[0].bytes == 2.5 * (1 << 20)


@given(st.text(max_size=300))
def test_any_text_is_read_or_refused(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("any") / "counters.csv"
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    with pytest.raises(Refusal):
        read(path)


def test_counters_alone_make_points(tmp_path, monkeypatch):
    monkeypatch.setenv("KUROSHIO_CACHE_DIR", str(tmp_path / "cache"))
    roofs_of = tmp_path / "ceilings.json"
    who = store.Identity("cuda:0", "made up", {})
    listed = [c for c in ceilings(1000, 5000, 10000) if c.threads == 1]
    listed.append(type(listed[0])("float32 fma", None, "Gop/s", 20000.0, 1.0, 2.0, 3, "so"))
    roofs_of.write_text(json.dumps(store.document(who, {}, listed)))
    path = table(
        tmp_path / "ncu.csv", NCU, UNITS,
        [0, 7, "saxpy", 1, "90", "100", "0", "0", "1000000", "256"],
        [1, 7, "dense", 1, "9", "100", "0", "0", "900000000", "256"],
    )  # fmt: skip
    done = run_perf("roofline", "--counters", path, "--ceilings", roofs_of, "--json")
    assert done.status == 0, done
    points = json.loads(done.out)["points"]
    assert [point["class"] for point in points] == ["bandwidth-bound", "compute-bound"]
    assert points[0]["gb_per_s"] == pytest.approx(900)


def test_counters_of_a_gpu_are_not_held_to_the_processor(tmp_path, monkeypatch):
    monkeypatch.setenv("KUROSHIO_CACHE_DIR", str(tmp_path / "cache"))
    store.folder().mkdir(parents=True)
    who = store.identity("cpu")
    (store.folder() / who.file_name).write_text(json.dumps(store.document(who, {}, ceilings())))
    path = table(tmp_path / "pmc.csv", AMD, [0, "k", 1, 0, 1, 1])
    alone = run_perf("roofline", "--counters", path)
    assert alone.status == 2
    assert "The roofs of hip:0" in alone.err
    results = write(tmp_path, [row("k", 1.0, bytes=128)])
    both = run_perf("roofline", results, "--counters", path)
    assert both.status == 2
    assert "of a GPU and the results of cpu" in both.err
