"""Where a run's time went: spans reported by the engine, summed to a table.

The engine calls `Account.span` and knows nothing else of it. Stages overlap and run on several
threads, so seconds are thread seconds; their share is of threads times the run's length, and what
no stage accounts for is waiting.

What a device does on its own is no thread's: it has stages of its own. Of every stage it is kept
when anybody was at it, by perf_counter's clock.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from .intervals import Intervals
from .recorder import Recorder

STAGES = {
    "index": "find and describe files",
    "start": "make ready",
    "compile": "compile kernels (first run only)",
    "read": "read bytes",
    "inflate": "inflate",
    "fetch": "read through a library",
    "decode": "values to keys",
    "fill": "fill gaps",
    "compute": "windows: mean and percentiles",
    "smooth": "smooth over days of year",
    "collect": "gather output chunks",
    "compress": "compress output",
    "write": "write output",
    "wait": "wait",
}
COPY = "device copy"
COMPUTE = "device compute"
DEVICE_STAGES = {
    COPY: "copy to the device",
    "device inflate": "inflate on the device",
    COMPUTE: "windows on the device",
    "device fetch": "fetch results",
}
READING = ("read", "inflate", "fetch")  # what the host does while it is copied from
_BOUND_BY = {
    "index": "opening files to describe them",
    "read": "reading the files' bytes (disk or network)",
    "inflate": "inflating the files",
    "fetch": "reading through a library (the files are not plain chunks)",
    "decode": "turning values into keys",
    "fill": "filling gaps",
    "compute": "selecting percentiles",
    "smooth": "smoothing",
    "collect": "gathering output chunks",
    "compress": "compressing the output",
    "write": "writing the output",
    "wait": "waiting: threads had nothing to do (little work, slow disk, few pieces at a time)",
    "start": "making ready (libraries, memory), which takes as long in a longer run",
    "compile": "compiling, which the next run will not repeat",
}


@dataclass
class Account:
    """Spans by stage: threads' seconds, bytes, and when they were; safe from several threads.

    A recorder, if there is one, keeps each of them.
    """

    threads: int = 1
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    nbytes: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    busy: dict[str, Intervals] = field(default_factory=lambda: defaultdict(Intervals))
    recorder: Recorder | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def span(
        self, stage: str, start_s: float, stop_s: float, nbytes: int, *, device: str = "",
        stream: int = 0,
    ) -> None:  # fmt: skip
        """Count a span of this thread, or of a device, whose stages have names of their own."""
        with self._lock:
            if self.recorder is not None:
                self.recorder.add(stage, start_s, stop_s, nbytes, device, stream)
            self.nbytes[stage] += nbytes
            self.busy[stage].add(start_s, stop_s)
            if stage not in DEVICE_STAGES:
                self.seconds[stage] += stop_s - start_s

    def when(self, *stages: str) -> Intervals:
        """The times at which any of the stages was under way."""
        return Intervals(span for stage in stages for span in self.busy.get(stage, ()))

    def rows(self, wall_s: float) -> list[dict[str, Any]]:
        """Rows of stages that took time: stage, what, seconds, share of all threads' time, GB/s.

        busy_seconds are those in which any thread was at it; None for waiting, which is what no
        stage accounts for.
        """
        whole = wall_s * self.threads
        worked = {s: t for s, t in self.seconds.items() if s != "wait"}
        seconds = {**worked, "wait": max(whole - sum(worked.values()), 0.0)}
        return [
            {
                "stage": stage,
                "what": what,
                "thread_seconds": round(seconds[stage], 3),
                "busy_seconds": round(self.busy[stage].seconds, 3) if stage in worked else None,
                "share": round(seconds[stage] / whole, 4) if whole else 0.0,
                "gb_per_s": round(self.nbytes[stage] / seconds[stage] / 1e9, 3)
                if self.nbytes[stage] and seconds[stage] > 0
                else None,
            }
            for stage, what in STAGES.items()
            if seconds.get(stage, 0.0) > 0
        ]

    def device_rows(self, wall_s: float) -> list[dict[str, Any]]:
        """Rows of what a device did: seconds in which it was at it, share of the run, GB/s.

        Of copies also the seconds in which it computed or the host read at the same time, by the
        spans that were reported.
        """
        meanwhile = self.when(COMPUTE, *READING)
        rows = []
        for stage, what in DEVICE_STAGES.items():
            times = self.busy.get(stage)
            if not times:
                continue
            row = {
                "stage": stage,
                "what": what,
                "busy_seconds": round(times.seconds, 6),
                "share": round(times.seconds / wall_s, 4) if wall_s else 0.0,
                "gb_per_s": round(self.nbytes[stage] / times.seconds / 1e9, 3),
            }
            if stage == COPY:
                row["overlapped_seconds"] = round(times.overlap_s(meanwhile), 6)
            rows.append(row)
        return rows

    def bound(self, wall_s: float) -> str:
        """What bounds the run, in words: the stage with the largest share.

        While one thread compiles, or makes ready, the others have nothing to do, which is not
        theirs to be blamed.
        """
        rows = self.rows(wall_s)
        if not rows:
            return "nothing"
        for stage in ("compile", "start"):
            if 2 * self.when(stage).seconds > wall_s:
                return _BOUND_BY[stage]
        return _BOUND_BY[max(rows, key=lambda row: row["thread_seconds"])["stage"]]


def peak_memory_bytes() -> int | None:
    """Most memory this process has held, or None where the system does not say."""
    try:
        import resource
        import sys
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
