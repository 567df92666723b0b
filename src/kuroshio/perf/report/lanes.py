"""The lanes of the timeline: holes and streams of devices, steps and threads of hosts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..timeline.analysis import Analysis
from ..timeline.groups import alike, by_device, communicating, reading
from ..timeline.holes import CAUSES
from ..timeline.stages import Role
from ..timeline.steps import Source
from ..traces.events import Events, Kind
from . import palette
from .merging import Row, merged, row

MOST = 120_000  # rectangles of a page; each takes about 25 bytes of it
# Of a trace, in order of number: threads with the most time, streams with the most events.
_MOST_THREADS, _MOST_STREAMS = 8, 16
_DEEPEST = 4  # operators within operators
_LEAST = 500  # rectangles that a row gets at least: more than a phone has columns
_COLOUR = {name: number for number, name in enumerate(palette.COLOURS)}
_OF_KIND = {
    Kind.KERNEL: palette.COMPUTE, Kind.COPY: palette.COPY, Kind.SET: palette.SET,
    Kind.CALL: palette.CALL, Kind.OPERATOR: palette.OPERATOR,
    Kind.ANNOTATION: palette.ANNOTATION, Kind.WAIT: palette.WAITING, Kind.STAGE: palette.STAGE,
}  # fmt: skip


@dataclass(frozen=True)
class Lane:
    """Rows of rectangles under one label. Names are numbers of `names`.

    device  whose holes or stream it is; None of hosts
    """

    label: str
    rows: tuple[Row, ...]
    names: Sequence[str]
    device: int | None = None


@dataclass(frozen=True)
class Lanes:
    """Of one trace, from start to end in ns; what was left out is said, a sentence each."""

    lanes: tuple[Lane, ...]
    start: int
    end: int
    left_out: tuple[str, ...]


def lanes(analysis: Analysis, most: int = MOST) -> Lanes:
    """With at most about so many rectangles."""
    events = analysis.trace.events
    if not len(events):
        return Lanes((), 0, 0, ())
    colour = _colours(analysis)
    made = [*_steps(analysis), *_devices(analysis, colour), *_hosts(events, colour)]
    left_out = _left_out(events)
    number = sum(len(each) for lane in made for each in lane.rows)
    if number > most:
        # Rows of few events keep them, as far as half of what there may be reaches.
        least = min(_LEAST, most // (2 * sum(len(lane.rows) for lane in made)))
        made = [_fewer(lane, most / number, least) for lane in made]
        drawn = sum(len(each) for lane in made for each in lane.rows)
        left_out.append(
            f"{number:,} events and holes are drawn as {drawn:,}: what is too short to be seen "
            "apart is merged"
        )
    return Lanes(tuple(made), int(events.start[0]), int(events.end.max()), tuple(left_out))


def _fewer(lane: Lane, share: float, least: int) -> Lane:
    rows = tuple(merged(each, max(1, least, int(share * len(each)))) for each in lane.rows)
    return Lane(lane.label, rows, lane.names, lane.device)


def _colours(analysis: Analysis) -> np.ndarray:
    events = analysis.trace.events
    of_kind = np.array([_COLOUR[_OF_KIND[kind]] for kind in Kind], np.int64)
    colour = of_kind[events.kind]
    colour[communicating(events)] = _COLOUR[palette.COMMUNICATION]
    colour[reading(events)] = _COLOUR[palette.READING]
    if analysis.pipeline:
        roles = {stage.name: stage.role for stage in analysis.pipeline.stages}
        of_name = np.array(
            [_COLOUR[palette.OF_ROLE[roles.get(name, Role.OTHER)]] for name in events.names]
        )
        stages = events.kind == Kind.STAGE
        colour[stages] = of_name[events.name[stages]]
    return colour


def _steps(analysis: Analysis) -> Iterator[Lane]:
    steps = analysis.steps
    if steps is None or steps.source == Source.WHOLE:
        return
    number = np.arange(len(steps.steps))
    start, end = (
        np.array([getattr(each, side) for each in steps.steps], np.int64)
        for side in ("start", "end")
    )
    colour = np.full(len(number), _COLOUR[palette.ANNOTATION])
    names = [each.name for each in steps.steps]
    yield Lane("steps", (row(start, end, number, colour),), names)


def _devices(analysis: Analysis, colour: np.ndarray) -> Iterator[Lane]:
    events, holes = analysis.trace.events, analysis.holes
    of_device: dict[int, np.ndarray] = {}
    if holes is not None:
        of = holes.gaps.device
        of_device = {int(of[mine[0]]): mine for mine in alike(of, np.arange(len(of)))}
    for number, work in by_device(events):
        told = analysis.trace.devices.get(number)
        said = f"device {number}" if number >= 0 else "device"
        if holes is not None and (mine := of_device.get(number)) is not None:
            pairs = np.stack([holes.cause[mine], holes.who[mine]]).astype(np.int64)
            told_apart, at = np.unique(pairs, axis=1, return_inverse=True)
            names = [
                f"{CAUSES[cause]}: {holes.names[who]}" if who >= 0 else str(CAUSES[cause])
                for cause, who in told_apart.T.tolist()
            ]
            reason = np.array([_COLOUR[palette.OF_CAUSE[each]] for each in CAUSES])
            label = f"{said}{f' ({told.name})' if told and told.name else ''}: holes"
            gaps = holes.gaps[mine]
            shown = row(gaps.start, gaps.end, at.reshape(-1), reason[holes.cause[mine]])
            yield Lane(label, (shown,), names, number)
        for stream in _busiest(events.stream[work], _MOST_STREAMS):
            rows = work[events.stream[work] == stream]
            label = f"{said}, stream {stream}" if stream >= 0 else said
            yield Lane(label, (_row(events, rows, colour),), events.names, number)


def _hosts(events: Events, colour: np.ndarray) -> Iterator[Lane]:
    host = _host(events)
    for thread in _busiest(events.thread[host], _MOST_THREADS, events.duration[host]):
        rows = np.flatnonzero(host & (events.thread == thread))
        depth = _depth(events.start[rows], events.end[rows])
        label = f"host, thread {thread}" if thread >= 0 else "host"
        found = tuple(
            _row(events, rows[depth == level], colour)
            for level in range(_DEEPEST)
            if (depth == level).any()
        )
        yield Lane(label, found, events.names)


def _host(events: Events) -> np.ndarray:
    kinds = (Kind.CALL, Kind.OPERATOR, Kind.ANNOTATION, Kind.STAGE)
    return events.of_kind(*kinds) & (events.device < 0)


def _row(events: Events, rows: np.ndarray, colour: np.ndarray) -> Row:
    return row(events.start[rows], events.end[rows], events.name[rows], colour[rows])


def _busiest(numbers: np.ndarray, most: int, weights: np.ndarray | None = None) -> list[int]:
    """Those that occur most often, or weigh most, in order of number."""
    found, at = np.unique(numbers, return_inverse=True)
    kept = np.sort(np.argsort(-np.bincount(at.ravel(), weights), kind="stable")[:most])
    return list(map(int, found[kept]))


def _depth(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """How many events are open when each begins; they are in order of start, parents first."""
    last = np.sort(np.maximum(end, start + 1))
    return np.arange(len(start)) - np.searchsorted(last, start, side="right")


def _left_out(events: Events) -> list[str]:
    said = []
    threads = len(np.unique(events.thread[_host(events)]))
    if threads > _MOST_THREADS:
        said.append(f"Of {threads} threads of the host the {_MOST_THREADS} with the most time")
    work = events.on_device
    streams = len(np.unique(np.stack([events.device[work], events.stream[work]]), axis=1).T)
    if streams > _MOST_STREAMS:
        said.append(f"Of each device the {_MOST_STREAMS} streams with most events")
    return said
