"""rocprofv3's JSON: `--output-format json`, of one process or several.

Each process has buffer_records with an array a kind of event. Names are elsewhere: of a kernel in
kernel_symbols, of a call by its kind and operation in strings, of a range by its correlation.
Counters, samples, allocations and scratch memory are not read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from ...errors import Refusal
from .events import ABSENT, Events, Kind, joined
from .json_stream import Elements
from .rocm import (
    NO_COPIES,
    NO_KERNELS,
    NO_LAUNCHES,
    between,
    blocks,
    call_kind,
    copies_device,
    described,
    directions,
    kernel_kinds,
    kernel_name,
    no_zeros,
)
from .sound import MOST_EVENTS, fitting, named, sound, together
from .source import PIECE, pieces
from .trace import Device, Trace

FORM = "rocprofv3 JSON"
_TOOL = "rocprofiler-sdk-tool"
_KERNELS = ("kernel_dispatch", "kernel_dispatches")  # the second to ROCm 6.2
_COPIES = ("memory_copy", "memory_copies")
_CALLS = ("hip_api", "hsa_api", "marker_api", "rccl_api", "rocdecode_api", "rocjpeg_api")
_GPU = 2  # of an agent's types
_ADVICE = "Write it with rocprofv3 --runtime-trace --output-format json."


class _Handle(msgspec.Struct, frozen=True):
    handle: int = ABSENT


class _Sizes(msgspec.Struct, frozen=True):
    x: int = ABSENT
    y: int = ABSENT
    z: int = ABSENT


class _Correlation(msgspec.Struct, frozen=True):
    internal: int = 0


class _Dispatch(msgspec.Struct, frozen=True):
    agent_id: _Handle = _Handle()
    queue_id: _Handle = _Handle()
    kernel_id: int = ABSENT
    private_segment_size: int = ABSENT
    group_segment_size: int = ABSENT
    workgroup_size: _Sizes = _Sizes()
    grid_size: _Sizes = _Sizes()


class _Record(msgspec.Struct, frozen=True):
    """An event of any kind."""

    start_timestamp: int
    end_timestamp: int
    kind: int = ABSENT
    operation: int = ABSENT
    thread_id: int = ABSENT
    correlation_id: _Correlation = _Correlation()
    dispatch_info: _Dispatch = _Dispatch()
    stream_id: _Handle = _Handle()
    src_agent_id: _Handle = _Handle()
    dst_agent_id: _Handle = _Handle()
    bytes: int = ABSENT


_HANDLES = ("agent", "queue", "stream", "source", "target")
_COMMON = ("start_timestamp", "end_timestamp", "kind", "operation", "thread_id")
_RECORDS = msgspec.json.Decoder(list[_Record])
_ANYTHING = msgspec.json.Decoder(list[msgspec.Raw])


def recognise(path: Path, head: bytes) -> bool:
    return f'"{_TOOL}"'.encode() in head[:200]


def read(path: Path) -> Trace:
    """A Refusal where there are no events, or the file is damaged or cut off."""
    stream = _Stream(path)
    for batch in stream:
        if not stream.processes:
            raise Refusal(f"{path} is not rocprofv3's: it has no {_TOOL}. {_ADVICE}")
        stream.processes[-1].take(stream.array, batch)
    processes = stream.processes
    events, notes = sound(together(process.events() for process in processes))
    if not len(events):
        raise Refusal(f"{path} is rocprofv3's and has no kernels, copies or calls. {_ADVICE}")
    devices = {key: each for process in processes for key, each in process.devices().items()}
    lacks = [*_lacks(events), *notes]
    if stream.odd:
        lacks.append(f"{stream.odd:,} records are not as rocprofv3 writes them; they are left out")
    return Trace(
        path, FORM, events, devices=described(events, devices), cannot_tell=tuple(lacks),
        facts={key: value for process in processes for key, value in process.facts().items()},
    )  # fmt: skip


def _lacks(events: Events) -> Iterator[str]:
    if not events.of_kind(Kind.KERNEL).any():
        yield NO_KERNELS
    elif not (events.of_kind(Kind.CALL) & (events.correlation != ABSENT)).any():
        yield NO_LAUNCHES
    if not events.of_kind(Kind.COPY).any():
        yield NO_COPIES


class _Stream(Elements[Any]):
    """The records of each process, some megabytes at a time, and what else is said of it."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path), pieces(path), _RECORDS, frozenset(), PIECE)
        self.processes: list[_Process] = []
        self.array = ""  # that a batch is of
        self._events = 0

    def _object(self) -> Iterator[list[Any]]:
        for key in self._keys():
            begins = self._next()
            if key != _TOOL:
                self._value()
            elif begins == b"{":
                yield from self._process()
            elif begins == b"[":
                yield from self._each_process()
            else:
                self._damaged(f"{_TOOL} is no list")

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
            self._damaged(f"{_TOOL} holds something other than processes")
        self._drop(1)

    def _process(self) -> Iterator[list[Any]]:
        process = _Process(self._name)
        self.processes.append(process)
        for key in self._keys():
            begins = self._next()
            # Counters are in callback_records; they are passed over a piece at a time.
            if key in ("buffer_records", "callback_records") and begins == b"{":
                for array in self._keys():
                    ours = key == "buffer_records" and array in (*_KERNELS, *_COPIES, *_CALLS)
                    if self._next() != b"[":
                        self._value()
                        continue
                    self.array, self._decoder = array, _RECORDS if ours else _ANYTHING
                    self._between = b""  # each array parts its elements in its own way
                    for batch in self._array(bare=False):
                        if ours:
                            yield self._counted(batch)
            else:
                process.said[key] = self._value()

    def _counted(self, batch: list[Any]) -> list[Any]:
        self._events += len(batch)
        if self._events > MOST_EVENTS:
            raise Refusal(f"{self._name} has more than {MOST_EVENTS:,} events. Record fewer steps.")
        return batch


