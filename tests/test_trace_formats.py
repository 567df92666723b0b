"""Which reader a file or folder goes to, by its content alone, whatever its name."""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

import trace_work as work
from kuroshio.errors import Refusal
from kuroshio.perf.traces import rocprofv3_csv, rocprofv3_folder
from kuroshio.perf.traces.events import Direction, Kind
from kuroshio.perf.traces.read import read
from trace_nsys import write_nsys
from trace_rocpd import write_rocpd
from trace_rocprofv3 import as_json, write_csv
from trace_work import Call, Copy, Kernel, Process, Range


def process(number: int) -> Process:
    return Process(
        number,
        kernels=(Kernel("axpy(float*, int)", 2000, 2500, call=1, grid=(3, 1, 1)),),
        copies=(Copy(Direction.TO_DEVICE, 1200, 1900, call=2, bytes=4096),),
        calls=(
            Call("hipLaunchKernel", 1000, 1100, 1, number),
            Call("hipMemcpy", 1150, 2600, 2, number),
        ),
        ranges=(Range("step 1", 900, 2700, number),),
    )


RUN = (process(4000), process(4010))


def write_json(path: Path, run) -> None:
    path.write_text(as_json(run))


def write_folder(path: Path, run) -> None:
    path.mkdir()
    write_csv(path, run)


def write_databases(path: Path, run) -> None:
    (path / "node01").mkdir(parents=True)
    for each in run:
        write_rocpd(path / "node01" / f"{each.number}_results.db", (each,), "3.0")


def write_documents(path: Path, run) -> None:
    (path / "node01").mkdir(parents=True)
    for each in run:
        write_json(path / "node01" / f"{each.number}_results.json", (each,))


WRITERS = {
    "rocpd SQLite": lambda path, run: write_rocpd(path, run, "4.0"),
    "nsys SQLite": write_nsys,
    "rocprofv3 JSON": write_json,
    "rocprofv3 CSV": write_folder,
    "rocpd SQLite, a folder": write_databases,
    "rocprofv3 JSON, a folder": write_documents,
}


@pytest.mark.parametrize("form", WRITERS)
def test_one_run_is_the_same_in_every_format(tmp_path, form):
    path = tmp_path / "trace.txt"
    WRITERS[form](path, RUN)
    trace = read(path)
    assert trace.form == form.split(",")[0]
    events = trace.events
    assert work.launches_of(events) == work.launches_expected(RUN)
    assert work.on_host_of(events, Kind.CALL) == work.calls_expected(RUN)
    assert work.on_host_of(events, Kind.ANNOTATION) == work.ranges_expected(RUN)
    assert [each[:7] for each in work.kernels_of(events)] == [
        each[:7] for each in work.kernels_expected(RUN)
    ]
    assert [each[:4] for each in work.copies_of(events)] == [
        each[:4] for each in work.copies_expected(RUN)
    ]
    assert (events.start[1:] >= events.start[:-1]).all()


def test_old_rocprof(tmp_path):
    (tmp_path / "results").write_text("Index,KernelName,gpu-id,BeginNs,EndNs\n0,k,0,5,9\n")
    assert read(tmp_path / "results").form == "rocprof CSV"


def test_a_table_that_is_packed(tmp_path):
    path = tmp_path / "trace"
    path.write_bytes(
        gzip.compress(b"Domain,Function,Start_Timestamp,End_Timestamp\nHIP_API,f,5,9\n")
    )
    assert read(path).events.duration.tolist() == [4]


def test_a_database_that_is_packed_is_to_be_unpacked(tmp_path):
    write_nsys(tmp_path / "a", RUN)
    (tmp_path / "b").write_bytes(gzip.compress((tmp_path / "a").read_bytes()))
    with pytest.raises(Refusal, match="Unpack it"):
        read(tmp_path / "b")


@pytest.mark.parametrize("tables", [(), ("places", "cookies")])
def test_another_programs_database_is_told_by_its_tables(tmp_path, tables):
    with closing(sqlite3.connect(tmp_path / "a")) as database:
        database.execute("PRAGMA user_version = 1")
        for table in tables:
            database.execute(f"CREATE TABLE {table} (id INTEGER)")
        database.commit()
    with pytest.raises(Refusal, match="cookies, places" if tables else "no tables"):
        read(tmp_path / "a")


