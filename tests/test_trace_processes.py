"""Several processes in one file: when they are ranks, judged as if their files had been given."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest

from kuroshio import perf
from kuroshio.perf.traces.processes import ranks_of
from kuroshio.perf.traces.read import read
from perf_runs import kept_ceilings
from trace_nsys import write_nsys
from trace_rocpd import write_rocpd
from trace_work import BASE, Call, Kernel, Process
from traces_made import MS

REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


def process(number: int, device: int, compute: int = 5 * MS, begins: int = 0) -> Process:
    """Four times a kernel, and a collective that ends 10 ms after that began."""
    kernels, calls = [], []
    for step in range(4):
        at = BASE + begins + step * 20 * MS
        for name, start, end in (("gemm", at, at + compute), (REDUCE, at + compute, at + 10 * MS)):
            link = len(calls) + 1
            calls.append(Call("cudaLaunchKernel", start - 5000, start - 1000, link, number))
            kernels.append(Kernel(name, start, end, link, device))
    return Process(number, tuple(kernels), calls=tuple(calls))


def ranks(found) -> list[tuple]:
    return [(r.rank, r.total, r.compute, r.communication, r.waiting) for r in found.ranks.ranks]


@pytest.mark.parametrize("write", [write_nsys, lambda path, run: write_rocpd(path, run, "3.0")])
def test_one_file_is_judged_as_several_would_be(tmp_path, write):
    run = (process(4000, 1), process(4010, 0, 8 * MS))  # ranks are in order of devices
    for name, held in (("both", run), ("first", run[1:]), ("second", run[:1])):
        write(tmp_path / f"{name}.db", held)
    one = perf.diagnose(tmp_path / "both.db")
    several = perf.diagnose(tmp_path / "first.db", tmp_path / "second.db")
    assert ranks(one) == ranks(several)
    assert [each.compute for each in one.ranks.ranks] == [32 * MS, 20 * MS]
    assert one.ranks.last == several.ranks.last == (4, 0)
    assert [each.key for each in one.findings] == [each.key for each in several.findings]
    assert "both.db (process 4010)" in str(one.analyses[0].trace.path)
    assert sum("are taken for ranks" in remark for remark in one.remarks) == 1


def test_their_messages_may_be_held_to_ceilings(tmp_path):
    """One file is given, and it has several ranks: ceilings of messages are no mistake."""
    roofs = kept_ceilings(tmp_path / "roofs.json")
    write_nsys(tmp_path / "run", (process(4000, 0), process(4010, 1)))
    assert perf.diagnose(tmp_path / "run", ceilings=[roofs]).ranks is not None


def test_they_must_have_devices_of_their_own(tmp_path):
    write_nsys(tmp_path / "run", (process(4000, 0), process(4010, 0)))
    (trace,) = ranks_of(read(tmp_path / "run"))
    assert len(trace.events) == 32
    assert "2 processes that worked on devices of the same numbers" in trace.cannot_tell[-1]
    assert perf.diagnose(tmp_path / "run").ranks is None


@pytest.mark.parametrize(("begins", "number"), [(0, 2), (30 * MS, 2), (40 * MS, 1), (90 * MS, 1)])
def test_they_must_work_at_once(tmp_path, begins, number):
    """Each for 70 ms: what comes after the other is another run."""
    write_nsys(tmp_path / "run", (process(4000, 0), process(4010, 1, begins=begins)))
    assert len(ranks_of(read(tmp_path / "run"))) == number


def test_ranks_that_are_told_may_share_a_device(tmp_path):
    def told(file) -> None:
        for number, rank in ((4000, 7), (4010, 3)):
            file.insert("MPI_RANKS", globalPid=number << 24, rank=rank)

    write_nsys(tmp_path / "run", (process(4000, 0), process(4010, 0, begins=500 * MS)), told)
    first, second = ranks_of(read(tmp_path / "run"))
    assert (first.rank, second.rank) == (3, 7)
    assert set(first.events.process.tolist()) == {4010}


def write_told(path, *told: tuple[Process, int, int]) -> None:
    """rocpd of processes, with the rank of each and of how many."""
    write_rocpd(path, [each for each, _, _ in told], "3.0")
    with closing(sqlite3.connect(path)) as database:
        for each, rank, ranks in told:
            said = json.dumps({"RANK": str(rank), "WORLD_SIZE": str(ranks)})
            table = f"rocpd_info_process_{each.number:032x}"
            database.execute(f"ALTER TABLE {table} ADD COLUMN environment TEXT")
            database.execute(f"UPDATE {table} SET environment = ?", (said,))
        database.commit()


@pytest.mark.parametrize(("ranks", "expected"), [(8, 8), (4, None)])
def test_ranks_of_databases_and_of_how_many(tmp_path, ranks, expected):
    """In one file or a folder of files; each process sees its device as number 0."""
    (tmp_path / "folder").mkdir()
    one, two = (process(4000, 0), 5, 8), (process(4010, 0), 4, ranks)
    write_told(tmp_path / "run.db", one, two)
    write_told(tmp_path / "folder" / "1.db", one)
    write_told(tmp_path / "folder" / "2.db", two)
    for name in ("run.db", "folder"):
        found = ranks_of(read(tmp_path / name))
        assert [(each.rank, each.ranks) for each in found] == [(4, expected), (5, expected)]
        assert set(found[0].events.process.tolist()) == {4010}
        limits = " ".join(perf.diagnose(tmp_path / name).ranks.limits)
        assert ("2 of 8 ranks were given" in limits) == (expected == 8)


def test_hosts_whose_processes_have_one_number(tmp_path):
    """As in containers, where a program is always process 1."""
    for host, rank, compute in (("a", 1, 5 * MS), ("b", 0, 8 * MS), ("c", 2, 6 * MS)):
        (tmp_path / "run" / host).mkdir(parents=True)
        write_told(tmp_path / "run" / host / "1.db", (process(1, 0, compute), rank, 3))
    found = perf.diagnose(tmp_path / "run")
    assert [each.compute for each in found.ranks.ranks] == [32 * MS, 20 * MS, 24 * MS]
    assert any("those of 2 of 3 files are numbered anew" in each for each in found.remarks)


@pytest.mark.parametrize("ranks", [(3, 3), (3, None)])
def test_ranks_that_are_told_twice_or_half_are_not_believed(tmp_path, ranks):
    def told(file) -> None:
        for number, rank in zip((4000, 4010), ranks, strict=True):
            if rank is not None:
                file.insert("MPI_RANKS", globalPid=number << 24, rank=rank)

    write_nsys(tmp_path / "run", (process(4000, 0), process(4010, 0)), told)
    assert len(ranks_of(read(tmp_path / "run"))) == 1


def test_a_process_without_work_is_no_rank(tmp_path):
    loader = Process(4020, calls=(Call("cudaGetDevice", BASE, BASE + MS, 1, 4020),))
    write_nsys(tmp_path / "run", (process(4000, 0), loader))
    (trace,) = ranks_of(read(tmp_path / "run"))
    assert trace.rank is None
    assert not any("process" in each for each in trace.cannot_tell)


def test_devices_are_those_of_each(tmp_path):
    write_nsys(tmp_path / "run", (process(4000, 0), process(4010, 1)))
    assert [list(each.devices) for each in ranks_of(read(tmp_path / "run"))] == [[0], [1]]


def test_files_of_several_nodes(tmp_path):
    for node in "ab":
        write_nsys(tmp_path / node, (process(4000, 0), process(4010, 1)))
    found = perf.diagnose(tmp_path / "a", tmp_path / "b")
    assert [each.rank for each in found.ranks.ranks] == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="twice"):
        perf.diagnose(tmp_path / "a", tmp_path / "a")
