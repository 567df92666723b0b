"""Devices through CuPy, as far as they can be asked without any: each thing that can be wrong."""

from __future__ import annotations

import importlib
import sys
import threading

import numpy as np
import pytest

from fake_cupy import BUSY, ILLEGAL, CompileException, CUDARuntimeError, cupy_is, fake_cupy
from kuroshio.device import cuda, nvcomp
from kuroshio.device.gpu import GpuError
from kuroshio.device.names import GpuName, check_device, gpu_name
from kuroshio.errors import Refusal


def test_names():
    assert gpu_name("cuda:0") == GpuName("cuda", 0)
    assert gpu_name("hip:12") == GpuName("hip", 12)
    assert gpu_name("hip:all") == GpuName("hip", None)
    assert check_device("auto") == "auto"
    assert check_device("cpu") == "cpu"
    with pytest.raises(ValueError, match="cpu names no GPU"):
        gpu_name("cpu")


@pytest.mark.parametrize(
    "name",
    ["", "gpu", "cuda", "cuda:", "cuda:-1", "cuda:0 ", "CUDA:0", "cuda:0,1", "cuda:٣", "cpu:0",
     "rocm:0", 0, None, ["cpu"]],
)  # fmt: skip
def test_what_is_no_name(name):
    with pytest.raises(Refusal, match=r"is no device\. Give auto, cpu, cuda:0"):
        check_device(name)


WRONG = [
    ("cuda:0", None, ["CuPy is not installed.", "install kuroshio[cuda13]", "--device cpu"]),
    ("cuda:0", {"no_driver": True}, ["finds no GPU: cudaErrorNoDevice", "nvidia-smi", "rocminfo"]),
    ("cuda:0", {"count": 0}, ["This machine has no GPU.", "--device cpu"]),
    ("hip:0", {}, ["hip:0", "for cuda", "kuroshio[rocm]", "--device cuda:0"]),
    ("hip:0", {"no_driver": True}, ["hip:0", "for cuda"]),  # whatever the driver says
    ("cuda:all", {"hip": True}, ["cuda:all", "for hip", "kuroshio[cuda13]", "--device hip:all"]),
    ("cuda:1", {}, ["cuda:1", "there is 1: cuda:0."]),
    ("hip:7", {"hip": True, "count": 2}, ["hip:7", "there are 2: hip:0, hip:1."]),
    ("cuda:0", {"capability": (6, 1)}, ["Fake 1000", "capability 6.1; 7.0 or newer", "cpu"]),
    ("cuda:all", {"count": 2, "capability": (3, 7)}, ["cuda:0 (Fake 1000)", "3.7; 7.0"]),
    ("cuda:0", {"busy": True}, ["cuda:0 (Fake 1000)", "cudaErrorDevicesUnavailable", "End what"]),
]


@pytest.mark.parametrize("started", [False, True])
@pytest.mark.parametrize(("name", "what", "words"), WRONG)
def test_a_device_that_cannot_be_used(name, what, words, started):
    with cupy_is(None if what is None else fake_cupy(**what)):
        if started:
            cuda.start(name)  # says nothing, and what is said afterwards is the same
        with pytest.raises(Refusal) as caught:
            cuda.named(name)
    for word in words:
        assert word in str(caught.value)
    assert isinstance(caught.value, GpuError)
    assert caught.value.what in str(caught.value)
    assert "--device" not in caught.value.what  # that part is told where nobody asked for a GPU


def test_zeros_are_there_before_any_stream_could_use_them(monkeypatch):
    done = []

    class Late:  # as a device: what is asked of a stream waits until somebody waits for it
        nbytes, ptr = 12, 0

        def memset(self, *_: object) -> None: ...

        def memset_async(self, value: int, nbytes: int, stream: Late) -> None:
            stream.asked = (value, nbytes)

        def synchronize(self) -> None:
            done.append(self.asked)

    array = Late()
    array.data = array
    with cupy_is(fake_cupy()):
        gpu = cuda.first()
        monkeypatch.setattr(gpu, "empty", lambda *_: array)
        monkeypatch.setattr(gpu, "stream", Late)
        assert gpu.zeros((3,), np.float32) is array
    assert done == [(0, 12)]


def test_devices_are_found():
    with cupy_is(fake_cupy(count=3)):
        assert [gpu.name for gpu in cuda.named("cuda:all")] == ["cuda:0", "cuda:1", "cuda:2"]
        assert [gpu.name for gpu in cuda.named("cuda:2")] == ["cuda:2"]
        assert cuda.first().name == "cuda:0"
        assert cuda.first().model == "Fake 1000"
    with cupy_is(fake_cupy(hip=True, capability=(9, 0))):
        assert cuda.first().name == "hip:0"


def test_an_old_capability_is_nvidias_only():
    with cupy_is(fake_cupy(hip=True, capability=(1, 0))):  # AMD counts in its own way
        assert cuda.by_name("hip:0").model == "Fake 1000"


# -- the context made beforehand -------------------------------------------------------------------


@pytest.mark.parametrize("name", ["cuda:0", "cuda:all", None])
def test_the_context_is_made_in_a_thread_and_waited_for(name):
    may_end, done = threading.Event(), []

    def free(pointer: int) -> None:
        assert may_end.wait(10)
        done.append((pointer, threading.current_thread()))

    cupy = fake_cupy()
    cupy.cuda.runtime.free = free
    count = cupy.cuda.runtime.getDeviceCount
    cupy.cuda.runtime.getDeviceCount = lambda: len(done) and count()
    with cupy_is(cupy):
        cuda.start(name)
        assert done == []
        threading.Timer(0.05, may_end.set).start()
        assert cuda.first().name == "cuda:0"
    ((pointer, thread),) = done
    assert pointer == 0
    assert thread.name == "kuroshio-context"
    assert not thread.is_alive()


