"""Which events are what, by the names that runtimes, frameworks and people give them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from ..traces.events import Events, Kind
from .intervals import Intervals, union

COMMUNICATION = re.compile(r"nccl|rccl|msccl|oneccl", re.IGNORECASE)
# On the host: also other libraries, and what a program waits for.
COLLECTIVE = re.compile(
    r"nccl|rccl|msccl|oneccl|gloo|c10d|all_?reduce|all_?gather|all_?to_?all|reduce_?scatter"
    r"|\bbarrier\b|\bMPI_",
    re.IGNORECASE,
)
LAUNCH = re.compile(r"(?:cuda|cu|hip)\w*Launch(?!HostFunc)")
SYNCHRONISING = re.compile(r"(?:cuda|cu|hip)(?:Device|Ctx|Stream|Event|Thread)Synchronize")
# Those whose name ends in Async belong to a stream and wait for nothing.
ALLOCATION = re.compile(
    r"(?:cuda|hip)(?:Malloc|ExtMalloc|HostMalloc|MallocHost|MallocManaged|MallocPitch|Free"
    r"|FreeHost|HostFree|HostAlloc|HostRegister|HostUnregister)(?:WithFlags)?(?:_v\d+)?$"
    r"|cuMem(?:Alloc|Free|AllocHost|FreeHost|HostAlloc|AllocManaged|AllocPitch)(?:_v\d+)*$"
)
BLOCKING_COPY = re.compile(
    r"(?:cuda|hip)Mem(?:cpy|cpy2D|cpy3D|cpyToSymbol|cpyFromSymbol|cpyPeer|cpyHtoD|cpyDtoH|cpyDtoD"
    r"|cpyWithStream)(?:_v\d+)?$|cuMemcpy(?:HtoD|DtoH|DtoD|Peer)?(?:_v\d+)*$"
)
READ_BACK = re.compile(
    r"aten::(?:item|_local_scalar_dense|is_nonzero|nonzero|equal|masked_select|unique\w*|_unique2"
    r"|bincount)$"
)
COPYING = re.compile(r"aten::(?:to|_to_copy|copy_|cpu|cuda)$")
READING = re.compile(
    r"data_?loader|data_?load(?:ing)?\b|(?<![a-z])load_?(?:batch|data)|wait_?for_?batch"
    r"|(?<![a-z])(?:next|fetch|read|get)_?batch|prefetch|\bread(?:ing)?\b|\binflate\b|^fetch$",
    re.IGNORECASE,
)
# Of a profiler. It covers all that a step does, and so tells nothing of any of it.
PROFILER_STEP = re.compile(r"ProfilerStep\s*#\d+")
TRACING = re.compile(r"Activity Buffer Request|Buffer Flush|Instrumentation|CUPTI|roctracer")

_UNASKED = np.int8(-1)


def named(
    events: Events, pattern: re.Pattern[str], among: np.ndarray, *, whole: bool = False
) -> np.ndarray:
    """Which of these, a mask, have a name with the pattern, or one that begins with it."""
    found = pattern.match if whole else pattern.search
    # There may be as many names as events: those that matter are looked at, and once.
    told = events.names.told.setdefault((pattern, whole), np.full(len(events.names), _UNASKED))
    asked = np.zeros(len(events.names), bool)
    asked[events.name[among]] = True
    for number in np.flatnonzero(asked & (told == _UNASKED)).tolist():
        told[number] = bool(found(events.names[number]))
    hits = among.copy()
    hits[among] = told[events.name[among]] == 1
    return hits


def calls(events: Events, pattern: re.Pattern[str]) -> np.ndarray:
    """Which are calls whose name begins so."""
    return named(events, pattern, events.kind == Kind.CALL, whole=True)


def on_host(events: Events) -> np.ndarray:
    """Which say what a thread was doing; ranges that a profiler copied to a device do not."""
    host = events.of_kind(Kind.CALL, Kind.OPERATOR, Kind.ANNOTATION, Kind.STAGE)
    return host & (events.device < 0)


def reading(events: Events) -> np.ndarray:
    """Which load data on the host: operators, annotations and stages that are called so."""
    kinds = events.of_kind(Kind.OPERATOR, Kind.ANNOTATION, Kind.STAGE) & (events.device < 0)
    return named(events, READING, kinds)


def communicating(events: Events) -> np.ndarray:
    """Which are kernels of a communication library."""
    return named(events, COMMUNICATION, events.kind == Kind.KERNEL)


def computing(events: Events) -> np.ndarray:
    """Which are kernels that are no communication."""
    return (events.kind == Kind.KERNEL) & ~communicating(events)


def devices(events: Events) -> list[int]:
    """Numbers of devices that worked, ABSENT for one that is not told."""
    number = events.device[events.on_device]
    # Neighbours are mostly of one device: sorting them all would take a tenth of a second.
    differs = np.append(True, number[1:] != number[:-1])[: len(number)]
    return np.unique(number[differs]).tolist()


def by_device(events: Events) -> Iterator[tuple[int, np.ndarray]]:
    """Each device that worked, ABSENT for one that is not told, and the rows of its work."""
    for rows in alike(events.device, np.flatnonzero(events.on_device)):
        yield int(events.device[rows[0]]), rows


def alike(values: np.ndarray, rows: np.ndarray) -> list[np.ndarray]:
    """The rows, in groups whose values are the same; in each as they were."""
    if not len(rows):
        return []
    order = rows[np.argsort(values[rows], kind="stable")]
    return np.split(order, np.flatnonzero(np.diff(values[order])) + 1)


def during(events: Events, rows: np.ndarray) -> Intervals:
    """Moments at which any of these events, a mask or their numbers, was under way."""
    return union(events.start[rows], events.end[rows])
