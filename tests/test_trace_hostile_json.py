"""Any JSON in the place of events: a trace or a Refusal, never another error."""

from __future__ import annotations

import json

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kuroshio.errors import Refusal
from kuroshio.perf.traces.events import ABSENT, Kind
from kuroshio.perf.traces.read import read

STRANGE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["stream 7", "0x0", "12", "-1", "\ud800", "1e5", "Stream3", "\0"]),
    st.lists(st.integers(-5, 5), max_size=4),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)
ARGUMENTS = st.dictionaries(
    st.sampled_from(
        ["External id", "external id", "correlation", "bytes", "Bytes", "size", "device", "devId",
         "stream", "queueId", "grid", "block", "shared memory", "registers per thread", "BeginNs",
         "EndNs", "queued", "own", "", "name"]
    ),
    STRANGE,
    max_size=8,
)  # fmt: skip
CATEGORIES = st.sampled_from(
    ["kernel", "Kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime", "Runtime", "cpu_op", "HIPOPS",
     "HIPCOPY", "HIP", "user_annotation", "cuda_sync", "kuroshio.stage", "kuroshio.device",
     "DataFlow", "python_function", "ac2g", "x", None, 5]
)  # fmt: skip
EVENTS = st.fixed_dictionaries(
    {},
    optional={
        "ph": st.sampled_from(["X", "X", "X", "s", "t", "f", "M", "B", None]) | STRANGE,
        "cat": CATEGORIES | STRANGE,
        "name": st.sampled_from(["process_name", "Memcpy HtoD", "a"]) | STRANGE,
        "pid": STRANGE,
        "tid": STRANGE,
        "id": STRANGE,
        "ts": st.integers(0, 10**6) | STRANGE,
        "dur": st.integers(0, 10**4) | STRANGE,
        "args": ARGUMENTS | STRANGE,
    },
)
KERNEL = {"ph": "X", "cat": "kernel", "name": "add", "pid": 0, "tid": 7, "ts": 10, "dur": 2}


@given(
    st.lists(EVENTS | STRANGE, max_size=20),
    st.dictionaries(
        st.sampled_from(
            ["deviceProperties", "distributedInfo", "baseTimeNanoseconds", "otherData"]
        ),
        STRANGE | st.lists(st.dictionaries(st.sampled_from(["id", "name", "warpSize"]), STRANGE)),
        max_size=3,
    ),
)  # fmt: skip
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_nothing_else_comes_of_strange_events(tmp_path, events, metadata):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({**metadata, "traceEvents": [*events, KERNEL]}), "utf-8")
    try:
        trace = read(path)
    except Refusal:
        return
    found = trace.events
    assert (found.end >= found.start).all()
    assert (np.diff(found.start) >= 0).all()
    assert found.name.min() >= 0
    assert found.name.max() < len(found.names)
    assert set(found.kind.tolist()) <= set(Kind)
    for column in found.others.values():
        assert column.codes.min() >= ABSENT
        assert column.codes.max() < len(column.values)
    assert (found.kind == Kind.KERNEL).sum() >= 1
