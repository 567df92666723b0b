"""NVIDIA's and AMD's devices through CuPy."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from . import context, inflater, nvcomp, signals
from .gpu import DeviceArray, GpuError, Inflater
from .names import gpu_name
from .occupancy import limits_of_device
from .registered import registered

_PORTABLE = 1  # of cudaHostAlloc and cudaHostRegister, and HIP's: pinned for all devices
_WRITE_COMBINED = 4  # of the same calls
_OLDEST = (7, 0)  # compute capability that the kernels are tested for
_OUT_OF_MEMORY = 2  # cudaErrorMemoryAllocation and hipErrorOutOfMemory
_EXTRAS = {"cuda": "kuroshio[cuda13] or kuroshio[cuda12]", "hip": "kuroshio[rocm]"}
_INSTALL = (
    f"{_EXTRAS['cuda']} for NVIDIA, {_EXTRAS['hip']} for AMD, the CuPy of its DTK for a Hygon DCU"
)
_NO_FUSING = {"cuda": "--fmad=false", "hip": "-ffp-contract=off"}


def installed() -> bool:
    """Whether there is a CuPy; to import it takes long."""
    spec = find_spec("cupy")
    return spec is not None and spec.origin is not None  # else: just a folder of that name


@cache
def _cupy() -> Any:
    if not installed():
        raise GpuError(
            "CuPy is not installed.",
            f"A GPU needs it: install {_INSTALL}, or use --device cpu.",
        )
    # Streams that share one of the driver's queues wait for each other; it has eight, or so many.
    os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")
    try:
        import cupy
    except Exception as problem:  # whatever a CuPy for another machine or NumPy may raise
        raise GpuError(
            f"CuPy is installed but does not load: {_first_line(problem.__cause__ or problem)}.",
            f"Install the one for this machine ({_INSTALL}), or use --device cpu.",
        ) from problem
    return cupy


def kind() -> str:
    """What this CuPy was built for: 'cuda' or 'hip'."""
    return "hip" if _cupy().cuda.runtime.is_hip else "cuda"


def start(name: str | None = None) -> None:
    """Begin in a thread to make the context of cuda:0, cuda:all, ..., or (None) the first device.

    Returns once CuPy is imported. Other devices' are made when they are asked for. Raises nothing:
    a device that cannot be used is for `named` to refuse.
    """
    try:
        wanted, index = gpu_name(name) if name else (kind(), 0)
        if wanted == kind() and not index:
            context.begin(_cupy().cuda.runtime)
    except GpuError:
        return


def count() -> int:
    """Devices there are; raises GpuError where there is no CuPy, driver or device."""
    runtime = _cupy().cuda.runtime
    context.wait()
    try:
        found = runtime.getDeviceCount()
    except runtime.CUDARuntimeError as problem:
        raise GpuError(
            f"The driver finds no GPU: {problem}.",
            "Check it (nvidia-smi, rocminfo), or use --device cpu.",
        ) from problem
    if not found:
        raise GpuError("This machine has no GPU.", "Use --device cpu.")
    return found


def first() -> CupyGpu:
    """The first device of the installed CuPy's kind."""
    return by_name(f"{kind()}:0")


def by_name(name: str) -> CupyGpu:
    """The device called cuda:0, hip:1, ... ; GpuError where there is no such device."""
    return named(name)[0]


def named(name: str) -> list[CupyGpu]:
    """The devices called cuda:0, hip:1, cuda:all, ... ; GpuError where one cannot be used."""
    wanted, index = gpu_name(name)
    if wanted != kind():
        raise GpuError(
            f"{name} was asked for, but the CuPy that is installed is for {kind()}.",
            f"Install {_EXTRAS[wanted]} in an environment of its own, or use --device {kind()}:"
            f"{'all' if index is None else index}.",
        )
    found = count()
    if index is None:
        return [CupyGpu(i) for i in range(found)]
    if index >= found:
        raise GpuError(
            f"{name} was asked for, but there {'is' if found == 1 else 'are'} {found}: "
            f"{', '.join(f'{wanted}:{i}' for i in range(found))}.",
            "Give one of them with --device.",
        )
    return [CupyGpu(index)]


def _first_line(problem: BaseException) -> str:
    """What an exception says, in a line; some begin with an empty one or a ruler."""
    lines = (line.strip() for line in str(problem).splitlines())
    said = next((line for line in lines if line.strip("=- ")), "")
    return (said or type(problem).__name__).rstrip(".")


