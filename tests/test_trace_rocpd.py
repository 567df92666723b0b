"""rocpd: each layout tells what happened, and what is damaged is refused."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import trace_work as work
from kuroshio.errors import Refusal
from kuroshio.perf.traces import rocpd
from kuroshio.perf.traces.events import ABSENT, Direction, Kind
from kuroshio.perf.traces.sqlite_file import MAGIC
from trace_rocpd import LAYOUTS, write_rocpd
from trace_work import Call, Copy, Kernel, Process, Range

RUN = (
    Process(
        4000,
        kernels=(Kernel("axpy(float*, int)", 2000, 2500, call=1, grid=(3, 1, 1)),),
        copies=(Copy(Direction.TO_DEVICE, 1200, 1900, call=2, bytes=4096),),
        calls=(
            Call("hipLaunchKernel", 1000, 1100, 1, 4000),
            Call("hipMemcpy", 1150, 2600, 2, 4000),
        ),
        ranges=(Range("step 1", 900, 2700, 4000),),
    ),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("rocpd")


@given(run=work.runs(), layout=st.sampled_from(LAYOUTS))
def test_every_layout_tells_what_happened(folder, run, layout):
    path = folder / "results.db"
    write_rocpd(path, run, layout)
    assert rocpd.recognise(path, MAGIC)
    trace = rocpd.read(path)
    events = trace.events
    assert work.kernels_of(events) == work.kernels_expected(run)
    assert work.copies_of(events) == work.copies_expected(run)
    assert work.on_host_of(events, Kind.CALL) == work.calls_expected(run)
    assert work.on_host_of(events, Kind.ANNOTATION) == work.ranges_expected(run)
    assert work.launches_of(events) == work.launches_expected(run)
    assert (events.start[1:] >= events.start[:-1]).all()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_devices_and_what_is_known_of_the_run(folder, layout):
    write_rocpd(folder / "results.db", RUN, layout, uuid=False)
    trace = rocpd.read(folder / "results.db")
    device = trace.devices[0]
    assert (device.name, device.architecture) == ("AMD Instinct MI250X", "gfx90a")
    assert device.multiprocessors == 110
    assert device.memory_bytes is None
    assert list(trace.devices) == [0]
    assert trace.facts == {"schema": layout, "command": "./a.out"}
    assert trace.cannot_tell == ()
    others = trace.events.others
    assert others["sgpr_count"].values == ("16",)
    assert (others["sgpr_count"].codes != ABSENT).sum() == 1


@pytest.mark.parametrize(
    ("environment", "rank"),
    [
        ({"RANK": "3", "WORLD_SIZE": "8", "SLURM_PROCID": "0", "SLURM_NTASKS": "1"}, (3, 8)),
        ({"SLURM_PROCID": "1", "SLURM_NTASKS": "2"}, (1, 2)),
        ({"RANK": "three", "WORLD_SIZE": "8"}, (None, None)),
        ({"RANK": "0"}, (None, None)),
        ([], (None, None)),
    ],
)
def test_the_rank_is_what_the_launcher_told_the_process(folder, environment, rank):
    path = folder / "results.db"
    write_rocpd(path, RUN, "3.0", uuid=False)
    with closing(sqlite3.connect(path)) as database:
        database.execute("ALTER TABLE rocpd_info_process ADD COLUMN environment TEXT")
        database.execute(
            "UPDATE rocpd_info_process SET environment = ?", (json.dumps(environment),)
        )
        database.commit()
    trace = rocpd.read(path)
    assert (trace.rank, trace.ranks) == rank


def test_what_was_not_traced_is_said(folder):
    only = Process(4000, kernels=(Kernel("k", 10, 20, call=0),))
    write_rocpd(folder / "results.db", (only,), "3.0")
    trace = rocpd.read(folder / "results.db")
    assert any("No calls of the runtime" in each for each in trace.cannot_tell)
    assert any("No copies were traced" in each for each in trace.cannot_tell)
    assert trace.events.correlation.tolist() == [ABSENT]


def test_the_runtimes_own_kernels_are_copies_and_sets(folder):
    kernels = (
        Kernel("__amd_rocclr_copyBuffer", 10, 20, call=0),
        Kernel("__amd_rocclr_fillBufferAligned.kd", 30, 40, call=0),
        Kernel("copyBuffer", 50, 60, call=0),
    )
    write_rocpd(folder / "results.db", (Process(4000, kernels=kernels),), "4.1")
    events = rocpd.read(folder / "results.db").events
    assert events.kind.tolist() == [Kind.COPY, Kind.SET, Kind.KERNEL]


def test_events_without_a_sound_time_are_left_out_and_counted(folder):
    kernels = (
        Kernel("backwards", 30, 20, call=0),
        Kernel("never", 0, 0, call=0),
        Kernel("sound", 5, 6, call=0),
    )
    write_rocpd(folder / "results.db", (Process(4000, kernels=kernels),), "3.0")
    trace = rocpd.read(folder / "results.db")
    assert [trace.events.named(row) for row in range(len(trace.events))] == ["sound"]
    assert "Of 1 events the end is before the start; they are left out" in trace.cannot_tell
    assert any("Of 1 events the times were not" in each for each in trace.cannot_tell)


@pytest.mark.parametrize("layout", ["4.0"])
def test_a_time_that_is_missing_from_its_table_is_no_time(folder, layout):
    path = folder / "results.db"
    write_rocpd(path, RUN, layout, uuid=False)
    with closing(sqlite3.connect(path)) as database:
        database.execute("DELETE FROM rocpd_timestamp WHERE value = 2500")
        database.commit()
    trace = rocpd.read(path)
    assert not (trace.events.kind == Kind.KERNEL).any()
    assert any("Of 1 events the times were not" in each for each in trace.cannot_tell)


def test_ranges_have_their_names_though_calls_have_none(folder):
    """Rows without a name are called the same; what comes after them keeps its number."""
    path = folder / "results.db"
    write_rocpd(path, RUN, "3.0", uuid=False)
    before = work.on_host_of(rocpd.read(path).events, Kind.ANNOTATION)
    with closing(sqlite3.connect(path)) as database:
        database.execute("DELETE FROM rocpd_string WHERE string GLOB 'hip[LM]*'")
        database.commit()
    events = rocpd.read(path).events
    assert work.on_host_of(events, Kind.ANNOTATION) == before
    calls = events[events.kind == Kind.CALL]
    assert {calls.named(row) for row in range(len(calls))} == {"unnamed"}


def test_names_that_are_not_utf8_are_shown_as_well_as_can_be(folder):
    path = folder / "results.db"
    write_rocpd(path, RUN, "3.0", uuid=False)
    with closing(sqlite3.connect(path)) as database:
        database.execute("UPDATE rocpd_info_kernel_symbol SET display_name = CAST(X'6BFF' AS TEXT)")
        database.commit()
    events = rocpd.read(path).events
    assert "k\ufffd" in events.names


def test_ranges_whose_texts_are_packed_keep_the_names_of_calls(folder):
    path = folder / "results.db"
    write_rocpd(path, RUN, "3.0", uuid=False)
    with closing(sqlite3.connect(path)) as database:
        database.execute("UPDATE rocpd_event SET extdata = X'04224D18'")
        database.execute("UPDATE rocpd_info_agent SET extdata = X'04224D18'")
        database.commit()
    trace = rocpd.read(path)
    ranges = trace.events[trace.events.kind == Kind.ANNOTATION]
    assert ranges.named(0) == "roctxThreadRangeA"
    assert any("are packed" in each for each in trace.cannot_tell)
    assert trace.devices[0].multiprocessors is None


def test_a_file_that_is_cut_off_is_refused(folder):
    path = folder / "results.db"
    write_rocpd(path, RUN, "3.0")
    whole = path.read_bytes()
    for size in (99, 5000, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(Refusal, match=r"cut off|no SQLite"):
            rocpd.read(path)


@given(data=st.data())
def test_damage_is_refused_or_read_and_never_a_crash(folder, data):
    path = folder / "results.db"
    write_rocpd(path, RUN, "4.0")
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 20))):
        content[data.draw(st.integers(16, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    with contextlib.suppress(Refusal):
        rocpd.read(path)


def test_damage_that_sqlite_names_in_no_encoding_is_refused(folder):
    path = folder / "results.db"
    write_rocpd(path, RUN, "3.0")
    content = path.read_bytes()
    at = content.rindex(b"CREATE TABLE")
    path.write_bytes(content[: at + 3] + b"\x80\xff" + content[at + 5 :])
    with pytest.raises(Refusal, match="may be damaged"):
        rocpd.read(path)


def test_another_programs_database_is_refused(folder):
    path = folder / "bookmarks.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE places (id INTEGER, url TEXT)")
        database.execute("CREATE VIEW rocpd_kernel_dispatch AS SELECT * FROM places")
        database.commit()
    assert not rocpd.recognise(path, MAGIC)
    with pytest.raises(Refusal, match="no tables of rocpd"):
        rocpd.read(path)


def test_a_missing_column_is_named(folder):
    path = folder / "results.db"
    write_rocpd(path, RUN, "3.0", uuid=False)
    with closing(sqlite3.connect(path)) as database:
        database.execute("ALTER TABLE rocpd_kernel_dispatch RENAME COLUMN kernel_id TO other")
        database.commit()
    with pytest.raises(Refusal, match="rocpd_kernel_dispatch has no column kernel_id"):
        rocpd.read(path)


def test_texts_in_the_place_of_numbers_are_refused(folder):
    path = folder / "results.db"
    write_rocpd(path, RUN, "3.0", uuid=False)
    with closing(sqlite3.connect(path)) as database:
        database.execute("UPDATE rocpd_kernel_dispatch SET start = 'soon'")
        database.commit()
    with pytest.raises(Refusal, match=r"rocpd_kernel_dispatch\.start holds something other"):
        rocpd.read(path)


def test_a_database_that_is_being_written_is_not_read_half(folder):
    path = folder / "results.db"
    write_rocpd(path, RUN, "3.0", uuid=False)
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("PRAGMA cache_size = 1")
        writer.execute("BEGIN EXCLUSIVE")
        writer.execute("UPDATE rocpd_kernel_dispatch SET start = 0, end = 1")
        with pytest.raises(Refusal, match="locked"):
            rocpd.read(path)
        writer.rollback()


def test_empty_tables_are_no_trace(folder):
    write_rocpd(folder / "results.db", (Process(4000),), "4.1")
    with pytest.raises(Refusal, match="no events"):
        rocpd.read(folder / "results.db")
