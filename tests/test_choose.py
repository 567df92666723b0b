"""Which device a run gets, what a person is told of it, and what becomes of a GPU that fails."""

from __future__ import annotations

import json
import threading
import warnings
from dataclasses import replace
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

import kuroshio as ks
from cli_runs import assert_refused, climatology, left_over, run_here
from fake_cupy import CompileException, cupy_is, fake_cupy
from kuroshio.device import nvcomp
from kuroshio.device.gpu import GpuError
from kuroshio.engines.choose import choose_engine
from kuroshio.engines.cpu import CpuEngine
from kuroshio.engines.worth import GPU_START_S, Task, gpu_saves_s
from kuroshio.terminal import _sharing

SMALL = Task(cells=6, doys=365, words=11, key_bytes=2, threads=2)
LARGE = Task(cells=1440 * 720, doys=365, words=11, key_bytes=2, threads=2)


@pytest.fixture(autouse=True, scope="module")
def _own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUROSHIO_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


class Engine(CpuEngine):
    """Stands in for a GPU's: counts what it gets, and fails where `fails_at` says."""

    made: list[Engine]
    fails_at = ""

    def __init__(self, gpus, pinned_bytes, key_bytes) -> None:
        super().__init__()
        self.gpus, self.pinned_bytes, self.launches, self.closed = gpus, pinned_bytes, 0, 0
        self.made.append(self)
        self._fail("init")

    def _fail(self, at: str) -> None:
        if at == self.fails_at:
            if at == "compile":
                self.gpus[0].kernels("text", ["a"])
            raise GpuError(f"It failed at {at}.", "Do this.")

    def begin(self, plan, threads) -> None:
        super().begin(plan, threads)
        self._fail("begin")

    def block(self, means, block):
        self._fail("block")
        device = super().block(means, block)
        start, launch = device.start, device.launch

        def started(batch, first):
            works = start(batch, first)
            return [*works, means.crew.start(self._fail, [("compile",), ("start",)])]

        def launched(batch, first):
            self.launches += 1
            self._fail(f"launch {self.launches}")
            launch(batch, first)

        device.start, device.launch = started, launched
        return device

    def close(self) -> None:
        self.closed += 1
        super().close()


@pytest.fixture
def engine(monkeypatch):
    """The class of GPU engines, which keeps those that were made."""
    kind = type("Engine", (Engine,), {"made": []})
    monkeypatch.setattr("kuroshio.engines.gpu.GpuEngine", kind)
    return kind


@pytest.fixture(autouse=True)
def _no_inflating(monkeypatch):
    """The stand-in for CuPy has no streams to try it on."""
    monkeypatch.setattr("kuroshio.device.inflater.works", lambda _: False)


@pytest.fixture
def gpu(engine, monkeypatch):
    """A GPU is there, and any job is worth it."""
    monkeypatch.setattr("kuroshio.engines.choose.gpu_saves_s", lambda _, inflates: 1.0)
    with cupy_is(fake_cupy(compiler=CompileException("k.cu(1): error:\tx\n  y\n"))):
        yield engine


# -- the rule --------------------------------------------------------------------------------------


def test_a_gpu_saves_the_windows_less_its_start():
    assert gpu_saves_s(SMALL) == pytest.approx(-GPU_START_S, abs=0.01)
    assert gpu_saves_s(LARGE) == pytest.approx(LARGE.compute_s - GPU_START_S)
    assert 1 < gpu_saves_s(LARGE) < 60


def test_a_gpu_that_inflates_saves_that_too():
    task = replace(LARGE, inflatable_bytes=10**10)
    saved = gpu_saves_s(task, inflates=True) - gpu_saves_s(task)
    assert 0.5 * task.inflate_s < saved < task.inflate_s
    assert gpu_saves_s(task) == gpu_saves_s(LARGE) == gpu_saves_s(LARGE, inflates=True)


