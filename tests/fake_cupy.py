"""A module that answers as CuPy does, with devices that are not there."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from kuroshio.device import cuda

PORTABLE = 1  # cudaHostAllocPortable: pinned for all devices
NO_DEVICE, OUT_OF_MEMORY, BUSY, ILLEGAL = 100, 2, 46, 700
_SAYS = {
    NO_DEVICE: "cudaErrorNoDevice: no CUDA-capable device is detected",
    OUT_OF_MEMORY: "cudaErrorMemoryAllocation: out of memory",
    BUSY: "cudaErrorDevicesUnavailable: CUDA-capable device(s) is/are busy or unavailable",
    ILLEGAL: "cudaErrorIllegalAddress: an illegal memory access was encountered",
}


class CUDARuntimeError(RuntimeError):
    def __init__(self, status: int) -> None:
        super().__init__(_SAYS[status])
        self.status = status


class CUDADriverError(RuntimeError):
    pass


class CompileException(Exception):
    pass


def fake_cupy(
    *, count: int = 1, hip: bool = False, capability: tuple[int, int] = (9, 0), free: int = 1 << 30,
    no_driver: bool = False, busy: bool = False, refuses: int = OUT_OF_MEMORY,
    compiler: Exception | None = None,
) -> ModuleType:  # fmt: skip
    """`count` devices with `free` bytes each; what is larger, `refuses` is the answer to."""

    def device_count() -> int:
        if no_driver:
            raise CUDARuntimeError(NO_DEVICE)
        return count

    def memory(nbytes: int) -> object:
        if nbytes > free:
            raise CUDARuntimeError(refuses)
        return bytearray(nbytes)

    def pinned_memory(nbytes: int, flags: int) -> object:
        assert flags == PORTABLE
        return memory(nbytes)

    def memory_info() -> tuple[int, int]:
        if busy:
            raise CUDARuntimeError(BUSY)
        return free, 2 * free

    def make_context(pointer: int) -> None:
        assert pointer == 0
        device_count()
        memory_info()

    class Device:
        def __init__(self, index: int) -> None:
            self.id, self.attributes = index, {"WarpSize": 32}

        def __enter__(self) -> None: ...

        def __exit__(self, *_: object) -> None: ...

    def raw_module(code: str, options: tuple[str, ...]) -> object:
        raise compiler or AssertionError("nothing was to be compiled")

    facts = {"name": b"Fake 1000", "warpSize": 32, "major": capability[0], "minor": capability[1],
             "sharedMemPerBlock": 49_152}  # fmt: skip
    made = ModuleType("cupy")
    made.__spec__ = ModuleSpec("cupy", None, origin="here")
    made.cuda = SimpleNamespace(
        runtime=SimpleNamespace(
            is_hip=hip, getDeviceCount=device_count, CUDARuntimeError=CUDARuntimeError,
            getDeviceProperties=lambda _: facts, memGetInfo=memory_info, free=make_context,
        ),
        driver=SimpleNamespace(CUDADriverError=CUDADriverError), Device=Device,
        Memory=memory, PinnedMemory=pinned_memory,
        MemoryPointer=lambda held, _: held, PinnedMemoryPointer=lambda held, _: held,
        compiler=SimpleNamespace(CompileException=CompileException),
    )  # fmt: skip
    made.ndarray = lambda shape, dtype, memptr: np.frombuffer(memptr, dtype).reshape(shape)
    made.RawModule = raw_module
    return made


@contextmanager
def cupy_is(module: ModuleType | None) -> Iterator[None]:
    """This is what `import cupy` finds; None: there is none, even where there is one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "cupy", module)
        patch.setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32")  # as importing it does; taken back
        cuda._cupy.cache_clear()
        try:
            yield
        finally:
            cuda._cupy.cache_clear()
