"""The ladder as a whole, on the processor and on a device: rungs, studies, and what is refused."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from cli_runs import assert_refused, run_here
from emulator import EmulatedGpu
from kuroshio.archive import part
from kuroshio.device.gpu import GpuError
from kuroshio.errors import Refusal
from kuroshio.ladder import climb as climbing
from kuroshio.ladder import machine, ours
from kuroshio.ladder import problem as problems
from kuroshio.ladder.catalogue import RUNGS
from kuroshio.ladder.climb import Options, climb
from kuroshio.ladder.machine import OPERATIONS, Machine
from kuroshio.ladder.results import PARTS
from kuroshio.ladder.run import Answers, run_rung
from kuroshio.ladder.studies import NAMES, blocks, branches
from kuroshio.ladder.study import NOT_JUDGED
from kuroshio.perf.experiments import broken, load

TINY = replace(
    problems.SCALES["small"], name="tiny", grid=30.0, doys=(152, 157), years=(1991, 2000),
    half_width=2, pass_days=4, batch_years=4,
)  # fmt: skip
EXACT = {"baseline", "A", "ours"}
ROOFS = functools.cache(machine._roofs)  # measuring them takes ten times as long as a tiny climb


def nothing(*_: object) -> None:
    """Nobody watches."""


@pytest.fixture(autouse=True)
def _tiny(monkeypatch, tmp_path_factory):
    """A scale of its own, whose last pass is shorter and whose last batch is, too."""
    monkeypatch.setitem(problems.SCALES, "tiny", TINY)
    monkeypatch.setattr(machine, "_roofs", lambda device, _: ROOFS(device, 2))
    monkeypatch.setenv("KUROSHIO_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("files") / "tiny"


@pytest.fixture
def device(monkeypatch) -> EmulatedGpu:
    """What the ladder finds where it looks for a GPU; its rates are made up."""
    gpu = EmulatedGpu()
    rates = Machine(1000.0, 50.0, dict.fromkeys(OPERATIONS, 1e4), 0.2, 1.0, 0.1, 2)
    monkeypatch.setattr(climbing.cuda, "first", lambda: gpu)
    monkeypatch.setattr(climbing, "measured", lambda *_: rates)
    engine = climbing.Ground.run_ours
    monkeypatch.setattr(
        climbing.Ground, "run_ours",
        lambda ground, *method: engine(replace(ground, place=OnCpu(ground.place)), *method),
    )  # fmt: skip
    return gpu


class OnCpu:
    """A place whose engine is the processor's: there is no way to ask it for this device."""

    name = "cpu"

    def __init__(self, place: object) -> None:
        self.place = place


def held_to_its_promises(found: climbing.Climb) -> None:
    for result in found.results:
        if result.skipped:
            continue
        assert result.accuracy is not None
        assert result.accuracy.values > 0
        assert result.accuracy.exact == (result.key in EXACT), result.key
        assert result.kept in (True, None), result.key
        assert set(result.passes[0].parts) == set(PARTS)
        assert all(part >= 0 for each in result.passes for part in each.parts.values())


