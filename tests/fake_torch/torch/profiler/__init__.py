"""Writes a step of a millisecond for each that was told, with a kernel that fills a part of it."""

import enum
import gzip
import json
import os

from ..autograd import profiler as autograd_profiler


class ProfilerAction(enum.Enum):
    RECORD = 2


def supported_activities():
    if os.environ.get("FAKE_TORCH") == "broken":
        raise RuntimeError("no activities today")
    return {"CPU"}


class profile:
    def __init__(self, *, activities, schedule):
        assert schedule(3) is ProfilerAction.RECORD
        self.ended = 0

    def start(self):
        self.profiler = autograd_profiler.profile()
        self.profiler._prepare_trace()

    def step(self):
        self.ended += 1

    def stop(self):
        self.profiler._end()

    def export_chrome_trace(self, path):
        events = []
        for step in range(self.ended + 1):
            at, link = 1000.0 * step, step + 1
            where = {"pid": 7, "tid": 7}
            events += [
                {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", **where,
                 "ts": at, "dur": 990.0},
                {"ph": "X", "cat": "cpu_op", "name": "aten::mm", **where, "ts": at + 1, "dur": 50.0,
                 "args": {"External id": link}},
                {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", **where,
                 "ts": at + 10, "dur": 5.0, "args": {"External id": link, "correlation": link}},
                {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7,
                 "ts": at + 20.0, "dur": 100.0 if os.environ.get("FAKE_TORCH") == "slow" else 60.0,
                 "args": {"External id": link, "correlation": link, "device": 0, "stream": 7}},
            ]  # fmt: skip
        said = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "A device"}],
                "traceEvents": events}  # fmt: skip
        if "RANK" in os.environ:
            said["distributedInfo"] = {"rank": int(os.environ["RANK"]), "world_size": 2}
        opened = gzip.open if path.endswith(".gz") else open
        with opened(path, "wt") as file:
            json.dump(said, file)
            if os.environ.get("FAKE_TORCH") == "full":
                raise OSError(28, "No space left on device")
