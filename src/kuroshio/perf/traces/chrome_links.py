"""What events tell of each other: a call's size, shape and operator are those of its work."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from . import chrome_kinds, rocm
from .chrome_rows import Flows, Gathered
from .events import ABSENT, Events, Kind

_ITEMS_NOT_BLOCKS = "hipExtModuleLaunchKernel"  # its grid counts work-items
_NEAR_NS = 2  # times that are written as floats are the same so far apart


def linked(gathered: Gathered) -> Events:
    """Kinds by name, and columns filled in from the call that began an event."""
    events = gathered.events
    events = replace(events, correlation=rocm.no_zeros(events.correlation))
    events = _kinds(events, gathered)
    if len(gathered.flows.at):
        events = replace(events, correlation=_by_arrows(events, gathered))
    events = _operators(events)
    calls = np.flatnonzero(events.kind == Kind.CALL)
    calls = calls[events.correlation[calls] != ABSENT]
    work = np.flatnonzero(events.on_device)
    found = _rows_of(events.correlation[calls], events.correlation[work])
    there = found != ABSENT
    work, calls = work[there], calls[found[there]]
    return _filled(events, work, calls)


def _kinds(events: Events, gathered: Gathered) -> Events:
    """The runtime's own kernels that copy, copies that set, and operators that annotate."""
    names, kind = events.names, events.kind.copy()
    kernels = kind == Kind.KERNEL
    kind[kernels] = rocm.kernel_kinds(names, events.name[kernels])
    copying = np.array([*chrome_kinds.are_copies(names), False])
    kind[kernels & copying[events.name]] = Kind.COPY
    # There may be as many names as events: those of copies are looked at.
    copied = np.unique(events.name[kind == Kind.COPY])
    setting = np.zeros(len(names), bool)
    by_name = np.full(len(names), ABSENT, np.int8)
    setting[copied] = chrome_kinds.are_sets([names[name] for name in copied.tolist()])
    by_name[copied] = [chrome_kinds.direction(names[name]) for name in copied.tolist()]
    lane_sets = np.array([*chrome_kinds.are_sets(gathered.lanes), False])
    copies = kind == Kind.COPY
    kind[copies & (setting[events.name] | lane_sets[gathered.thread])] = Kind.SET
    annotating = np.array([*chrome_kinds.are_annotations(names), False])
    kind[(kind == Kind.OPERATOR) & annotating[events.name]] = Kind.ANNOTATION
    by_lane = np.array([*map(chrome_kinds.direction, gathered.lanes), ABSENT], np.int8)
    direction = by_name[events.name]
    direction = np.where(direction == ABSENT, by_lane[gathered.thread], direction)
    direction = np.where(kind == Kind.COPY, direction, np.int8(ABSENT))
    return replace(events, kind=kind, direction=direction)


def _operators(events: Events) -> Events:
    """Without numbers that are none: 0, and a call's own number where no operator has that."""
    operator = rocm.no_zeros(events.operator)
    naming = events.of_kind(Kind.OPERATOR, Kind.ANNOTATION)
    own = ~naming & (operator == events.correlation)
    own &= ~np.isin(operator, operator[naming])
    return replace(events, operator=np.where(own, ABSENT, operator))


def _filled(events: Events, work: np.ndarray, calls: np.ndarray) -> Events:
    """Device events' columns that only their call tells; `work` and `calls` are rows in pairs."""
    columns = {}
    for name in ("operator", "bytes", "grid", "block", "shared", "stream", "device"):
        column = getattr(events, name).copy()
        mine, theirs = column[work], column[calls]
        told = np.where(mine == ABSENT, theirs, mine)
        if name == "bytes":
            moving = np.isin(events.kind[work], (Kind.COPY, Kind.SET))
            told = np.where(moving, told, mine)
        elif name in ("grid", "block", "shared"):
            told = np.where(_across(events.kind[work] == Kind.KERNEL, told), told, mine)
        column[work] = told
        columns[name] = column
    counted = np.array([*(name == _ITEMS_NOT_BLOCKS for name in events.names), False])
    items = work[counted[events.name[calls]]]
    columns["grid"][items] = rocm.blocks(columns["grid"][items], columns["block"][items])
    # What a call was asked for is its work's.
    for name in ("grid", "block", "shared"):
        columns[name][events.kind != Kind.KERNEL] = ABSENT
    columns["bytes"][events.kind == Kind.CALL] = ABSENT
    return replace(events, **columns)


def _across(mask: np.ndarray, like: np.ndarray) -> np.ndarray:
    return mask[:, None] if like.ndim > 1 else mask


def _rows_of(keys: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Of each wanted, a place in `keys`, ABSENT where it is not among them."""
    if not len(keys):
        return np.full(len(wanted), ABSENT)
    order = np.argsort(keys, kind="stable")
    place = np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)
    return np.where(keys[order][place] == wanted, order[place], ABSENT)


def _by_arrows(events: Events, gathered: Gathered) -> np.ndarray:
    """Correlations of calls and device events that an arrow joins: the arrow's number.

    An arrow begins within a call, on its thread, and ends where an event of a device begins.
    """
    flows = gathered.flows
    correlation = events.correlation.copy()
    for begins, rows in (
        (True, np.flatnonzero(events.kind == Kind.CALL)),
        (False, np.flatnonzero(events.on_device)),
    ):
        these = np.flatnonzero(flows.begins == begins)
        found = _drawn_at(flows, these, gathered, rows)
        if begins:
            within = gathered.drawn + events.duration
            found = np.where(flows.at[these] <= within[found] + _NEAR_NS, found, ABSENT)
        else:
            far = np.abs(flows.at[these] - gathered.drawn[found]) > _NEAR_NS
            found = np.where(far, ABSENT, found)
        there = found != ABSENT
        correlation[found[there]] = flows.arrow[these[there]]
    return correlation


def _drawn_at(flows: Flows, these: np.ndarray, gathered: Gathered, rows: np.ndarray) -> np.ndarray:
    """The last of the rows that is drawn on an arrow's lane before it, ABSENT where none is."""
    lanes = len(gathered.lanes) + 1
    rows = rows[np.lexsort((gathered.drawn[rows], _lane(gathered, rows, lanes)))]
    lane, drawn = _lane(gathered, rows, lanes), gathered.drawn[rows]
    wanted = flows.process[these].astype(np.int64) * lanes + flows.thread[these]
    at = flows.at[these] + _NEAR_NS
    # Rows in order of lane and time, and arrows after the rows of their time.
    lane_all, at_all = np.concatenate([lane, wanted]), np.concatenate([drawn, at])
    arrow = np.concatenate([np.zeros(len(rows), bool), np.ones(len(these), bool)])
    order = np.lexsort((arrow, at_all, lane_all))
    last = np.maximum.accumulate(np.where(arrow[order], -1, np.arange(len(order))))
    place = np.empty(len(order), np.int64)
    place[order] = np.where(last >= 0, order[last], ABSENT)
    found = place[len(rows) :]
    same = (found != ABSENT) & (lane_all[found] == wanted)
    return np.where(same, np.append(rows, ABSENT)[found], ABSENT)


def _lane(gathered: Gathered, rows: np.ndarray, lanes: int) -> np.ndarray:
    return gathered.process[rows].astype(np.int64) * lanes + gathered.thread[rows]
