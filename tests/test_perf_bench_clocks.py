"""Clocks of libraries for GPUs, with libraries that are not there: what is waited for, and when.

The emulated device does its work late: a launch returns at once, and time passes on it only.
"""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from kuroshio import perf
from kuroshio.device import cuda
from kuroshio.device.gpu import GpuError
from kuroshio.errors import Refusal
from kuroshio.perf import environment_gpu
from kuroshio.perf.bench_effort import SHORTEST_S, Effort
from kuroshio.perf.clocks import HostClock, clock_for

KERNEL_S = 0.002
QUICK = {"seconds": 0.1, "warm_up_s": 0.02, "repeats": (6, 8)}


class Device:
    """Work in order; `log` says what was begun and waited for."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.begun_s = 0.0  # of work, by the device's own time
        self.done_s = 0.0
        self.used = False
        self.current = 0  # of several, where events are recorded

    @contextmanager
    def number(self, index: int):
        before, self.current = self.current, index
        yield
        self.current = before

    def launch(self, what: str, seconds: float) -> None:
        self.used = True
        self.log.append(what)
        self.begun_s += seconds

    def synchronize(self, *_) -> None:
        self.log.append("wait")
        time.sleep(self.begun_s - self.done_s)
        self.done_s = self.begun_s


class Event:
    def __init__(self, device: Device) -> None:
        self.device = device

    def record(self) -> None:
        self.device.log.append("event")
        self.on = self.device.current
        self.at_s = self.device.begun_s

    def elapsed_time(self, later: Event) -> float:
        assert self.on == later.on
        return (later.at_s - self.at_s) * 1e3


class Array:
    """On the device."""

    is_cuda = True

    def __init__(self, device: Device, index: int = 0) -> None:
        self.on = device
        self.device = SimpleNamespace(id=index, index=index)

    def fill(self, _) -> None:
        self.on.launch("flush", 0.0005)

    fill_ = fill

    def get(self):
        return np.ones(3)

    def detach(self):
        return self

    cpu = detach
    dtype = "torch.float32"

    def numpy(self):
        return np.ones(3)

    def block_until_ready(self) -> None:
        self.on.synchronize()

    def devices(self):
        return [SimpleNamespace(platform="gpu", id=0, device_kind="H200")]


class OfTorch(Array):
    __module__ = "torch"


class OfCupy(Array):
    __module__ = "cupy"


class OfJax(Array):
    __module__ = "jaxlib._jax"


class OfNumba(Array):
    __module__ = "numba.cuda.cudadrv.devicearray"


class NoDriver(RuntimeError):
    pass


@pytest.fixture
def device(monkeypatch) -> Device:
    monkeypatch.setattr(environment_gpu, "find", lambda name: None)
    for name in ("torch", "cupy", "jax"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return Device()


@pytest.fixture
def torch(device, monkeypatch):
    module = ModuleType("torch")
    properties = SimpleNamespace(name="H200", L2_cache_size=50 << 20)
    module.version = SimpleNamespace(hip=None)
    module.uint8 = "uint8"
    module.sizes = []

    def empty(count, **_):
        module.sizes.append(count)
        return OfTorch(device)

    module.empty = empty
    module.cuda = SimpleNamespace(
        Event=lambda enable_timing: Event(device),
        synchronize=device.synchronize,
        get_device_properties=lambda index: properties,
        is_initialized=lambda: device.used,
        is_available=lambda: True,
        current_device=lambda: 1,
        device=device.number,
    )
    monkeypatch.setitem(sys.modules, "torch", module)
    return module


@pytest.fixture
def cupy(device, monkeypatch):
    module = ModuleType("cupy")
    runtime = SimpleNamespace(
        getDeviceProperties=lambda index: {"name": b"MI50", "l2CacheSize": 4 << 20},
        is_hip=True,
        deviceSynchronize=device.synchronize,
        getDevice=lambda: 0,
        CUDARuntimeError=NoDriver,
    )
    module.empty = lambda count, dtype: OfCupy(device)
    module.cuda = SimpleNamespace(
        runtime=runtime,
        Device=device.number,
        Event=lambda: Event(device),
        get_elapsed_time=lambda a, b: a.elapsed_time(b),
    )
    pool = SimpleNamespace(total_bytes=lambda: 512 * device.used)
    module.get_default_memory_pool = lambda: pool
    monkeypatch.setitem(sys.modules, "cupy", module)
    return module


def kernel(device: Device, kind: type[Array], index: int = 0):
    def launch():
        device.launch("kernel", KERNEL_S)
        return kind(device, index)

    return launch


@pytest.mark.parametrize(
    ("library", "kind", "name"), [("torch", OfTorch, "cuda:0"), ("cupy", OfCupy, "hip:0")]
)
def test_both_clocks_hold_the_kernel_and_not_the_flush(request, device, library, kind, name):
    request.getfixturevalue(library)
    (row,) = perf.bench(kernel(device, kind), check=np.ones(3), **QUICK).rows
    assert row.device == name
    assert row.device_s["median"] == pytest.approx(KERNEL_S)
    assert row.host_s["min"] >= KERNEL_S  # it was waited for
    assert row.correct
    assert "waited for" in row.boundary
    assert "events" in row.boundary
    assert "overwritten" in row.caches
    by_host = ["flush", "wait", "kernel", "wait"]
    by_device = ["flush", "event", "kernel", "event", "wait"]  # launched while it still flushes
    assert device.log[1 : 1 + 9 * row.repeats] == (by_host + by_device) * row.repeats
    assert row.checked == 4  # by each clock, the first and the last


def test_flush_is_larger_than_the_cache(torch, device) -> None:
    perf.bench(kernel(device, OfTorch), **QUICK)
    assert torch.sizes == [200 << 20]  # once


def test_without_flush(torch, device) -> None:
    (row,) = perf.bench(kernel(device, OfTorch), flush=False, **QUICK).rows
    assert "flush" not in device.log
    assert "as the call before left them" in row.caches


def test_inputs_in_turn_instead_of_the_flush(cupy, device) -> None:
    def launch(array):
        device.launch(f"on {array.device.id}", KERNEL_S)
        return array

    inputs = [(OfCupy(device, 0),), (OfCupy(device, 0),)]
    (row,) = perf.bench(launch, inputs=inputs, **QUICK).rows
    assert "flush" in device.log  # all of these lie in a cache together
    assert row.caches == "2 inputs in turn. The device's caches are overwritten before each sample."
    device.log.clear()
    for (array,) in inputs:
        array.nbytes = 256 << 20
    (row,) = perf.bench(launch, inputs=inputs, **QUICK).rows
    assert "flush" not in device.log
    assert row.caches == "2 inputs in turn."


def test_rocm_builds_of_pytorch_are_hip(torch, device) -> None:
    torch.version.hip = "7.0"
    (row,) = perf.bench(kernel(device, OfTorch), **QUICK).rows
    assert row.device == "hip:0"
    (row,) = perf.bench(kernel(device, OfTorch), device="cuda:0", **QUICK).rows
    assert row.device == "hip:0"


def test_a_kernel_that_returns_nothing_is_waited_for_all_the_same(torch, device) -> None:
    def launch() -> None:
        device.launch("kernel", KERNEL_S)

    (row,) = perf.bench(launch, **QUICK).rows
    assert row.device == "cuda:1"  # the present one of the library at work
    assert row.host_s["min"] >= KERNEL_S


def test_device_that_is_named(torch, device) -> None:
    (row,) = perf.bench(lambda: None, device="cuda:2", **QUICK).rows
    assert row.device == "cuda:2"
    with pytest.raises(Refusal, match=r"works on cuda:0 by the arrays.*but cpu was given"):
        perf.bench(kernel(device, OfTorch), device="cpu", **QUICK)
    with pytest.raises(Refusal, match="several devices"):
        perf.bench(lambda: None, device="cuda:all", **QUICK)


def test_named_device_without_a_library_is_refused(device) -> None:
    with pytest.raises(Refusal, match="CuPy"):
        perf.bench(lambda: None, device="cuda:0", **QUICK)


def test_idle_libraries_do_not_matter(torch, cupy, device) -> None:
    assert isinstance(clock_for(np.ones(3), None), HostClock)
    device.used = True
    assert clock_for(np.ones(3), "cpu").device == "cpu"
    assert clock_for(np.ones(3), None).device == "cuda:1"


def test_cupy_without_a_driver_does_not_matter(cupy, device) -> None:
    def pool():
        raise NoDriver

    cupy.get_default_memory_pool = pool
    assert isinstance(clock_for(np.ones(3), None), HostClock)


def test_events_are_recorded_on_the_device_that_works(torch, device) -> None:
    seen = []

    def launch():
        seen.append(device.current)
        return OfTorch(device, 3)

    (row,) = perf.bench(launch, **QUICK).rows
    assert row.device == "cuda:3"
    assert {*seen[1:]} == {3}  # the first call shows where
    assert device.current == 0


def test_arrays_are_found_inside(cupy, device) -> None:
    assert clock_for(({"a": [1, (OfCupy(device),)]}, ()), None).device == "hip:0"


def test_without_a_flush_short_calls_share_a_sample(cupy, device) -> None:
    """Else the device's clock would count how late an idle device takes a launch."""

    def launch():
        device.launch("kernel", SHORTEST_S / 4)
        return OfCupy(device)

    (row,) = perf.bench(launch, flush=False, **QUICK).rows
    assert 2 <= row.calls_a_sample <= 4
    (row,) = perf.bench(launch, **QUICK).rows
    assert row.calls_a_sample == 1


