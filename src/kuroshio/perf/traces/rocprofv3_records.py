"""The records of rocprofv3's JSON, some megabytes at a time, and what else it says of a process."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
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


class Symbol(msgspec.Struct, frozen=True):
    """A kernel of a code object; libraries have ten thousands of them, launched or not."""

    kernel_id: int
    formatted_kernel_name: str | None = None
    demangled_kernel_name: str | None = None
    kernel_name: str | None = None
    arch_vgpr_count: int = ABSENT
    accum_vgpr_count: int = ABSENT
    sgpr_count: int = ABSENT


class _Message(msgspec.Struct, frozen=True):
    key: int
    value: str


@dataclass(frozen=True)
class Said:
    """Of a process besides its records.

    values      metadata, agents
    symbols     by number of kernel
    messages    texts of ranges, by correlation
    operations  names, by kind of record and by operation
    """

    values: dict[str, Any] = field(default_factory=dict)
    symbols: dict[int, Symbol] = field(default_factory=dict)
    messages: dict[int, str] = field(default_factory=dict)
    operations: list[Any] = field(default_factory=list)


_RECORDS = msgspec.json.Decoder(list[Record])
_SYMBOLS = msgspec.json.Decoder(list[Symbol])
_MESSAGES = msgspec.json.Decoder(list[_Message])
_ANYTHING = msgspec.json.Decoder(list[msgspec.Raw])


class Records(Elements[Any]):
    """Iterating gives lists of records, each of one array of one process.

    said    of each process so far, the last that whose records are given
    array   that a list is of
    """

    def __init__(self, path: Path) -> None:
        super().__init__(str(path), pieces(path), _RECORDS, frozenset(), PIECE)
        self.said: list[Said] = []
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
        said = Said()
        self.said.append(said)
        for key in self._keys():
            begins = self._next()
            if begins == b"{" and key in ("buffer_records", "callback_records"):
                yield from self._records(ours=key == "buffer_records")
            elif begins == b"{" and key == "strings":
                self._strings(said)
            elif begins == b"[" and key == "kernel_symbols":
                for batch in self._list(_SYMBOLS):
                    said.symbols.update((each.kernel_id, each) for each in batch)
            elif begins == b"[" and key != "agents":
                self._pass_over()
            else:
                said.values[key] = self._value()

    def _records(self, ours: bool) -> Iterator[list[Any]]:
        """Of a call's or a device's; counters are passed over."""
        for array in self._keys():
            if self._next() != b"[":
                self._value()
            elif ours and array in (*KERNELS, *COPIES, *CALLS):
                self.array = array
                yield from map(self._counted, self._list(_RECORDS))
            else:
                self._pass_over()

    def _strings(self, said: Said) -> None:
        for key in self._keys():
            begins = self._next()
            if begins == b"[" and key == "marker_api":
                for batch in self._list(_MESSAGES):
                    said.messages.update((each.key, each.value) for each in batch)
            elif begins == b"[" and key == "buffer_records":
                said.operations.extend(self._value())
            elif begins == b"[":
                self._pass_over()
            else:
                self._value()

    def _list(self, decoder: msgspec.json.Decoder[list[Any]]) -> Iterator[list[Any]]:
        self._decoder = decoder
        self._between = b""  # each array parts its elements in its own way
        yield from self._array(bare=False)

    def _pass_over(self) -> None:
        """An array, a piece at a time."""
        for _ in self._list(_ANYTHING):
            pass

    def _counted(self, batch: list[Any]) -> list[Any]:
        self._events += len(batch)
        if self._events > MOST_EVENTS:
            raise Refusal(f"{self._name} has more than {MOST_EVENTS:,} events. Record fewer steps.")
        return batch