@pytest.mark.parametrize("name", ["cuda:1", "hip:0"])
def test_no_context_is_made_of_a_device_that_is_not_wanted(name):
    cupy = fake_cupy(count=2)
    cupy.cuda.runtime.free = lambda _: pytest.fail("was made")
    with cupy_is(cupy):
        cuda.start(name)
        assert cuda.count() == 2


# -- installed or not ------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder where Python looks first, and in which the test makes a `cupy`."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    cuda._cupy.cache_clear()
    importlib.invalidate_caches()
    yield tmp_path
    sys.modules.pop("cupy", None)
    cuda._cupy.cache_clear()


def test_installed_is_told_without_importing(folder):
    (folder / "cupy.py").write_text("raise AssertionError('was imported')")
    assert cuda.installed()
    with cupy_is(None):
        assert not cuda.installed()


def test_a_folder_called_cupy_is_none(folder, monkeypatch):
    (folder / "cupy").mkdir()
    monkeypatch.setattr(sys, "path", [str(folder)])
    assert not cuda.installed()
    with pytest.raises(GpuError, match="CuPy is not installed"):
        cuda.count()


@pytest.mark.parametrize(
    ("raises", "said"),
    [
        (
            "ImportError('\\n=====\\nFailed to import CuPy.\\nmore')",
            "load: Failed to import CuPy. ",
        ),
        ("AttributeError('_ARRAY_API not found')", "load: _ARRAY_API not found. "),
        ("ImportError('')", "load: ImportError. "),
    ],
)
def test_a_cupy_that_does_not_load(folder, raises, said):
    (folder / "cupy.py").write_text(f"raise {raises}")
    with pytest.raises(GpuError, match=r"for this machine \(kuroshio\[cuda13\]") as caught:
        cuda.count()
    assert said in str(caught.value)


def test_of_cupys_long_complaint_the_cause_is_told(folder):
    (folder / "cupy.py").write_text(
        "try:\n    raise ImportError('libamdhip64.so.7: cannot open')\n"
        "except ImportError as e:\n    raise ImportError('''\n===\nFailed\n''') from e\n"
    )
    with pytest.raises(GpuError, match=r"does not load: libamdhip64\.so\.7: cannot open\. "):
        cuda.count()


# -- what a device may fail at ---------------------------------------------------------------------


def test_out_of_memory():
    with cupy_is(fake_cupy(free=1000)):
        gpu = cuda.first()
        assert gpu.empty((10, 25), np.float32).shape == (10, 25)
        with pytest.raises(GpuError, match=r"out of memory: 1,004 bytes more .* 1,000 are free"):
            gpu.empty((251,), np.float32)
        assert gpu.pinned((125,), np.float64).shape == (125,)
        with pytest.raises(GpuError, match=r"1,008 bytes of pinned .* smaller --pinned-memory"):
            gpu.pinned((126,), np.float64)


@pytest.mark.parametrize("status", [ILLEGAL, BUSY])
def test_another_error_is_not_taken_for_want_of_memory(status):
    with cupy_is(fake_cupy(free=1000, refuses=status)):
        gpu = cuda.first()
        for take in (gpu.empty, gpu.pinned):
            with pytest.raises(GpuError, match="failed while it worked: cudaError") as caught:
                take((2000,), np.uint8)
            assert caught.value.__cause__.status == status


def test_what_a_device_that_has_stopped_says_anywhere(monkeypatch):
    """As it is entered, of events, and through the library that inflates."""
    with cupy_is(fake_cupy()):
        gpu = cuda.first()

        def stopped(*_: object) -> None:
            raise CUDARuntimeError(ILLEGAL)

        with (
            pytest.raises(GpuError, match="worked: nvCOMP answered 1000"),
            gpu.use(),
        ):
            raise nvcomp.NvcompFailed("nvCOMP answered 1000")
        gpu._cupy.cuda.get_elapsed_time = stopped
        with pytest.raises(GpuError, match="illegal memory access"):
            gpu.seconds(None, None)
        monkeypatch.setattr(gpu._cupy.cuda.Device, "__enter__", stopped)
        with pytest.raises(GpuError, match="illegal memory access"), gpu.use():
            pass


def test_a_kernel_that_does_not_compile_brings_the_compilers_messages():
    log = 'k.cu(3): error: identifier "x" is undefined\n\n1 error detected\n'
    with cupy_is(fake_cupy(compiler=CompileException(log))), pytest.raises(GpuError) as caught:
        cuda.first().kernels("text", ["a"])
    assert caught.value.log == log
    assert caught.value.message.endswith("The compiler says:")
    assert str(caught.value) == f"{caught.value.message}\n{log}"


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (RuntimeError("Failure finding libnvrtc\nhere"), r"Failure finding libnvrtc\. .* missing"),
        (CUDARuntimeError(2), r"Fake 1000\): cudaErrorMemoryAllocation: out of memory\."),
    ],
)  # fmt: skip
def test_kernels_without_a_compiler_or_without_room(problem, words):
    with cupy_is(fake_cupy(compiler=problem)), pytest.raises(GpuError, match=words):
        cuda.first().kernels("text", ["a"])