def test_jax_is_waited_for_through_its_outputs(device, monkeypatch) -> None:
    def wait(tree) -> None:  # whatever is in it
        (tree[0] if isinstance(tree, tuple) else tree).block_until_ready()
        return tree

    def overwrite(scratch):
        made.append(scratch)
        return device.launch("flush", 0) or OfJax(device)

    made = []
    module = ModuleType("jax")
    module.numpy = SimpleNamespace(zeros=lambda count, dtype: OfJax(device))
    module.jit = lambda function, donate_argnums: overwrite
    module.block_until_ready = wait
    monkeypatch.setitem(sys.modules, "jax", module)
    (row,) = perf.bench(kernel(device, OfJax), **QUICK).rows
    assert row.device == "cuda:0"
    assert row.device_s is None
    assert row.host_s["min"] >= KERNEL_S
    assert "until its outputs are ready" in row.boundary
    assert device.log[1:5] == ["flush", "wait", "kernel", "wait"]
    assert len(set(map(id, made))) == len(made) > 1  # each is what the one before became


def test_numba_cuda_is_not_timed_wrongly(device) -> None:
    with pytest.raises(Refusal, match=r"numba\.cuda, which has no clock here"):
        perf.bench(kernel(device, OfNumba), **QUICK)


def test_device_lost_at_a_synchronisation(torch, device) -> None:
    turns = iter(range(100))

    def synchronize(index):
        if next(turns) == 40:
            raise RuntimeError("CUDA error: an illegal memory access was encountered\nCompile ...")

    torch.cuda.synchronize = synchronize
    with pytest.raises(Refusal, match=r"cuda:0 failed or was lost in repeat \d+ of lost:") as lost:
        perf.bench(kernel(device, OfTorch), name="lost", seconds=9, repeats=(30, 30), warm_up_s=0)
    assert "new process" in str(lost.value)


