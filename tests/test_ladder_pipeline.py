"""What the ladder's rungs share: files, rings, the turns played through, and where seconds went."""

from __future__ import annotations

import threading
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuroshio.archive.badfile import BadFile
from kuroshio.errors import Refusal
from kuroshio.ladder import gpu_place
from kuroshio.ladder.files import BYTES, LIBRARY, files_of
from kuroshio.ladder.pipeline import pass_times
from kuroshio.ladder.problem import SCALES, problem_of
from kuroshio.ladder.rings import Reader
from kuroshio.ladder.waits import played, rings_by_formula

TINY = replace(
    SCALES["small"], name="tiny", grid=30.0, doys=(152, 155), years=(1991, 1996),
    half_width=1, pass_days=2, batch_years=2,
)  # fmt: skip


def nothing(*_: object) -> None:
    """Nobody watches."""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return files_of(TINY, tmp_path_factory.mktemp("ladder") / "files", nothing, threads=1)


# -- the problem ----------------------------------------------------------------------------------


def test_the_season_is_cut_as_the_published_program_cut_it():
    season = problem_of("season")
    passes = list(season.passes())
    assert [len(each.doys) for each in passes] == [12] * 7 + [8]
    assert passes[0].maps == 660
    assert 110 * season.map_bytes == pytest.approx(915e6, rel=1e-2)  # a ring
    assert (season.pool, season.largest, season.files) == (330, 34, 3060)


