"""Clocks: the host's between synchronisations, and a device's own events.

Each says what it encloses. Libraries are taken from what the timed program itself has imported;
ROCm and DTK builds of PyTorch present themselves as `torch.cuda`.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from time import perf_counter
from typing import Any, NamedTuple, Protocol

from ..device.names import check_device, gpu_name
from ..errors import Refusal

_FLUSH_BYTES = {"cuda": 128 << 20, "hip": 512 << 20}  # a last-level cache of 256 MiB exists
_SEVERAL = "; the mean of the calls of a sample"


class Sample(NamedTuple):
    """Seconds a call by each clock, and what the last calls that were timed returned."""

    host_s: float
    device_s: float | None
    outputs: tuple[Any, ...]  # one of each clock's


class Clock(Protocol):
    device: str  # cpu, cuda:0, hip:1
    model: str | None
    boundary: str  # what the clocks enclose
    flush_bytes: int  # that are overwritten to empty the caches; 0: never

    def time(self, call: Callable[[], Any], calls: int, *, flush: bool, keep: bool) -> Sample:
        """Time some calls. flush: overwrite the device's caches before; keep: all outputs."""
        ...


class HostClock:
    """For what has done its work when it returns: NumPy, Numba, plain Python."""

    device: str = "cpu"
    model: str | None = None
    flush_bytes: int = 0
    boundary = "host clock, from the call to its return" + _SEVERAL

    def time(self, call: Callable[[], Any], calls: int, *, flush: bool, keep: bool) -> Sample:
        """Caches are as the call before left them, whatever `flush` says."""
        output = None
        start = perf_counter()
        for _ in range(calls):
            output = call()
        return Sample((perf_counter() - start) / calls, None, (output,))


class CommandClock(HostClock):
    """For a process, waited for; `device` is where it is said to work."""

    boundary = "host clock, from the start of the process to its end"

    def __init__(self, device: str = "cpu") -> None:
        self.device = device


class _EventClock:
    """Of libraries that have streams and events; the subclass says how they are called.

    Each clock times calls of its own. An idle device takes a launch some microseconds after the
    first event, which would count; so the device's clock runs behind the flush, during which the
    host launches ahead.
    """

    boundary = (
        "host clock, from a device that was waited for until it is waited for again; device "
        "clock, in other calls, between events in the current stream before and after the call"
    ) + _SEVERAL

    def __init__(self, kind: str, index: int, model: str, cache_bytes: int) -> None:
        self.device = f"{kind}:{index}"
        self.model: str | None = model
        self.flush_bytes = max(4 * cache_bytes, _FLUSH_BYTES[kind])
        self._scratch: Any = None

    def time(self, call: Callable[[], Any], calls: int, *, flush: bool, keep: bool) -> Sample:
        with self._use():  # else events would be recorded in another device's stream
            return self._time(call, calls, flush, keep)

    def _time(self, call: Callable[[], Any], calls: int, flush: bool, keep: bool) -> Sample:
        self._flush(flush)
        self._synchronize()
        output = None
        start = perf_counter()
        for _ in range(calls):
            output = call()
        self._synchronize()
        host_s = (perf_counter() - start) / calls
        kept = (output,) if keep else ()
        output = None
        first, last = self._event(), self._event()
        self._flush(flush)
        first.record()
        for _ in range(calls):
            output = call()
        last.record()
        self._synchronize()
        return Sample(host_s, self._between_ms(first, last) / 1e3 / calls, (*kept, output))

    def _flush(self, wanted: bool) -> None:
        if wanted:
            if self._scratch is None:
                self._scratch = self._bytes(self.flush_bytes)
            self._overwrite(self._scratch)

    def _use(self) -> AbstractContextManager[Any]:
        raise NotImplementedError

    def _synchronize(self) -> None:
        raise NotImplementedError

    def _event(self) -> Any:
        raise NotImplementedError

    def _between_ms(self, first: Any, last: Any) -> float:
        raise NotImplementedError

    def _bytes(self, count: int) -> Any:
        raise NotImplementedError

    def _overwrite(self, scratch: Any) -> None:
        raise NotImplementedError


