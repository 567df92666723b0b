"""Matrix units through the vendor's library: CuPy's cuBLAS or hipBLAS, else PyTorch's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from time import sleep
from typing import Any

import numpy as np

from ...device.names import gpu_name
from .ceiling import GOP, Ceiling, Missing, ceiling
from .cpu import Effort
from .libraries import Unavailable, first_of

Timed = tuple[list[float], list[float]]  # seconds in bursts, and without a rest
SIDE = 8192  # of the square matrices
# Of cuBLAS's header: types of the numbers, and arithmetic with sums in float32.
_TYPES = {"float16": 2, "bfloat16": 14}
_REST_S = 0.05
_COMPUTE_32F, _DEFAULT_ALGORITHM = 68, -1


def l2_bytes(name: str) -> int | None:
    """How large the L2 of a device is, where the driver tells."""
    import cupy

    facts = cupy.cuda.runtime.getDeviceProperties(gpu_name(name).number or 0)
    return int(facts.get("l2CacheSize", 0)) or None


def matrices(name: str, effort: Effort, side: int = SIDE) -> Iterator[Ceiling | Missing]:
    """Multiplications of square matrices of random numbers with sums in float32.

    In bursts with rests, and without a rest, where the limit of power may hold them to less.
    """
    number = gpu_name(name).number or 0
    for dtype in _TYPES:
        given = number, dtype, side, effort
        try:
            library, (bursts, sustained) = first_of(
                [("CuPy", partial(_by_cupy, *given)), ("PyTorch", partial(_by_torch, *given))]
            )
        except Unavailable as problem:
            yield Missing(f"matrix {dtype}", str(problem))
            continue
        how = f"{library}: {side} x {side} of random numbers, sums in float32; device events"
        for kind, seconds, pace in (
            ("", bursts, f"bursts with {_REST_S:.2f} s of rest between them"),
            (", sustained", sustained, f"{sum(sustained):.1f} s in a row"),
        ):
            rates = [2e-9 * side**3 / s for s in seconds]
            yield ceiling(f"matrix {dtype}{kind}", None, GOP, rates, f"{how}; {pace}")


def _by_cupy(number: int, dtype: str, side: int, effort: Effort) -> Timed:
    """By gemmEx itself, so that CuPy need have no such type: bfloat16 travels as 16 bits."""
    import cupy

    cublas = import_module("cupy_backends.cuda.libs.cublas")

    with cupy.cuda.Device(number):
        a, b = (_bits(cupy, dtype, side, seed) for seed in (1, 2))
        c = cupy.zeros((side, side), np.uint16)
        one, zero = np.ones(1, np.float32), np.zeros(1, np.float32)
        handle = cupy.cuda.device.get_cublas_handle()
        mode, kind = cublas.getPointerMode(handle), _TYPES[dtype]
        cublas.setPointerMode(handle, cublas.CUBLAS_POINTER_MODE_HOST)

        def multiply() -> None:
            cublas.gemmEx(
                handle, cublas.CUBLAS_OP_N, cublas.CUBLAS_OP_N, side, side, side,
                one.ctypes.data, a.data.ptr, kind, side, b.data.ptr, kind, side,
                zero.ctypes.data, c.data.ptr, kind, side, _COMPUTE_32F, _DEFAULT_ALGORITHM,
            )  # fmt: skip

        try:
            seconds = _timed(cupy.cuda.Event, cupy.cuda.get_elapsed_time, multiply, effort)
        finally:
            cublas.setPointerMode(handle, mode)
        _check(cupy.asnumpy(a), cupy.asnumpy(b), cupy.asnumpy(c), dtype)
        return seconds


def _bits(cupy: Any, dtype: str, side: int, seed: int) -> Any:
    """Normal random numbers, as the 16 bits that they are stored in."""
    numbers = cupy.random.default_rng(seed).standard_normal((side, side), dtype=np.float32)
    if dtype == "float16":
        return numbers.astype(np.float16).view(np.uint16)
    return (numbers.view(np.uint32) >> 16).astype(np.uint16)


def _numbers(bits: np.ndarray, dtype: str) -> np.ndarray:
    if dtype == "float16":
        return bits.view(np.float16).astype(np.float64)
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def _check(a: np.ndarray, b: np.ndarray, c: np.ndarray, dtype: str) -> None:
    """One element's row of what was timed; the library counts columns first: C' = B' A'."""
    right = _numbers(b, dtype)[:4] @ _numbers(a, dtype)
    if not np.allclose(_numbers(c[:4], dtype), right, rtol=0.02, atol=0.02 * len(a) ** 0.5):
        raise ArithmeticError("the product of the matrices is wrong")


def _by_torch(number: int, dtype: str, side: int, effort: Effort) -> Timed:
    """CUDA, ROCm and DTK builds of PyTorch all call their devices cuda."""
    torch = import_module("torch")

    if not torch.cuda.is_available():
        raise RuntimeError("it sees no device")
    with torch.cuda.device(number):
        a, b = (torch.randn(side, side, device="cuda").to(getattr(torch, dtype)) for _ in range(2))
        c = torch.empty_like(a)
        return _timed(
            lambda: torch.cuda.Event(enable_timing=True),
            lambda start, stop: start.elapsed_time(stop),
            lambda: torch.matmul(a, b, out=c),
            effort,
        )


def _timed(
    event: Callable[[], Any], between: Callable[[Any, Any], float], work: Callable[[], Any],
    effort: Effort,
) -> Timed:  # fmt: skip
    """Seconds of one `work`, several in a sample, after some to warm up."""

    def once(times: int) -> float:
        start, stop = event(), event()
        start.record()
        for _ in range(times):
            work()
        stop.record()
        stop.synchronize()
        return between(start, stop) / 1e3 / times

    def burst() -> float:
        sleep(_REST_S)
        return once(times)

    once(3)
    times = max(1, min(100, round(3 * effort.sample_s / max(once(1), 1e-6))))
    bursts = [burst() for _ in range(effort.samples)]
    return bursts, [once(times) for _ in range(2 * effort.samples)]
