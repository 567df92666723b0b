"""How large messages are and how fast they travel, against what was measured."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..ceilings.ceiling import GB, Ceiling
from .collectives import Collective

_NEAR = 4.0  # times as large or as small, a measured message says nothing of another
_LARGER = 4.0  # times as large, a message of the same trace shows what large ones attain


@dataclass(frozen=True)
class Message:
    """Collectives of one kind and size. Bandwidths are GB/s (1e9 bytes), by the median duration.

    bytes       of a rank's message, the larger side; None where the trace does not tell
    algorithm   bytes over time
    bus         times the factor of the collective: what each rank's link carries
    ceiling     measured all-reduce of messages about as large, GB/s of the bus; None without
    large       bytes over time, GB/s, that much larger messages attain: as measured, else the best
                of the same kind in this trace that are larger; None where neither is known
    rows        of the slowest, on the first rank, at most 20
    """

    kind: str
    bytes: int | None
    group: int | None  # ranks that take part
    calls: int
    total: int  # ns, of all of them on the rank that came last
    median: int  # ns
    algorithm: float | None
    bus: float | None
    ceiling: float | None
    large: float | None
    rows: tuple[int, ...]


def messages_of(
    together: Sequence[Sequence[Collective]], ceilings: Sequence[Ceiling]
) -> list[Message]:
    """Of collectives, each on one rank or on several; those that take the most time first.

    On the rank that came last a collective takes as long as the transfer; on others it waits, too.
    """
    groups: dict[tuple[str, int, int], list[tuple[int, int]]] = defaultdict(list)
    for each in together:
        first = each[0]
        key = first.kind, -1 if first.bytes is None else first.bytes, first.group or 0
        groups[key].append((min(one.duration for one in each), first.row))
    made = []
    for (kind, size, ranks), mine in groups.items():
        mine.sort()
        total, median = sum(ns for ns, _ in mine), mine[(len(mine) - 1) // 2][0]
        rate = size / median if size >= 0 and median else None  # bytes a ns are GB/s
        factor = _factor(kind, ranks)
        bus = rate * factor if rate is not None and factor is not None else None
        made.append(
            Message(
                kind, size if size >= 0 else None, ranks or None, len(mine), total, median,
                rate, bus,
                _ceiling(ceilings, size, ranks) if kind == "all-reduce" and size > 0 else None,
                _measured(ceilings, ranks) if kind == "all-reduce" else None,
                tuple(row for _, row in mine[::-1][:20]),
            )
        )  # fmt: skip
    made = [replace(each, large=each.large or _larger(each, made)) for each in made]
    return sorted(made, key=lambda message: -message.total)


def _larger(message: Message, among: Sequence[Message]) -> float | None:
    """What those of its kind and group attain that are much larger."""
    rates = [
        each.algorithm
        for each in among
        if each.algorithm
        and (each.kind, each.group) == (message.kind, message.group)
        and message.bytes is not None
        and (each.bytes or 0) >= _LARGER * message.bytes
    ]
    return max(rates, default=None)


def _factor(kind: str, ranks: int) -> float | None:
    """Bytes that each rank's link carries, over the message's: of the best that can be done."""
    if kind in ("broadcast", "reduce", "send-receive"):
        return 1.0
    if ranks < 2:
        return None
    if kind == "all-reduce":
        return 2 * (ranks - 1) / ranks
    if kind in ("all-gather", "reduce-scatter", "all-to-all"):
        return (ranks - 1) / ranks
    return None


def _sweep(ceilings: Sequence[Ceiling], ranks: int) -> list[tuple[int, float]]:
    """Measured all-reduces of so many devices: bytes of a message, and GB/s of them."""
    return [
        (each.message_bytes, each.value)
        for each in ceilings
        if (of := re.fullmatch(r"all-reduce of (\d+)", each.name))
        and each.unit == GB
        and each.message_bytes
        and int(of[1]) == ranks
    ]


def _measured(ceilings: Sequence[Ceiling], ranks: int) -> float | None:
    return max((rate for _, rate in _sweep(ceilings, ranks)), default=None)


def _ceiling(ceilings: Sequence[Ceiling], size: int, ranks: int) -> float | None:
    """Of as many devices, and of the message nearest in size, by ratio; of the bus."""
    best: tuple[float, float] | None = None
    for measured, rate in _sweep(ceilings, ranks):
        away = abs(math.log(measured / size))
        factor = _factor("all-reduce", ranks)
        if factor and away <= math.log(_NEAR) and (best is None or away < best[0]):
            best = away, rate * factor
    return None if best is None else best[1]
