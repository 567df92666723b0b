"""What every test may lean on: real data beside the checkout, made archives, the rule on skips."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

import compilers
from cli_runs import YEARS, run, write_years
from emulator import EmulatedGpu
from kuroshio.device import cuda
from kuroshio.device.gpu import Gpu, GpuError

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared" / "data"
DEVICES = ("hardware", "gpu")  # markers of tests that need a device that CI lacks

# Fresh inputs on every run, in CI too; a failure prints the line that replays it.
hypothesis.settings.register_profile(
    "kuroshio",
    deadline=None,
    derandomize=False,
    print_blob=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("kuroshio")


@pytest.fixture(scope="module", autouse=True)
def _frozen() -> Iterator[None]:
    """What a module leaves behind is not looked through by each later collection of garbage.

    Benchmarks and tests of what is given back collect often, and compiled code alone is a million
    objects. What a module has made and dropped is collected first.
    """
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real series and grids, `../shared/data`.

    It is no part of the repository. Without it a test skips, unless KUROSHIO_REQUIRE_SHARED=1
    says that it must be there.
    """
    if SHARED.is_dir():
        return SHARED
    if os.environ.get("KUROSHIO_REQUIRE_SHARED") == "1":
        pytest.fail(f"KUROSHIO_REQUIRE_SHARED=1, but there is no folder {SHARED}")
    pytest.skip("needs the folder ../shared/data, which is not part of the repository")


@pytest.fixture(scope="session")
def nvrtc():
    """`compilers.nvrtc`; see `_installed`."""
    return _installed(compilers.nvrtc, compilers.nvrtc_library)


@pytest.fixture(scope="session")
def hipcc():
    """`compilers.hip`; see `_installed`."""
    return _installed(compilers.hip, compilers.hipcc_command)


@pytest.fixture(scope="session")
def hiprtc():
    """`compilers.hiprtc`; see `_installed`."""
    return _installed(compilers.hiprtc, compilers.hiprtc_library)


def _installed(compile_for, find):
    """A compiler for devices, which needs no device. Without it a test skips.

    Unless KUROSHIO_REQUIRE_COMPILERS=1 says that it must be there.
    """
    try:
        find()
    except compilers.CompilerAbsent as absent:
        if os.environ.get("KUROSHIO_REQUIRE_COMPILERS") == "1":
            pytest.fail(f"KUROSHIO_REQUIRE_COMPILERS=1, but {absent}")
        pytest.skip(str(absent))
    return compile_for


def _devices() -> list:
    """The emulated device and, marked `gpu`, every real one; instead of none one that skips."""
    try:
        names = {f"{cuda.kind()}:{i}": "" for i in range(cuda.count())}
    except GpuError as error:
        names = {"no GPU": error.what}
    real = [
        pytest.param((name, why), marks=pytest.mark.gpu, id=name) for name, why in names.items()
    ]
    return [pytest.param(("emulated", ""), id="emulated"), *real]


@pytest.fixture(scope="session", params=_devices())
def gpu(request) -> Iterator[Gpu]:
    """A device to run kernels on: tests that use it run on every one there is."""
    name, why_none = request.param
    if why_none:
        pytest.skip(why_none)
    device = EmulatedGpu() if name == "emulated" else cuda.by_name(name)
    with device.use():
        yield device


@pytest.fixture(scope="session")
def archive(tmp_path_factory) -> Path:
    """Three years of two-degree days, made once."""
    folder = tmp_path_factory.mktemp("archive")
    made = run("synth", folder, "--grid", 2, "--years", "1991-1993", "-q")
    assert made.status == 0, made
    return folder


@pytest.fixture(scope="session")
def warm(tmp_path_factory, archive) -> Path:
    """A cache folder that knows the archive, so that runs begin to read at once."""
    cache = tmp_path_factory.mktemp("warm")
    known = run("plan", archive, *YEARS, env={"KUROSHIO_CACHE_DIR": str(cache)})
    assert known.status == 0, known
    return cache


@pytest.fixture
def place(tmp_path) -> Path:
    (tmp_path / "place").mkdir()
    return tmp_path / "place"


@pytest.fixture(scope="session")
def years(tmp_path_factory) -> Path:
    """Two years in one file."""
    path = tmp_path_factory.mktemp("years") / "sst.nc"
    write_years(path)
    return path


@pytest.fixture
def output(tmp_path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out" / "clim.nc"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item):
    """Under KUROSHIO_NO_SKIP=1 (CI) a skip is a failure, unless the test is marked by DEVICES.

    A test that quietly skips for months proves nothing; only a device that CI lacks excuses it.
    """
    report = yield
    if not hasattr(report, "wasxfail") and not any(map(item.get_closest_marker, DEVICES)):
        _forbid_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report():
    """The same for modules that skip themselves while they are collected."""
    report = yield
    _forbid_skip(report)
    return report


def _forbid_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if report.skipped and os.environ.get("KUROSHIO_NO_SKIP") == "1":
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"KUROSHIO_NO_SKIP=1 forbids to skip: {reason}"