def test_ab_of_kernels_is_by_the_devices_clock(torch, device) -> None:
    def slower():
        device.launch("kernel", 1.1 * KERNEL_S)
        return OfTorch(device)

    effort = Effort(least=20, most=20, seconds=2, warm_up_s=0)
    _, found = perf.versus(kernel(device, OfTorch), slower, effort)
    assert found.clock == "device"
    assert found.ratio == pytest.approx(1.1)


def test_environment_names_a_device_that_the_driver_hides(torch, device) -> None:
    results = perf.bench(kernel(device, OfTorch), **QUICK)
    assert results.environment["gpus"] == {"cuda:0": {"model": "H200"}}


@pytest.mark.gpu
def test_on_a_real_device() -> None:
    """A copy through CuPy: both clocks, the driver's facts, and a rate that a memory can have."""
    try:
        name = cuda.first().name
    except GpuError as why:
        pytest.skip(why.what)
    import cupy

    source = cupy.arange(64 << 20, dtype="float32")
    target = cupy.empty_like(source)

    def copy():
        cupy.copyto(target, source)
        return target

    results = perf.bench(
        copy, bytes=2 * source.nbytes, check=lambda output: bool((output == source).all())
    )
    (row,) = results.rows
    assert row.device == name
    assert row.correct
    assert 30e9 < row.bytes / row.device_s["median"] < 20e12
    assert row.host_s["median"] > 0.9 * row.device_s["median"]
    assert results.environment["gpus"][name]["model"]
    _, found = perf.versus(copy, copy)
    assert not found.differ, found
    assert found.clock == "device"