class CupyClock(_EventClock):
    def __init__(self, cupy: Any, index: int) -> None:
        self._cuda, self._cupy, self._index = cupy.cuda, cupy, index
        facts = cupy.cuda.runtime.getDeviceProperties(index)
        kind = "hip" if cupy.cuda.runtime.is_hip else "cuda"
        super().__init__(kind, index, facts["name"].decode(), int(facts.get("l2CacheSize", 0)))

    def _use(self) -> AbstractContextManager[Any]:
        device: AbstractContextManager[Any] = self._cuda.Device(self._index)
        return device

    def _synchronize(self) -> None:
        self._cuda.runtime.deviceSynchronize()

    def _event(self) -> Any:
        return self._cuda.Event()

    def _between_ms(self, first: Any, last: Any) -> float:
        return float(self._cuda.get_elapsed_time(first, last))

    def _bytes(self, count: int) -> Any:
        return self._cupy.empty(count, "u1")

    def _overwrite(self, scratch: Any) -> None:
        scratch.fill(1)


class TorchClock(_EventClock):
    def __init__(self, torch: Any, index: int) -> None:
        self._torch, self._index = torch, index
        facts = torch.cuda.get_device_properties(index)
        kind = "hip" if getattr(torch.version, "hip", None) else "cuda"
        super().__init__(kind, index, facts.name, int(getattr(facts, "L2_cache_size", 0)))

    def _use(self) -> AbstractContextManager[Any]:
        device: AbstractContextManager[Any] = self._torch.cuda.device(self._index)
        return device

    def _synchronize(self) -> None:
        self._torch.cuda.synchronize(self._index)

    def _event(self) -> Any:
        return self._torch.cuda.Event(enable_timing=True)

    def _between_ms(self, first: Any, last: Any) -> float:
        return float(first.elapsed_time(last))

    def _bytes(self, count: int) -> Any:
        return self._torch.empty(count, dtype=self._torch.uint8, device=f"cuda:{self._index}")

    def _overwrite(self, scratch: Any) -> None:
        scratch.fill_(1)


class JaxClock:
    """JAX has no events: the host waits for the outputs."""

    boundary = "host clock, from the call until its outputs are ready" + _SEVERAL

    def __init__(self, jax: Any, device: str, model: str | None) -> None:
        self._jax, self.device, self.model = jax, device, model
        self.flush_bytes = 0 if device == "cpu" else _FLUSH_BYTES["hip"]
        self._scratch: Any = None

    def time(self, call: Callable[[], Any], calls: int, *, flush: bool, keep: bool) -> Sample:
        if flush:
            if self._scratch is None:
                self._scratch = self._jax.numpy.zeros(self.flush_bytes, "uint8")
                # In place: a new array for each sample would be given and taken between calls.
                self._overwrite = self._jax.jit(lambda scratch: scratch + 1, donate_argnums=0)
            self._scratch = self._jax.block_until_ready(self._overwrite(self._scratch))
        output = None
        start = perf_counter()
        for _ in range(calls):
            output = call()
        self._jax.block_until_ready(output)
        return Sample((perf_counter() - start) / calls, None, (output,))


def clock_for(values: Any, device: str | None) -> Clock:
    """The clock for a callable that takes and returns `values`, once it has run.

    `device` is what the caller said, or None. Where neither says, a GPU library that is at work
    in this process gives the clock: to wait for an idle device costs little, and not to wait for
    a busy one would time the launch alone. Refuses where the values and `device` contradict.
    """
    if device is not None:
        check_device(device)
    found = next((clock for value in _leaves(values) if (clock := _of_value(value))), None)
    if device in (None, "auto"):
        return found or _at_work() or HostClock()
    if found is not None and found.device != device:
        if _kinds(found.device, device) == {"cuda", "hip"}:  # ROCm's PyTorch calls itself cuda
            return found
        raise Refusal(
            f"The case works on {found.device} by the arrays that it takes and returns, but "
            f"{device} was given. Give --device {found.device} (device=), or none."
        )
    if device == "cpu":
        return HostClock()
    return found or _named(str(device))