def test_a_database_that_is_cut_off_is_told_to_be(tmp_path):
    write_rocpd(tmp_path / "a", RUN, "4.1")
    (tmp_path / "a").write_bytes((tmp_path / "a").read_bytes()[:9000])
    with pytest.raises(Refusal, match="cut off"):
        read(tmp_path / "a")


def test_a_folder_of_other_files_is_none(tmp_path):
    (tmp_path / "sales.csv").write_text("Month,Sum\n1,2\n")
    (tmp_path / "pid_results.json").write_text(json.dumps({"results": []}))
    (tmp_path / "other.db").write_bytes(b"")
    with pytest.raises(Refusal, match="a folder without"):
        read(tmp_path)


def test_a_folder_that_holds_one_damaged_database_is_refused_by_its_name(tmp_path):
    write_databases(tmp_path / "a", RUN)
    bad = tmp_path / "a" / "node01" / "4010_results.db"
    with closing(sqlite3.connect(bad)) as database:
        (table,) = database.execute(
            "SELECT name FROM sqlite_master WHERE name LIKE 'rocpd_region_%' AND type = 'table'"
        ).fetchone()
        database.execute(f"UPDATE {table} SET start = 'soon'")
        database.commit()
    with pytest.raises(Refusal, match=r"4010_results\.db"):
        read(tmp_path / "a")


def test_a_folder_that_holds_one_database_that_is_cut_off_is_refused_by_its_name(tmp_path):
    write_databases(tmp_path / "a", RUN)
    bad = tmp_path / "a" / "node01" / "4010_results.db"
    bad.write_bytes(bad.read_bytes()[:9000])
    with pytest.raises(Refusal, match=r"4010_results\.db is cut off"):
        read(tmp_path / "a")


@pytest.mark.parametrize(
    ("module", "write"), [(rocprofv3_csv, write_folder), (rocprofv3_folder, write_databases)]
)
def test_too_many_files_are_refused(tmp_path, monkeypatch, module, write):
    monkeypatch.setattr(module, "_MOST_FILES", 1)
    write(tmp_path / "a", RUN)
    with pytest.raises(Refusal, match="more than 1"):
        read(tmp_path / "a")


@pytest.mark.parametrize("form", ["rocpd SQLite", "nsys SQLite"])
@pytest.mark.parametrize("name", ["a run.db.gz", "run"])
def test_of_a_packed_database_the_refusal_says_how_to_unpack_it(tmp_path, form, name):
    WRITERS[form](tmp_path / "plain", RUN)
    (tmp_path / name).write_bytes(gzip.compress((tmp_path / "plain").read_bytes()))
    with pytest.raises(Refusal, match="database packed by gzip") as caught:
        read(tmp_path / name)
    command = caught.value.message.rpartition(": ")[2]
    subprocess.run(["/bin/sh", "-c", command], check=True)
    (made,) = set(tmp_path.iterdir()) - {tmp_path / "plain", tmp_path / name}
    assert read(made).form == form


def test_what_is_no_file_is_passed_over_and_not_waited_for(tmp_path):
    write_folder(tmp_path / "a", RUN)
    for name in ("pipe_kernel_trace.csv", "pipe_results.db", "pipe_results.json"):
        os.mkfifo(tmp_path / "a" / name)
    (tmp_path / "a" / "folder_trace.csv").mkdir()
    assert len(read(tmp_path / "a").events) == 10


def test_a_trace_that_cannot_be_read_is_not_passed_over(tmp_path):
    write_folder(tmp_path / "a", RUN)
    broken = b"\x1f\x8bno gzip at all"
    (tmp_path / "a" / "sales.csv").write_bytes(broken)
    assert len(read(tmp_path / "a").events) == 10
    (tmp_path / "a" / "4020_kernel_trace.csv").write_bytes(broken)
    with pytest.raises(Refusal, match="4020_kernel_trace"):
        read(tmp_path / "a")