class _Process:
    """What was said of a process, and its records as columns."""

    def __init__(self, name: str) -> None:
        self._file = name
        self.said: dict[str, Any] = {}
        self._parts: dict[str, dict[str, list[np.ndarray]]] = {
            kind: defaultdict(list) for kind in ("kernels", "copies", "calls")
        }

    def take(self, array: str, batch: list[_Record]) -> None:
        if array in _KERNELS:
            self._add("kernels", batch, {
                "stream": [each.stream_id.handle for each in batch],
                **_of_dispatches([each.dispatch_info for each in batch]),
            })  # fmt: skip
        elif array in _COPIES:
            self._add("copies", batch, {
                "bytes": [each.bytes for each in batch],
                "source": [each.src_agent_id.handle for each in batch],
                "target": [each.dst_agent_id.handle for each in batch],
                "stream": [each.stream_id.handle for each in batch],
            })  # fmt: skip
        else:
            self._add("calls", batch, {})

    def _add(self, kind: str, batch: list[_Record], more: dict[str, list]) -> None:
        columns: dict[str, list] = {
            name: [getattr(each, name) for each in batch] for name in _COMMON
        }
        columns["correlation"] = [each.correlation_id.internal for each in batch]
        for name, values in (columns | more).items():
            if name in _HANDLES:
                values = list(map(_signed, values))
            try:
                self._parts[kind][name].append(np.array(values, np.int64))
            except OverflowError as problem:
                raise Refusal(
                    f"{self._file}: a {name} is more than any profiler writes: damaged."
                ) from problem

    def events(self) -> Events:
        return joined([self._kernels(), self._copies(), self._calls()])

    def devices(self) -> dict[int, Device]:
        found = {}
        for agent in _dicts(self.said.get("agents")):
            number = _number(agent)
            if agent.get("type") == _GPU and number != ABSENT:
                cu = agent.get("cu_count")
                found[number] = Device(
                    number, name=_text(agent, "product_name") or _text(agent, "model_name"),
                    maker=_text(agent, "vendor_name") or "AMD", architecture=_text(agent, "name"),
                    multiprocessors=cu if isinstance(cu, int) and cu > 0 else None,
                )  # fmt: skip
        return found

    def facts(self) -> dict[str, str]:
        command = _dict(self.said.get("metadata")).get("command")
        if isinstance(command, list):
            command = " ".join(map(str, command))
        return {"command": command} if isinstance(command, str) and command else {}

    def _columns(self, kind: str) -> dict[str, np.ndarray]:
        return {name: np.concatenate(parts) for name, parts in self._parts[kind].items()}

    def _kernels(self) -> Events:
        columns = self._columns("kernels")
        if not columns:
            return Events.of((), start=())
        symbols = {
            each["kernel_id"]: each
            for each in _dicts(self.said.get("kernel_symbols"))
            if isinstance(each.get("kernel_id"), int)
        }
        texts = {}
        for key, each in symbols.items():
            wanted = ("formatted_kernel_name", "demangled_kernel_name", "kernel_name")
            text = next((found for name in wanted if (found := _text(each, name))), None)
            if text is not None:
                texts[key] = kernel_name(text)
        names, codes = named(columns["kernel"], texts)
        registers = {
            key: each["arch_vgpr_count"]
            for key, each in symbols.items()
            if isinstance(each.get("arch_vgpr_count"), int)
        }
        block = np.stack([columns[f"block_{axis}"] for axis in "xyz"], axis=1)
        items = np.stack([columns[f"grid_{axis}"] for axis in "xyz"], axis=1)
        stream = columns["stream"]
        return self._of(
            columns, names, codes, kernel_kinds(names, codes),
            device=self._device(columns["agent"]), block=fitting(block),
            grid=blocks(items, block), registers=fitting(_looked_up(columns["kernel"], registers)),
            stream=np.where(stream == ABSENT, columns["queue"], stream),
            shared=fitting(columns["shared"]), scratch=fitting(columns["scratch"]),
        )  # fmt: skip

    def _copies(self) -> Events:
        columns = self._columns("copies")
        if not columns:
            return Events.of((), start=())
        names, codes, _ = self._operations(columns)
        source, target = self._device(columns["source"]), self._device(columns["target"])
        direction = between(directions(names, codes), source, target)
        return self._of(
            columns, names, codes, Kind.COPY, direction=direction, bytes=columns["bytes"],
            device=copies_device(direction, source, target), stream=columns["stream"],
        )  # fmt: skip

    def _calls(self) -> Events:
        columns = self._columns("calls")
        if not columns:
            return Events.of((), start=())
        names, codes, kinds = self._operations(columns)
        messages = {}
        for each in _dicts(_dict(self.said.get("strings")).get("marker_api")):
            if isinstance(each.get("key"), int) and isinstance(each.get("value"), str):
                messages[each["key"]] = each["value"]
        known = {name: number for number, name in enumerate(names)}
        ranges = np.flatnonzero(kinds == Kind.ANNOTATION)
        for row, key in zip(ranges, columns["correlation"][ranges].tolist(), strict=True):
            if key in messages:
                codes[row] = known.setdefault(messages[key], len(known))
        return self._of(columns, tuple(known), codes, kinds)

    def _operations(
        self, columns: dict[str, np.ndarray]
    ) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
        """Names of the operations, and whether each is a call or a range."""
        pairs = np.stack([columns["kind"], columns["operation"]])
        found, codes = np.unique(pairs, axis=1, return_inverse=True)
        strings = list(_items(_dict(self.said.get("strings")).get("buffer_records")))
        names: dict[str, int] = {}
        numbers, kinds = [], []
        for kind, operation in found.T.tolist():
            of_kind = _dict(strings[kind]) if 0 <= kind < len(strings) else {}
            operations = list(_items(of_kind.get("operations")))
            known = 0 <= operation < len(operations)
            name = str(operations[operation]) if known else "unnamed"
            numbers.append(names.setdefault(name, len(names)))
            kinds.append(call_kind(_text(of_kind, "kind") or name))
        codes = codes.reshape(-1)
        return (
            tuple(names),
            np.array(numbers, np.int32)[codes],
            np.array(kinds, np.uint8)[codes],
        )

    def _device(self, handles: np.ndarray) -> np.ndarray:
        numbers = {
            _signed(handle): _number(agent)
            for agent in _dicts(self.said.get("agents"))
            if isinstance(handle := _dict(agent.get("id")).get("handle"), int)
        }
        return fitting(_looked_up(handles, numbers))

    def _of(
        self, columns: dict[str, np.ndarray], names: tuple[str, ...], codes: np.ndarray,
        kind: np.ndarray | Kind, **more: Any,
    ) -> Events:  # fmt: skip
        pid = _dict(self.said.get("metadata")).get("pid")
        number = len(codes)
        return Events.of(
            names, kind=kind, name=codes, start=columns["start_timestamp"],
            end=columns["end_timestamp"], thread=columns["thread_id"],
            process=np.full(number, pid if isinstance(pid, int) else ABSENT),
            correlation=no_zeros(columns["correlation"]), **more,
        )  # fmt: skip


