"""What counters saw of a kernel, and the dispatches of one kernel made one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

_ALIKE = 0.8  # of the most bytes, or operations


@dataclass(frozen=True, kw_only=True)
class Counted:
    """Of one launch: bytes between cache and memory, operations, seconds; None: not counted."""

    name: str
    kind: str = "cpu"  # of the device: cpu, cuda, hip
    bytes: float | None = None
    flops: float | None = None
    integers: float | None = None  # lanes of instructions of the pipe that has minima and maxima
    operations: str | None = None
    lanes: float | None = None  # share of a wave's at work, the mean of instructions
    seconds: float | None = None
    dispatches: int = 1
    all_seconds: float | None = None  # of all dispatches; of one they are seconds
    notes: tuple[str, ...] = ()


def merged(launches: Iterable[Counted]) -> list[Counted]:
    """A kernel each, in the order of their first launches, of one file or of several passes.

    Bytes and operations are those of the launch with the most: others are smaller, find data in a
    cache that the one before left there, or leave some for the next. Seconds are the median of
    those launches that are of about its size, so that rates are right.
    """
    by_name: dict[tuple[str, str], list[Counted]] = {}
    for launch in launches:
        by_name.setdefault((launch.kind, launch.name), []).append(launch)
    return [_one(same) for same in by_name.values()]


def _one(same: list[Counted]) -> Counted:
    nbytes = [each.bytes for each in same if each.bytes is not None]
    flops = [each.flops for each in same if each.flops is not None]
    integers = [each.integers for each in same if each.integers is not None]
    works = max(same, key=lambda each: each.flops or 0.0)
    most = max(nbytes, default=0.0), max(flops, default=0.0)
    large = [each for each in same if _about(each.bytes, most[0]) and _about(each.flops, most[1])]
    seconds = [each.seconds for each in large if each.seconds]
    lanes = [each.lanes for each in large if each.lanes is not None]
    total = sum(each.all_seconds or each.seconds or 0.0 for each in same)
    notes = list(dict.fromkeys(note for each in same for note in each.notes))
    if len(large) < len(same):
        notes.append(
            f"{len(same) - len(large)} of {len(same)} launches moved or did a fifth less or more "
            "(they are smaller, or caches served them) and count for the share of time only"
        )
    elif nbytes and min(nbytes) < 0.95 * max(nbytes):
        notes.append(
            f"{len(nbytes)} launches moved {min(nbytes):,.0f} to {max(nbytes):,.0f} bytes: the "
            "most is taken, for caches serve and keep a part in the others"
        )
    return Counted(
        name=works.name,
        kind=works.kind,
        bytes=max(nbytes, default=None),
        flops=max(flops, default=None),
        integers=max(integers, default=None),
        operations=works.operations,
        lanes=median(lanes) if lanes else None,
        seconds=median(seconds) if seconds else None,
        dispatches=sum(each.dispatches for each in same),
        all_seconds=total or None,
        notes=tuple(notes),
    )


def _about(one: float | None, most: float) -> bool:
    """Whether it is the most of all or hardly less."""
    return one is None or one >= _ALIKE * most