@given(st.integers(1, 400), st.integers(1, 9999))
def test_as_many_of_the_largest_as_the_percentile_needs(pool, hundredths):
    """Of a full pool, and of every smaller one, the lower of the two values is among them."""
    problem = replace(TINY, half_width=0, years=(1, pool), percentile=hundredths / 100)
    for n in {1, max(pool // 2, 1), pool}:
        below = (n - 1) * hundredths // 10_000
        assert n - below <= problem.largest
    assert problem.largest == pool - (pool - 1) * hundredths // 10_000


def test_an_unknown_scale_is_refused_with_those_there_are():
    with pytest.raises(Refusal, match=r"'huge'.*small, pass, season"):
        problem_of("huge")


# -- files ----------------------------------------------------------------------------------------


def test_a_map_is_the_same_by_the_library_and_by_its_bytes(files):
    one, other = np.empty(TINY.cells), np.empty(TINY.cells)
    for slot in (151, 156):
        files.read(1993, slot, one, LIBRARY)
        files.read(1993, slot, other, BYTES)
        np.testing.assert_array_equal(one, other)
        assert np.isnan(one).any()
        assert not np.isnan(one).all()


def test_files_are_made_once_and_completed_if_some_are_gone(tmp_path):
    folder = tmp_path / "files"
    files_of(TINY, folder, nothing, threads=1)
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert len(before) == TINY.files
    files_of(TINY, folder, nothing, threads=1)
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    next(iter(before)).unlink()
    found = files_of(TINY, folder, nothing, threads=1)
    assert {path for path in folder.iterdir()} == set(before)
    assert set(found.places[1991]) == set(TINY.slots)


def test_foreign_files_are_neither_read_nor_written_over(tmp_path):
    (tmp_path / "mine.nc").write_bytes(b"mine")
    with pytest.raises(Refusal, match=r"mine\.nc.*--files"):
        files_of(TINY, tmp_path, nothing)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.nc"]


def test_files_of_another_grid_are_refused_with_what_is_needed(files):
    with pytest.raises(Refusal, match=r"\(7, 12\).*13 x 24"):
        files_of(replace(TINY, grid=15.0), files.folder, nothing)


@pytest.mark.parametrize("how", [LIBRARY, BYTES])
def test_a_cut_off_file_is_named(tmp_path, how):
    files = files_of(TINY, tmp_path / "files", nothing, threads=1)
    path = tmp_path / "files" / files.places[1992][153].path.rsplit("/", 1)[1]
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(BadFile, match=path.name):
        files.read(1992, 153, np.empty(TINY.cells), how)


# -- rings ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("how", "threads"), [(LIBRARY, 1), (BYTES, 3)])
def test_batches_come_in_order_and_whole(files, how, threads):
    passing = list(TINY.passes())[1]
    rings = [np.empty((len(passing.slots) * 2, TINY.cells)) for _ in range(2)]
    expected = np.empty(TINY.cells)
    with Reader(files, rings, passing, how, threads) as reader:
        for batch in passing.batches:
            full = reader.next()
            assert full.batch == batch
            assert full.stop_s > full.start_s
            for j, year in enumerate(batch.years):
                for i, slot in enumerate(passing.slots):
                    files.read(year, slot, expected, LIBRARY)
                    np.testing.assert_array_equal(full.maps[i, j], expected)
            reader.give_back(full.ring, nothing)


def test_a_ring_is_not_filled_before_what_it_must_wait_for(files):
    passing = next(TINY.passes())
    ring = np.zeros((len(passing.slots) * 2, TINY.cells))
    copied, asked = threading.Event(), threading.Event()

    def wait() -> None:
        asked.set()
        assert copied.wait(10)

    with Reader(files, [ring], passing) as reader:
        full = reader.next()
        kept = full.maps.copy()
        reader.give_back(full.ring, wait)
        assert asked.wait(10)
        np.testing.assert_array_equal(full.maps, kept)
        copied.set()
        assert not np.array_equal(reader.next().maps, kept, equal_nan=True)


def test_an_error_of_the_reader_is_raised_where_its_batch_is_wanted(files):
    class Broken:
        def read(self, *_: object) -> None:
            raise BadFile("a.nc", "it is broken")

    passing = next(TINY.passes())
    ring = np.zeros((len(passing.slots) * 2, TINY.cells))
    with Reader(Broken(), [ring], passing) as reader, pytest.raises(BadFile, match="broken"):
        reader.next()


def test_no_thread_outlives_a_pass_that_is_given_up(files):
    passing = next(TINY.passes())
    rings = [np.zeros((len(passing.slots) * 2, TINY.cells))]
    before = threading.active_count()
    with Reader(files, rings, passing, BYTES, 2) as reader:
        reader.next()  # and the ring is not given back
    assert threading.active_count() == before


@pytest.mark.parametrize("started", [True, False])
def test_no_thread_outlives_an_interrupt_as_it_starts(files, monkeypatch, started):
    start = threading.Thread.start

    def interrupted(thread: threading.Thread) -> None:
        if started:
            start(thread)
        raise KeyboardInterrupt

    passing = next(TINY.passes())
    reader = Reader(files, [np.zeros((len(passing.slots) * 2, TINY.cells))], passing)
    before = set(threading.enumerate())
    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt), reader:
        pass
    assert set(threading.enumerate()) <= before


def test_a_reader_that_nobody_stops_does_not_keep_the_process(files):
    """As where an interrupt comes before `__exit__` has told it to end."""
    passing = next(TINY.passes())
    reader = Reader(files, [np.zeros((len(passing.slots) * 2, TINY.cells))], passing)
    reader.__enter__()
    (thread,) = (each for each in threading.enumerate() if each.name == "kuroshio-ladder-reader")
    assert thread.daemon
    reader.__exit__()


# -- waiting --------------------------------------------------------------------------------------

SECONDS = st.floats(0.001, 10)


@given(SECONDS, SECONDS, SECONDS, st.integers(1, 30), st.integers(1, 8))
def test_more_rings_never_wait_longer_and_nothing_is_quicker_than_its_parts(
    io, copy, gpu, batches, rings
):
    some = played(rings, [io] * batches, copy, gpu)
    more = played(rings + 1, [io] * batches, copy, gpu)
    assert more.total_s <= some.total_s + 1e-9
    least = max(io * batches + copy + gpu, io + copy * batches + gpu, io + copy + gpu * batches)
    assert some.total_s >= least - 1e-9
    assert 0 <= some.hidden_wait_s <= some.total_s - io - gpu * batches + 1e-9


@given(SECONDS, st.floats(0.01, 0.99), st.integers(2, 13), st.integers(2, 40))
def test_no_number_of_rings_helps_a_reader_that_is_the_slower_side(io, share, rings, batches):
    gpu = io * share
    found = played(rings, [io] * batches, 0.0, gpu)
    assert found.hidden_wait_s == pytest.approx((batches - 1) * (io - gpu), rel=1e-6)


def test_the_formula_asks_for_13_rings_that_gain_nothing():
    """T_io 2.3 s and T_gpu 0.2 s, as published; twice the readers are worth more."""
    assert rings_by_formula(2.3, 0.2) == 13
    two, thirteen = (played(rings, [2.3] * 48, 0.0, 0.2) for rings in (2, 13))
    assert thirteen.total_s == pytest.approx(two.total_s)
    assert thirteen.hidden_wait_s == pytest.approx(47 * 2.1)
    assert played(2, [2.3 / 2] * 48, 0.0, 0.2).total_s < 0.52 * thirteen.total_s
    assert rings_by_formula(2.3, 0.0) is None


def test_one_stream_copies_and_computes_in_turn():
    two = played(4, [0.01] * 50, 1.0, 1.0)
    one = played(4, [0.01] * 50, 1.0, 1.0, streams=1)
    assert one.total_s == pytest.approx(100, rel=0.01)
    assert two.total_s == pytest.approx(51, rel=0.01)


def test_a_copy_waits_until_what_it_writes_over_has_been_worked_on():
    """One ring, two buffers: the third copy begins at 25 s, when the first kernel ends, and not
    at 14; so the ring is free later, and the last batch, which is slow to read, comes later."""
    assert played(1, [4, 4, 4, 60], 1, 20).total_s == 26 + 60 + 1 + 20
    assert played(1, [4, 4, 4, 60], 1, 20, buffers=3).total_s == 15 + 60 + 1 + 20


# -- where the seconds went -----------------------------------------------------------------------


def test_the_parts_of_a_pass_are_disjoint_and_add_up():
    times = pass_times(
        (0.0, 9.5, 10.0), reads=[(0.5, 2.0), (2.0, 5.0)], copies=[(2.0, 3.0), (5.0, 6.0)],
        computes=[(2.5, 4.0), (6.0, 8.0), (8.0, 9.0)], passing=next(TINY.passes()),
    )  # fmt: skip
    assert times.parts == pytest.approx(
        {"first read": 2.0, "copy": 1.5, "compute": 4.5, "hidden wait": 1.0, "final": 0.5,
         "write": 0.5}
    )  # fmt: skip
    assert times.total_s == pytest.approx(10.0)
    assert (times.copy_s, times.overlap_s) == pytest.approx((2.0, 0.5))
    assert (times.io_s, times.gpu_s) == pytest.approx((2.25, 1.75))


def test_a_buffer_is_copied_to_only_when_it_has_been_worked_on(monkeypatch):
    """Of two buffers the third batch takes the first's; events say what waits for what."""
    log: list[tuple] = []

    class Stream:
        def __init__(self, name: str) -> None:
            self.name = name

        def wait_event(self, event: Event) -> None:
            log.append((self.name, "waits for", event.number))

    class Event:
        def __init__(self) -> None:
            self.number = -1

        def record(self, stream: Stream) -> None:
            self.number = len(log)
            log.append((stream.name, "event", self.number))

    gpu = SimpleNamespace(
        name="gpu", model="", stream=lambda: Stream(next(names)), event=Event,
        empty=np.empty,
        upload=lambda there, maps, stream: log.append((stream.name, "copies", 0)),
    )  # fmt: skip
    names = iter(["stream", "copying"])
    worker = SimpleNamespace(
        target=lambda number: None, batch=lambda maps, years: log.append(("stream", "works", 0))
    )
    monkeypatch.setattr(gpu_place, "Clock", lambda gpu: None)
    feed = gpu_place.GpuPlace(gpu).feed(2, 3)
    for number in range(4):
        feed.send(worker, np.zeros((1, 2, 3)), number)
    works = [at for at, entry in enumerate(log) if entry[1] == "works"]
    copies = [at for at, entry in enumerate(log) if entry[1] == "copies"]
    for batch in (2, 3):
        before = works[batch - 2]
        worked_on = next(entry[2] for entry in log[before:] if entry[:2] == ("stream", "event"))
        waits = log.index(("copying", "waits for", worked_on))
        assert waits < copies[batch]