def test_on_the_processor(folder, tmp_path):
    found = climb(Options(tmp_path, "tiny", "cpu", files=folder, threads=2, runs=2), nothing)
    assert [result.key for result in found.results] == [rung.key for rung in RUNGS]
    assert {result.key for result in found.results if result.skipped} == {"A"}
    held_to_its_promises(found)
    assert [study.key for study in found.studies] == list(NAMES)
    for result in found.results[2:]:
        record = load(tmp_path / "experiments" / result.experiment)
        assert record.state == "concluded"
        assert broken(record) == []
        assert record.results[0].correct == ("yes" if result.kept else "not checked")
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_on_a_device(device, folder, tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCKS", (64, 128, 192, 256))  # the emulator wants whole waves
    monkeypatch.setattr(blocks, "ODD", 192)
    found = climb(Options(tmp_path, "tiny", files=folder, threads=2, runs=2), nothing)
    assert (found.device, found.why) == (device.name, "the first GPU")
    assert not [result.key for result in found.results if result.skipped]
    held_to_its_promises(found)
    assert [study.verdict for study in found.studies].count(NOT_JUDGED) == 0
    assert all(study.rows for study in found.studies)
    assert device.held_bytes(pinned=False) == 0


def test_no_run_of_the_engine_replaces_the_results_of_another(folder, tmp_path, monkeypatch):
    """It would wait until those are freed, as no other rung does."""
    there = []
    engine = ours.run

    def run(problem, archive, output, *rest):
        there.append(output.exists())
        return engine(problem, archive, output, *rest)

    monkeypatch.setattr(ours, "run", run)
    climb(Options(tmp_path, "tiny", "cpu", ["ours"], files=folder, threads=2), nothing)
    assert there.count(False) == len(there) > climbing.PASSES


def test_a_device_that_is_too_small_for_a_rung(device, folder, tmp_path, monkeypatch):
    """Rung A has all maps of a pass there; the others two batches."""
    monkeypatch.setitem(problems.SCALES, "tiny", replace(TINY, batch_years=2))
    device.memory_bytes = next(TINY.passes()).maps * TINY.map_bytes
    only = ["A", "D", "heap"]
    found = climb(Options(tmp_path, "tiny", only=only, files=folder, threads=2, runs=1), nothing)
    assert [bool(result.skipped) for result in found.results] == [True, False]
    assert "kB are needed on emulated:0 and" in found.results[0].skipped
    assert "are needed on emulated:0" in found.studies[0].finding
    assert found.studies[0].verdict == NOT_JUDGED


def test_a_device_that_is_too_small_for_anything_but_the_engine(device, folder, tmp_path):
    """Each rung and study is told of with the numbers, and the account is not lost."""
    device.memory_bytes = 1000
    found = climb(Options(tmp_path, "tiny", files=folder, threads=2, runs=1), nothing)
    told = [result.skipped for result in found.results[:-1]]
    told += [study.finding for study in found.studies]
    assert len(told) == len(RUNGS) - 1 + len(NAMES)
    assert all("are needed on emulated:0 and" in each.replace(",", " and") for each in told), told
    assert found.results[-1].passes
    assert {study.verdict for study in found.studies} == {NOT_JUDGED}


def test_a_second_run_goes_on_with_the_records(folder, tmp_path):
    options = Options(tmp_path, "tiny", "cpu", ["D", "ours"], folder, 2, 1)
    for _ in range(2):
        climb(options, nothing)
    names = sorted(path.name[:4] for path in (tmp_path / "experiments").glob("*.md"))
    assert names == ["0001", "0002", "0003", "0004"]


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (KeyboardInterrupt(), "it was interrupted."),
        (Refusal("The disk is\nfull."), r"The disk is\nfull."),
        (GpuError("The device stopped.", "Try again."), "The device stopped."),
        (MemoryError(), "MemoryError."),
    ],
)
def test_a_rung_that_ends_in_the_middle_leaves_no_open_record(
    folder, tmp_path, monkeypatch, error, words
):
    def ends(*_: object):
        raise error

    monkeypatch.setattr(climbing, "run_rung", ends)
    with pytest.raises(type(error)):
        climb(Options(tmp_path, "tiny", "cpu", ["D"], folder, 1, 1), nothing)
    (path,) = (tmp_path / "experiments").iterdir()
    record = load(path)
    assert (record.state, record.verdict) == ("concluded", None)
    assert record.reason.endswith(f"It was not measured here: {words}")
    assert [each.name for each in tmp_path.iterdir()] == ["experiments"]


def test_a_process_that_ends_at_once_leaves_no_scratch(folder, tmp_path, monkeypatch):
    """As the watcher of signals ends it, where a thread does not hear of them."""

    def ends(*_: object):
        assert len(list(tmp_path.iterdir())) == 1
        part.remove_unfinished()
        assert list(tmp_path.iterdir()) == []
        raise KeyboardInterrupt

    monkeypatch.setattr(climbing, "measured", ends)
    with pytest.raises(KeyboardInterrupt):
        climb(Options(tmp_path, "tiny", "cpu", ["D"], folder, 1, 1), nothing)


def test_the_engine_takes_its_own_room(device, folder, tmp_path):
    """It fits what it holds to the device; the two batches of the other rungs are not its."""
    device.memory_bytes = 1000
    found = climb(Options(tmp_path, "tiny", only=["B", "ours"], files=folder, runs=1), nothing)
    assert [bool(result.skipped) for result in found.results] == [True, False]


@pytest.mark.parametrize("error", [OSError(28, "No space left"), RuntimeError("NetCDF: HDF error")])
def test_results_that_cannot_be_written(folder, tmp_path, monkeypatch, error):
    def fails(*_: object):
        raise error

    monkeypatch.setattr(xr.Dataset, "to_netcdf", fails)
    with pytest.raises(Refusal, match=r"are free.*-o"):
        climb(Options(tmp_path, "tiny", "cpu", ["D"], folder, 1, 1), nothing)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"only": ["D", "E"]}, r"no rung 'E'.*baseline, A, B.*memory, moments"),
        ({"scale": "vast"}, r"'vast'.*small, pass, season"),
        ({"device": "cuda:all"}, r"one device.*cuda:all"),
        ({"device": "gpu"}, r"'gpu' is no device"),
        ({"threads": 0}, r"0 threads"),
        ({"threads": 10**6}, r"1,000,000 threads were asked for, and here \d+ are the most"),
        ({"files": Path("a\udcff")}, r"a.* is not UTF-8"),
        ({"runs": -1}, r"-1 runs"),
    ],
)
def test_what_is_refused_before_anything_is_made(tmp_path, given, words):
    with pytest.raises(Refusal, match=words):
        climb(Options(tmp_path / "out", **given), nothing)
    assert not (tmp_path / "out").exists()


def off_by(monkeypatch, degrees: float) -> None:
    """The engine's answers, whichever method, are not the right ones."""
    of = Answers.of

    def wrong(self: Answers, *given: object):
        means, thresholds = of(self, *given)
        return means, thresholds + np.float32(degrees)

    monkeypatch.setattr(Answers, "of", wrong)