class CupyGpu:
    """One device, as `gpu.Gpu` describes it."""

    def __init__(self, index: int) -> None:
        self._cupy = cupy = _cupy()
        self._device = cupy.cuda.Device(index)
        self.name = f"{kind()}:{index}"
        facts = cupy.cuda.runtime.getDeviceProperties(index)
        self.model = facts["name"].decode()
        capability = (int(facts["major"]), int(facts["minor"]))
        if kind() == "cuda" and capability < _OLDEST:
            raise GpuError(
                f"{self.name} ({self.model}) has compute capability {capability[0]}."
                f"{capability[1]}; {_OLDEST[0]}.{_OLDEST[1]} or newer is needed.",
                "Use --device cpu.",
            )
        at_launch = 0 if kind() == "hip" else facts.get("sharedMemPerBlockOptin", 0)
        self._inflates: bool | None = None  # nobody has tried
        self.shared_bytes = int(at_launch or facts["sharedMemPerBlock"])
        by_capability = f"sm_{capability[0]}{capability[1]}"
        architecture = by_capability
        if kind() == "hip":
            architecture = facts.get("gcnArchName", b"").decode() or "gfx906"
        self.limits = limits_of_device(
            architecture, {"WarpSize": facts["warpSize"], **self._device.attributes}
        )
        try:
            with self._device:
                cupy.cuda.runtime.memGetInfo()  # the first that needs more than the driver
        except cupy.cuda.runtime.CUDARuntimeError as problem:
            raise GpuError(
                f"{self.name} ({self.model}) is there but cannot be used: {problem}.",
                "End what else uses it, or use --device cpu.",
            ) from problem

    @contextmanager
    def use(self) -> Iterator[None]:
        """What the driver has to say in here, or as it is entered, is a GpuError."""
        cuda = self._cupy.cuda
        try:
            with cuda.Device(self._device.id):
                yield
        except (
            cuda.runtime.CUDARuntimeError, cuda.driver.CUDADriverError, nvcomp.NvcompFailed,
        ) as problem:  # fmt: skip
            raise GpuError(
                f"{self.name} ({self.model}) failed while it worked: {problem}.",
                "Try again, or use --device cpu; please report it.",
            ) from problem

    def free_bytes(self) -> int:
        with self.use():
            return int(self._cupy.cuda.runtime.memGetInfo()[0])

    def empty(self, shape: tuple[int, ...], dtype: Any) -> DeviceArray:
        """Of its own allocation, so that it is given back as soon as it is dropped."""
        cuda, dtype = self._cupy.cuda, np.dtype(dtype)
        nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        with self.use():
            try:
                memory = cuda.MemoryPointer(cuda.Memory(max(nbytes, 1)), 0)
            except cuda.runtime.CUDARuntimeError as problem:
                if problem.status != _OUT_OF_MEMORY:
                    raise
                raise GpuError(
                    f"{self.name} ({self.model}) is out of memory: {nbytes:,} bytes more were "
                    f"asked for and {self.free_bytes():,} are free.",
                    "End what else uses it, or use --device cpu.",
                ) from problem
        return self._cupy.ndarray(shape, dtype, memptr=memory)

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> DeviceArray:
        """They are there at once: a plain memset ends later, and our streams do not wait for it."""
        array, stream = self.empty(shape, dtype), self.stream()
        with self.use():
            self.clear(array, stream)
            stream.synchronize()
        return array

    def array(self, values: np.ndarray) -> DeviceArray:
        array = self.empty(values.shape, values.dtype)
        with self.use():
            array.set(values)
        return array

    def address(self, array: DeviceArray) -> int:
        return int(array.data.ptr)

    def inflates(self) -> bool:
        if kind() != "cuda" or nvcomp.library() is None:
            return False
        if self._inflates is None:
            self._inflates = inflater.works(self)
        return self._inflates

    def inflater(self, streams: int, most_bytes: int) -> Inflater | None:
        return inflater.Nvcomp(self, streams, most_bytes) if self.inflates() else None

    def clear(self, target: DeviceArray, stream: Any) -> None:
        target.data.memset_async(0, target.nbytes, stream)

    def pinned(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        dtype, count = np.dtype(dtype), int(np.prod(shape, dtype=np.int64))
        nbytes = count * dtype.itemsize
        with self.use():
            memory: Any = registered(nbytes, self._register, self._unregister)
            if memory is None:
                memory = self._pinned(nbytes, _PORTABLE)
        return np.frombuffer(memory, dtype, count).reshape(shape)

    def write_combined(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        dtype, count = np.dtype(dtype), int(np.prod(shape, dtype=np.int64))
        with self.use():
            memory = self._pinned(count * dtype.itemsize, _PORTABLE | _WRITE_COMBINED)
        return np.frombuffer(memory, dtype, count).reshape(shape)

    def _pinned(self, nbytes: int, flags: int) -> Any:
        """From the driver; GpuError where it has none."""
        cuda = self._cupy.cuda
        try:
            return cuda.PinnedMemoryPointer(cuda.PinnedMemory(max(nbytes, 1), flags), 0)
        except cuda.runtime.CUDARuntimeError as problem:
            if problem.status != _OUT_OF_MEMORY:
                raise
            raise GpuError(
                f"{nbytes:,} bytes of pinned memory cannot be had: {problem}.",
                "Pass a smaller --pinned-memory (pinned_memory_bytes=), or use --device cpu.",
            ) from problem

    def _register(self, address: int, nbytes: int) -> bool:
        runtime = self._cupy.cuda.runtime
        try:
            runtime.hostRegister(address, nbytes, _PORTABLE)
        except runtime.CUDARuntimeError:  # the driver may have other means of its own
            return False
        return True

    def _unregister(self, address: int) -> None:
        runtime = self._cupy.cuda.runtime
        with suppress(runtime.CUDARuntimeError), self._device:  # it may have failed
            runtime.hostUnregister(address)

    def stream(self) -> Any:
        with self.use():
            return self._cupy.cuda.Stream(non_blocking=True)

    def event(self) -> Any:
        with self.use():
            return self._cupy.cuda.Event(block=True)

    def wait(self, event: Any) -> None:
        with self.use():
            event.synchronize()

    def seconds(self, start: Any, stop: Any) -> float:
        with self.use():  # a device that has stopped says so even of events that have happened
            return float(self._cupy.cuda.get_elapsed_time(start, stop)) / 1e3

    def upload(self, target: DeviceArray, source: np.ndarray, stream: Any) -> None:
        runtime = self._cupy.cuda.runtime
        runtime.memcpyAsync(
            target.data.ptr, source.ctypes.data, source.nbytes, runtime.memcpyHostToDevice,
            stream.ptr,
        )  # fmt: skip

    def upload_between(
        self, begun: Any, target: DeviceArray, source: np.ndarray, copied: Any, stream: Any
    ) -> None:
        from .uploads import in_one_go  # Numba: loaded meanwhile the device's context is made

        begin = in_one_go(kind())
        if begin is None:
            begun.record(stream)
            self.upload(target, source, stream)
            copied.record(stream)
        elif status := begin(
            begun.ptr, target.data.ptr, source.ctypes.data, source.nbytes, copied.ptr, stream.ptr
        ):
            raise self._cupy.cuda.runtime.CUDARuntimeError(status)

    def upload_parts(self, target: DeviceArray, source: np.ndarray, stream: Any) -> None:
        runtime = self._cupy.cuda.runtime
        rows, width = source.shape
        runtime.memcpy2DAsync(
            target.data.ptr, width, source.ctypes.data, source.strides[0], width, rows,
            runtime.memcpyHostToDevice, stream.ptr,
        )  # fmt: skip

    def download(self, target: np.ndarray, source: DeviceArray, stream: Any) -> None:
        runtime = self._cupy.cuda.runtime
        if not target.flags.c_contiguous:
            width = target.shape[1] * target.itemsize
            runtime.memcpy2DAsync(
                target.ctypes.data, target.strides[0], source.data.ptr, width, width, len(target),
                runtime.memcpyDeviceToHost, stream.ptr,
            )  # fmt: skip
            return
        runtime.memcpyAsync(
            target.ctypes.data, source.data.ptr, target.nbytes, runtime.memcpyDeviceToHost,
            stream.ptr,
        )  # fmt: skip

    def kernels(self, text: str, names: Sequence[str]) -> Mapping[str, CupyKernel]:
        cupy = self._cupy
        with self.use(), signals.kept():
            try:
                module = cupy.RawModule(code=text, options=("-std=c++17", _NO_FUSING[kind()]))
                return {name: CupyKernel(module.get_function(name)) for name in names}
            except cupy.cuda.compiler.CompileException as problem:
                raise GpuError(
                    f"A kernel could not be compiled for {self.name} ({self.model}).",
                    "Use --device cpu, and please report this. The compiler says:",
                    log=str(problem),
                ) from problem
            except RuntimeError as problem:  # no compiler, or no room for the kernel
                raise GpuError(
                    f"The kernels could not be made ready for {self.name} ({self.model}): "
                    f"{_first_line(problem)}.",
                    f"If the compiler is missing, install it with CuPy ({_INSTALL}), or use "
                    "--device cpu.",
                ) from problem


class CupyKernel:
    """A compiled kernel, and what the compiler made of it."""

    def __init__(self, function: Any) -> None:
        self._function = function
        self.registers = int(function.num_regs)
        self.local_bytes = int(function.local_size_bytes)
        self._shared = 48 << 10  # bytes that a launch may ask for without more ado

    def __call__(
        self, stream: Any, blocks: int, threads: int, args: Sequence[Any], shared_bytes: int = 0
    ) -> None:
        if shared_bytes > self._shared:
            self._function.max_dynamic_shared_size_bytes = self._shared = shared_bytes
        given = tuple(np.uint64(0) if arg is None else arg for arg in args)
        with stream:
            self._function((blocks,), (threads,), given, shared_mem=shared_bytes)
