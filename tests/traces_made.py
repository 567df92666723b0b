"""Traces made by hand, event by event: a host's threads, a device's streams, calls between them.

Times are ns. `Made` keeps the order in which streams work, so a launch begins when its stream is
free; whatever a trace should show wrongly is given outright (`begins`).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from kuroshio.perf.traces.events import ABSENT, Column, Direction, Events, Kind
from kuroshio.perf.traces.trace import Device, Trace

US = 1000
MS = 1000 * US
_COLUMNS = ("process", "thread", "device", "stream", "correlation", "operator", "bytes",
            "direction", "grid", "block", "registers", "shared", "scratch")  # fmt: skip
_COPY_CALLS = {True: "cudaMemcpy", False: "cudaMemcpyAsync"}


class Made:
    """Events as they are added; `trace()` puts them in order.

    delay     from a launch's start to the earliest that the device can begin
    launching how long a launching call takes
    """

    def __init__(self, *, delay: int = 5 * US, launching: int = 2 * US) -> None:
        self.delay, self.launching = delay, launching
        self._rows: list[dict] = []
        self._free: dict[tuple[int, int], int] = {}
        self._links = 0

    def add(self, kind: Kind, name: str, start: int, end: int, **columns) -> None:
        """Any event; columns are those of Events, and `others` a dict of text."""
        self._rows.append({"kind": kind, "name": name, "start": start, "end": end, **columns})

    def operator(self, name: str, start: int, end: int, *, thread: int = 1, **more) -> None:
        self.add(Kind.OPERATOR, name, start, end, process=1, thread=thread, **more)

    def annotation(self, name: str, start: int, end: int, *, thread: int = 1) -> None:
        self.add(Kind.ANNOTATION, name, start, end, process=1, thread=thread)

    def call(self, name: str, start: int, end: int, *, thread: int = 1, **more) -> None:
        """Of the runtime: cudaStreamSynchronize, cudaMalloc."""
        self.add(Kind.CALL, name, start, end, process=1, thread=thread, **more)

    def stage(self, name: str, start: int, end: int, *, thread: int = 1) -> None:
        """Of our own pipeline."""
        self.add(Kind.STAGE, name, start, end, process=1, thread=thread)

    def kernel(
        self, name: str, start: int, lasts: int, *, device: int = 0, stream: int = 7, **more
    ) -> int:
        """One without a call; its end."""
        return self._work(Kind.KERNEL, name, start, lasts, device, stream, more)

    def launch(
        self, name: str, at: int, lasts: int, *, device: int = 0, stream: int = 7,
        thread: int = 1, begins: int | None = None, call: str = "cudaLaunchKernel", **more,
    ) -> int:  # fmt: skip
        """A kernel and the call that launches it at `at`; the kernel's end."""
        link = self._call(call, at, at + self.launching, thread)
        start = self._begins(at, device, stream) if begins is None else begins
        return self._work(
            Kind.KERNEL, name, start, lasts, device, stream, {"correlation": link, **more}
        )

    def copy(
        self, direction: Direction, at: int, lasts: int, *, bytes: int = 1 << 20,
        device: int = 0, stream: int = 7, thread: int = 1, begins: int | None = None,
        blocks: bool = False, call: str | None = None, name: str | None = None,
    ) -> int:  # fmt: skip
        """A copy and its call, which lasts until the copy has ended if it blocks; its end."""
        start = self._begins(at, device, stream) if begins is None else begins
        until = start + lasts if blocks else at + self.launching
        link = self._call(call or _COPY_CALLS[blocks], at, until, thread)
        title = name or ("Memcpy HtoD" if direction == Direction.TO_DEVICE else "Memcpy DtoH")
        columns = {"correlation": link, "bytes": bytes, "direction": direction}
        return self._work(Kind.COPY, title, start, lasts, device, stream, columns)

    def set(self, at: int, lasts: int, *, device: int = 0, stream: int = 7) -> int:
        link = self._call("cudaMemsetAsync", at, at + self.launching, 1)
        start = self._begins(at, device, stream)
        return self._work(Kind.SET, "Memset", start, lasts, device, stream, {"correlation": link})

    def wait(
        self, name: str, at: int, *, until: int | None = None, thread: int = 1, after: int = 1 * US
    ) -> int:
        """A synchronisation until all work has ended, and `after` more, or until a moment."""
        end = max(self._free.values(), default=at) + after if until is None else until
        end = max(end, at + after)
        self.call(name, at, end, thread=thread)
        return end

    def trace(
        self, *, rank: int | None = None, ranks: int | None = None, path: str = "made.json",
        form: str = "made by hand", devices: dict[int, Device] | None = None,
        cannot_tell: tuple[str, ...] = (),
    ) -> Trace:  # fmt: skip
        """All that was added so far."""
        return Trace(Path(path), form, self.events(), devices or {}, rank, ranks, cannot_tell, {})

    def events(self) -> Events:
        rows = self._rows
        names = tuple(dict.fromkeys(row["name"] for row in rows))
        number = {name: at for at, name in enumerate(names)}
        columns = {}
        for column in _COLUMNS:
            if any(column in row for row in rows):
                none = (ABSENT,) * 3 if column in ("grid", "block") else ABSENT
                columns[column] = [row.get(column, none) for row in rows]
        return Events.of(
            names,
            _others([row.get("others", {}) for row in rows]),
            kind=[row["kind"] for row in rows],
            name=[number[row["name"]] for row in rows],
            start=[row["start"] for row in rows],
            end=[row["end"] for row in rows],
            **columns,
        ).in_order()

    def _call(self, name: str, start: int, end: int, thread: int) -> int:
        self._links += 1
        self.call(name, start, end, thread=thread, correlation=self._links)
        return self._links

    def _begins(self, at: int, device: int, stream: int) -> int:
        return max(at + self.delay, self._free.get((device, stream), 0))

    def _work(self, kind, name, start, lasts, device, stream, columns) -> int:
        self.add(kind, name, start, start + lasts, device=device, stream=stream, **columns)
        free = self._free.get((device, stream), 0)
        self._free[device, stream] = max(free, start + lasts)
        return start + lasts


def _others(rows: list[dict[str, str]]) -> dict[str, Column]:
    columns = {}
    for key in dict.fromkeys(key for row in rows for key in row):
        values = tuple(dict.fromkeys(row[key] for row in rows if key in row))
        codes = [values.index(row[key]) if key in row else ABSENT for row in rows]
        columns[key] = Column(np.array(codes, np.int32), values)
    return columns


def healthy(*, steps: int = 5, kernels: int = 40, lasts: int = 100 * US) -> Made:
    """Annotated steps of a loop that launches well ahead: the device never waits for the host.

    The next step's input is copied on a stream of its own meanwhile.
    """
    made = Made()
    at, end = 1 * MS, 0
    for step in range(steps):
        begin = at
        made.copy(Direction.TO_DEVICE, at, 300 * US, stream=20)
        for number in range(kernels):
            at += 20 * US
            made.operator(f"aten::op{number % 8}", at - 15 * US, at + 5 * US)
            end = made.launch(f"kernel{number % 8}", at, lasts)
        # At most two steps ahead: the loop waits for an event of the step before.
        at = made.wait("cudaEventSynchronize", at + 10 * US, until=max(at, end - 3 * MS))
        made.annotation(f"ProfilerStep#{step}", begin, at)
        at += 10 * US
    made.wait("cudaDeviceSynchronize", at)
    return made
