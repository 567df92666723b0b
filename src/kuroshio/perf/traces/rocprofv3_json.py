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

import numpy as np

from ...errors import Refusal
from . import rocm
from .chrome_columns import whole
from .events import ABSENT, Events, Kind, joined
from .rocprofv3_records import COPIES, KERNELS, TOOL, Dispatch, Record, Records, Said
from .sound import as_texts, fitting, named, sound, together
from .trace import Device, Trace

FORM = "rocprofv3 JSON"
_GPU = 2  # of an agent's types
_ADVICE = "Write it with rocprofv3 --runtime-trace --output-format json."
_HANDLES = ("agent", "queue", "stream", "source", "target")
_COMMON = ("start_timestamp", "end_timestamp", "kind", "operation", "thread_id")


def recognise(path: Path, head: bytes) -> bool:
    return f'"{TOOL}"'.encode() in head[:200]


def read(path: Path) -> Trace:
    """A Refusal where there are no events, or the file is damaged or cut off."""
    stream = Records(path)
    processes: list[_Process] = []
    for batch in stream:
        if not stream.said:
            raise Refusal(f"{path} is not rocprofv3's: it has no {TOOL}. {_ADVICE}")
        while len(processes) < len(stream.said):
            processes.append(_Process(str(path), stream.said[len(processes)]))
        processes[-1].take(stream.array, batch)
    events, notes = sound(together(process.events() for process in processes))
    if not len(events):
        raise Refusal(f"{path} is rocprofv3's and has no kernels, copies or calls. {_ADVICE}")
    devices = {key: each for process in processes for key, each in process.devices().items()}
    untold = [*rocm.lacks(events), *notes]
    if stream.odd:
        untold.append(f"{stream.odd:,} records are not as rocprofv3 writes them; they are left out")
    return Trace(
        path, FORM, events, devices=rocm.described(events, devices), cannot_tell=tuple(untold),
        facts={key: value for process in processes for key, value in process.facts().items()},
    )  # fmt: skip


class _Process:
    """What was said of a process, and its records as columns."""

    def __init__(self, name: str, said: Said) -> None:
        self._file, self.said = name, said
        self._parts: dict[str, dict[str, list[np.ndarray]]] = {
            kind: defaultdict(list) for kind in ("kernels", "copies", "calls")
        }

    def take(self, array: str, batch: list[Record]) -> None:
        if array in KERNELS:
            self._add("kernels", batch, {
                "stream": [each.stream_id.handle for each in batch],
                **_of_dispatches([each.dispatch_info for each in batch]),
            })  # fmt: skip
        elif array in COPIES:
            self._add("copies", batch, {
                "bytes": [each.bytes for each in batch],
                "source": [each.src_agent_id.handle for each in batch],
                "target": [each.dst_agent_id.handle for each in batch],
                "stream": [each.stream_id.handle for each in batch],
            })  # fmt: skip
        else:
            self._add("calls", batch, {})

    def _add(self, kind: str, batch: list[Record], more: dict[str, list]) -> None:
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
        for agent in _dicts(self.said.values.get("agents")):
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
        command = _dict(self.said.values.get("metadata")).get("command")
        if isinstance(command, list):
            command = " ".join(map(str, command))
        return {"command": command} if isinstance(command, str) and command else {}

    def _columns(self, kind: str) -> dict[str, np.ndarray]:
        return {name: np.concatenate(parts) for name, parts in self._parts[kind].items()}

    def _kernels(self) -> Events:
        columns = self._columns("kernels")
        if not columns:
            return Events.of((), start=())
        symbols = self.said.symbols
        texts = {}
        for key in np.unique(columns["kernel"]).tolist():
            if each := symbols.get(key):
                text = each.formatted_kernel_name or each.demangled_kernel_name or each.kernel_name
                texts[key] = rocm.kernel_name(text or "unnamed")
        names, codes = named(columns["kernel"], texts)

        def of_symbols(name: str) -> np.ndarray:
            counts = {key: getattr(each, name) for key, each in symbols.items()}
            return _looked_up(columns["kernel"], counts)

        block = np.stack([columns[f"block_{axis}"] for axis in "xyz"], axis=1)
        items = np.stack([columns[f"grid_{axis}"] for axis in "xyz"], axis=1)
        stream = columns["stream"]
        return self._of(
            columns, names, codes, rocm.kernel_kinds(names, codes),
            device=self._device(columns["agent"]), block=fitting(block),
            grid=rocm.blocks(items, block), registers=fitting(of_symbols("arch_vgpr_count")),
            stream=np.where(stream == ABSENT, columns["queue"], stream),
            shared=fitting(columns["shared"]), scratch=fitting(columns["scratch"]),
            others={
                "queue_id": as_texts(columns["queue"]),
                **{key: as_texts(of_symbols(key)) for key in ("accum_vgpr_count", "sgpr_count")},
            },
        )  # fmt: skip

    def _copies(self) -> Events:
        columns = self._columns("copies")
        if not columns:
            return Events.of((), start=())
        names, codes, _ = self._operations(columns)
        source, target = self._device(columns["source"]), self._device(columns["target"])
        direction, device = rocm.copied(names, codes, source, target)
        return self._of(
            columns, names, codes, Kind.COPY, direction=direction, bytes=columns["bytes"],
            device=device, stream=columns["stream"],
        )  # fmt: skip

    def _calls(self) -> Events:
        columns = self._columns("calls")
        if not columns:
            return Events.of((), start=())
        names, codes, kinds = self._operations(columns)
        messages = self.said.messages
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
        strings = self.said.operations
        names: dict[str, int] = {}
        numbers, kinds = [], []
        for kind, operation in found.T.tolist():
            of_kind = _dict(strings[kind]) if 0 <= kind < len(strings) else {}
            operations = list(_items(of_kind.get("operations")))
            known = 0 <= operation < len(operations)
            name = str(operations[operation]) if known else "unnamed"
            numbers.append(names.setdefault(name, len(names)))
            kinds.append(rocm.call_kind(_text(of_kind, "kind") or name))
        codes = codes.reshape(-1)
        return (
            tuple(names),
            np.array(numbers, np.int32)[codes],
            np.array(kinds, np.uint8)[codes],
        )

    def _device(self, handles: np.ndarray) -> np.ndarray:
        numbers = {
            _signed(handle): _number(agent)
            for agent in _dicts(self.said.values.get("agents"))
            if isinstance(handle := _dict(agent.get("id")).get("handle"), int)
        }
        return fitting(_looked_up(handles, numbers))

    def _of(
        self, columns: dict[str, np.ndarray], names: tuple[str, ...], codes: np.ndarray,
        kind: np.ndarray | Kind, **more: Any,
    ) -> Events:  # fmt: skip
        pid = _dict(self.said.values.get("metadata")).get("pid")
        number = len(codes)
        return Events.of(
            names, kind=kind, name=codes, start=columns["start_timestamp"],
            end=columns["end_timestamp"], thread=columns["thread_id"],
            process=np.full(number, whole(pid)),
            correlation=rocm.no_zeros(columns["correlation"]), **more,
        )  # fmt: skip


def _of_dispatches(dispatches: list[Dispatch]) -> dict[str, list[int]]:
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
    return np.array([whole(values.get(key)) for key in found.tolist()], np.int64)[codes]


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