def test_an_engine_that_is_not_exact_ends_the_ladder(folder, tmp_path, monkeypatch):
    off_by(monkeypatch, 0.001)
    with pytest.raises(Refusal, match="engine's answer is not exact"):
        climb(Options(tmp_path, "tiny", "cpu", ["D"], folder, 1, 1), nothing)


def test_rungs_that_are_off_break_their_promise_and_those_that_make_none_do_not(
    folder, tmp_path, monkeypatch
):
    off_by(monkeypatch, 0.001)
    monkeypatch.setattr(Answers, "_held_to_numpy", lambda self: None)
    only = ["baseline", "C", "D", "D+"]
    found = climb(Options(tmp_path, "tiny", "cpu", only, folder, 1, 1), nothing)
    assert [result.kept for result in found.results] == [False, None, None, False]
    assert [result.verdict == "not judged" for result in found.results] == [
        True,
        False,
        False,
        True,
    ]


def test_each_is_held_against_the_rung_before_in_as_many_runs_as_make_seven_passes(
    folder, tmp_path
):
    found = climb(Options(tmp_path, "tiny", "cpu", ["baseline", "C", "D"], folder, 1), nothing)
    full = sum(len(each.doys) == found.problem.pass_days for each in found.problem.passes())
    assert {result.runs for result in found.results} == {-(-7 // full)}
    texts = [(tmp_path / "experiments" / each.experiment).read_text() for each in found.results]
    assert "The rung before" not in texts[0]
    assert "The rung before, baseline, took" in texts[1]
    assert "The rung before, C, took" in texts[2]


@pytest.mark.parametrize("name", ["ladder.json", "ladder.html", "ladder.png", "experiments"])
def test_what_stands_in_the_way_is_said_before_anything_is_measured(tmp_path, name):
    path = tmp_path / name
    path.write_text("mine") if name == "experiments" else path.mkdir()
    assert_refused(run_here("ladder", "-o", tmp_path, "--device", "cpu"), str(path), "-o")
    assert list(tmp_path.iterdir()) == [path]


def test_an_output_whose_name_no_library_takes(tmp_path):
    with pytest.raises(Refusal, match="is not UTF-8"):
        climb(Options(tmp_path / "a\udcff"), nothing)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_a_damaged_file_is_to_be_removed(tmp_path, monkeypatch, when):
    """There is no --skip-bad here, and nothing to fetch."""
    files = tmp_path / "files"
    run_rung = climbing.run_rung
    climb(Options(tmp_path, "tiny", "cpu", ["D"], files, 1, 1), nothing)
    path = sorted(files.iterdir())[7]

    def damage(*given):
        path.write_bytes(path.read_bytes()[:-100])
        return run_rung(*given)

    with monkeypatch.context() as patches:
        if when == "before":
            path.write_bytes(path.read_bytes()[:-100])
        else:
            patches.setattr(climbing, "run_rung", damage)
        with pytest.raises(Refusal, match=rf"{path.name}.*Remove it") as told:
            climb(Options(tmp_path, "tiny", "cpu", ["D"], files, 1, 1), nothing)
    assert "--skip-bad" not in told.value.message
    path.unlink()
    found = climb(Options(tmp_path, "tiny", "cpu", ["D"], files, 1, 1), nothing)
    assert found.results[0].passes


def test_waves_and_lanes():
    assert blocks.waves(160, 64) == (3, pytest.approx(160 / 192))
    assert blocks.waves(160, 32) == (5, 1.0)


def test_the_share_of_values_that_enter_a_list_is_what_random_pools_show():
    random = np.random.default_rng()
    pools = random.random((4000, 330))
    entered = np.zeros(pools.shape, bool)
    for i in range(330):
        above = (pools[:, :i] > pools[:, i : i + 1]).sum(axis=1)
        entered[:, i] = above < 34
    alone, any_of_32 = branches.shares(330, 34, 32)
    assert entered.mean() == pytest.approx(alone, abs=0.005)
    waves = entered.reshape(-1, 32, 330).any(axis=1).mean()
    assert waves == pytest.approx(any_of_32, abs=0.01)


def test_the_command(tmp_path):
    out = tmp_path / "out"
    done = run_here("ladder", "-o", out, "--only", "baseline", "--runs", 1, "--device", "cpu")
    assert done.status == 0, done
    assert "baseline" in done.out
    assert {path.name for path in out.iterdir()} == {
        "experiments", "files-5deg", "ladder.html", "ladder.json", "ladder.png"
    }  # fmt: skip
    assert_refused(run_here("ladder", "-o", out, "--only", "Z"), "'Z'", "baseline")


def test_a_broken_promise_is_an_error_after_all_has_been_written(monkeypatch, tmp_path, folder):
    def wrong(*given):
        result = run_rung(*given)
        result.kept = False
        return result

    monkeypatch.setattr(climbing, "run_rung", wrong)
    said = run_here(
        "ladder", "-o", tmp_path, "--scale", "tiny", "--only", "baseline", "--device", "cpu",
        "--files", folder,
    )  # fmt: skip
    assert said.status == 2
    assert "baseline" in said.err
    assert "not what was promised" in said.err
    assert (tmp_path / "ladder.json").exists()