@pytest.mark.parametrize("installed", [True, False])
def test_auto_knows_whether_the_gpu_can_inflate(engine, monkeypatch, installed):
    monkeypatch.setattr(nvcomp, "library", lambda: object() if installed else None)
    monkeypatch.setattr("kuroshio.device.inflater.works", lambda _: True)
    with cupy_is(fake_cupy()):
        choice = choose_engine("auto", None, replace(SMALL, inflatable_bytes=10**10))
        assert (choice.device == "cuda:0") == choice.inflates == installed
        assert "the windows and inflating would take 2 threads" in choice.why or not installed
        assert choose_engine("auto", None, SMALL).device == "cpu"


@given(
    st.integers(1, 10**8), st.integers(1, 366), st.integers(1, 400), st.sampled_from([2, 4, 8]),
    st.integers(1, 256),
)  # fmt: skip
def test_more_work_makes_it_pay_and_more_threads_do_not(cells, doys, words, key_bytes, threads):
    task = Task(cells, doys, words, key_bytes, threads)
    for more in (
        Task(cells + 1, doys, words, key_bytes, threads),
        Task(cells, doys + 1, words, key_bytes, threads),
        Task(cells, doys, words + 1, key_bytes, threads),
        Task(cells, doys, words, key_bytes * 2, threads),
    ):
        assert gpu_saves_s(more) > gpu_saves_s(task)
    fewer = gpu_saves_s(Task(cells, doys, words, key_bytes, threads + 1))
    assert -GPU_START_S < fewer < gpu_saves_s(task)


# -- the choice ------------------------------------------------------------------------------------


def test_what_was_asked_for_is_taken(engine):
    assert choose_engine("cpu", None, LARGE).device == "cpu"
    with cupy_is(fake_cupy(count=2)):
        for name in ("cuda:0", "cuda:1"):
            choice = choose_engine(name, 123, SMALL)  # however small the job
            assert (choice.device, choice.model, choice.why) == (name, "Fake 1000", "as asked")
            assert not choice.auto
            assert [gpu.name for gpu in choice.engine.gpus] == [name]
            assert choice.engine.pinned_bytes == 123
            assert choice.line == f"Device: {name} (Fake 1000), as asked"
    with cupy_is(fake_cupy(hip=True)):
        assert choose_engine("hip:all", None, SMALL).device == "hip:0"
    with cupy_is(fake_cupy(count=3)):
        choice = choose_engine("cuda:all", None, SMALL)
        assert choice.device == "cuda:0, cuda:1, cuda:2"
        assert [gpu.name for gpu in choice.engine.gpus] == ["cuda:0", "cuda:1", "cuda:2"]
        assert choice.line == "Device: cuda:0, cuda:1, cuda:2 (Fake 1000), as asked"


def test_auto_takes_a_gpu_that_pays(engine):
    with cupy_is(fake_cupy()):
        choice = choose_engine("auto", None, LARGE)
        assert (choice.device, choice.model, choice.auto) == ("cuda:0", "Fake 1000", True)
        seconds = f"{LARGE.compute_s:.0f}"
        assert choice.line == (
            "Device: cuda:0 (Fake 1000), for the windows would take 2 threads of the processor "
            f"about {seconds} s"
        )
        choice = choose_engine("auto", None, SMALL)
        assert choice.device == "cpu"
        assert choice.line == "Device: cpu; the job is too small for a GPU to pay"


def test_auto_does_not_ask_for_devices_for_a_small_job(engine, monkeypatch):
    with cupy_is(fake_cupy()):
        monkeypatch.setattr("kuroshio.device.cuda.count", lambda: pytest.fail("was asked"))
        monkeypatch.setattr("kuroshio.device.cuda.kind", lambda: pytest.fail("was asked"))
        assert choose_engine("auto", None, SMALL).device == "cpu"


