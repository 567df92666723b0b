"""NVIDIA's and AMD's devices through CuPy."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import numpy as np

from .gpu import DeviceArray, GpuError

_OLDEST = (7, 0)  # compute capability that the kernels are tested for
_EXTRAS = {"cuda": "kuroshio[cuda13] or kuroshio[cuda12]", "hip": "kuroshio[rocm]"}
_NO_FUSING = {"cuda": "--fmad=false", "hip": "-ffp-contract=off"}


@cache
def _cupy() -> Any:
    try:
        import cupy
    except ImportError as problem:
        raise GpuError(
            "A GPU needs CuPy, which is not installed (or does not load: "
            f"{str(problem).splitlines()[0]}). Install {_EXTRAS['cuda']} for NVIDIA, "
            f"{_EXTRAS['hip']} for AMD, or use --device cpu."
        ) from problem
    return cupy


def kind() -> str:
    """What this CuPy was built for: 'cuda' or 'hip'."""
    return "hip" if _cupy().cuda.runtime.is_hip else "cuda"


def count() -> int:
    """Devices there are; raises GpuError where there is no CuPy, driver or device."""
    runtime = _cupy().cuda.runtime
    try:
        found = runtime.getDeviceCount()
    except runtime.CUDARuntimeError as problem:
        raise GpuError(
            f"No GPU can be used: {problem}. Check the driver (nvidia-smi, rocminfo), or use "
            "--device cpu."
        ) from problem
    if not found:
        raise GpuError("This machine has no GPU. Use --device cpu.")
    return found


def by_name(name: str) -> CupyGpu:
    """The device called cuda:0, hip:1, ... ; GpuError where there is no such device."""
    match = re.fullmatch(r"(cuda|hip):(\d+)", name)
    if not match:
        raise GpuError(f"{name!r} is no device. Give auto, cpu, or a GPU such as cuda:0 or hip:0.")
    wanted, index = match[1], int(match[2])
    found = count()
    if wanted != kind():
        raise GpuError(
            f"{name} was asked for, but the CuPy that is installed is for {kind()}. Install "
            f"{_EXTRAS[wanted]} in an environment of its own, or use --device {kind()}:{index}."
        )
    if index >= found:
        raise GpuError(
            f"{name} was asked for, but there {'is' if found == 1 else 'are'} {found}: "
            f"{', '.join(f'{wanted}:{i}' for i in range(found))}."
        )
    return CupyGpu(index)


class CupyGpu:
    """One device, as `gpu.Gpu` describes it."""

    def __init__(self, index: int) -> None:
        self._cupy = cupy = _cupy()
        self._device = cupy.cuda.Device(index)
        self.name = f"{kind()}:{index}"
        facts = cupy.cuda.runtime.getDeviceProperties(index)
        self.model = facts["name"].decode()
        self.wave_size = int(facts["warpSize"])
        capability = (int(facts["major"]), int(facts["minor"]))
        if kind() == "cuda" and capability < _OLDEST:
            raise GpuError(
                f"{self.name} ({self.model}) has compute capability {capability[0]}."
                f"{capability[1]}; {_OLDEST[0]}.{_OLDEST[1]} or newer is needed. Use --device cpu."
            )
        at_launch = 0 if kind() == "hip" else facts.get("sharedMemPerBlockOptin", 0)
        self.shared_bytes = int(at_launch or facts["sharedMemPerBlock"])
        self.attributes = dict(self._device.attributes)

    def use(self) -> AbstractContextManager[Any]:
        return self._cupy.cuda.Device(self._device.id)

    def free_bytes(self) -> int:
        with self.use():
            return int(self._cupy.cuda.runtime.memGetInfo()[0])

    def empty(self, shape: tuple[int, ...], dtype: Any) -> DeviceArray:
        """Of its own allocation, so that it is given back as soon as it is dropped."""
        cuda, dtype = self._cupy.cuda, np.dtype(dtype)
        nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        try:
            with self.use():
                memory = cuda.MemoryPointer(cuda.Memory(max(nbytes, 1)), 0)
        except cuda.memory.OutOfMemoryError as problem:
            raise GpuError(
                f"{self.name} ({self.model}) is out of memory: {nbytes:,} bytes were asked for and "
                f"{self.free_bytes():,} are free. End what else uses it, or use --device cpu."
            ) from problem
        return self._cupy.ndarray(shape, dtype, memptr=memory)

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> DeviceArray:
        array = self.empty(shape, dtype)
        with self.use():
            array.data.memset(0, array.nbytes)
        return array

    def array(self, values: np.ndarray) -> DeviceArray:
        array = self.empty(values.shape, values.dtype)
        with self.use():
            array.set(values)
        return array

    def clear(self, target: DeviceArray, stream: Any) -> None:
        target.data.memset_async(0, target.nbytes, stream)

    def pinned(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        cuda, dtype = self._cupy.cuda, np.dtype(dtype)
        count = int(np.prod(shape, dtype=np.int64))
        try:
            with self.use():
                memory = cuda.PinnedMemoryPointer(
                    cuda.PinnedMemory(max(count * dtype.itemsize, 1)), 0
                )
        except cuda.runtime.CUDARuntimeError as problem:
            raise GpuError(
                f"{count * dtype.itemsize:,} bytes of pinned memory cannot be had ({problem}). "
                "Pass a smaller --pinned-memory."
            ) from problem
        return np.frombuffer(memory, dtype, count).reshape(shape)

    def stream(self) -> Any:
        with self.use():
            return self._cupy.cuda.Stream(non_blocking=True)

    def event(self) -> Any:
        with self.use():
            return self._cupy.cuda.Event(block=True)

    def wait(self, event: Any) -> None:
        try:
            event.synchronize()
        except self._cupy.cuda.runtime.CUDARuntimeError as problem:
            raise GpuError(
                f"{self.name} ({self.model}) failed while it worked: {problem}. Try again, or use "
                "--device cpu; please report it."
            ) from problem

    def seconds(self, start: Any, stop: Any) -> float:
        return float(self._cupy.cuda.get_elapsed_time(start, stop)) / 1e3

    def upload(self, target: DeviceArray, source: np.ndarray, stream: Any) -> None:
        runtime = self._cupy.cuda.runtime
        runtime.memcpyAsync(
            target.data.ptr, source.ctypes.data, source.nbytes, runtime.memcpyHostToDevice,
            stream.ptr,
        )  # fmt: skip

    def download(self, target: np.ndarray, source: DeviceArray, stream: Any) -> None:
        runtime = self._cupy.cuda.runtime
        runtime.memcpyAsync(
            target.ctypes.data, source.data.ptr, target.nbytes, runtime.memcpyDeviceToHost,
            stream.ptr,
        )  # fmt: skip

    def kernels(self, text: str, names: Sequence[str]) -> Mapping[str, CupyKernel]:
        cupy = self._cupy
        try:
            with self.use():
                module = cupy.RawModule(code=text, options=("-std=c++17", _NO_FUSING[kind()]))
                return {name: CupyKernel(module.get_function(name)) for name in names}
        except cupy.cuda.compiler.CompileException as problem:
            raise GpuError(
                f"A kernel could not be compiled for {self.name} ({self.model}). The compiler "
                f"says:\n{problem}"
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
