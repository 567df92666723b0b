"""A case that is being timed: warmed up, sampled, its outputs checked."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from ..errors import Refusal
from .bench_check import verify
from .bench_effort import LEAST_WARM_DEVICE_S, LEAST_WARM_S, SHORTEST_S, WARM, Effort
from .cases import Case
from .clocks import Clock, HostClock, Sample, array_bytes, check_is_done, clock_for
from .raised import said, traceback_of

_FAILED = re.compile(
    r"CUDA error|HIP error|cudaError|hipError|CUDA_ERROR|device (was )?lost|unspecified launch"
    r"|ECC error|illegal memory access|launch failure",
    re.IGNORECASE,
)
_NONE = re.compile(
    r"InsufficientDriver|NoDevice|no CUDA-capable|no NVIDIA driver|no NVIDIA GPU|No HIP GPU",
    re.IGNORECASE,
)
_OF_A_DRIVER = ("CUDARuntimeError", "CUDADriverError", "AcceleratorError", "XlaRuntimeError")
_WARM_WINDOW = 3  # calls whose medians are compared
_SWEEP_S = 0.25  # between looks for garbage that refers to itself
_INSTANT_S = 1e-9  # of a call that took no time by a coarse clock


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
        self._turn = 0
        self._in_turn = len(self._inputs) > 1
        # The callable itself, so that nothing of ours is timed with it.
        self._straight = partial(case.fn, *self._inputs[0]) if self._inputs[0] else case.fn
        self._swept = perf_counter()
        # What the last calls returned, where nobody has checked it.
        self._unchecked: tuple[Any, ...] = ()

    @property
    def clock(self) -> Clock:
        assert self._clock is not None, "before the warm-up"
        return self._clock

    @property
    def flushes(self) -> bool:
        """Whether the caches of a GPU are overwritten; inputs in turn that fill them do without."""
        wanted = self.case.flush and self.clock.flush_bytes > 0
        if wanted and self._in_turn:
            return array_bytes(self._inputs) < self.clock.flush_bytes
        return wanted

    @property
    def judged(self) -> list[float]:
        """Samples of the device's clock, or of the host's: the only one, or that stood still."""
        return self.device if self.by_device else self.host

    @property
    def by_device(self) -> bool:
        return bool(self.device) and min(self.device) > 0

    def warm_up(self, effort: Effort, again: bool = False) -> None:
        """Call until it no longer gets faster, for `warm_up_s` at most, once at least.

        again: the machine is warm already, and only what is new need be.
        """
        times: list[float] = []
        start = perf_counter()
        while True:
            sample = self._timed("the warm-up", len(times))
            times.append(sample.device_s or sample.host_s)
            spent = perf_counter() - start
            if spent >= effort.warm_up_s:
                # Noise must not look like progress: the more calls, the more are compared.
                steady = _steady(times, max(len(times) // 3, _WARM_WINDOW))
                break
            least_s = LEAST_WARM_S if self.clock.device == "cpu" else LEAST_WARM_DEVICE_S
            enough = (again or spent >= least_s) and len(times) >= 2 * _WARM_WINDOW
            if steady := enough and _steady(times, _WARM_WINDOW):
                break
        self.warm_up_record = {
            "calls": len(times),
            "seconds": round(perf_counter() - start, 6),
            "steady": steady,
        }
        # Several calls in a sample would find the inputs in a cache that one call does not.
        warm = self.clock.flush_bytes > 0 and not self.flushes
        if (type(self.clock) is HostClock or warm) and not self._in_turn:
            # By the mean: one quick call among slow ones must not make a sample of thousands.
            usual_s = float(np.mean(times[len(times) // 2 :]))
            self.calls = max(1, round(SHORTEST_S / max(usual_s, _INSTANT_S)))
        self._turn = 0

    def sample(self) -> None:
        """One sample. The outputs of the first turn are checked at once, the last by `finish`."""
        index = len(self.host)
        sample = self._timed("repeat", index)
        self.host.append(max(sample.host_s, _INSTANT_S))
        if sample.device_s is not None:
            self.device.append(sample.device_s)
        self._unchecked = sample.outputs
        if index < len(self._inputs):
            self._check(index)

    def finish(self) -> None:
        """Check the outputs of the last sample: of the very calls that were timed."""
        if self._unchecked:
            self._check(len(self.host) - 1)

    def _check(self, index: int) -> None:
        outputs, self._unchecked = self._unchecked, ()
        if self.case.check is None:
            return
        for output in outputs:
            self._guarded(partial(verify, self.case, *self._apart(output)), "the check of repeat",
                          index)  # fmt: skip
            self.checked += 1

    def _next(self) -> tuple[Any, tuple[Any, ...]]:
        """What the case returns for the next inputs, and these."""
        arguments = self._inputs[self._turn % len(self._inputs)]
        self._turn += 1
        return self.case.fn(*arguments), arguments

    def _apart(self, returned: Any) -> tuple[Any, tuple[Any, ...]]:
        """The output of a call, and its inputs."""
        return returned if self._in_turn else (returned, self._inputs[0])

    def _timed(self, when: str, index: int) -> Sample:
        self._tidy()
        call = self._next if self._in_turn else self._straight

        def time() -> Sample:
            if self._clock is None:
                # Which clock is right shows only in what comes back; this call is not counted.
                output, arguments = self._apart(call())
                check_is_done(output, self.case.label)
                self._clock = clock_for((output, arguments), self.case.device)
            return self._clock.time(
                call, self.calls, flush=self.flushes, keep=self.case.check is not None
            )

        return self._guarded(time, when, index)

    def _tidy(self) -> None:
        """Memory is given back before the clock runs; what refers to itself, now and then."""
        self._unchecked = ()
        if perf_counter() - self._swept > _SWEEP_S:
            gc.collect()
            self._swept = perf_counter()

    def _guarded(self, work: Callable[[], Any], when: str, index: int) -> Any:
        try:
            return work()
        except (Refusal, KeyboardInterrupt):
            raise
        except BaseException as problem:  # a program's exit is not ours
            raise self._refusal(problem, f"{when} {index + 1}") from problem

    def _refusal(self, problem: BaseException, when: str) -> Refusal:
        name, text = type(problem).__name__, said(problem)
        where = self._clock.device if self._clock else "the device"
        if "out of memory" in text.lower() or "OutOfMemory" in name or isinstance(
            problem, MemoryError
        ):  # fmt: skip
            return Refusal(
                f"{self.case.label} ran out of memory in {when}: {text}. Give a smaller --size, or "
                "end what else uses the memory; nothing that it timed is reported.",
                traceback_of(problem),
            )
        if _NONE.search(text):
            return Refusal(
                f"{self.case.label} needs a GPU, and there is none that works: {text}. Check the "
                "driver (nvidia-smi, rocm-smi), or let the case work on the processor.",
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


def _steady(times: list[float], window: int) -> bool:
    """Whether the last calls took no less than those before; also if there are few to compare."""
    if len(times) < 2 * window:
        return True
    before = times[-2 * window : -window]
    return bool(np.median(times[-window:]) >= WARM * np.median(before))
