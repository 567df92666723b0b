"""The records of rocprofv3's JSON, some megabytes at a time, and what else it says of a process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from ...errors import Refusal
from .events import ABSENT
from .json_stream import Elements
from .sound import MOST_EVENTS
from .source import PIECE, pieces

TOOL = "rocprofiler-sdk-tool"
KERNELS = ("kernel_dispatch", "kernel_dispatches")  # the second to ROCm 6.2
COPIES = ("memory_copy", "memory_copies")
CALLS = ("hip_api", "hsa_api", "marker_api", "rccl_api", "rocdecode_api", "rocjpeg_api")


class _Handle(msgspec.Struct, frozen=True):
    handle: int = ABSENT


class _Sizes(msgspec.Struct, frozen=True):
    x: int = ABSENT
    y: int = ABSENT
    z: int = ABSENT


class _Correlation(msgspec.Struct, frozen=True):
    internal: int = 0


class Dispatch(msgspec.Struct, frozen=True):
    agent_id: _Handle = _Handle()
    queue_id: _Handle = _Handle()
    kernel_id: int = ABSENT
    private_segment_size: int = ABSENT
    group_segment_size: int = ABSENT
    workgroup_size: _Sizes = _Sizes()
    grid_size: _Sizes = _Sizes()


class Record(msgspec.Struct, frozen=True):
    """An event of any kind."""

    start_timestamp: int
    end_timestamp: int
    kind: int = ABSENT
    operation: int = ABSENT
    thread_id: int = ABSENT
    correlation_id: _Correlation = _Correlation()
    dispatch_info: Dispatch = Dispatch()
    stream_id: _Handle = _Handle()
    src_agent_id: _Handle = _Handle()
    dst_agent_id: _Handle = _Handle()
    bytes: int = ABSENT


_RECORDS = msgspec.json.Decoder(list[Record])
_ANYTHING = msgspec.json.Decoder(list[msgspec.Raw])


class Records(Elements[Any]):
    """Iterating gives lists of records, each of one array of one process.

    said    of each process so far, the last that whose records are given: all but its records
    array   that a list is of
    """

    def __init__(self, path: Path) -> None:
        super().__init__(str(path), pieces(path), _RECORDS, frozenset(), PIECE)
        self.said: list[dict[str, Any]] = []
        self.array = ""
        self._events = 0

    def _object(self) -> Iterator[list[Any]]:
        for key in self._keys():
            begins = self._next()
            if key != TOOL:
                self._value()
            elif begins == b"{":
                yield from self._process()
            elif begins == b"[":
                yield from self._each_process()
            else:
                self._damaged(f"{TOOL} is no list")

    def _each_process(self) -> Iterator[list[Any]]:
        self._drop(1)
        after = self._next()
        while after == b"{":
            yield from self._process()
            after = self._next()
            if after == b",":
                self._drop(1)
                after = self._next()
        if not after:
            self._cut_off()
        if after != b"]":
            self._damaged(f"{TOOL} holds something other than processes")
        self._drop(1)

    def _process(self) -> Iterator[list[Any]]:
        said: dict[str, Any] = {}
        self.said.append(said)
        for key in self._keys():
            begins = self._next()
            # Counters are in callback_records; they are passed over a piece at a time.
            if key in ("buffer_records", "callback_records") and begins == b"{":
                for array in self._keys():
                    ours = key == "buffer_records" and array in (*KERNELS, *COPIES, *CALLS)
                    if self._next() != b"[":
                        self._value()
                        continue
                    self.array, self._decoder = array, _RECORDS if ours else _ANYTHING
                    self._between = b""  # each array parts its elements in its own way
                    for batch in self._array(bare=False):
                        if ours:
                            yield self._counted(batch)
            else:
                said[key] = self._value()

    def _counted(self, batch: list[Any]) -> list[Any]:
        self._events += len(batch)
        if self._events > MOST_EVENTS:
            raise Refusal(f"{self._name} has more than {MOST_EVENTS:,} events. Record fewer steps.")
        return batch