@pytest.fixture
def steps(monkeypatch):
    """What is done of a device's start, in order."""
    steps = []

    def noted(module: str, name: str) -> None:
        function = getattr(import_module(module), name)

        def note(*args, **options):
            steps.append(name)
            return function(*args, **options)

        monkeypatch.setattr(f"{module}.{name}", note)

    for module, name in (
        ("kuroshio.device.cuda", "start"),
        ("kuroshio.device.cuda", "count"),
        ("kuroshio.pipeline", "_make_ready"),
        ("kuroshio.api", "open_archive"),
        ("kuroshio.archive.catalog", "open_archive"),
    ):
        noted(module, name)
    return steps


def test_a_gpu_asked_for_is_begun_before_the_archive_is_known(years, output, gpu, steps):
    assert climatology(years, output, "-q", "--device", "cuda:0").status == 0
    assert steps == ["start", "open_archive", "_make_ready", "count"]
    steps.clear()
    with pytest.warns(UserWarning, match="baseline of 2 years"):
        ks.climatology(years, baseline=(2001, 2002), doys=[1], device="cuda:0")
    assert steps == ["start", "open_archive", "_make_ready", "count"]


def test_a_gpu_nobody_asked_for_is_begun_once_it_pays(years, output, gpu, steps, monkeypatch):
    assert climatology(years, output, "-q").status == 0
    assert steps == ["open_archive", "start", "_make_ready", "count"]
    for rest in (["--device", "cpu"], []):
        steps.clear()
        monkeypatch.setattr("kuroshio.engines.choose.gpu_saves_s", lambda _, inflates: -1.0)
        assert climatology(years, output, "-q", "--overwrite", *rest).status == 0
        assert steps == ["open_archive"]


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ({"no_driver": True}, "The driver finds no GPU: cudaErrorNoDevice: no CUDA-capable device "
         "is detected"),
        ({"count": 0}, "This machine has no GPU"),
        ({"capability": (5, 2)}, "cuda:0 (Fake 1000) has compute capability 5.2; 7.0 or newer is "
         "needed"),
        ({"busy": True}, "cuda:0 (Fake 1000) is there but cannot be used: "
         "cudaErrorDevicesUnavailable: CUDA-capable device(s) is/are busy or unavailable"),
    ],
)  # fmt: skip
def test_auto_takes_the_processor_where_no_gpu_can_be_used(engine, what, said):
    with cupy_is(fake_cupy(**what)):
        choice = choose_engine("auto", None, LARGE)
    assert type(choice.engine) is CpuEngine
    assert choice.line == f"Device: cpu; no GPU can be used: {said}"


def test_auto_when_the_engine_cannot_begin_on_the_device(engine):
    engine.fails_at = "init"
    with cupy_is(fake_cupy()):
        choice = choose_engine("auto", None, LARGE)
        assert choice.line == "Device: cpu; no GPU can be used: It failed at init"
        with pytest.raises(GpuError, match=r"It failed at init\. Do this\."):
            choose_engine("cuda:0", None, LARGE)


def test_nobody_wonders_at_the_processor_without_cupy():
    with cupy_is(None):
        choice = choose_engine("auto", None, LARGE)
    assert (choice.device, choice.model, choice.line) == ("cpu", None, "")
    assert choice.why == "CuPy is not installed"
    assert choose_engine("cpu", None, LARGE).line == ""


# -- what a person sees ----------------------------------------------------------------------------


def test_the_account_says_which_device(years, output, gpu):
    done = climatology(years, output, "--doys", "1:3", "--pinned-memory", "2M")
    assert f"{output}: " in done.out.splitlines()[0]
    assert "s on cuda:0, " in done.out.splitlines()[0]
    assert done.out.splitlines()[1].startswith("Device: cuda:0 (Fake 1000), for the windows")
    assert "Device" not in done.err
    (made,) = gpu.made
    assert (made.pinned_bytes, made.closed) == (2_000_000, 1)
    assert made.launches > 0


