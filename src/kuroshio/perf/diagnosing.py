"""Traces in files, read and judged: what the commands and `perf.diagnose` share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import Refusal
from .ceilings import store
from .report.diagnosis import Diagnosis
from .report.diagnosis import diagnose as diagnosed
from .traces.events import Kind
from .traces.processes import ranks_of
from .traces.read import read
from .traces.trace import Trace

if TYPE_CHECKING:
    from .experiments import Record
    from .roofline import Judgement, Roofs

Files = Sequence[str | os.PathLike[str]]


def read_trace(path: str | os.PathLike[str]) -> Trace:
    """The events of a profiler's file or folder, of whichever format; see kuroshio.perf.traces.

    Times are whole nanoseconds. Refusal (a ValueError) where it is no trace or damaged.
    """
    return read(path)


def diagnose(
    *traces: str | os.PathLike[str] | Trace,
    ceilings: Files = (),
    counters: Files = (),
    experiments: str | os.PathLike[str] | None = None,
) -> Diagnosis:
    """What profilers' traces say: analyses, and findings with evidence, the most to save first.

    traces       files or folders, or what `read_trace` gave; several are ranks of one job
    ceilings     what `kuroshio perf ceilings -o` measured: for kernels in `counters`, and for
                 messages between ranks
    counters     CSV of a profiler that counted, as for `kuroshio perf roofline`
    experiments  a folder of records, to be shown with it

    Times in the result are ns. Refusal (a ValueError) where a file cannot be read.
    """
    return diagnosis_of(traces, ceilings, counters, experiments)


def diagnosis_of(
    traces: Iterable[str | os.PathLike[str] | Trace],
    ceilings: Files = (),
    counters: Files = (),
    experiments: str | os.PathLike[str] | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Diagnosis:
    """The same; `say` is told what is being done."""
    traces = list(traces)
    if not traces:
        raise Refusal("There is no trace to diagnose. Give a profiler's file or folder.")
    # Small files first: what is refused of them is refused before a long trace is read.
    judged, under = _judged(ceilings, counters)
    of_messages = [each for path in ceilings for each in store.read(Path(path))[1]]
    records = _records(experiments)
    found = read_all(traces, say)
    if ceilings and not counters and len(found) == 1:
        raise Refusal(
            "Ceilings alone place no kernel: a trace tells no operations and no bytes. Give what "
            "was counted, too: --counters CSV (see kuroshio perf roofline). Messages are held to "
            "them where there are several ranks."
        )
    return diagnosed(found, judged, records, under, of_messages)


def read_all(
    traces: Sequence[str | os.PathLike[str] | Trace], say: Callable[[str], None] = lambda _: None
) -> list[Trace]:
    """One after the other; those of several ranks in order of rank. Twice the same is refused."""
    found: list[Trace] = []
    for number, each in enumerate(traces, 1):
        if isinstance(each, Trace):
            found.append(each)
            continue
        say(f"reading {each}" + (f" ({number} of {len(traces)})" if len(traces) > 1 else ""))
        found.append(read(each))
    places = [os.path.realpath(each.path) for each in found]
    if twice := next((place for place in places if places.count(place) > 1), None):
        raise Refusal(f"{twice} was given twice. Give each rank's trace once.")
    ours = [bool((each.events.kind == Kind.STAGE).any()) for each in found]
    if len(set(ours)) > 1:
        raise Refusal(
            f"{found[ours.index(True)].path} is a timeline of Kuroshio's own stages, and "
            f"{found[ours.index(False)].path} the trace of another program: they are no ranks of "
            "one job. Give each alone, or only ranks of one job."
        )
    found = [rank for each in found for rank in ranks_of(each)]
    if all(each.rank is not None for each in found):
        ranks = [each.rank for each in found]
        if len(set(ranks)) < len(ranks):
            raise Refusal(
                f"These traces are of the ranks {', '.join(map(str, ranks))}, and two of one rank "
                "are not of one job. Give one of each rank; two runs are compared by kuroshio perf "
                "compare."
            )
        found.sort(key=lambda each: each.rank or 0)
    say("analysing")
    return found


def _judged(ceilings: Files, counters: Files) -> tuple[tuple[Judgement, ...], Roofs | None]:
    """Kernels that were counted, and the roofs that they are under."""
    if not counters:
        return (), None
    from . import roofline_results
    from .counters.counted import merged
    from .counters.read import read as counted_in
    from .roofline import judge, roofs
    from .roofline_inputs import ceilings_of, device_of

    counted = merged(kernel for name in counters for kernel in counted_in(Path(name)))
    device = device_of(None, counted, bool(ceilings))
    model, found = ceilings_of([os.fspath(each) for each in ceilings], device)
    under = roofs(device or model, found)
    points = roofline_results.with_shares(roofline_results.joined([], counted, []))
    return tuple(judge(point, under) for point in points), under


def _records(folder: str | os.PathLike[str] | None) -> tuple[Record, ...]:
    if folder is None:
        return ()
    from .experiments import load, records

    if not Path(folder).is_dir():
        raise Refusal(f"There is no folder {os.fspath(folder)} of experiments.")
    return tuple(load(path) for path in records(Path(folder)))
