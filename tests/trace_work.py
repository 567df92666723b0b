"""What happened in a made-up run, for tests to write in a profiler's format and read back."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from kuroshio.perf.traces.events import ABSENT, Direction, Events, Kind

BASE = 1_000_000_000  # ns


@dataclass(frozen=True)
class Kernel:
    name: str
    start: int
    end: int
    call: int  # correlation, 0 for none
    device: int = 0
    stream: int = 1
    grid: tuple[int, int, int] = (4, 1, 1)  # blocks
    block: tuple[int, int, int] = (64, 1, 1)
    registers: int = 32
    shared: int = 0
    scratch: int = 0


@dataclass(frozen=True)
class Copy:
    direction: Direction
    start: int
    end: int
    call: int
    bytes: int
    device: int = 0
    stream: int = 1


@dataclass(frozen=True)
class Call:
    name: str
    start: int
    end: int
    call: int
    thread: int


@dataclass(frozen=True)
class Range:
    name: str
    start: int
    end: int
    thread: int


@dataclass(frozen=True)
class Process:
    number: int
    kernels: tuple[Kernel, ...] = ()
    copies: tuple[Copy, ...] = ()
    calls: tuple[Call, ...] = ()
    ranges: tuple[Range, ...] = ()


_NAMES = st.text(
    st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=12
).map(str.strip).filter(bool)  # fmt: skip
_KERNEL_NAMES = _NAMES | st.just("void f<float, 2>(float*, int const*)")
_TIMES = st.tuples(st.integers(0, 10**6), st.integers(0, 10**4)).map(
    lambda pair: (BASE + pair[0], BASE + pair[0] + pair[1])
)
_SIZES = st.tuples(st.integers(1, 2000), st.integers(1, 9), st.integers(1, 3))
_WAYS = st.sampled_from([Direction.TO_DEVICE, Direction.TO_HOST, Direction.ON_DEVICE])


@st.composite
def processes(draw, number: int) -> Process:
    """One with calls, and work that some of them began."""
    calls = tuple(
        Call(draw(st.sampled_from(["hipLaunchKernel", "hipMemcpyAsync", "hipMalloc"])), *times,
             call=at + 1, thread=number + draw(st.integers(0, 2)))
        for at, times in enumerate(draw(st.lists(_TIMES, max_size=6)))
    )  # fmt: skip
    begun = st.integers(0, len(calls))
    kernels = tuple(
        Kernel(draw(_KERNEL_NAMES), *times, call=draw(begun), device=draw(st.integers(0, 1)),
               stream=draw(st.integers(0, 3)), grid=draw(_SIZES), block=draw(_SIZES),
               registers=draw(st.integers(0, 512)), shared=512 * draw(st.integers(0, 9)),
               scratch=draw(st.integers(0, 99)))
        for times in draw(st.lists(_TIMES, min_size=1, max_size=6))
    )  # fmt: skip
    copies = tuple(
        Copy(draw(_WAYS), *times, call=draw(begun), bytes=draw(st.integers(0, 2**40)),
             device=draw(st.integers(0, 1)), stream=draw(st.integers(0, 3)))
        for times in draw(st.lists(_TIMES, max_size=4))
    )  # fmt: skip
    ranges = tuple(
        Range(draw(_NAMES), *times, thread=number) for times in draw(st.lists(_TIMES, max_size=3))
    )
    return Process(number, kernels, copies, calls, ranges)


def runs(most: int = 2) -> st.SearchStrategy[tuple[Process, ...]]:
    """Of one process or several."""
    return st.integers(1, most).flatmap(
        lambda count: st.tuples(*(processes(4000 + 10 * at) for at in range(count)))
    )


def kernels_of(events: Events) -> list[tuple]:
    """In the order of the table, for comparison."""
    return sorted(
        (e.named(i), int(e.start[i]), int(e.end[i]), int(e.device[i]), int(e.stream[i]),
         tuple(e.grid[i].tolist()), tuple(e.block[i].tolist()), int(e.registers[i]),
         int(e.shared[i]), int(e.scratch[i]))
        for e in [events[events.kind == Kind.KERNEL]] for i in range(len(e))
    )  # fmt: skip


def kernels_expected(run: tuple[Process, ...]) -> list[tuple]:
    return sorted(
        (k.name, k.start, k.end, k.device, k.stream, k.grid, k.block, k.registers, k.shared,
         k.scratch)
        for process in run for k in process.kernels
    )  # fmt: skip


def launches_of(events: Events) -> list[tuple]:
    """Which call began which work: process, call's start, work's start."""
    calls = {
        int(events.correlation[i]): i
        for i in range(len(events))
        if events.kind[i] == Kind.CALL and events.correlation[i] != ABSENT
    }
    return sorted(
        (int(events.process[calls[key]]), int(events.start[calls[key]]), int(events.start[i]))
        for i in range(len(events))
        if events.on_device[i] and (key := int(events.correlation[i])) in calls
    )


def launches_expected(run: tuple[Process, ...]) -> list[tuple]:
    found = []
    for process in run:
        starts = {call.call: call.start for call in process.calls}
        found += [
            (process.number, starts[work.call], work.start)
            for work in (*process.kernels, *process.copies)
            if work.call in starts
        ]
    return sorted(found)


def copies_of(events: Events) -> list[tuple]:
    return sorted(
        (int(e.direction[i]), int(e.start[i]), int(e.end[i]), int(e.device[i]), int(e.bytes[i]))
        for e in [events[events.kind == Kind.COPY]] for i in range(len(e))
    )  # fmt: skip


def copies_expected(run: tuple[Process, ...]) -> list[tuple]:
    return sorted(
        (int(c.direction), c.start, c.end, c.device, c.bytes)
        for process in run for c in process.copies
    )  # fmt: skip


def on_host_of(events: Events, kind: Kind) -> list[tuple]:
    return sorted(
        (int(e.process[i]), int(e.thread[i]), e.named(i), int(e.start[i]), int(e.end[i]))
        for e in [events[events.kind == kind]] for i in range(len(e))
    )  # fmt: skip


def calls_expected(run: tuple[Process, ...]) -> list[tuple]:
    return sorted(
        (process.number, call.thread, call.name, call.start, call.end)
        for process in run for call in process.calls
    )  # fmt: skip


def ranges_expected(run: tuple[Process, ...]) -> list[tuple]:
    return sorted(
        (process.number, each.thread, each.name, each.start, each.end)
        for process in run for each in process.ranges
    )  # fmt: skip
