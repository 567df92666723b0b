"""A case that is being timed: warmed up, sampled, its outputs checked."""

from __future__ import annotations

import re
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from ..errors import Refusal
from .bench_check import verify
from .bench_effort import SHORTEST_S, WARM, Effort
from .cases import Case, traceback_of
from .clocks import Clock, HostClock, Sample, clock_for

_FAILED = re.compile(
    r"CUDA error|HIP error|cudaError|hipError|CUDA_ERROR|device (was )?lost|unspecified launch"
    r"|ECC error|illegal memory access|launch failure",
    re.IGNORECASE,
)
_OF_A_DRIVER = ("CUDARuntimeError", "CUDADriverError", "AcceleratorError", "XlaRuntimeError")
_WARM_WINDOW = 3  # calls whose medians are compared


class Subject:
    """One case with its clock. `warm_up` first, then `sample` as often as wanted, then `finish`."""

    def __init__(self, case: Case, clock: Clock | None = None) -> None:
        self.case = case
        self.host: list[float] = []
        self.device: list[float] = []
        self.checked = 0
        self.calls = 1  # a sample
        self.warm_up_record: dict[str, Any] = {}
        self._inputs = [tuple(each) for each in case.inputs] or [()]
        self._clock = clock
        self._last: tuple[Any, int] | None = None  # an output that nobody has checked

    @property
    def clock(self) -> Clock:
        assert self._clock is not None, "before the warm-up"
        return self._clock

    @property
    def judged(self) -> list[float]:
        """The samples by the device's clock, or the host's where there is none or it stood still."""
        return self.device if self.by_device else self.host

    @property
    def by_device(self) -> bool:
        return bool(self.device) and min(self.device) > 0

    def warm_up(self, effort: Effort) -> None:
        """Call until it no longer gets faster, for `warm_up_s` at most, once at least."""
        times: list[float] = []
        start = perf_counter()
        while True:
            sample = self._timed("the warm-up", len(times))
            times.append(sample.host_s if sample.device_s is None else sample.device_s)
            steady = _steady(times)
            enough = perf_counter() - start >= effort.warm_up_s
            if steady or enough:
                break
        # A call that outlasts the whole warm-up is not repeated until it is steady.
        long = len(times) < 2 * _WARM_WINDOW
        self.warm_up_record = {
            "calls": len(times),
            "seconds": round(perf_counter() - start, 6),
            "steady": steady or long,
        }
        # Several calls in a sample would find the inputs in a cache that one call does not.
        if type(self.clock) is HostClock and len(self._inputs) == 1:
            self.calls = max(1, round(SHORTEST_S / max(min(times), 1e-9)))

    def sample(self) -> None:
        """One sample. The outputs of the first turn are checked at once, the last by `finish`."""
        index = len(self.host)
        sample = self._timed("repeat", index)
        self.host.append(sample.host_s)
        if sample.device_s is not None:
            self.device.append(sample.device_s)
        self._last = (sample.output, index)
        if index < len(self._inputs):
            self._check_last()

    def finish(self) -> None:
        """Check the output of the last sample: of the very call that was timed."""
        if self._last is not None:
            self._check_last()

    def _check_last(self) -> None:
        assert self._last is not None
        output, index = self._last
        self._last = None
        if self.case.check is not None:
            self._guarded(
                lambda: verify(self.case, output, self._arguments(index)), "the check of repeat",
                index,
            )  # fmt: skip
            self.checked += 1

    def _arguments(self, index: int) -> tuple[Any, ...]:
        return self._inputs[index % len(self._inputs)]

    def _timed(self, when: str, index: int) -> Sample:
        self._last = None  # its memory is given back before the clock runs
        arguments, function = self._arguments(index), self.case.fn

        def call() -> Any:
            return function(*arguments)

        def time() -> Sample:
            if self._clock is None:
                # Which clock is right shows only in what comes back; this call is not counted.
                self._clock = clock_for((call(), arguments), self.case.device)
            self._clock.prepare(self.case.flush and len(self._inputs) == 1)
            return self._clock.time(call, self.calls)

        return self._guarded(time, when, index)

    def _guarded(self, work: Callable[[], Any], when: str, index: int) -> Any:
        try:
            return work()
        except Refusal:
            raise
        except Exception as problem:
            raise self._refusal(problem, f"{when} {index + 1}") from problem

    def _refusal(self, problem: Exception, when: str) -> Refusal:
        name, text = type(problem).__name__, _first_line(problem)
        where = self._clock.device if self._clock else "the device"
        if "out of memory" in text.lower() or "OutOfMemory" in name or isinstance(
            problem, MemoryError
        ):  # fmt: skip
            return Refusal(
                f"{self.case.label} ran out of memory in {when}: {text}. Give a smaller --size, or "
                "end what else uses the memory; nothing that it timed is reported.",
                traceback_of(problem),
            )
        if name in _OF_A_DRIVER or _FAILED.search(text):
            return Refusal(
                f"{where} failed or was lost in {when} of {self.case.label}: {text}. Nothing that "
                "was timed on it counts. Look whether it is still there (nvidia-smi, rocm-smi; "
                "Xid or amdgpu lines in dmesg), and begin again in a new process: this one cannot "
                "use the device any more.",
                traceback_of(problem),
            )
        return Refusal(
            f"{self.case.label} raised {name} in {when}: {text}. Nothing is reported of a case "
            "that fails. Correct it; the place is shown below.",
            traceback_of(problem),
        )


def _steady(times: list[float]) -> bool:
    """Whether the last calls took no less than those before them."""
    if len(times) < 2 * _WARM_WINDOW:
        return False
    before = times[-2 * _WARM_WINDOW : -_WARM_WINDOW]
    return bool(np.median(times[-_WARM_WINDOW:]) >= WARM * np.median(before))


def _first_line(problem: BaseException) -> str:
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    return (lines[0] if lines else "no message").rstrip(".")
