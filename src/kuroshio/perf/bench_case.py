"""Times one case: warm-up, repeats until the median is known, the check, the verdict."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from time import perf_counter
from typing import Any

from .bench_check import threshold
from .bench_effort import FEW, LEAST_TOTAL_S, Effort
from .bench_subject import Subject
from .bench_verdict import uncertainty, unstable_because
from .bench_watch import Watch
from .cases import Case
from .environment import environment_with
from .results import Results, Row
from .statistics import summary


def bench(
    fn: Callable[..., Any] | Case,
    *,
    name: str | None = None,
    bytes: int | None = None,
    flops: int | None = None,
    operations: str | None = None,
    check: Any = None,
    tolerance: float = 0.0,
    inputs: Sequence[tuple[Any, ...]] | None = None,
    size: int | None = None,
    dtype: str | None = None,
    about: str | None = None,
    device: str | None = None,
    flush: bool = True,
    spread: float = Effort.spread,
    repeats: tuple[int, int] = (Effort.least, Effort.most),
    seconds: float = Effort.seconds,
    warm_up_s: float = Effort.warm_up_s,
) -> Results:
    """Time a callable; one row of results, with the environment.

    fn and what follows it: see `Case`. `fn` may be one, of which the rest then replaces parts.
    spread, seconds, warm_up_s and repeats (at least, at most): see `Effort`.

    Refuses a callable that raises, a result that is wrong, a device that is lost. `print` shows
    the table, `save` writes JSON, `rows[0].host_s["median"]` is in seconds.
    """
    given = {
        "name": name, "bytes": bytes, "flops": flops, "operations": operations, "check": check,
        "tolerance": tolerance or None, "inputs": inputs, "size": size, "dtype": dtype,
        "about": about, "device": device, "flush": None if flush else False,
    }  # fmt: skip
    known: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    if not isinstance(fn, Case):
        fn = Case(fn, name=getattr(fn, "__name__", None) or type(fn).__name__)
    case = replace(fn, **known)
    effort = Effort(spread, repeats[0], repeats[1], seconds, warm_up_s)
    row = measure(Subject(case), effort)
    return Results(case.name, environment_of([row]), [row])


def measure(subject: Subject, effort: Effort) -> Row:
    """Warm up, sample until the median is known or a cap is reached, check, judge."""
    with quiet():
        subject.warm_up(effort)
        watch = Watch(subject.clock.device)
        start = perf_counter()
        due = effort.least
        while True:
            watch.look()
            subject.sample()
            n, spent = len(subject.host), perf_counter() - start
            if n >= effort.most or (spent >= effort.seconds and n >= min(FEW, effort.least)):
                break
            if n >= due and spent >= LEAST_TOTAL_S:
                known = uncertainty(subject)
                if known is not None and known <= effort.spread:
                    break
                due = n + n // 8
        subject.finish()
        watch.look()
    return to_row(subject, watch, effort)


def to_row(subject: Subject, watch: Watch, effort: Effort) -> Row:
    """What was measured, judged."""
    case, because = subject.case, unstable_because(subject, watch, effort)
    return Row(
        case=case.name, size=case.size, dtype=case.dtype, device=subject.clock.device,
        model=subject.clock.model,
        repeats=len(subject.host), host_s=summary(subject.host),
        device_s=summary(subject.device) if subject.device else None,
        boundary=subject.clock.boundary, bytes=case.bytes, flops=case.flops,
        operations=case.operations,
        about=case.about, correct=True if subject.checked else None,
        stable=because is None, unstable_because=because, samples_s=list(subject.host),
        device_samples_s=list(subject.device) or None, threshold=threshold(case),
        checked=subject.checked, calls_a_sample=subject.calls, caches=_caches(subject),
        uncertainty=uncertainty(subject), warm_up=subject.warm_up_record, watched=watch.record(),
    )  # fmt: skip


def environment_of(rows: Sequence[Row]) -> dict[str, Any]:
    """Of the processor and the devices of these rows."""
    return environment_with({row.device: row.model for row in rows if row.device != "cpu"})


@contextmanager
def quiet() -> Iterator[None]:
    """Without the garbage collector, whose turns are nobody's time.

    What is there before is set aside, so that looking for what comes later is quick.
    """
    was = gc.isenabled()
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.unfreeze()
        if was:
            gc.enable()


def _caches(subject: Subject) -> str:
    turns = len(subject.case.inputs)
    said = [f"{turns} inputs in turn."] if turns > 1 else []
    if subject.flushes:
        said.append("The device's caches are overwritten before each sample.")
    return " ".join(said) or "Caches as the call before left them."