def _of_dispatches(dispatches: list[_Dispatch]) -> dict[str, list[int]]:
    return {
        "agent": [each.agent_id.handle for each in dispatches],
        "queue": [each.queue_id.handle for each in dispatches],
        "kernel": [each.kernel_id for each in dispatches],
        "shared": [each.group_segment_size for each in dispatches],
        "scratch": [each.private_segment_size for each in dispatches],
        **{f"block_{a}": [getattr(each.workgroup_size, a) for each in dispatches] for a in "xyz"},
        **{f"grid_{a}": [getattr(each.grid_size, a) for each in dispatches] for a in "xyz"},
    }


def _signed(handle: int) -> int:
    """A number of 64 bits that stands for something, as our columns hold it."""
    return handle - (1 << 64) if handle >= 1 << 63 else handle


def _looked_up(keys: np.ndarray, values: Mapping[Any, int]) -> np.ndarray:
    found, codes = np.unique(keys, return_inverse=True)
    return np.array([values.get(key, ABSENT) for key in found.tolist()], np.int64)[codes]


def _number(agent: dict[str, Any]) -> int:
    """A device's: as rocprofv3 counts those that a process sees, or of all."""
    found = next((agent[key] for key in ("logical_node_id", "node_id") if key in agent), ABSENT)
    return found if isinstance(found, int) and 0 <= found < 2**31 else ABSENT


def _items(value: Any) -> Iterator[Any]:
    yield from value if isinstance(value, list) else ()


def _dicts(value: Any) -> Iterator[dict[str, Any]]:
    return (each for each in _items(value) if isinstance(each, dict))


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(values: dict[str, Any], name: str) -> str | None:
    found = values.get(name)
    return found if isinstance(found, str) and found else None