def test_the_account_without_cupy_says_cpu_and_no_more(years, output):
    with cupy_is(None):
        done = climatology(years, output, "--doys", "1:3")
    assert "s on cpu, " in done.out.splitlines()[0]
    assert "GPU" not in done.out + done.err
    assert "Device" not in done.out + done.err


def test_json_says_which_device(years, output, gpu):
    done = json.loads(climatology(years, output, "--doys", 1, "--json").out)
    assert (done["device"], done["device_model"]) == ("cuda:0", "Fake 1000")
    assert done["device_why"].startswith("for the windows would take ")
    planned = json.loads(run_here("plan", years, "--baseline", 2001, 2002, "--json").out)
    assert {k: v for k, v in planned.items() if k.startswith("device") and k != "device_why"} == {
        "device": "cuda:0", "device_model": "Fake 1000",
    }  # fmt: skip
    with cupy_is(None):
        done = json.loads(climatology(years, output, "--doys", 1, "--json", "--overwrite").out)
        assert done["device"] == "cpu"
        assert done["device_model"] is None
        assert done["device_why"] == "CuPy is not installed"


def test_the_plan_shows_the_device(years, gpu):
    said = run_here("plan", years, "--baseline", 2001, 2002, "--device", "cuda:0").out
    rows = [[cell.strip() for cell in line.split("│")[1:3]] for line in said.splitlines()]
    assert ["device", "cuda:0"] in rows
    assert ["device model", "Fake 1000"] in rows
    assert ["why this device", "as asked"] in rows
    said = run_here("plan", years, "--baseline", 2001, 2002, "--device", "cpu").out
    assert "device model" not in said


SHARED = "2 devices share the cells evenly; every file is read once (read amplification 1.00)"


def test_several_devices_say_how_they_share(years, output, engine):
    with cupy_is(fake_cupy(count=2)):
        lines = climatology(years, output, "--doys", "1:3", "--device", "cuda:all").out.splitlines()
        assert "s on cuda:0, cuda:1, " in lines[0]
        assert lines[1:3] == ["Device: cuda:0, cuda:1 (Fake 1000), as asked", SHARED]
        plan = ["plan", years, "--baseline", 2001, 2002, "--device"]
        assert json.loads(run_here(*plan, "cuda:all", "--json").out)["sharing"] == SHARED
        assert "how they share" in run_here(*plan, "cuda:all").out
        assert json.loads(run_here(*plan, "cuda:1", "--json").out)["sharing"] is None
        assert "how they share" not in run_here(*plan, "cuda:1").out
        alone = climatology(years, output, "--doys", "1:3", "--device", "cuda:1", "--overwrite")
        assert "share the cells" not in alone.out


@pytest.mark.parametrize(("times", "said"), [(1.004, "once"), (1.006, "no "), (2.5, "no ")])
def test_reading_more_than_once_is_not_called_once(times, said):
    told = _sharing(SimpleNamespace(gpus=("a", "b", "c")), SimpleNamespace(amplification=times))
    assert told.startswith("3 devices share the cells evenly; ")
    assert ("every file is read once" in told) == (said == "once")
    assert ("no file is read more often than for one" in told) == (said != "once")
    assert f"(read amplification {times:.2f})" in told


# -- a GPU that was asked for and cannot be used ---------------------------------------------------


@pytest.mark.parametrize("command", ["climatology", "plan"])
def test_refused_without_cupy(years, output, command):
    where = ["-o", output] if command == "climatology" else []
    with cupy_is(None):
        done = run_here(command, years, "--baseline", 2001, 2002, *where, "--device", "cuda:0")
        assert_refused(done, "CuPy is not installed", "kuroshio[cuda12]", "--device cpu")
        with xr.open_dataset(years) as dataset, pytest.raises(ks.Refusal, match="not installed"):
            dataset.kuroshio.climatology(baseline=(2001, 2002), device="hip:0")
    assert left_over(output.parent) == []