def check_is_done(output: Any, label: str) -> None:
    """A Refusal of what has its work still to do: to make it takes no time, and says nothing."""
    for value in _leaves(output):
        graph = getattr(value, "__dask_graph__", None)
        lazy = inspect.isgenerator(value) or isinstance(value, (map, filter, zip))
        late = inspect.isawaitable(value) or hasattr(value, "add_done_callback")
        if lazy or late or inspect.isasyncgen(value) or (callable(graph) and graph() is not None):
            if inspect.iscoroutine(value):
                value.close()  # else Python complains that nobody waited
            raise Refusal(
                f"{label} returns a {type(value).__name__}, whose work is not done yet: only "
                "making it would be timed. Do the work in the callable and return the result: "
                "list(...), .result(), asyncio.run(...), .compute()."
            )


def array_bytes(values: Any) -> int:
    """Of all arrays in tuples, lists and dicts."""
    return sum(int(getattr(value, "nbytes", 0) or 0) for value in _leaves(values))


def _kinds(a: str, b: str) -> set[str]:
    return {each.partition(":")[0] for each in (a, b)}


def _leaves(values: Any, depth: int = 0) -> Iterator[Any]:
    if isinstance(values, dict):
        values = tuple(values.values())
    if isinstance(values, (tuple, list)) and depth < 4:
        for value in values[:64]:
            yield from _leaves(value, depth + 1)
    else:
        yield values


def _of_value(value: Any) -> Clock | None:
    """The clock of an array on a device, or None."""
    module = type(value).__module__
    library = module.partition(".")[0]
    if library == "cupy":
        return CupyClock(sys.modules["cupy"], int(value.device.id))
    if library == "torch" and getattr(value, "is_cuda", False):
        return TorchClock(sys.modules["torch"], int(value.device.index or 0))
    if library in ("jax", "jaxlib") and hasattr(value, "block_until_ready"):
        device = next(iter(value.devices()))
        kind = {"gpu": "cuda", "cuda": "cuda", "rocm": "hip"}.get(device.platform)
        if kind is None and device.platform != "cpu":
            raise Refusal(f"JAX works on {device.platform} here; known are its cpu, cuda and rocm.")
        name = f"{kind}:{device.id}" if kind else "cpu"
        return JaxClock(sys.modules["jax"], name, getattr(device, "device_kind", None))
    if module.startswith("numba.cuda"):
        raise Refusal(
            "The case returns an array of numba.cuda, which has no clock here. Hand the array to "
            "CuPy (cupy.asarray) in the case and return that: its clock waits for the device."
        )
    return None


def _at_work() -> Clock | None:
    """The clock of a library that has used a GPU in this process."""
    torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
    if torch is not None and torch.cuda.is_initialized():
        return TorchClock(torch, int(torch.cuda.current_device()))
    if cupy is not None:
        try:
            used = cupy.get_default_memory_pool().total_bytes()
        except cupy.cuda.runtime.CUDARuntimeError:  # no driver, no device
            return None
        if used:
            return CupyClock(cupy, int(cupy.cuda.runtime.getDevice()))
    return None


def _named(device: str) -> Clock:
    """For a GPU of that name although no array told of it."""
    kind, index = gpu_name(device)
    if index is None:
        raise Refusal(f"{device} is several devices, and a case runs on one: give {kind}:0.")
    if (torch := sys.modules.get("torch")) is not None and torch.cuda.is_available():
        return TorchClock(torch, index)
    from ..device import cuda

    cuda.by_name(device)  # refuses where there is none
    return CupyClock(sys.modules["cupy"], index)