FAILURES = ["init", "begin", "block", "start", "launch 1", "launch 2"]


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
@pytest.mark.parametrize("at", FAILURES)
def test_a_failure_is_a_refusal_and_leaves_nothing(years, output, gpu, at, suffix):
    gpu.fails_at = at
    done = climatology(years, output.with_suffix(suffix), "-q", "--device", "cuda:0", "--no-smooth")
    assert done.err.splitlines()[-1] == f"kuroshio: It failed at {at}. Do this."
    assert (done.status, done.out) == (2, "")
    assert left_over(output.parent) == []
    assert [made.closed for made in gpu.made] == [int(at != "init")]
    assert not [t for t in threading.enumerate() if t.name.startswith("kuroshio")]


def test_the_compilers_messages_stand_below_the_paragraph(years, output, gpu):
    gpu.fails_at = "compile"
    done = climatology(years, output, "--device", "cuda:0")
    *_, paragraph, first, second = done.err.splitlines()
    assert paragraph.startswith("kuroshio: A kernel could not be compiled for cuda:0 (Fake 1000).")
    assert paragraph.endswith("The compiler says:")
    assert (first, second) == ("k.cu(1): error: x", "  y")
    assert (done.status, done.out) == (2, "")
    assert left_over(output.parent) == []
    with pytest.raises(ks.Refusal, match=r"(?s)compiler says:\nk\.cu\(1\): error"):
        ks.climatology(years, baseline=(2001, 2002), device="cuda:0")


# -- a GPU that nobody asked for -------------------------------------------------------------------


@pytest.mark.parametrize("at", ["begin", "block", "start", "compile", "launch 1"])
def test_the_processor_does_the_work_instead(years, output, gpu, at):
    with cupy_is(None):
        assert climatology(years, output, "-q").status == 0
    with xr.open_dataset(output) as made:
        expected = made.load()
    gpu.fails_at = at
    done = climatology(years, output, "--overwrite")
    assert done.status == 0
    notes = [line for line in done.err.splitlines() if "cuda:0" in line]
    text = f"It failed at {at}."
    if at == "compile":
        text = "(Fake 1000). With --device cuda:0 the compiler's messages are shown."
    assert len(notes) == 1
    assert notes[0].startswith("note: cuda:0 could not be used, and the processor did its work: ")
    assert notes[0].endswith(text)
    assert "s on cpu, " in done.out.splitlines()[0]
    assert done.out.splitlines()[1] == "Device: cpu; cuda:0 failed at its start"
    assert [made.closed for made in gpu.made] == [1]
    with xr.open_dataset(output) as made:
        for name in ("seas", "thresh"):
            assert np.isfinite(made[name]).any()
            np.testing.assert_array_equal(made[name], expected[name])


def test_python_warns_of_it(years, gpu):
    gpu.fails_at = "block"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ks.climatology(years, baseline=(2001, 2002), doys=[1])
    assert [str(w.message) for w in caught if "cuda:0" in str(w.message)] == [
        "cuda:0 could not be used, and the processor did its work: It failed at block."
    ]


def test_json_of_it(years, output, gpu):
    gpu.fails_at = "start"
    done = json.loads(climatology(years, output, "--json").out)
    assert (done["device"], done["device_why"]) == ("cpu", "cuda:0 failed at its start")
    assert any("It failed at start." in warning for warning in done["warnings"])


def test_after_the_first_results_a_failure_ends_the_run(years, output, gpu):
    """An hour's work is not begun again on a slower device without asking."""
    gpu.fails_at = "launch 2"
    done = climatology(years, output, "-q", "--no-smooth")
    assert done.err.splitlines()[-1] == "kuroshio: It failed at launch 2. Do this."
    assert (done.status, done.out) == (2, "")
    assert left_over(output.parent) == []
